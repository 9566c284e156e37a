// Linear layers on a device with weights of 4, 8 or 16 bits: prepare a weight once, plan a call,
// run it. Of few rows, several weights in one launch (LinearStack).
#pragma once

#include "tilewright/device.h"
#include "tilewright/format.h"
#include "tilewright/plan.h"
#include "tilewright/rotary.h"
#include "tilewright/tensor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tilewright {

/// What the tensor cores multiply a weight with; the order of its bits in memory depends on it.
enum class LinearActivations {
  kBf16,  ///< W4A16, W8A16: weights become bf16, exactly, at every number of rows
  kFp8,   ///< W4A8, W8A8: e4m3 at the FP8 rate; weights become e4m3 where that is faster
  /// On Blackwell: weights of 4 and 8 bits as they are, by NVFP4 activations if they are NVFP4, by
  /// MXFP8 ones if they are MXFP4, or FP8 whose scales are powers of two. x is bf16 and quantised
  /// on the way; BlockScaledLinear takes one that is quantised already.
  kBlockScaled,
};
/// "bf16", "fp8", "block_scaled"
const char* to_string(LinearActivations activations) noexcept;

/// The order of one-byte block scales in memory.
enum class ScaleOrder {
  kPlain,  ///< row-major [n, k / group]
  k128x4,  ///< as Blackwell's tensor cores read them: tiles of 128 rows by 4 scales, padded
};

/// A weight [n, k], out features by in features, as a checkpoint holds it: plain (kBf16), with a
/// scale for each 128 x 128 block (kFp8: DeepSeek-V3, V4), for 32 along k (kMxfp4: OCP MX,
/// DeepSeek-V4's experts), or for 16 along k and one for the tensor (kNvfp4: ModelOpt).
///
/// Views are contiguous, in host memory or all in memory of the device that the weight is prepared
/// on. n and k are multiples of 16 (MXFP4: k of 32).
///
///          values                                    scales
/// kBf16    BF16 [n, k]                               none
/// kFp8     F8_E4M3 [n, k]                            F32 or F8_E8M0 [ceil(n/128), ceil(k/128)]
/// kMxfp4   F4 [n, k], or U8 or I8 [n, k/2]           F8_E8M0 or U8 [n, k/32]
/// kNvfp4   F4 [n, k], or U8 or I8 [n, k/2]           F8_E4M3 or U8 [n, k/16]
///
/// Two e2m1 share a byte, the one with the lower index along k in its low half. Element (r, c) is
/// value * scale [* global_scale].
///
/// With `groups` the rows are so many matrices [n / groups, k] below each other, and each takes
/// columns of x of its own, as the output groups of DeepSeek-V4's attention do. For LinearWeight;
/// n / groups is a multiple of 16, of kFp8 of 128.
struct LinearWeightSource {
  NumberFormat format = NumberFormat::kNvfp4;
  ConstTensorView values = {};
  ConstTensorView scales = {};
  ScaleOrder scale_order = ScaleOrder::kPlain;  ///< of kMxfp4 and kNvfp4
  /// kNvfp4 only, and needed there: what ModelOpt calls weight_scale_2.
  std::optional<float> global_scale = std::nullopt;
  /// The global scale divides instead, as compressed-tensors' weight_global_scale does.
  bool is_global_scale_reciprocal = false;
  /// Accepts a global scale that makes the largest weight implausible: above 10^4 or below 10^-8.
  /// Such a scale is refused otherwise, because a reciprocal looks like that.
  bool accepts_any_global_scale = false;
  /// For BlockScaledWeight: values and scales are a gate's, and these, of the same format, shape
  /// and global scale, what it is multiplied with. Absent: there is one weight.
  ConstTensorView up_values = {};
  ConstTensorView up_scales = {};
  std::int64_t groups = 1;
};

/// Shape and storage of a prepared weight: what a plan depends on.
struct LinearWeightInfo {
  NumberFormat format = NumberFormat::kNvfp4;
  LinearActivations activations = LinearActivations::kBf16;
  std::int64_t n = 0, k = 0;
  std::int64_t groups = 1;
};

/// A weight on a device in the order that the kernels read. Made once; copies share the memory.
///
/// Thread   safe
class LinearWeight {
 public:
  /// Checks, reorders and copies; nothing of the source is referred to afterwards. Sources in
  /// device memory are fetched to the host and back.
  /// Errors   InvalidArgument: type, shape, order or stride that the table above does not have;
  ///          a scale that is negative, NaN or infinite; a global scale that is missing, not
  ///          positive or implausible. The message names the value, the place and the remedy.
  ///          OutOfMemory; DeviceError
  static LinearWeight prepare(const Device& device, const LinearWeightSource& source,
                              LinearActivations activations = LinearActivations::kBf16);

  const LinearWeightInfo& info() const noexcept;
  std::size_t bytes() const noexcept;  ///< of device memory
  const Device& device() const noexcept;

 private:
  friend struct Internal;
  struct State;

  explicit LinearWeight(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

/// out[i, j] = sum_c x[i, c] * w[j, c] + bias[j], with groups x[i, k * floor(j groups / n) + c]
///
/// Shapes   x [m, k groups]; out [m, n]; bias [n] fp32; m >= 0. An e4m3 x has rows of k rounded up
///          to 64, zeros beyond k, in operand order: byte p of a block of 64 holds element
///          16 (p / 4 % 4) + 2 (p / 16) + p % 2 + 8 (p / 2 % 2), which Quantize writes with
///          has_operand_order
/// Layout   rows contiguous and 16-byte aligned; row strides free in multiples of 16 bytes
/// Numbers  bf16 activations: every weight is exact in bf16; products are summed in fp32 and
///          rounded once. fp8 activations: x is rounded to e4m3 (or comes so) unless the rows are
///          so few that bf16 is as fast; NVFP4 weights whose product with their block scale e4m3
///          cannot hold are rounded to it (2.1 % relative rms; none for scales 1, 1.25, 1.5 times a
///          power of two, nor for FP8, nor for MXFP4 within 14 binades). docs/04-kernels.md has
///          the table. Block-scaled activations: x is rounded to MXFP8 (mxfp8_ceil), or to NVFP4
///          with a second scale for each row; weights are as they come; k at most 32768 and a
///          multiple of 32, out bf16, no bias. A NaN or infinity in x stays in its row
struct LinearProblem {
  std::int64_t m = 0;
  DType x_dtype = DType::kBF16;  ///< or kF8_E4M3, for weights for fp8 without groups
  /// Of fp8 activations: kRow, a row of x: x_scales [m]; kBlock, 128 along k of a row: x_scales
  /// [ceil(k / 128)][m rounded up to 4]; kAuto: kRow for 4-bit weights, kBlock for fp8 ones.
  ScaleSharing activation_scales = ScaleSharing::kAuto;
  DType out_dtype = DType::kBF16;  ///< or kF32
  bool has_bias = false;
  std::int64_t x_stride = 0, out_stride = 0;  ///< elements from row to row; 0: contiguous
  std::string kernel = "auto";                ///< or a name that a plan lists
};

/// Depends on the weight's shape as well, and holds for m rows: another m needs another plan, of
/// the same weight. Costs are estimates from rates measured on an H200; flops are 2 m n k.
struct LinearPlan : Plan {
  LinearWeightInfo weight;
  LinearProblem problem;  ///< with all defaults filled in
};

/// Device addresses, and the stream to work on.
struct LinearArguments {
  const void* x = nullptr;
  /// If x is e4m3: kRow [m]; kBlock [ceil(k / 128), m rounded up to 4], 16-byte aligned
  const float* x_scales = nullptr;
  const float* bias = nullptr;  ///< [n] if has_bias
  void* out = nullptr;
  void* workspace = nullptr;  ///< workspace_bytes, of any content
  void* stream = nullptr;     ///< CUstream; null: the default stream
};

/// A plan with its kernels loaded, on a weight.
///
/// Thread   run() may be called from several threads if workspaces and outputs differ
class Linear {
 public:
  /// Errors   InvalidArgument if the problem makes no sense (the message names field, value, rule);
  ///          Unsupported if no kernel fits, or the named one does not (the message lists why)
  Linear(const LinearWeight& weight, const LinearProblem& problem);
  ~Linear();
  Linear(Linear&&) noexcept;
  Linear& operator=(Linear&&) noexcept;

  const LinearPlan& plan() const noexcept;
  /// Enqueues the kernels. Allocates nothing, waits for nothing; may be captured in a CUDA graph.
  /// Kernels start before the previous work on the stream has ended (programmatic dependent launch)
  /// and read x, x_scales, bias and write out after its end: only the weight, which never changes,
  /// is read earlier.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const LinearArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as Linear's constructor.
LinearPlan plan_linear(const Device& device, const LinearWeightInfo& weight,
                       const LinearProblem& problem);

/// What is done to rows of x before they are multiplied.
enum class StackInput {
  kRows,  ///< nothing
  /// bf16(x[i,:] * rsqrt(mean(x[i,:]^2) + eps) * norm), of one weight without groups: RmsNorm
  kNormalised,
  /// The last rope_dims of every head_dim columns of x, rotated by -positions[i], rounded to bf16:
  /// InverseRope
  kTurnedBack,
};
/// "rows", "normalised", "turned back"
const char* to_string(StackInput input) noexcept;

/// out[i, j] = sum_c in(x)[i, c] * w0[j, c]; out[i, second_column + j] = the same of a second
/// weight. With groups a weight takes columns of x as in Linear.
///
/// Shapes   x [m, k groups], m 1 to kMostRows; out [m, columns]; one weight of fp8 or bf16, or one
///          of fp8 and one of bf16 with the same k and without groups
/// Layout   as Linear
/// Numbers  as Linear with bf16 activations
struct LinearStackProblem {
  static constexpr std::int64_t kMostRows = 8;

  std::int64_t m = 1;
  StackInput input = StackInput::kRows;
  DType out_dtype = DType::kBF16;  ///< or kF32
  /// Elements from row to row. 0: contiguous, as wide as all weights need.
  std::int64_t x_stride = 0, out_stride = 0;
  std::int64_t second_column = 0;               ///< where the second weight's results begin
  double eps = 1e-6;                            ///< kNormalised
  std::int64_t head_dim = 512, rope_dims = 64;  ///< kTurnedBack; multiples of 16
};

struct LinearStackPlan : Plan {
  std::vector<LinearWeightInfo> weights;
  LinearStackProblem problem;  ///< with all defaults filled in
};

/// Device addresses, and the stream to work on.
struct LinearStackArguments {
  const void* x = nullptr;                  ///< bf16; kNormalised: fp32
  const void* norm = nullptr;               ///< kNormalised: bf16 [k]; never written, as the weight
  const std::int32_t* positions = nullptr;  ///< kTurnedBack: [m]; < 0: not rotated
  RotaryTable rope = {};                    ///< kTurnedBack: angles; a position beyond it: NaN
  void* out = nullptr;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// A plan with its kernel loaded, on its weights.
///
/// Thread   run() may be called from several threads if outputs differ
class LinearStack {
 public:
  /// Errors   InvalidArgument with all that is wrong; Unsupported if the kernel does not fit
  LinearStack(std::span<const LinearWeight> weights, const LinearStackProblem& problem);
  ~LinearStack();
  LinearStack(LinearStack&&) noexcept;
  LinearStack& operator=(LinearStack&&) noexcept;

  const LinearStackPlan& plan() const noexcept;
  /// Enqueues one kernel, which begins as Linear::run()'s do: weights and norm are read before the
  /// work before it on the stream has ended, everything else after.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const LinearStackArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Why there is no such plan; empty if there is.
std::string linear_stack_obstacle(const Device& device, std::span<const LinearWeightInfo> weights,
                                  const LinearStackProblem& problem);

/// The plan alone. Errors as LinearStack's constructor.
LinearStackPlan plan_linear_stack(const Device& device, std::span<const LinearWeightInfo> weights,
                                  const LinearStackProblem& problem);

}  // namespace tilewright
