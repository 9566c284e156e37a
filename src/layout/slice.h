// Fixing some coordinates and keeping others free, and what is built on it: tiles and partitions.
#pragma once

#include "layout/divide_product.h"
#include "layout/swizzle.h"

#include <cstdint>

namespace tilewright {

namespace detail {

constexpr void slice_into(const Layout& layout, int node, const IntTuple& crd, int crd_node,
                          Layout& free_modes, IntTuple& offset) {
  if (crd.profile.is_leaf(crd_node)) {
    const std::int64_t at = crd.value[crd.profile.first_leaf(crd_node)];
    const Layout here = subtree(layout, node);
    if (at == kFree) {
      push_mode(free_modes, here);
    } else {
      offset = add_coordinates(offset, coordinate(here, IntTuple(at)));
    }
    return;
  }
  const int modes = crd.profile.rank_at(crd_node);
  if (modes != layout.profile.rank_at(node)) {
    law::coordinate_must_be_nested_like_the_shape(crd, shape(layout));
  }
  for (int k = 0; k < modes; ++k) {
    slice_into(layout, layout.profile.child(node, k), crd, crd.profile.child(crd_node, k),
               free_modes, offset);
  }
}

}  // namespace detail

/// The free modes of a layout at a coordinate, and where they begin: slice((3,_), (4,8):(1,4)) is
/// (8):(4) at offset 3. Free modes of nested coordinates come out side by side.
/// Post  R(free coordinates) == A(full coordinate)
constexpr ComposedLayout slice(const IntTuple& crd, const ComposedLayout& a) {
  if (is_leaf(crd) && crd.value[0] == kFree) return a;
  Layout free_modes;
  IntTuple offset = a.offset;
  detail::slice_into(a.layout, 0, crd, 0, free_modes, offset);
  return {a.swizzle, offset, free_modes};
}

/// The complement of slice: the modes with a fixed coordinate, dice((3,_), (4,8):(1,4)) = (4):(1).
constexpr Layout dice(const IntTuple& crd, const Layout& a) {
  IntTuple flipped = crd;
  for (int i = 0; i < crd.profile.num_leaves; ++i) {
    flipped.value[i] = crd.value[i] == kFree ? 0 : kFree;
  }
  return slice(flipped, a).layout;
}

/// Tile number `crd` of a layout cut by a tiler (CuTe: local_tile, inner_partition). Free entries
/// of the coordinate keep those tiles as further modes.
constexpr ComposedLayout local_tile(const ComposedLayout& a, const Tiler& tiler,
                                    const IntTuple& crd) {
  const ComposedLayout tiles{a.swizzle, a.offset, zipped_divide(a.layout, tiler)};
  const ComposedLayout picked = slice(make_coord(kFree, crd), tiles);
  Layout flat;  // the modes of the tile, then the tiles still free
  push_modes(flat, mode(picked.layout, 0));
  push_modes(flat, picked.layout, 1, rank(picked.layout));
  return {picked.swizzle, picked.offset, flat};
}

/// What thread `index` holds when a layout is dealt out to threads laid out as given, element by
/// element (CuTe: local_partition, outer_partition).
constexpr ComposedLayout local_partition(const ComposedLayout& a, const Layout& threads,
                                         std::int64_t index) {
  const Tiler extents = product_each(shape(threads));
  const ComposedLayout dealt{a.swizzle, a.offset, zipped_divide(a.layout, extents)};
  const ComposedLayout mine = slice(make_coord(get_flat_coord(threads, index), kFree), dealt);
  return {mine.swizzle, mine.offset, unwrap(mine.layout)};
}

}  // namespace tilewright
