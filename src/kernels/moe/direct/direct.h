// Contract of the direct kernels of Mixture-of-Experts layers, for both chips: up to eight tokens,
// a layer in two launches, which route, multiply and sum.
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

/// Bricks of a warp that are on their way: about 4 KB, without a register.
constexpr int moe_direct_ahead(WeightFormat format) {
  return is_fp4(format) ? 8 : format == WeightFormat::kFp8 ? 4 : 3;
}
/// Of a warp's ring in shared memory, a brick; of fp8 its two scales stand behind it.
constexpr std::uint32_t moe_direct_slot_bytes(WeightFormat format) {
  return static_cast<std::uint32_t>(brick_bytes(format)) + (format == WeightFormat::kFp8 ? 16 : 0);
}

/// How a launch cuts a product. A warp takes 16 rows of weights (a brick) by a part of K at a time,
/// for all tokens of an expert; `parts` warps share the K of a brick.
struct MoeDirectTile {
  int warps, parts;
  int ctas;
  int round;  ///< bricks of a warp between two barriers

  static constexpr int kMaxWarps = 16;

  constexpr int row_warps() const { return warps / parts; }
  constexpr bool is_possible(std::int32_t k) const {
    return warps >= 4 && warps <= kMaxWarps && parts >= 1 && warps % parts == 0 && ctas >= 1 &&
           round >= 1 && parts <= (k + kBrickK - 1) / kBrickK;
  }
  /// Of a token in shared memory; the 16 bytes more spread tokens over the banks.
  static constexpr std::uint32_t token_bytes(std::int32_t k) {
    return static_cast<std::uint32_t>((k + kBrickK - 1) / kBrickK) * 128 + 16;
  }
  constexpr std::uint32_t rings_bytes(WeightFormat format) const {
    return static_cast<std::uint32_t>(warps * moe_direct_ahead(format)) *
           moe_direct_slot_bytes(format);
  }
  constexpr std::uint32_t sums_bytes() const {
    return static_cast<std::uint32_t>(2 * warps * round * 512);
  }
};

/// One of the two products of a set of experts.
///     gate and up    h[slot,:] = weight * silu(min(g, limit)) * clamp(u, -limit, limit), bf16
///     down           out[t,:] = sum over i of y[t * topk + i,:], y rounded to bf16 (of a
///                    single expert not)
/// with g = alphas[2 e] gate[e] . x, u = alphas[2 e + 1] up[e] . x, y = alphas[e] down[e] . h.
/// A slot is token * topk + i; behind them are those of the shared expert, one a token.
///
/// Weights packed (packed_weight.h), of gate and up the rows of swiglu_row(). Products exact, sums
/// in f32. The order of all sums depends on k and the tile only: results repeat bit for bit, and
/// those of one token do not depend on others.
struct MoeDirectProduct {
  MoeDirectRouting routing;
  const std::uint8_t* weights;
  const float* block_scales;  ///< kFp8: [matrix][k / 128][scale_halves][scale_rows]
  const float* alphas;        ///< [matrix], of gate and up [matrix][2]
  const std::uint16_t* x;     ///< bf16 rows of tokens; of down h, rows of slots
  void* y;                    ///< h, or out
  std::int64_t matrix_bytes;  ///< from one matrix to the next
  std::int32_t tokens, topk, experts;
  std::int32_t n, k;          ///< n counts gate and up
  std::int32_t scale_halves;  ///< kFp8: 2 of gate and up, which have scales of their own
  std::int32_t scale_rows;    ///< kFp8: ceil(n / 128 / scale_halves)
  float limit;                ///< gate and up; infinity: none
  bool has_shared;            ///< number `experts`, of all tokens
  bool is_weight_after_down;
  bool is_out_f32;
  // The launch's tile and what follows from it.
  std::int32_t parts, ctas, round;
  std::uint32_t token_bytes;
  // In shared memory: the warps' rings, sums, y of down [slot][columns of the CTA].
  std::uint32_t rings_at, sums_at, y_at;
};

/// Two products side by side: the CTAs of `second` stand behind those of `first`. Its weights are
/// fp8, and it is_single; ctas of 0: there is none. Entries moe_direct_gate_up_FORMAT and
/// moe_direct_down_FORMAT, FORMAT nvfp4, nvfp4_braided, mxfp4, mxfp4_braided, fp8, bf16. Grid: ctas
/// of both.
///
/// The launch of down stands behind that of gate and up. It routes for itself, and has its first
/// weights, before that one has ended: weights of experts are constant, and what routing reads was
/// written before the launch of gate and up.
struct MoeDirectParams {
  MoeDirectProduct first, second;
};

/// Bricks of down that a CTA has, at most.
constexpr std::int32_t moe_direct_cta_bricks(std::int32_t n, int ctas) {
  return (n / kBrickRows + ctas - 1) / ctas;
}

}  // namespace tilewright::kernels
