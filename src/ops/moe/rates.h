// What the kernels of a Mixture-of-Experts layer reach on an H200: what plan() chooses by.
#pragma once

#include "ops/moe/plan.h"

namespace tilewright::ops {

struct MoeRates {
  double bytes_per_s, flops_per_s;
  int granule;         ///< tokens of an expert are padded to a multiple of it
  int tile_tokens;     ///< of one pass over an expert's weights
  bool rereads;        ///< weights come from memory again for the next tile
  double moved_bytes;  ///< per element of a gathered row, beside what every kernel moves
  double fixed_us;
};

/// Fitted to measurements of the kernels alone: the band kernel 3.3 TB/s up to 8 tokens of an
/// expert; the wide ones' rates at 256 tokens of an expert. The direct ones were faster than band
/// at one to eight tokens of every format but bf16, where they are up to 520 MB of experts. FP4:
/// band at 24 and 48 tokens of an expert, and what decoding leaves the wide ones where it binds
/// them; band and wide8 are even at 21 tokens of an expert.
constexpr MoeRates moe_rates(MoeKernel kernel, NumberFormat format) {
  const bool is_fp4 = format == NumberFormat::kNvfp4 || format == NumberFormat::kMxfp4;
  switch (kernel) {
    case MoeKernel::kDirect:
      return {format == NumberFormat::kBf16 ? 3.27e12 : 3.4e12, 220e12, 8, 8, false, 0, 2};
    case MoeKernel::kBand:
      return {3.4e12, is_fp4 ? 180e12 : 220e12, 8, 32, false, 0, 8};
    case MoeKernel::kWide:
      return {is_fp4 ? 1.9e12 : 2.1e12, 500e12, 48, 256, false, 2, 14};
    default:
      return {is_fp4 ? 1.9e12 : 2.4e12, 1000e12, 96, 128, false, 2, 16};
  }
}

}  // namespace tilewright::ops
