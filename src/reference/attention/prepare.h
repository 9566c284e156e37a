// Reference of what makes e4m3 operands of attention: RoPE, rotation by random signs and a Hadamard
// transform, scales, codes, values transposed and permuted. Also the way back.
#pragma once

#include "tilewright/format.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

/// Pairs of elements that RoPE turns, of the first rotary_dim of a head: neighbours 2i and 2i + 1,
/// or i and i + rotary_dim / 2.
enum class RopePairing { kNone, kInterleaved, kHalves };

/// One of q, k, v: rows of every sequence, or of packed ones.
struct AttentionPrepareParams {
  int64_t batch = 0;
  int64_t heads = 0;                         ///< of this operand
  int64_t kv_heads = 0;                      ///< of k and v; divides heads
  int64_t rows = 0;                          ///< of every sequence; of the longest if packed
  int64_t head_dim = 0;                      ///< a power of two if rotated
  std::span<const int32_t> cu_seqlens = {};  ///< [batch + 1] first rows of packed sequences
  ScaleSharing scales = ScaleSharing::kTensor;
  int64_t block_rows = 0;        ///< kBlock: rows of a sequence that share a factor
  float least_amax = 0x1p-100f;  ///< more: of elements that share a factor but are not in x
  bool has_pow2_scales = false;  ///< amax is raised to a power of two
  bool is_rotated = false;
  std::span<const float> signs = {};  ///< [head_dim] of +1 and -1, if rotated
  RopePairing rope = RopePairing::kNone;
  int64_t rotary_dim = 0;
  std::span<const float> angles = {};       ///< [positions, rotary_dim]: cosines, then sines
  std::span<const int32_t> positions = {};  ///< of every row, if RoPE
};

/// A number is codes * descale.
struct Fp8Operand {
  std::vector<uint8_t> codes;  ///< e4m3, as the operand
  /// kTensor [1], kHead [batch, kv_heads] (query heads of a group share one), kBlock [batch, heads,
  /// ceil(rows / block_rows)], at least one block
  std::vector<float> descale;
  std::vector<float> descale_max;  ///< kBlock: [batch, kv_heads] largest of a sequence
};

/// In fp32, every operation rounded once, in this order:
///   RoPE      (a, b) -> (fma(-b, sin, a cos), fma(b, cos, a sin)); a row whose position has no
///             angles becomes NaN
///   rotation  x * sign, then butterflies over distances 1, 2, 4, .. head_dim / 2
///   amax      largest magnitude under one scale, at least least_amax; has_pow2_scales: the
///             power of two that is not below it, 2^128 being an infinity
///   descale   amax * f, f = fp32(1 / 448), of a rotated operand fp32(head_dim^-0.5 / 448)
///   codes     e4m3(x * (448 / amax)), to nearest even, saturating
/// A group with a NaN or an infinity has descale NaN and codes 0.
///
/// Shapes   x [batch, rows, heads, head_dim], or packed [total, heads, head_dim]
/// Layout   contiguous
/// Errors   InvalidArgument if an array does not have its shape or a number makes no sense
/// Thread   safe
/// Source   FlashAttention-3, section 3.3
Fp8Operand prepare_attention_operand(const AttentionPrepareParams& params,
                                     std::span<const float> x);

/// amax of every factor, in the order of descale; NaN where x has a NaN or an infinity.
std::vector<float> attention_amax(const AttentionPrepareParams& params, std::span<const float> x);

/// The factor of a row of sequence `batch_idx`, counted from the sequence's first one.
float attention_descale(const AttentionPrepareParams& params, const Fp8Operand& operand,
                        int64_t batch_idx, int64_t row, int64_t head);

/// The numbers that codes mean, in the shape of x; rotated operands stay rotated.
std::vector<double> dequantize_attention_operand(const AttentionPrepareParams& params,
                                                 const Fp8Operand& operand);

/// Codes of values as [batch, heads, head_dim, columns], packed [heads, head_dim, columns]: rows
/// become columns, zeros behind them; in every 16 columns slot 4q + 2h + c holds key 8h + 2q + c.
/// Columns: rows rounded up to 16; packed sequence b begins at column cu[b] rounded up to 16, plus
/// 16 b, and there are total rounded up to 16, plus 16 (batch + 1).
std::vector<uint8_t> transpose_values(const AttentionPrepareParams& params,
                                      std::span<const uint8_t> codes);

}  // namespace tilewright::reference
