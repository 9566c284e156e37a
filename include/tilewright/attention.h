// Scaled dot-product attention on a device: what to compute, which kernel will, and running it.
#pragma once

#include "tilewright/device.h"
#include "tilewright/tensor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

/// out[b,i,h,:] = sum_j p_j v[b,j,g,:],  p_j = exp(s_j) / (exp(sink[h]) + sum_j exp(s_j)),
/// s_j = softcap(scale * q[b,i,h,:] . k[b,j,g,:]) over the visible keys j, g = h / (heads/kv_heads)
/// lse[b,h,i] = ln sum_j exp(s_j)
///
/// Query i of a sequence stands at key position i + kv_len - q_len (bottom-right alignment); causal
/// and the window count from there. A row without a visible key gives out = 0, lse = -inf.
///
/// Shapes   q, out [batch, q_len, heads, head_dim]; k, v [batch, kv_len, kv_heads, head_dim];
///          packed sequences: [total, heads, head_dim] with cumulative lengths. lse [batch, heads,
///          q_len], packed [heads, total_q]
/// Layout   head_dim contiguous, rows 16-byte aligned; other strides free, in multiples of 16 bytes
/// Units    scale is dimensionless; lse and sink are natural logarithms
struct AttentionProblem {
  struct Strides {
    std::int64_t batch = 0, row = 0, head = 0;  ///< elements; all 0: contiguous
  };

  DType dtype = DType::kBF16;  ///< of q, k, v and out: kBF16 or kF16
  std::int64_t batch = 1, heads = 1, kv_heads = 1;
  std::int64_t q_len = 0, kv_len = 0;  ///< of every sequence; of the longest if packed
  std::int64_t head_dim = 0;
  std::optional<double> scale = {};  ///< > 0; head_dim^-0.5 if absent
  bool causal = false;
  std::int64_t window_left = -1, window_right = -1;  ///< visible keys before and after; -1: all
  double softcap = 0;                                ///< c > 0: c * tanh(s / c)
  bool has_sink = false, has_lse = false;
  bool is_packed = false;                  ///< lengths come as cu_q and cu_kv
  std::int64_t total_q = 0, total_kv = 0;  ///< rows of packed tensors
  Strides q_strides = {}, k_strides = {}, v_strides = {}, out_strides = {};
  /// "auto", or a rung: "k1" .. "k6", or the full name of a variant; for a B200 sm100_c, sm100_e,
  /// sm100_f
  std::string kernel = "auto";
};

/// One kernel that could do it, or not.
struct AttentionCandidate {
  std::string name;    ///< "k6"
  std::string reason;  ///< why it is not possible, or not chosen; empty for the chosen one
  bool is_possible = false;
  /// What the choice goes by: expected from rates measured on an H200, for a B200 from counts.
  double cost_us = 0;
};

/// One kernel launch of a plan.
struct AttentionLaunch {
  std::string entry;  ///< as `tilewright kernels` lists it
  std::array<std::uint32_t, 3> grid, block;
  std::uint32_t shared_bytes = 0;  ///< dynamic
};

/// What will be launched: made from the problem and the properties of the device alone, without
/// touching either.
struct AttentionPlan {
  AttentionProblem problem;  ///< with all defaults filled in
  std::string kernel;        ///< name of the chosen candidate
  std::vector<AttentionCandidate> candidates;
  std::vector<AttentionLaunch> launches;  ///< in order; none if there are no queries
  int tile_queries = 0, tile_keys = 0;    ///< of a CTA, and of its steps
  std::size_t workspace_bytes = 0;        ///< 256-byte aligned device memory that run() needs
  /// Of the visible scores, 4 * head_dim each; exact up to 2^53. The lengths of packed sequences
  /// are on the device: there it is that of equally long ones.
  double flops = 0;
  double bytes = 0;  ///< each operand once

  /// A few lines: problem, kernel, tiles, grid, workspace, and why not the others.
  std::string to_string() const;
};

/// Device addresses, and the stream to work on.
struct AttentionArguments {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void* out = nullptr;
  float* lse = nullptr;                                  ///< if has_lse
  const float* sink = nullptr;                           ///< [heads] if has_sink
  const std::int32_t *cu_q = nullptr, *cu_kv = nullptr;  ///< [batch + 1] if is_packed
  void* workspace = nullptr;                             ///< workspace_bytes
  void* stream = nullptr;                                ///< CUstream; null: the default stream
};

/// A plan with its kernels loaded on a device.
///
/// Thread   run() may be called from several threads if workspaces and outputs differ
class Attention {
 public:
  /// Errors   InvalidArgument if the problem makes no sense (the message names field, value, rule);
  ///          Unsupported if no kernel fits, or the named one does not (the message lists why)
  Attention(const Device& device, const AttentionProblem& problem);
  ~Attention();
  Attention(Attention&&) noexcept;
  Attention& operator=(Attention&&) noexcept;

  const AttentionPlan& plan() const noexcept;
  /// Enqueues the kernels. Allocates nothing, waits for nothing; may be captured in a CUDA graph.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const AttentionArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as Attention's constructor.
AttentionPlan plan_attention(const Device& device, const AttentionProblem& problem);

}  // namespace tilewright
