// What attention in e4m3 has to give: exactly that of the codes that its operands are rounded to.
#pragma once

#include "tilewright/attention_prepare.h"

#include "verify/attention/rows.h"

namespace tilewright::cli {

/// How e4m3 codes become a result.
struct Fp8Computation {
  AttentionPrepareProblem prepare;  ///< complete
  std::int64_t tile_keys = 0;
  std::int64_t flush_tiles = 0;  ///< whose products a tensor core adds up; 0: of all
};

/// What a plan with e4m3 codes computes: on operands that `is_rotated` says of, or on those it
/// makes itself of 16 bits (k7, k8). Null for other plans.
std::optional<Fp8Computation> fp8_computation(const AttentionData& data, const AttentionPlan& plan,
                                              bool is_rotated);

/// The same rows as `of`: operands of `data` as codes and factors by reference/attention/prepare.h,
/// results of those in float64, and the bounds of reference/attention/fp8_bound.h.
std::vector<ExactRow> exact_fp8_rows(const AttentionData& data, const Fp8Computation& computation,
                                     std::span<const ExactRow> of);

}  // namespace tilewright::cli
