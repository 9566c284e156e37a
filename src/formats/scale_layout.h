// The "128x4" (also "32_4_4") order in which Blackwell reads block scales.
//
// Scales form a matrix [rows, cols]: one row per row of the operand (M or N), one column per block
// along K. It is cut into tiles of 128 rows x 4 columns = 512 bytes. In a tile, rows r, r+32, r+64
// and r+96 share 16 bytes, four scales each, because tcgen05.cp moves such a 16-byte line to the
// four columns of one tensor-memory lane:
//
//     byte in tile = (row % 32) * 16 + (row % 128 / 32) * 4 + col % 4
//
// Tiles follow each other along K first, then along the rows; matrices of a batch follow each
// other.
//
// Source   cuBLAS "1D block scaling factors layout"; CuTe ((32,4),(v,4)):((16,4),(0,1)), v = 16, 32
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright {

inline constexpr int64_t kScaleTileRows = 128;
inline constexpr int64_t kScaleTileCols = 4;
inline constexpr int64_t kScaleTileBytes = kScaleTileRows * kScaleTileCols;

/// Tiles along K of a matrix with `cols` scale columns.
constexpr int64_t scale_tiles_along_k(int64_t cols) {
  return (cols + kScaleTileCols - 1) / kScaleTileCols;
}

/// Bytes of one swizzled matrix: rows padded to a multiple of 128, columns to a multiple of 4.
constexpr int64_t swizzled_scale_bytes(int64_t rows, int64_t cols) {
  return (rows + kScaleTileRows - 1) / kScaleTileRows * scale_tiles_along_k(cols) * kScaleTileBytes;
}

/// Byte offset of the scale (row, col) in a matrix with `cols` scale columns. Matrix b of a batch
/// starts at b * swizzled_scale_bytes(rows, cols).
constexpr int64_t swizzled_scale_offset(int64_t row, int64_t col, int64_t cols) {
  const int64_t tile = row / kScaleTileRows * scale_tiles_along_k(cols) + col / kScaleTileCols;
  return tile * kScaleTileBytes + row % 32 * 16 + row % kScaleTileRows / 32 * 4 +
         col % kScaleTileCols;
}

/// Row-major [rows, cols] one-byte scales -> swizzled; padding bytes are 0.
/// Errors   InvalidArgument if a dimension is negative or not below 2^31, or
///          scales.size() != rows * cols
std::vector<uint8_t> swizzle_scales(std::span<const uint8_t> scales, int64_t rows, int64_t cols);

/// Inverse of swizzle_scales(); padding is ignored.
/// Errors   InvalidArgument if a dimension is negative or not below 2^31, or bytes.size() is not
///          swizzled_scale_bytes(rows, cols)
std::vector<uint8_t> unswizzle_scales(std::span<const uint8_t> bytes, int64_t rows, int64_t cols);

}  // namespace tilewright
