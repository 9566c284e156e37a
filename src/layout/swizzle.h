// Swizzles, and layouts behind a swizzle or an offset.
#pragma once

#include "layout/algebra.h"

#include <cstdint>

namespace tilewright {

/// Swizzle<B,M,S>: XORs B bits of an offset into the B bits S places lower (S > 0) or higher (S <
/// 0).
///
///   0bxxxxxxxxxxxxxxxYYYxxxxxxxZZZxxxx      B = 3 bits, M = 4 bits kept as they are, S = 10 places
///                    ^--B    ^--B ^--M      ZZZ ^= YYY
///
/// Shared memory's 128 B swizzle is Swizzle{3,4,3} on byte addresses: the 16 B chunk within a 128 B
/// line is XORed with the line's number modulo 8.
struct Swizzle {
  int bits = 0;   ///< B
  int base = 0;   ///< M
  int shift = 0;  ///< S

  constexpr bool operator==(const Swizzle&) const = default;
  constexpr bool is_identity() const { return bits == 0; }

  constexpr std::int64_t operator()(std::int64_t offset) const {
    const std::int64_t mask = (std::int64_t{1} << bits) - 1;
    if (shift >= 0) return offset ^ ((offset >> shift) & (mask << base));
    return offset ^ (((offset & (mask << base))) << -shift);
  }
};

/// x -> swizzle(offset + layout(x)). With the identity swizzle, a layout at an offset: a slice or a
/// tile of a larger one. The offset is a coordinate if the layout is a coordinate layout.
struct ComposedLayout {
  Swizzle swizzle;
  IntTuple offset = 0;
  Layout layout;

  constexpr ComposedLayout() = default;
  constexpr ComposedLayout(const Layout& plain) : layout(plain) {}
  constexpr ComposedLayout(Swizzle outer, const IntTuple& at, const Layout& inner)
      : swizzle(outer), offset(at), layout(inner) {}
  constexpr bool operator==(const ComposedLayout&) const = default;

  template <class... Crd>
  constexpr std::int64_t operator()(const Crd&... crd) const {
    if (!is_leaf(offset)) {
      law::coordinate_layouts_have_no_offsets("layout(crd)", layout);
    }
    return swizzle(offset.value[0] + layout(crd...));
  }
};

constexpr IntTuple coordinate(const ComposedLayout& at, const IntTuple& crd) {
  const IntTuple sum = add_coordinates(at.offset, coordinate(at.layout, crd));
  return is_leaf(sum) ? IntTuple(at.swizzle(sum.value[0])) : sum;
}

constexpr IntTuple shape(const ComposedLayout& a) {
  return shape(a.layout);
}
constexpr std::int64_t size(const ComposedLayout& a) {
  return size(a.layout);
}
constexpr std::int64_t size(const ComposedLayout& a, int i) {
  return size(a.layout, i);
}
constexpr int rank(const ComposedLayout& a) {
  return rank(a.layout);
}

/// Puts a swizzle in front of a layout.
constexpr ComposedLayout composition(Swizzle swizzle, const Layout& layout) {
  return {swizzle, 0, layout};
}

/// What rearranges coordinates acts on the inner layout; offset and swizzle stay in front.
constexpr ComposedLayout composition(const ComposedLayout& a, const Tiler& tiler) {
  return {a.swizzle, a.offset, composition(a.layout, tiler)};
}
constexpr ComposedLayout coalesce(const ComposedLayout& a) {
  return {a.swizzle, a.offset, coalesce(a.layout)};
}
constexpr ComposedLayout mode(const ComposedLayout& a, int i) {
  return {a.swizzle, a.offset, mode(a.layout, i)};
}

}  // namespace tilewright
