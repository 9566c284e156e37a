// Numbers of few bits from fp32 and back, on the host.
#pragma once

#include "tilewright/tensor.h"

#include <cstddef>
#include <span>
#include <vector>

namespace tilewright {

/// The numbers as elements of a type, rounded to nearest even, packed as tensor.h says.
/// kF32, kF16, kBF16, kF8_E4M3, kF8_E5M2, kF4, kF6_E2M3, kF6_E3M2, kF8_E8M0. Formats of at most 8
/// bits saturate at their largest finite number, as CUDA's constructors do; a NaN stays one where
/// there is one.
/// Errors   InvalidArgument for another type
std::vector<std::byte> encode(DType dtype, std::span<const float> numbers);

/// The elements as fp32, exactly (kF8_E8M0: 2^-127 is subnormal there).
/// Errors   InvalidArgument for another type, or if the bytes are no whole number of elements
std::vector<float> decode(DType dtype, std::span<const std::byte> elements);

}  // namespace tilewright
