// Reference of the selection of the k largest values of a row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

/// Indices of the k largest values, largest value first; equal values in the order of their
/// indices. NaN counts as -inf. If k exceeds the number of values, the rest of the result is -1.
/// Shapes   values [n]; result [k]
/// Errors   InvalidArgument if k < 0 or n does not fit an int32_t
/// Thread   safe
std::vector<int32_t> top_k(std::span<const double> values, int64_t k);

}  // namespace tilewright::reference
