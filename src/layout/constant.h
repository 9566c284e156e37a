// Layouts as constants of a kernel: offset_in<L>(i, j) is a handful of shifts and masks, and so is
// each entry of coordinate_in<L>(i, j).
//
// A layout given as a template argument costs nothing at run time: extents and strides become
// immediates, and what coalesces is merged before any code is made. Coordinates may be run-time
// values, threadIdx.x for one. Layouts that are not constants do not assemble in device code
// (layout/laws.h).
#pragma once

#include "layout/swizzle.h"

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tilewright {

namespace detail {

constexpr const Layout& inner_layout(const Layout& layout) {
  return layout;
}
constexpr const Layout& inner_layout(const ComposedLayout& layout) {
  return layout.layout;
}

// Extent of the leaves before leaf I.
template <Layout L, int I>
constexpr std::int64_t extent_before() {
  std::int64_t extent = 1;
  for (int i = 0; i < I; ++i) extent *= L.shape[i];
  return extent;
}

// What leaf I of a coalesced layout adds for a linear index.
template <Layout L, int I, std::unsigned_integral Index>
constexpr Index leaf_offset(Index index) {
  constexpr auto kBefore = static_cast<Index>(extent_before<L, I>());
  constexpr auto kExtent = static_cast<Index>(L.shape[I]);
  constexpr auto kStride = static_cast<Index>(L.stride[I]);
  if constexpr (kStride == 0) {
    return 0;
  } else if constexpr (I + 1 == L.profile.num_leaves) {
    return index / kBefore * kStride;
  } else {
    return index / kBefore % kExtent * kStride;
  }
}

template <Layout L, std::unsigned_integral Index, int... I>
constexpr Index sum_leaves(Index index, std::integer_sequence<int, I...>) {
  return (Index{0} + ... + leaf_offset<L, I>(index));
}

template <Layout L, std::unsigned_integral Index>
constexpr Index constant_offset(Index index) {
  constexpr Layout kCoalesced = coalesce(L);
  return sum_leaves<kCoalesced>(index,
                                std::make_integer_sequence<int, kCoalesced.profile.num_leaves>{});
}

template <Layout L, std::unsigned_integral Index, int... K, class... Crd>
constexpr Index constant_offset_by_mode(std::integer_sequence<int, K...>, Crd... crd) {
  return (Index{0} + ... + constant_offset<mode(L, K)>(static_cast<Index>(crd)));
}

template <Swizzle S, std::unsigned_integral Index>
constexpr Index constant_swizzle(Index offset) {
  constexpr auto kMask = static_cast<Index>(((std::int64_t{1} << S.bits) - 1) << S.base);
  if constexpr (S.is_identity()) {
    return offset;
  } else if constexpr (S.shift >= 0) {
    return offset ^ (offset >> S.shift & kMask);
  } else {
    return offset ^ (offset & kMask) << -S.shift;
  }
}

}  // namespace detail

/// Offset of a coordinate in the constant layout L (a Layout or ComposedLayout): one linear index,
/// or one index per mode. Coordinates are non-negative; the result is unsigned and as wide as the
/// widest of them. All offsets of L must fit in it.
template <auto L, std::integral... Crd>
requires(sizeof...(Crd) >= 1) constexpr auto offset_in(Crd... crd) {
  using Index = std::make_unsigned_t<std::common_type_t<Crd...>>;
  constexpr Layout kInner = detail::inner_layout(L);
  static_assert(!kInner.is_coordinate(),
                "offset_in takes a layout that maps to offsets; for one that maps to coordinates "
                "use coordinate_in");
  static_assert(sizeof...(Crd) == 1 || sizeof...(Crd) == rank(kInner),
                "offset_in takes one linear index, or one index per mode of the layout");
  Index offset = 0;
  if constexpr (sizeof...(Crd) == 1) {
    offset = (detail::constant_offset<kInner>(static_cast<Index>(crd)), ...);
  } else {
    offset = detail::constant_offset_by_mode<kInner, Index>(
        std::make_integer_sequence<int, sizeof...(Crd)>{}, crd...);
  }
  if constexpr (std::is_same_v<std::remove_const_t<decltype(L)>, ComposedLayout>) {
    return detail::constant_swizzle<L.swizzle>(static_cast<Index>(L.offset.value[0]) + offset);
  } else {
    return offset;
  }
}

/// A coordinate of device code: one number for each axis.
template <int Axes, std::unsigned_integral Index>
struct ConstantCoordinate {
  Index entry[Axes];

  constexpr Index operator[](int axis) const { return entry[axis]; }
};

namespace detail {

template <Layout L, int... Axis, std::integral... Crd>
constexpr auto coordinate_in_axes(std::integer_sequence<int, Axis...>, Crd... crd) {
  using Index = std::make_unsigned_t<std::common_type_t<Crd...>>;
  return ConstantCoordinate<sizeof...(Axis), Index>{{offset_in<along_axis(L, Axis)>(crd...)...}};
}

}  // namespace detail

/// What the constant coordinate layout L maps a coordinate to, entry by entry: with a partition of
/// an identity layout, the (row, column) of each register of a thread. Arguments as for offset_in.
template <Layout L, std::integral... Crd>
requires(sizeof...(Crd) >= 1) constexpr auto coordinate_in(Crd... crd) {
  static_assert(L.is_coordinate(),
                "coordinate_in takes a layout that maps to coordinates, as parts of an identity "
                "layout do; offset_in takes one that maps to offsets");
  return detail::coordinate_in_axes<L>(std::make_integer_sequence<int, num_axes(L)>{}, crd...);
}

}  // namespace tilewright
