// A copy instruction as layouts, and a tile of such instructions: which thread moves which element.
#pragma once

#include "layout/slice.h"

#include <cstdint>

namespace tilewright {

/// What one copy instruction does: (thread, value) -> bit position, once as the source sees it and
/// once as the destination does. For a plain vector copy both are (1,n); for ldmatrix they differ,
/// which is the whole point of ldmatrix.
struct CopyAtom {
  Layout thr_id = make_layout(1);
  Layout src_tv, dst_tv;

  constexpr bool operator==(const CopyAtom&) const = default;
  constexpr std::int64_t num_values() const { return size(src_tv, 1); }
};

/// Copies `num_values` contiguous elements a thread.
constexpr CopyAtom make_vector_copy(std::int64_t num_values) {
  const Layout tv = make_layout(make_shape(1, num_values), make_stride(0, 1));
  return {make_layout(1), tv, tv};
}

/// A copy atom spread over a tile: tv maps (thread, value) to an element of the column-major tile.
struct TiledCopy {
  CopyAtom atom;
  Layout tv;
  IntTuple tile;

  constexpr bool operator==(const TiledCopy&) const = default;
  constexpr std::int64_t num_threads() const { return size(tv, 0); }
};

/// Threads laid out over the tile, each with a block of values: make_tiled_copy(vector copy of 8,
/// (16,8):(8,1), (1,8)) has 128 threads move a 16x64 tile in rows.
constexpr TiledCopy make_tiled_copy(const CopyAtom& atom, const Layout& threads,
                                    const Layout& values) {
  const Layout tile = raked_product(threads, values);
  const Layout tv = with_shape(right_inverse(tile), make_shape(size(threads), size(values)));
  return {atom, tv, product_each(shape(tile))};
}

namespace detail {

// (M,N,...) -> ((thread of the atom, rest), (value of the atom, rest), (repetitions of the tile))
constexpr Layout copy_view(const TiledCopy& copy, const Layout& atom_tv, const Layout& tile) {
  const Layout tiles = zipped_divide(tile, Tiler(copy.tile));
  const Layout atoms =
      zipped_divide(copy.tv, make_tiler(size(copy.atom.thr_id), copy.atom.num_values()));
  // The tile's (thread, value) order is the source's; the destination's order is read through it.
  const Layout from_source = composition(right_inverse(copy.atom.src_tv), atom_tv);
  const Layout picked = composition(atoms, make_tiler(from_source, kFree));
  const Layout paired = zip(mode(picked, 0), mode(picked, 1));
  const Layout thr_val = coalesce(paired, make_shape(1, make_shape(1, 1)));
  return composition(tiles, make_tiler(thr_val, kFree));
}

}  // namespace detail

/// Thread `thread`'s part of a source or destination: ((values of the atom, atoms),
/// repetitions...).
constexpr ComposedLayout partition_copy(const TiledCopy& copy, const Layout& atom_tv,
                                        std::int64_t thread, const ComposedLayout& tile) {
  const Layout view = detail::copy_view(copy, atom_tv, tile.layout);
  IntTuple rest;
  for (int i = 0; i < rank(mode(view, 1)); ++i) push_mode(rest, IntTuple(kFree));
  return slice(make_coord(make_coord(thread, kFree), rest), {tile.swizzle, tile.offset, view});
}
constexpr ComposedLayout partition_S(const TiledCopy& copy, std::int64_t thread,
                                     const ComposedLayout& tile) {
  return partition_copy(copy, copy.atom.src_tv, thread, tile);
}
constexpr ComposedLayout partition_D(const TiledCopy& copy, std::int64_t thread,
                                     const ComposedLayout& tile) {
  return partition_copy(copy, copy.atom.dst_tv, thread, tile);
}

}  // namespace tilewright
