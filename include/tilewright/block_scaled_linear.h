// Linear layers on Blackwell's block-scaled tensor cores: activations and weights of 4 and 8 bits
// are multiplied as they are, with a scale per block along k.
#pragma once

#include "tilewright/linear.h"
#include "tilewright/plan.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

namespace tilewright {

/// A weight as these kernels read it. The format says what it is multiplied with:
///
///   weight   its scales             activations x         their scales
///   kNvfp4   e4m3, one for 16       e2m1, two in a byte   e4m3, one for 16
///   kMxfp4   ue8m0, one for 32      e4m3                  ue8m0, one for 32
///   kFp8     one for 128 x 128,     e4m3                  ue8m0, one for 32
///            a power of two
struct BlockScaledWeightInfo {
  NumberFormat format = NumberFormat::kNvfp4;
  std::int64_t n = 0, k = 0;  ///< n: of both weights, where there are two
  /// Rows are a gate's and an up projection's in turns of eight (LinearWeightSource::up_values).
  bool is_gate_up = false;
};

/// A weight on a device: rows padded as tensor copies want them, scales in the order that the
/// tensor cores read. Made once; copies share the memory.
///
/// Thread   safe
class BlockScaledWeight {
 public:
  /// Checks, reorders and copies; nothing of the source is referred to afterwards.
  /// Errors   InvalidArgument as LinearWeight::prepare, or if the format is kBf16, k no multiple
  ///          of 32, a scale of kFp8 no power of two, or up of another shape than the gate;
  ///          OutOfMemory; DeviceError
  static BlockScaledWeight prepare(const Device& device, const LinearWeightSource& source);

  const BlockScaledWeightInfo& info() const noexcept;
  std::size_t bytes() const noexcept;  ///< of device memory
  const Device& device() const noexcept;

 private:
  friend struct Internal;
  struct State;

  explicit BlockScaledWeight(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

/// out[i, j] = g sum_c x[i, c] sx[i, c / v] w[j, c] sw[j, c / v], v = 16 or 32
///
/// g is the product of the tensor scales of x (BlockScaledArguments) and of the weight. Of a gate
/// and up, with h that product and f the limit,
///
///   out[i, j] = silu(min(h_gate[i, j], f)) * clamp(h_up[i, j], -f, f), j < n / 2
///
/// Shapes   x [m, k]; out [m, n], of a gate and up [m, n / 2]; m >= 0
/// Layout   rows contiguous; those of x at multiples of 16 bytes. Rows of out that do not begin or
///          end at one are written element by element, and nothing between them. Scales in 128x4
///          order: tiles of 128 rows by 4 scales, 512 bytes each, those along k first; byte
///          (r % 32) * 16 + r % 128 / 32 * 4 + c % 4 of a tile is scale (r, c). Padding of the
///          scales of x may hold anything
/// Numbers  products are exact, summed by the tensor core (35 or 25 bits below the largest, then
///          truncated to fp32), multiplied with g and rounded once. kF4: requantised to NVFP4 by
///          the rule of formats/block_scale.h, kF8_E4M3 to MXFP8 ("mxfp8_ceil"), ready to be the
///          next layer's x
struct BlockScaledProblem {
  std::int64_t m = 0;
  /// Or kF4: NVFP4, with scales; not of kFp8, and of a gate and up only of kNvfp4. Or kF8_E4M3:
  /// MXFP8, with scales; of a gate and up of kMxfp4 or kFp8.
  DType out_dtype = DType::kBF16;
  std::int64_t x_row_bytes = 0, out_row_bytes = 0;  ///< from row to row; 0: contiguous
  std::string kernel = "auto";                      ///< or a tile that a plan lists
  double swiglu_limit = std::numeric_limits<double>::infinity();  ///< f above, > 0
};

/// Depends on the weight's shape as well. Candidates are tiles, "2cta_n256"; their costs are
/// counted, not measured. flops are 2 m n k; bytes those of weight, x, out and scales.
struct BlockScaledPlan : Plan {
  BlockScaledWeightInfo weight;
  BlockScaledProblem problem;                       ///< with all defaults filled in
  std::size_t x_bytes = 0, x_scales_bytes = 0;      ///< what run() reads
  std::size_t out_bytes = 0, out_scales_bytes = 0;  ///< what it writes; scales of kF4, kF8_E4M3
};

/// Device addresses, tensor scales, and the stream to work on.
struct BlockScaledArguments {
  const void* x = nullptr;         ///< 16-byte aligned
  const void* x_scales = nullptr;  ///< 16-byte aligned
  void* out = nullptr;             ///< kBF16: 2-byte aligned
  void* out_scales = nullptr;      ///< if requantised: 16-byte aligned; padding becomes zeros
  float x_tensor_scale = 1;        ///< scale of x
  float out_encode_scale = 1;      ///< kF4: out is stored times this; its tensor scale is 1 over it
  void* stream = nullptr;          ///< CUstream; null: the default stream
};

/// A plan with its kernel loaded, on a weight.
///
/// Thread   run() may be called from several threads if outputs differ
class BlockScaledLinear {
 public:
  /// Errors   InvalidArgument if the problem makes no sense (the message names field, value, rule);
  ///          Unsupported if the device has no such tensor cores
  BlockScaledLinear(const BlockScaledWeight& weight, const BlockScaledProblem& problem);
  ~BlockScaledLinear();
  BlockScaledLinear(BlockScaledLinear&&) noexcept;
  BlockScaledLinear& operator=(BlockScaledLinear&&) noexcept;

  const BlockScaledPlan& plan() const noexcept;
  /// Enqueues the kernel. Allocates nothing on the device, waits for nothing; may be captured in a
  /// CUDA graph.
  /// Errors   InvalidArgument if an address is missing or misaligned, or a tensor scale is no
  ///          finite number above 0; DeviceError
  void run(const BlockScaledArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as BlockScaledLinear's constructor.
BlockScaledPlan plan_block_scaled_linear(const Device& device, const BlockScaledWeightInfo& weight,
                                         const BlockScaledProblem& problem);

}  // namespace tilewright
