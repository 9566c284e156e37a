// Dividing a layout into tiles and repeating a layout: the divide and product families.
//
//               ((BLK_A, BLK_B, ...), (a, b, ...))   zipped
//               ((BLK_A, BLK_B, ...), a, b, ...)     tiled
//               (BLK_A, BLK_B, ..., a, b, ...)       flat
//               ((BLK_A, a), (BLK_B, b), ...)        logical
#pragma once

#include "layout/algebra.h"

#include <cstdint>

namespace tilewright {

namespace detail {

// Gathers the first halves and the second halves of pairs: ((A,a),(B,b)) by <.,.> = ((A,B),(a,b)).
// A leaf of the guide marks a pair; modes beyond the guide join the second halves.
constexpr Layout unzip(const Layout& pairs, const Tiler& guide) {
  if (is_leaf(guide)) {
    if (rank(pairs) != 2) {
      law::tiled_modes_must_be_pairs(pairs);
    }
    return pairs;
  }
  Layout first, second;
  for (int i = 0; i < rank(guide); ++i) {
    const Layout pair = unzip(mode(pairs, i), mode(guide, i));
    push_mode(first, mode(pair, 0));
    push_mode(second, mode(pair, 1));
  }
  push_modes(second, pairs, rank(guide), rank(pairs));
  return make_layout(first, second);
}

constexpr Layout unpack_second(const Layout& pair) {
  Layout out;
  push_mode(out, mode(pair, 0));
  push_modes(out, mode(pair, 1));
  return out;
}

constexpr Layout unpack_both(const Layout& pair) {
  Layout out;
  push_modes(out, mode(pair, 0));
  push_modes(out, mode(pair, 1));
  return out;
}

}  // namespace detail

/// Splits a layout into the elements that the tiler picks (mode 0) and the ways to repeat the tiler
/// over the layout (mode 1); by mode if the tiler is a tuple.
/// Post  size(R) >= size(A); R(., 0) == A o tiler
constexpr Layout logical_divide(const Layout& a, const Tiler& tiler) {
  if (is_leaf(tiler)) {
    if (tiler.is_free[0]) return a;
    const Layout& tile = tiler.layout[0];
    return composition(a, make_layout(tile, complement(tile, size(a))));
  }
  if (rank(tiler) > rank(a))
    law::a_must_have_as_many_modes_as_b("logical_divide", rank(a), rank(tiler));
  Layout out;
  for (int i = 0; i < rank(tiler); ++i) push_mode(out, logical_divide(mode(a, i), mode(tiler, i)));
  push_modes(out, a, rank(tiler), rank(a));
  return out;
}
constexpr Layout zipped_divide(const Layout& a, const Tiler& tiler) {
  return detail::unzip(logical_divide(a, tiler), tiler);
}
constexpr Layout tiled_divide(const Layout& a, const Tiler& tiler) {
  return detail::unpack_second(zipped_divide(a, tiler));
}
constexpr Layout flat_divide(const Layout& a, const Tiler& tiler) {
  return detail::unpack_both(zipped_divide(a, tiler));
}

/// Repeats a layout (mode 0) as the tiler says (mode 1), over offsets that the layout leaves free.
/// Post  R(., 0) == A; the image of mode 1 is disjoint from A's but for 0
constexpr Layout logical_product(const Layout& a, const Tiler& tiler) {
  if (is_leaf(tiler)) {
    if (tiler.is_free[0]) return a;
    const Layout& tile = tiler.layout[0];
    const std::int64_t bound = checked_multiply(size(a), cosize(tile));
    return make_layout(a, composition(complement(a, bound), tile));
  }
  if (rank(tiler) > rank(a))
    law::a_must_have_as_many_modes_as_b("logical_product", rank(a), rank(tiler));
  Layout out;
  for (int i = 0; i < rank(tiler); ++i) push_mode(out, logical_product(mode(a, i), mode(tiler, i)));
  push_modes(out, a, rank(tiler), rank(a));
  return out;
}
constexpr Layout zipped_product(const Layout& a, const Tiler& tiler) {
  return detail::unzip(logical_product(a, tiler), tiler);
}
constexpr Layout tiled_product(const Layout& a, const Tiler& tiler) {
  return detail::unpack_second(zipped_product(a, tiler));
}
constexpr Layout flat_product(const Layout& a, const Tiler& tiler) {
  return detail::unpack_both(zipped_product(a, tiler));
}

namespace detail {

// logical_product of two layouts brought to the same rank; its two modes have that rank.
constexpr Layout product_at_common_rank(const Layout& block, const Layout& tiler) {
  const int modes = rank(block) > rank(tiler) ? rank(block) : rank(tiler);
  const Layout one = leaf_layout(1, 0);
  return logical_product(append_to_rank(as_tuple(block), modes, one),
                         Tiler(append_to_rank(as_tuple(tiler), modes, one)));
}

}  // namespace detail

/// Repeats a block mode by mode, block contiguous: mode i of the result is (block_i, tiler_i).
constexpr Layout blocked_product(const Layout& block, const Layout& tiler) {
  const Layout both = detail::product_at_common_rank(block, tiler);
  return zip(mode(both, 0), mode(both, 1));
}

/// Repeats a block mode by mode, interleaved like the tines of a rake: mode i is (tiler_i,
/// block_i).
constexpr Layout raked_product(const Layout& block, const Layout& tiler) {
  const Layout both = detail::product_at_common_rank(block, tiler);
  return zip(mode(both, 1), mode(both, 0));
}

/// Covers a shape with copies of a block. The order says along which mode copies are laid first,
/// second, ...; by default from left to right.
/// Post  product_each(shape(R)) >= shape, with equality where the block divides the shape
constexpr Layout tile_to_shape(const Layout& block, const IntTuple& shape, const IntTuple& order) {
  const int modes = rank(shape);
  if (rank(block) > modes) law::a_must_have_as_many_modes_as_b("tile_to_shape", rank(block), modes);
  const Layout padded = append_to_rank(as_tuple(block), modes, detail::leaf_layout(1, 0));
  IntTuple copies;
  for (int i = 0; i < modes; ++i) {
    push_mode(copies, IntTuple(ceil_div(product(mode(shape, i)), size(padded, i))));
  }
  return blocked_product(padded, make_ordered_layout(copies, order));
}
constexpr Layout tile_to_shape(const Layout& block, const IntTuple& shape) {
  IntTuple order;
  for (int i = 0; i < rank(shape); ++i) push_mode(order, IntTuple(i));
  return tile_to_shape(block, shape, order);
}

}  // namespace tilewright
