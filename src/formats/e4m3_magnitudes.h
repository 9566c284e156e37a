// What FP4 weights with a block scale are as e4m3.
#pragma once

#include "formats/packed_weight.h"

#include <cstdint>

namespace tilewright::kernels {

/// The e4m3 codes of the eight magnitudes of e2m1 under a scale byte, magnitude 0 in the lowest
/// byte; correctly rounded (ties to even), none is NaN. kernels with FP8 tokens hold all 256.
constexpr std::uint64_t e4m3_magnitudes(WeightFormat format, std::uint32_t byte) {
  const bool is_nvfp4 = format == WeightFormat::kNvfp4;
  const int exponent = is_nvfp4 ? static_cast<int>(byte >> 3) - 26 : static_cast<int>(byte) - 248;
  constexpr int kTwice[8] = {0, 1, 2, 3, 4, 6, 8, 12};
  std::uint64_t codes = 0;
  for (int i = 1; i < 8; ++i) {
    // value = n * 2^e; then in the last place of e4m3, at least 2^-9
    int n = kTwice[i] * (is_nvfp4 ? static_cast<int>(byte & 7) + 8 : 8), e = exponent - 4;
    int top = e;
    for (int rest = n; rest > 1; rest /= 2) ++top;
    int place = top < -6 ? -9 : top - 3;
    for (; e > place; --e) n *= 2;
    int quotient = n;
    if (place - e >= 16) {
      quotient = 0;
    } else if (place > e) {
      const int unit = 1 << (place - e), rest = n % unit;
      quotient = n / unit;
      if (2 * rest > unit || (2 * rest == unit && quotient % 2 == 1)) ++quotient;
    }
    // quotient 8..16 of a normal number, 0..8 of a subnormal one: adding carries over
    const int code = quotient + (place + 9) * 8;
    codes |= static_cast<std::uint64_t>(code < 0x7e ? code : 0x7e) << 8 * i;
  }
  return codes;
}

}  // namespace tilewright::kernels
