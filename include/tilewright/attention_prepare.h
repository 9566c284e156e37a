// Rounds the operands of attention from 16 bits to e4m3: RoPE, rotation, scales, transposed values.
#pragma once

#include "tilewright/attention.h"
#include "tilewright/plan.h"
#include "tilewright/rotary.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

/// q, k and v of 16 bits as e4m3 operands of attention: the same scores and values, but rounded.
///
///   q, k   RoPE if wanted; then, if is_rotated, x -> x D H / sqrt(head_dim), D random signs and H
///          the Hadamard matrix: q . k stays, outliers spread over all elements of a head
///   e4m3   round(x * 448 / amax), amax the largest magnitude of what shares a scale; v in blocks:
///          the power of two above it, so that P times ratios of scales is exact
///   v      is never rotated; its quantised values lie as v_layout says
///
/// The arithmetic is fp32 in a fixed order (reference/attention/prepare.h): results do not depend
/// on anything else. What shares a scale with a NaN or an infinity, or with a row whose position
/// has no angles, gets the descale NaN and quantised values 0.
///
/// Shapes   as those of AttentionProblem. q_len = 0: k and v alone; kv_len = 0: q alone
/// Layout   rows 16-byte aligned
struct AttentionPrepareProblem {
  DType dtype = DType::kBF16;  ///< of what is read: kBF16 or kF16
  std::int64_t batch = 1, heads = 1, kv_heads = 1;
  std::int64_t q_len = 0, kv_len = 0;  ///< of every sequence; of the longest if packed
  std::int64_t head_dim = 0;           ///< 64, 128 or 256
  bool is_packed = false;
  std::int64_t total_q = 0, total_kv = 0;  ///< rows of packed tensors
  Strides q_strides = {}, k_strides = {}, v_strides = {};
  Strides q8_strides = {}, k8_strides = {}, v8_strides = {};  ///< of the quantised values

  ScaleSharing scales = ScaleSharing::kBlock;
  Fp8ValueLayout v_layout = Fp8ValueLayout::kColumns;
  bool is_rotated = true;
  std::uint64_t sign_seed = 0;  ///< the same for q and for the k it meets; see attention_signs
  RotaryPairs rope = RotaryPairs::kNone;
  std::int64_t rotary_dim = 0;      ///< head_dim, if 0, or half of it
  std::int64_t rope_positions = 0;  ///< rows of the table of angles
  /// Positions come with the call. Else key j of a sequence is at j, query i at i + kv_len - q_len.
  bool has_positions = false;
};

/// There is one kernel, so nothing to choose; flops are 0.
struct AttentionPreparePlan : Plan {
  AttentionPrepareProblem problem;  ///< with all defaults filled in
  std::size_t q8_bytes = 0, k8_bytes = 0, v8_bytes = 0;
  std::size_t num_q_descales = 0, num_k_descales = 0, num_v_descales = 0;
  std::size_t num_v_descale_max = 0;  ///< kBlock: batch * kv_heads
};

/// Device addresses. What has no rows may be null.
struct AttentionPrepareArguments {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void *q8 = nullptr, *k8 = nullptr, *v8 = nullptr;
  float *q_descale = nullptr, *k_descale = nullptr, *v_descale = nullptr;
  float* v_descale_max = nullptr;                        ///< kBlock
  const std::int32_t *cu_q = nullptr, *cu_kv = nullptr;  ///< [batch + 1] if is_packed
  RotaryTable rope = {};  ///< one table, 16-byte aligned, unless problem.rope is kNone
  const std::int32_t *q_positions = nullptr, *k_positions = nullptr;  ///< of rows, if has_positions
  void* workspace = nullptr;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// A plan with its kernels loaded on a device.
///
/// Thread   run() may be called from several threads if workspaces and outputs differ
class AttentionPrepare {
 public:
  /// Errors   InvalidArgument if the problem makes no sense (the message names field, value, rule);
  ///          Unsupported on a device without the kernels
  AttentionPrepare(const Device& device, const AttentionPrepareProblem& problem);
  ~AttentionPrepare();
  AttentionPrepare(AttentionPrepare&&) noexcept;
  AttentionPrepare& operator=(AttentionPrepare&&) noexcept;

  const AttentionPreparePlan& plan() const noexcept;
  /// Enqueues one kernel, two if a scale is one of a head or tensor. Allocates nothing, waits for
  /// nothing; may be captured in a CUDA graph.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const AttentionPrepareArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as AttentionPrepare's constructor.
AttentionPreparePlan plan_attention_prepare(const Device& device,
                                            const AttentionPrepareProblem& problem);

/// What turns operands of 16 bits into those that prepared_problem() attends to: `problem` says
/// types, shapes and strides, `options` scales and v_layout. Rotary positions are added by hand.
AttentionPrepareProblem prepare_problem(const AttentionProblem& problem, const Fp8Options& options,
                                        bool is_rotated);
/// The same attention on contiguous e4m3 operands, as those of 16 bits are once they are prepared.
AttentionProblem prepared_problem(const AttentionProblem& problem, const Fp8Options& options);

/// How a plan rounds operands of 16 bits before it attends (kernels k7 and k8); none if it computes
/// on the operands as they come.
std::optional<AttentionPrepareProblem> prepare_problem(const AttentionPlan& plan);

/// The signs of a rotation: +1 or -1 for every element of a head.
std::vector<float> attention_signs(std::uint64_t seed, std::int64_t head_dim);

}  // namespace tilewright
