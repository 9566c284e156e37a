// Contract of the FP4 quantisers, of weights and of activations.
//
//   quantize_nvfp4_{bf16,f16,f32}        format nvfp4 under a given G (encode_scale of the params)
//   quantize_nvfp4_amax_{bf16,f16,f32}   finds G first, from the largest finite magnitude of all
//                                        rows, in the same launch: cooperative, kNvfp4AmaxCtasPerSm
//                                        an SM at most; partial_amax has a word per CTA
//   quantize_nvfp4_best_*, quantize_nvfp4_amax_best_*   the same for the choices kFourOverSix and
//                                        kExactBest, which compare errors; the others are for
//                                        kNearest and kExactNearest
//   quantize_mxfp4_{bf16,f16,f32}        formats mxfp4 (is_floor = 1) and mxfp4_ceil
//
// The first and the last may be launched as dependent kernels. Codes are packed two a byte, the
// even element in the low half. Out_cols are whole blocks, of 16 (a multiple of 32 for the
// alignment of rows) and of 32. In the 128x4 order of scales out_rows is a multiple of 128 and
// out_cols of four blocks: its padding is then written too.
#pragma once

#include "kernels/quantize/quantize.h"

namespace tilewright::kernels {

inline constexpr int kNvfp4AmaxCtasPerSm = 4, kNvfp4BestCtasPerSm = 2;

/// CTAs of quantize_nvfp4_*, quantize_nvfp4_best_* and quantize_mxfp4_*: two chunks a thread.
constexpr std::int64_t fp4_ctas(std::int64_t out_rows, std::int64_t out_cols) {
  const std::int64_t pairs = out_rows * (out_cols / (2 * kQuantizeChunk));
  return (pairs + kQuantizeThreads - 1) / kQuantizeThreads;
}

/// CTAs of quantize_nvfp4_amax_*: what fits on the device at a time, or fewer.
constexpr std::uint32_t nvfp4_amax_ctas(std::int64_t out_rows, std::int64_t out_cols, int num_sms,
                                        bool compares_errors) {
  const std::int64_t chunks = out_rows * (out_cols / kQuantizeChunk);
  const std::int64_t needed = (chunks + kQuantizeThreads - 1) / kQuantizeThreads;
  const std::int64_t most =
      std::int64_t{num_sms} * (compares_errors ? kNvfp4BestCtasPerSm : kNvfp4AmaxCtasPerSm);
  return static_cast<std::uint32_t>(needed < 1 ? 1 : needed < most ? needed : most);
}

}  // namespace tilewright::kernels
