// Tensor maps of what Blackwell's GEMMs read and write.
#pragma once

#include "device/tensor_map.h"

#include <cstdint>

namespace tilewright::ops {

/// Rows of bytes, `pitch` apart, in boxes of `box_rows` by one step; swizzle 128B.
device::TensorMapSpec byte_rows(const char* name, const void* address, std::int64_t rows,
                                std::int64_t bytes, std::int64_t pitch, int box_rows);

/// Rows of k 4-bit elements that become bytes on their way, likewise; rows end at whole 128.
device::TensorMapSpec unpacked_rows(const char* name, const void* address, std::int64_t rows,
                                    std::int64_t k, std::int64_t pitch, int box_rows);

/// Whole tiles of scales: 128 words, tiles along k, tiles down the rows.
device::TensorMapSpec scale_tiles(const char* name, const void* address, std::int64_t tiles_k,
                                  std::int64_t tiles, int box_k, int box_tiles);

/// Results in bf16 or f32, in boxes of 128 bytes by 32 rows; swizzle 128B.
device::TensorMapSpec result_rows(const char* name, const void* address, bool is_f32,
                                  std::int64_t rows, std::int64_t columns, std::int64_t pitch);

/// Errors   as encode_tensor_map
void store_map(const device::Device& device, const device::TensorMapSpec& spec,
               std::uint8_t (&to)[128]);

}  // namespace tilewright::ops
