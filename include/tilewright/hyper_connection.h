// DeepSeek-V4's hyper-connections on a device: four streams of the hidden size around every
// sub-layer, instead of one residual. Also the small steps beside them: the embedding into the
// streams, and the RMS normalisation of rows.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/device.h"
#include "tilewright/linear.h"
#include "tilewright/plan.h"
#include "tilewright/tensor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tilewright {

/// One step from a sub-layer to the next: the result of the previous one is merged into the
/// streams, and the streams are mixed into the normalised input of the next one.
///
///     x'_k  = post_k * (result + second_result) + sum_j comb[j, k] * x_j     by mix_before
///     m     = (vec(x') . W^T) * rsqrt(mean(vec(x')^2) + norm_eps)
///     pre_i = sigmoid(m_i s_0 + b_i) + eps,  post_i = 2 sigmoid(m_(4+i) s_1 + b_(4+i))
///     comb  = Sinkhorn(m_(8+4j+k) s_2 + b_(8+4j+k)), rows first, `iterations` passes
///     y     = sum_i pre_i x'_i,  out = y * rsqrt(mean(y^2) + norm_eps) * weight
///
/// Shapes   streams [tokens, 4, hidden]; result, second_result [tokens, hidden]; W = mix_weight
///          [24, 4 hidden]; b = mix_bias [24]; s = mix_scale [3]; mix [tokens, 24]: pre 4, post 4,
///          comb 4 x 4. The final head has four rows of W and b, [tokens, 4] and pre alone. hidden:
///          a multiple of 16, at most 8192
/// Layout   contiguous, rows 16-byte aligned
/// Numbers  all sums in f32, in the same order at every run of a number of tokens; x' and out are
///          rounded once. y is not rounded before its norm
/// Source   DeepSeek-V4 technical report, mHC; Sinkhorn and Knopp 1967
struct HyperConnectionProblem {
  std::int64_t tokens = 0, hidden = 0;
  DType stream_dtype = DType::kBF16;  ///< or kF32
  bool has_merge = false;             ///< a result comes with the call
  bool has_second = false;            ///< and a second one
  bool has_mix = true;                ///< false: the merge alone
  bool is_head = false;               ///< the final head: four rows of W, pre alone
  DType result_dtype = DType::kBF16, second_dtype = DType::kBF16;  ///< or kF32
  int iterations = 20;
  double eps = 1e-6;       ///< from 1e-36: a column of weights may vanish in fp32
  double norm_eps = 1e-6;  ///< 0 or more
};

/// There is nothing to choose. flops are those of the mix and the merge.
struct HyperConnectionPlan : Plan {
  HyperConnectionProblem problem;
};

/// Device addresses, and the stream to work on.
struct HyperConnectionArguments {
  const void* streams = nullptr;
  void* merged = nullptr;               ///< x', may be `streams`; if has_merge
  const float* mix_before = nullptr;    ///< [tokens, 24] if has_merge; may be `mix`
  const void* result = nullptr;         ///< of the sub-layer before, if has_merge
  const void* second_result = nullptr;  ///< likewise, if has_second: of the shared expert
  const float *mix_weight = nullptr, *mix_bias = nullptr, *mix_scale = nullptr;  ///< if has_mix
  const void* norm_weight = nullptr;                                             ///< bf16 [hidden]
  float* mix = nullptr;  ///< [tokens, 24], of a head [tokens, 4]
  void* out = nullptr;   ///< bf16 [tokens, hidden]
  void* workspace = nullptr;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// Ranks whose results are added up before they are merged: result + second_result of every rank,
/// in fp32, in the order of the ranks, so that all have the same bits. As with PeerReduce
/// (peer_reduce.h), all ranks make the same calls in the same order with the same memory.
struct HyperConnectionRanks {
  static constexpr int kMost = 8;

  int rank = 0, ranks = 2;  ///< ranks: 2 to kMost
  /// Of every rank, as this device reaches it: HyperConnection::memory() and what others have.
  std::array<void*, kMost> memory = {};
  /// A word in memory that the device reads; the kernel ends without a result if it is not 0. Or
  /// null.
  const std::uint32_t* given_up = nullptr;
};

/// A router that reads what the connection writes: logits[t, e] = sum_c out[t, c] * w[e, c], out as
/// it is stored, summed in fp32, in the same order at every run.
struct HyperConnectionRouter {
  const LinearWeight* weight = nullptr;  ///< [experts, hidden], bf16, at most 384 experts
  float* logits = nullptr;               ///< [tokens, experts]
  std::int64_t logits_stride = 0;        ///< elements from row to row; 0: contiguous
};

/// A plan with its kernels loaded on a device.
///
/// Thread   run() may be called from several threads if workspaces and outputs differ
class HyperConnection {
 public:
  /// Errors   InvalidArgument if the problem makes no sense (the message names field, value, rule);
  ///          Unsupported on a device without the kernels
  HyperConnection(const Device& device, const HyperConnectionProblem& problem);
  ~HyperConnection();
  HyperConnection(HyperConnection&&) noexcept;
  HyperConnection& operator=(HyperConnection&&) noexcept;

  const HyperConnectionPlan& plan() const noexcept;
  const HyperConnectionProblem& problem() const noexcept;
  std::size_t workspace_bytes() const noexcept;  ///< 256-byte aligned device memory
  /// Enqueues at most two kernels, one for one or two tokens. Allocates nothing, waits for nothing;
  /// may be captured in a CUDA graph.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const HyperConnectionArguments& arguments) const;

  /// Whether the launch can add up results of ranks: at most 2 tokens that are merged and mixed in
  /// one kernel.
  bool sums_ranks() const noexcept;
  /// The same with results of several ranks, which are waited for on the device.
  /// Errors   as run(); Unsupported where sums_ranks() is false
  void run(const HyperConnectionArguments& arguments, const HyperConnectionRanks& ranks) const;
  /// Whether the launch can multiply with a router's weight of this kind as well: at most 2 tokens
  /// in one kernel, hidden a multiple of 1024, and a weight that the device keeps packed (Hopper).
  bool routes(const LinearWeightInfo& weight) const noexcept;
  /// The same with a router; `ranks`: null: there are no other ranks.
  /// Errors   as run(); Unsupported where routes() or sums_ranks() is false
  void run(const HyperConnectionArguments& arguments, const HyperConnectionRanks* ranks,
           const HyperConnectionRouter& router) const;
  /// The memory that a rank gives to all such calls of this hidden size, preset. Whole pages of
  /// 2 MiB, which other processes can map.
  static Buffer memory(const Device& device, int ranks, std::int64_t hidden);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as HyperConnection's constructor.
HyperConnectionPlan plan_hyper_connection(const Device& device,
                                          const HyperConnectionProblem& problem);

/// streams[t, i, :] = table[ids[t], :] for i = 0 .. 3; zeros for an id outside the table
///
/// Shapes   table bf16 [vocab, hidden]; ids [tokens]; streams [tokens, 4, hidden]
struct HyperEmbeddingProblem {
  std::int64_t tokens = 0, hidden = 0, vocab = 0;
  DType stream_dtype = DType::kBF16;  ///< or kF32
};

struct HyperEmbeddingPlan : Plan {
  HyperEmbeddingProblem problem;
};

/// Device addresses, and the stream to work on.
struct HyperEmbeddingArguments {
  const void* table = nullptr;
  const std::int32_t* ids = nullptr;
  void* streams = nullptr;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// A plan with its kernel loaded on a device.
///
/// Thread   as HyperConnection
class HyperEmbedding {
 public:
  /// Errors   as HyperConnection
  HyperEmbedding(const Device& device, const HyperEmbeddingProblem& problem);
  ~HyperEmbedding();
  HyperEmbedding(HyperEmbedding&&) noexcept;
  HyperEmbedding& operator=(HyperEmbedding&&) noexcept;

  const HyperEmbeddingPlan& plan() const noexcept;
  /// Enqueues one kernel. Errors as HyperConnection::run().
  void run(const HyperEmbeddingArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as HyperEmbedding's constructor.
HyperEmbeddingPlan plan_hyper_embedding(const Device& device, const HyperEmbeddingProblem& problem);

/// out[r,:] = x[r,:] * rsqrt(mean(x[r,:]^2) + eps) * weight, in f32, rounded once to bf16
///
/// Shapes   x, out [rows, cols]; weight bf16 [cols]
/// Layout   rows contiguous and 16-byte aligned; strides free
struct RmsNormProblem {
  std::int64_t rows = 0, cols = 0;
  DType x_dtype = DType::kBF16;               ///< or kF32
  std::int64_t x_stride = 0, out_stride = 0;  ///< elements from row to row; 0: contiguous
  bool has_weight = true;
  double eps = 1e-6;  ///< 0 or more
};

struct RmsNormPlan : Plan {
  RmsNormProblem problem;  ///< with strides filled in
};

/// Device addresses, and the stream to work on.
struct RmsNormArguments {
  const void* x = nullptr;
  const void* weight = nullptr;  ///< if has_weight
  void* out = nullptr;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// A plan with its kernel loaded on a device.
///
/// Thread   as HyperConnection
class RmsNorm {
 public:
  /// Errors   as HyperConnection
  RmsNorm(const Device& device, const RmsNormProblem& problem);
  ~RmsNorm();
  RmsNorm(RmsNorm&&) noexcept;
  RmsNorm& operator=(RmsNorm&&) noexcept;

  const RmsNormPlan& plan() const noexcept;
  /// Enqueues one kernel. Errors as HyperConnection::run().
  void run(const RmsNormArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as RmsNorm's constructor.
RmsNormPlan plan_rms_norm(const Device& device, const RmsNormProblem& problem);

}  // namespace tilewright
