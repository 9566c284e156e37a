// Contract of the direct kernels of Mixture-of-Experts layers, for both chips: up to eight tokens,
// a layer in one launch, which routes, multiplies and sums.
#pragma once

#include "formats/packed_weight.h"
#include "kernels/moe/permute.h"
#include "kernels/moe/route.h"

#include <algorithm>
#include <cstdint>

namespace tilewright::kernels {

inline constexpr int kMoeDirectMaxTokens = 8;
/// Slots of eight tokens, and a row of the shared expert for each token.
inline constexpr int kMoeDirectMaxPairs = kMoeDirectMaxTokens * (kMoeMaxTopk + 1);

inline constexpr int kMoeDirectWarps = 16, kMoeDirectThreads = 32 * kMoeDirectWarps;
/// A buffer of sums has at least these, f32: of every warp two bricks of 16 rows by eight tokens.
/// Keys by which experts are chosen stand in one before the first sums.
inline constexpr int kMoeDirectMinSumsBytes =
    kMoeDirectWarps * 2 * kBrickRows * kMoeDirectMaxTokens * 4;

/// Bricks of rows that a warp multiplies side by side, at most: about 2 KB of a K block.
constexpr int moe_direct_bricks(WeightFormat format) {
  return is_fp4(format) ? 4 : format == WeightFormat::kFp8 ? 2 : 1;
}

/// Which experts a token has: MoeRouteParams, MoeShareParams and MoePermuteParams in one.
struct MoeDirectRouting {
  MoeRouteParams route;           ///< logits null: ids and weights are given
  const std::int32_t* given_ids;  ///< [tokens, topk]
  const float* given_weights;
  std::int32_t* own_ids;    ///< [tokens, topk], of this rank; null if the given ones are those
  MoeStatus* status;        ///< written anew
  std::int32_t first, all;  ///< of MoeShareParams; all 0: the experts are all that there are
  bool is_single;           ///< no routing: one expert has all tokens, with weights of 1
};

/// One of the two products of a set of experts. Weights packed (packed_weight.h), of gate and up
/// the rows of swiglu_row().
///
/// A unit is `unit_bricks` bricks of rows of one expert by all of K. A team of `k_warps` warps of a
/// CTA computes it, each its blocks of K; `teams` of them, the first of warp `first_warp`, take the
/// CTA's units in turn, `slots` each between two barriers.
struct MoeDirectProduct {
  const std::uint8_t* weights;
  const float*
      block_scales;     ///< kFp8: [matrix][k / 128][halves][scale_rows]; gate and up: 2 halves
  const float* alphas;  ///< [matrix], of gate and up [matrix][2]
  std::int64_t matrix_bytes;  ///< from one matrix to the next
  std::int32_t n, k;          ///< n counts gate and up
  std::int32_t scale_rows;    ///< kFp8: ceil(n / 128 / halves)
  std::int32_t brick_bytes;
  std::int32_t unit_bricks, row_units;             ///< ceil(n / 16 / unit_bricks)
  std::int32_t k_warps, teams, first_warp, slots;  ///< k_warps a power of two
};

/// A set of experts, and what they are multiplied with.
///     gate and up    h[slot,:] = weight * silu(min(g, limit)) * clamp(u, -limit, limit), bf16
///     down           out[t,:] = sum over i of y[t * topk + i,:], y rounded to bf16 (of a
///                    single expert not)
/// with g = alphas[2 e] gate[e] . x, u = alphas[2 e + 1] up[e] . x, y = alphas[e] down[e] . h.
/// A slot is token * topk + i; behind them are those of the shared expert, one a token.
///
/// Products exact, sums in f32. The order of all sums depends on k and the cut only: results repeat
/// bit for bit, and those of one token do not depend on the numbers of others.
struct MoeDirectExperts {
  MoeDirectRouting routing;
  MoeDirectProduct gate_up, down;
  const std::uint16_t* x;  ///< bf16 [tokens, hidden]
  std::uint16_t* h;        ///< bf16 [slots, inter]
  void* out;               ///< bf16 or f32 [tokens, hidden]
  std::int32_t tokens, topk, experts;
  float limit;      ///< infinity: none
  bool has_shared;  ///< number `experts`, of all tokens
  bool is_weight_after_down;
  bool is_out_f32;
};

/// Entries moe_direct_FORMAT, FORMAT nvfp4_braided, mxfp4_braided, fp8, bf16: that of
/// the routed experts. Grid: any number of CTAs, cooperative; kMoeDirectThreads.
///
/// What routing reads was written before the launch. Weights are constant: their first loads do not
/// wait for the kernel before.
struct MoeDirectParams {
  MoeDirectExperts routed;
  MoeDirectExperts single;  ///< fp8, is_single: the work of another expert beside; tokens 0: none
  // In shared memory: 16 rings; two buffers of sums; y of down, [slot][columns of the CTA].
  std::uint32_t stage_bytes, stages;
  std::uint32_t sums_at, sums_bytes, y_at, barriers_at;
};

}  // namespace tilewright::kernels
