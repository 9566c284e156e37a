// The block-scaled formats as data: narrow elements that share one scale per block.
#pragma once

#include "formats/format_spec.h"

#include <string_view>

namespace tilewright {

/// How the scale follows from amax, the largest magnitude in the block, and max, the largest value
/// of the element format. amax is first raised to BlockFormat::min_amax.
enum class ScaleRule {
  kAmax,       ///< amax / max, rounded to the scale format
  kCeilPow2,   ///< 2^ceil(log2(amax / max)): no element saturates
  kFloorPow2,  ///< 2^(floor(log2 amax) - floor(log2 max)): elements near amax may saturate
};

/// A block-scaled format. block_scale.h has the arithmetic.
struct BlockFormat {
  char name[20];
  FormatSpec element;
  FormatSpec scale;
  ScaleRule rule;
  int block_rows;
  int block_cols;
  float min_amax;  ///< above 0 for kAmax without tensor scale, where a scale of 0 would divide
  bool has_tensor_scale;  ///< a second, fp32 scale per tensor
};

/// Every block format Tilewright knows.
///
///   fp8_1x128    DeepSeek activations. Source: the official DeepSeek-V4 inference code. DeepGEMM's
///                Python helpers divide where that code multiplies by a reciprocal, and the other
///                way round, which can change the last bit of an fp32 scale but no ue8m0 byte
///   fp8_128x128  DeepSeek weights. Source: DeepGEMM; arithmetic as for fp8_1x128
///   fp8_64_pow2  DeepSeek-V4 KV cache, the dimensions without position encoding
///   mxfp8 mxfp4  Source: OCP Microscaling Formats 1.0, section 6.3
///   *_ceil       the same storage, scales that do not saturate. Source: DeepGEMM (FP8 1x32);
///                the FP4 quantiser of the official DeepSeek-V4 inference code
///   nvfp4        Source: Transformer Engine, and FlashInfer without fast math. With a fixed tensor
///                scale of 1 it is FlashInfer's KV cache for DeepSeek-V4
// clang-format off
inline constexpr BlockFormat kBlockFormats[] = {
    // name                elem   scale   rule                       block min_amax  2nd
    {"fp8_1x128",          kE4m3, kFp32,  ScaleRule::kAmax,         1, 128, 1e-4f,    false},
    {"fp8_1x128_ue8m0",    kE4m3, kUe8m0, ScaleRule::kCeilPow2,     1, 128, 1e-4f,    false},
    {"fp8_128x128",        kE4m3, kFp32,  ScaleRule::kAmax,       128, 128, 1e-4f,    false},
    {"fp8_128x128_ue8m0",  kE4m3, kUe8m0, ScaleRule::kCeilPow2,   128, 128, 1e-4f,    false},
    {"fp8_64_pow2",        kE4m3, kUe8m0, ScaleRule::kCeilPow2,     1,  64, 1e-4f,    false},
    {"mxfp8",              kE4m3, kUe8m0, ScaleRule::kFloorPow2,    1,  32, 0,        false},
    {"mxfp8_ceil",         kE4m3, kUe8m0, ScaleRule::kCeilPow2,     1,  32, 1e-4f,    false},
    {"mxfp4",              kE2m1, kUe8m0, ScaleRule::kFloorPow2,    1,  32, 0,        false},
    {"mxfp4_ceil",         kE2m1, kUe8m0, ScaleRule::kCeilPow2,     1,  32, 0x6p-126, false},
    {"nvfp4",              kE2m1, kUe4m3, ScaleRule::kAmax,         1,  16, 0,        true},
};
// clang-format on

/// The row of that name, or nullptr.
constexpr const BlockFormat* find_block_format(std::string_view name) noexcept {
  for (const BlockFormat& format : kBlockFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

/// The row of that name.
/// Errors   InvalidArgument for an unknown name (the message lists the known ones)
const BlockFormat& block_format_by_name(std::string_view name);

namespace formats {
inline constexpr BlockFormat kFp8Block1x128 = *find_block_format("fp8_1x128");
inline constexpr BlockFormat kFp8Block1x128Ue8m0 = *find_block_format("fp8_1x128_ue8m0");
inline constexpr BlockFormat kFp8Block128x128 = *find_block_format("fp8_128x128");
inline constexpr BlockFormat kFp8Block128x128Ue8m0 = *find_block_format("fp8_128x128_ue8m0");
inline constexpr BlockFormat kFp8Block64Pow2 = *find_block_format("fp8_64_pow2");
inline constexpr BlockFormat kMxfp8 = *find_block_format("mxfp8");
inline constexpr BlockFormat kMxfp8Ceil = *find_block_format("mxfp8_ceil");
inline constexpr BlockFormat kMxfp4 = *find_block_format("mxfp4");
inline constexpr BlockFormat kMxfp4Ceil = *find_block_format("mxfp4_ceil");
inline constexpr BlockFormat kNvfp4 = *find_block_format("nvfp4");
}  // namespace formats
using namespace formats;

/// Bytes of one stored scale: 4 for fp32, little endian; 1 for ue8m0 and ue4m3.
constexpr int scale_bytes(const BlockFormat& format) {
  return format.scale.bits() > 8 ? 4 : 1;
}

}  // namespace tilewright
