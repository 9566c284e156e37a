// Large numbers of FP8 tokens times weights of 4 or 8 bits, dense and per expert, on Hopper.
#pragma once

#include "formats/packed_weight.h"
#include "kernels/linear/wide/sm90_wide.h"

#include <cstdint>

namespace tilewright::kernels {

/// Numbers  x is its e4m3 times its scale; w is what e4m3_magnitudes() makes of it (2^bias_exponent
///          and the checkpoint's global scale belong into alpha), or e4m3 times the scale of its
///          block. The tensor core adds with 13 fraction bits; its sums go over to f32 every
///          `promote` steps of 128.
/// Layout   x in operand order, bytes [tokens, k rounded up to 64], none behind the last row is
///          read; x_map in boxes of box_tokens(). Weights with WordOrder::kE4m3. Scales of tokens:
///          [tokens], or per 128 of k [ceil(k / 128)][x_scale_pitch], the pitch a multiple of 4 and
///          16-byte aligned. At most 512 matrices; tile_tokens at most the variant's.
/// Grid     any number of CTAs (x only); each takes tiles in turn. With splits = 2: clusters of
///          two, as many as there are tiles, each of which adds up k in two parts; no segments, k >
///          128
struct WideE4m3Params : WideParams {
  const float* x_scales;
  std::int32_t x_scale_pitch;  ///< elements
  WeightFormat format;
};

/// Entries linear_wide_e4m3_NAME.
struct WideE4m3Variant {
  const char* name;
  bool is_fp4;        ///< weights: NVFP4 and MXFP4, or FP8
  bool has_k_scales;  ///< tokens have a scale per 128 of k, or one
  int tokens;         ///< most of a tile: tile_tokens is at most this
  int narrow;         ///< tokens of the products of narrow tiles
  int promote;        ///< sums go over to f32 every so many steps of 128; 0: at the end
  int stages;
  bool interleaved = false;  ///< weights are decoded between the products of a step, or after them
  bool turns = false;        ///< the two warpgroups issue their products in turn

  static constexpr int kRows = 128, kStepK = 128, kThreads = 3 * 128;
  static constexpr int kMaxMatrices = 512;
  static constexpr int kTableBytes = 153 * 128;

  static constexpr int box_tokens() { return 64; }  ///< of x_map
  constexpr int x_bytes() const { return tokens * kStepK; }
  /// Of one K block of 64 of all rows of a tile.
  constexpr int block_bytes() const {
    return kRows / kBrickRows * brick_bytes(is_fp4 ? WeightFormat::kNvfp4 : WeightFormat::kFp8);
  }
  /// In a stage: tokens, weights, scales of tokens.
  constexpr int scales_at() const { return x_bytes() + 2 * block_bytes(); }
  constexpr int stage_bytes() const {
    return (scales_at() + (has_k_scales ? tokens * 4 : 0) + 1023) / 1024 * 1024;
  }
  /// Dynamic; 1024 for alignment.
  constexpr std::uint32_t shared_bytes() const {
    return static_cast<std::uint32_t>(1024 + stages * stage_bytes() + 2 * kWideStagingBytes +
                                      (is_fp4 ? kTableBytes : 0));
  }
};

/// t: a scale for a token; g: one for each 128 of k of it. fp4_t256 is the fast one: it adds all of
/// k in the tensor core, like cuBLASLt's fast accumulation.
inline constexpr WideE4m3Variant kWideE4m3Variants[] = {
    {.name = "fp4_t256",
     .is_fp4 = true,
     .has_k_scales = false,
     .tokens = 256,
     .narrow = 160,
     .promote = 0,
     .stages = 4},
    {.name = "fp4_t128",
     .is_fp4 = true,
     .has_k_scales = false,
     .tokens = 128,
     .narrow = 128,
     .promote = 4,
     .stages = 6,
     .interleaved = true},
    {.name = "fp4_g128",
     .is_fp4 = true,
     .has_k_scales = true,
     .tokens = 128,
     .narrow = 128,
     .promote = 1,
     .stages = 6,
     .turns = true},
    {.name = "fp8_t128",
     .is_fp4 = false,
     .has_k_scales = false,
     .tokens = 128,
     .narrow = 128,
     .promote = 1,
     .stages = 5,
     .turns = true},
    {.name = "fp8_g128",
     .is_fp4 = false,
     .has_k_scales = true,
     .tokens = 128,
     .narrow = 128,
     .promote = 1,
     .stages = 5,
     .turns = true},
};

}  // namespace tilewright::kernels
