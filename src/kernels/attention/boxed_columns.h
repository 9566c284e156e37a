// How many columns the boxes of a tile hold.
#pragma once

namespace tilewright::kernels {

/// Columns of the boxes of 64 that hold so many elements of 16 bits: of the last one a part may be
/// unused, which tensor copies fill with zeros and products do not read.
constexpr int boxed_columns(int columns) {
  return (columns + 63) / 64 * 64;
}

}  // namespace tilewright::kernels
