// A layout as users give it, written out or by name: what it is, and how it is drawn.
#pragma once

#include "arch/fragments/atoms.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::arch {

/// `atom` is set if the layout was given by name.
struct NamedLayout {
  ComposedLayout layout;
  const NamedAtom* atom = nullptr;
};

/// The layout that a text or a name of `layout atoms` stands for.
/// Errors   ParseError; InvalidArgument for an unknown name (the message has similar ones)
NamedLayout read_layout(const std::string& text);

/// The atom of that name. Errors as read_layout.
const NamedAtom& read_atom(const std::string& name);

/// Operands of an operation: names of atoms stand for their layouts.
std::vector<std::string> resolve_names(std::vector<std::string> words);

/// Shape, stride, text, rank, depth, size, swizzle, coalesced, cosize (null for coordinate layouts)
/// and the first `limit` values.
nlohmann::json describe_layout(const ComposedLayout& layout, int limit);

/// Name, family, kind, layout, element_bits and summary.
nlohmann::json describe_atom(const NamedAtom& atom);

/// How a layout that was written out is read. Atoms know it themselves.
struct DrawnAs {
  std::string kind;  ///< "offsets", "tv", "memory", "tmem"; "" or "auto": an atom as it is
  std::int64_t tile_rows = 0, tile_columns = 0;  ///< for tv; 0: one row of all
  int element_bits = 0;                          ///< 0: 16 in memory, 32 in Tensor Memory
  Window window;
};

/// Errors   InvalidArgument for an unknown kind, and as the functions of layout/draw.h
Drawing draw_layout(const NamedLayout& named, const DrawnAs& as);

}  // namespace tilewright::arch
