// The same bytes seen as wider or narrower elements.
#pragma once

#include "layout/swizzle.h"

#include <cstdint>

namespace tilewright {

/// Offsets in units of `n` old elements. The elements of one unit must be contiguous.
constexpr Layout upcast(const Layout& a, std::int64_t n) {
  detail::require_plain("upcast", a);
  Layout out = a;
  for (int i = 0; i < a.profile.num_leaves; ++i) {
    const std::int64_t step = a.stride[i] < 0 ? -a.stride[i] : a.stride[i];
    if (step == 0) continue;
    if (step % n == 0) {
      out.stride[i] = a.stride[i] / n;
      continue;
    }
    const std::int64_t merged = n % step == 0 ? n / step : 0;
    if (merged == 0 || a.shape[i] % merged != 0) {
      law::upcast_must_merge_contiguous_whole_elements(a, n);
    }
    out.shape[i] = a.shape[i] / merged;
    out.stride[i] = a.stride[i] < 0 ? -1 : 1;
  }
  return out;
}

/// Offsets in units of a n-th of an old element; the contiguous mode grows n-fold.
constexpr Layout downcast(const Layout& a, std::int64_t n) {
  detail::require_plain("downcast", a);
  Layout out = a;
  for (int i = 0; i < a.profile.num_leaves; ++i) {
    if (a.stride[i] == 1 || a.stride[i] == -1) {
      out.shape[i] = checked_multiply(a.shape[i], n);
    } else {
      out.stride[i] = checked_multiply(a.stride[i], n);
    }
  }
  return out;
}

/// From elements of old_bits to elements of new_bits; one width must be a multiple of the other.
constexpr Layout recast(const Layout& a, std::int64_t old_bits, std::int64_t new_bits) {
  if (new_bits % old_bits == 0) return upcast(a, new_bits / old_bits);
  if (old_bits % new_bits == 0) return downcast(a, old_bits / new_bits);
  law::one_width_must_be_a_multiple_of_the_other(old_bits, new_bits);
}

namespace detail {

constexpr int exact_log2(std::int64_t n) {
  int log = 0;
  while (n > 1 && n % 2 == 0) {
    n /= 2;
    ++log;
  }
  if (n != 1) law::swizzles_recast_by_powers_of_two(n);
  return log;
}

}  // namespace detail

/// A swizzle on bits stays the same swizzle on bits: its base moves by the ratio of the widths.
constexpr Swizzle recast(const Swizzle& swizzle, std::int64_t old_bits, std::int64_t new_bits) {
  if (swizzle.is_identity()) return swizzle;
  const int base = new_bits >= old_bits ? swizzle.base - detail::exact_log2(new_bits / old_bits)
                                        : swizzle.base + detail::exact_log2(old_bits / new_bits);
  if (base < 0) {
    law::swizzle_must_keep_the_wider_element_together(new_bits);
  }
  return {swizzle.bits, base, swizzle.shift};
}
constexpr ComposedLayout recast(const ComposedLayout& a, std::int64_t old_bits,
                                std::int64_t new_bits) {
  if (!is_leaf(a.offset) || a.offset.value[0] * old_bits % new_bits != 0) {
    law::offset_must_be_whole_elements(a.offset, new_bits);
  }
  return {recast(a.swizzle, old_bits, new_bits), a.offset.value[0] * old_bits / new_bits,
          recast(a.layout, old_bits, new_bits)};
}

}  // namespace tilewright
