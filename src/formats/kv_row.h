// Rows of a DeepSeek-V4 cache in host memory: to the bytes of their slots, and back.
#pragma once

#include "formats/kv_page.h"

#include <cstdint>
#include <span>

namespace tilewright {

/// Writes all bytes of a row's slot, zero bytes of the scales included. The plain numbers are
/// quantised as block_format.h says of fp8_64_pow2, and of nvfp4 with a tensor scale of 1.
/// `row` = page * page_size + slot.
/// Errors   InvalidArgument if there are not 512 numbers
void encode_kv_row(const KvPageLayout& layout, std::span<const float> numbers, std::int64_t row,
                   std::uint8_t* pages);

/// The 512 numbers that a row's bytes stand for, as kernels read them: bf16(code * scale).
/// Errors   InvalidArgument if there is not room for 512 numbers
void decode_kv_row(const KvPageLayout& layout, const std::uint8_t* pages, std::int64_t row,
                   std::span<double> numbers);

}  // namespace tilewright
