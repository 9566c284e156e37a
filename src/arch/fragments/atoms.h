// Every hardware layout by name: what `tilewright layout atoms` lists and `draw` draws.
#pragma once

#include "layout/draw.h"
#include "layout/swizzle.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::arch {

/// What the coordinates and offsets of an atom mean, and so how it is drawn.
enum class AtomKind {
  kThreadValue,   ///< (thread, value) -> element of a column-major tile
  kSharedTile,    ///< (mn, k) -> element offset in shared memory, swizzled
  kTensorMemory,  ///< (row, column) -> lane * 65536 + column, in elements
  kTmemAccess,    ///< (thread, register) -> lane * 65536 + column
  kScales,        ///< (row, k) -> byte of a scale-factor tensor
};
const char* to_string(AtomKind kind);

struct NamedAtom {
  std::string name;     ///< "wgmma.m64n128.C"
  std::string family;   ///< "wgmma.m64nN.C"
  std::string summary;  ///< one line
  AtomKind kind = AtomKind::kThreadValue;
  ComposedLayout layout;
  IntTuple tile;  ///< extents of the tile that a kThreadValue atom covers
  int element_bits = 16;
  std::string row_name = "m", column_name = "k";
  int scale_block = 1;  ///< kScales: elements a scale covers
};

/// All atoms, family by family.
const std::vector<NamedAtom>& named_atoms();

/// Null if there is none of that name.
const NamedAtom* find_atom(std::string_view name);

/// The atom as a picture, or a part of it.
Drawing draw_atom(const NamedAtom& atom, Window window = {});

}  // namespace tilewright::arch
