// The shape checks that the array functions of this folder share.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <limits>

namespace tilewright {

/// Throws InvalidArgument unless both dimensions are in [0, 2^31) and their product is at most
/// 2^50: byte and bit offsets into the padded matrix then fit int64_t.
inline void require_shape(const char* function, int64_t rows, int64_t cols) {
  constexpr int64_t kMaxDim = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMaxElems = int64_t{1} << 50;
  const bool are_dims_right = 0 <= rows && rows <= kMaxDim && 0 <= cols && cols <= kMaxDim;
  require(are_dims_right && rows * cols <= kMaxElems, ErrorKind::kInvalidArgument,
          "{}: rows = {}, cols = {}; each must be between 0 and {}, and rows * cols at most 2^50. "
          "Check the shape, or split the matrix.",
          function, rows, cols, kMaxDim);
}

/// Throws InvalidArgument if an array does not have the size that its shape implies.
inline void require_size(const char* function, const char* array, size_t size, int64_t expected,
                         int64_t rows, int64_t cols) {
  require(size == static_cast<uint64_t>(expected), ErrorKind::kInvalidArgument,
          "{}: {} has {} elements; a {} x {} matrix needs {}. Pass the whole array and its own "
          "shape.",
          function, array, size, rows, cols, expected);
}

}  // namespace tilewright
