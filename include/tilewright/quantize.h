// Quantising matrices into block-scaled formats, on a device or on the host, to the same bytes.
#pragma once

#include "tilewright/device.h"
#include "tilewright/plan.h"
#include "tilewright/tensor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tilewright {

/// Turns rows of numbers into quantised values (`codes`) and scales. docs/02-formats.md has the
/// rules; block formats by name:
///
///   nvfp4                           e2m1, ue4m3 scale per 16, fp32 scale 1 / G per matrix
///   mxfp4, mxfp4_ceil               e2m1, ue8m0 scale per 32
///   mxfp8, mxfp8_ceil, fp8_64_pow2  e4m3, ue8m0 scale per 32, 32, 64
///   fp8_1x128, fp8_1x128_ue8m0      e4m3, fp32 or ue8m0 scale per 128 of a row
///   fp8_token, fp8_token_ue8m0      e4m3, fp32 or ue8m0 scale per row
///   fp8_128x128, fp8_128x128_ue8m0  e4m3, fp32 or ue8m0 scale per 128 x 128
///
/// A block that holds a NaN or an infinity gets a NaN scale and codes of 0; no other block changes.
///
/// Shapes   numbers [rows, cols]; codes [out_rows, out_cols], 4-bit ones two a byte, the even
///          column in the low half; scales [scale_rows, scale_cols] of the plan
/// Numbers  fp32, byte for byte what the named rules give; the same on device and host
/// Source   OCP Microscaling Formats 1.0; NVIDIA ModelOpt (nvfp4); DeepSeek-V3, V4 (fp8)
struct QuantizeProblem {
  std::string format = "nvfp4";
  /// nvfp4: "nearest"; "four_over_six" (amax on 4 where that is better); "exact_nearest" and
  /// "exact_best": scales {1, 1.25, 1.5} * 2^e alone, with which the weights are exact in e4m3
  std::string scales = "nearest";
  DType dtype = DType::kBF16;  ///< of the numbers: kBF16, kF16 or kF32
  std::int64_t rows = 0, cols = 0;
  std::int64_t row_stride = 0;  ///< elements from row to row of the numbers; 0: cols
  bool has_row_index = false;   ///< row r comes from row row_index[r], zeros where that is < 0
  /// Of the result, 0: rows and cols rounded up to whole blocks (and 128 x 4 scales). Padding is
  /// zero codes; blocks that lie outside altogether have scales of 0.
  std::int64_t out_rows = 0, out_cols = 0;
  /// e4m3 of FP8 activations: inside each 64 the order that the W4A8 kernels read.
  bool has_operand_order = false;
  bool has_128x4_scales = false;        ///< one-byte scales in Blackwell's order
  bool has_block_major_scales = false;  ///< scales [block of columns, row], not [row, block]
  /// nvfp4: G. Absent: 2688 / the largest finite magnitude
  std::optional<float> encode_scale = {};
  bool has_encode_scale_address = false;  ///< nvfp4: G is read from the device
};

/// There is nothing to choose. bytes are those of numbers, codes and scales.
struct QuantizePlan : Plan {
  QuantizeProblem problem;          ///< with all defaults filled in
  bool is_cooperative = false;      ///< the launch: its CTAs wait for each other
  std::int64_t code_row_bytes = 0;  ///< codes are [out_rows, out_cols], 4-bit ones two a byte
  std::size_t code_bytes = 0, scale_bytes = 0;
  std::int64_t scale_rows = 0, scale_cols = 0;  ///< of the plain order
  int bytes_per_scale = 1;                      ///< 4: fp32
};

/// Addresses: on the device for Quantize::run, on the host for quantize_on_host.
struct QuantizeArguments {
  const void* in = nullptr;
  const std::int32_t* row_index = nullptr;  ///< [rows] if has_row_index
  void* codes = nullptr;                    ///< 16-byte aligned on the device
  void* scales = nullptr;
  const float* encode_scale = nullptr;  ///< if has_encode_scale_address
  float* tensor_scale = nullptr;        ///< nvfp4: where 1 / G is written, if there are codes
  void* workspace = nullptr;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// A plan with its kernel loaded on a device.
///
/// Thread   run() may be called from several threads if workspaces and outputs differ
class Quantize {
 public:
  /// Errors   InvalidArgument if the problem makes no sense (the message names field, value, rule);
  ///          Unsupported on a device without the kernels
  Quantize(const Device& device, const QuantizeProblem& problem);
  ~Quantize();
  Quantize(Quantize&&) noexcept;
  Quantize& operator=(Quantize&&) noexcept;

  const QuantizePlan& plan() const noexcept;
  /// Enqueues one kernel. Allocates nothing, waits for nothing; may be captured in a CUDA graph.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const QuantizeArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as Quantize's constructor.
QuantizePlan plan_quantize(const Device& device, const QuantizeProblem& problem);
/// The plan of quantize_on_host: sizes, no kernel.
QuantizePlan plan_quantize_on_host(const QuantizeProblem& problem);

/// The same on the host, with the same bytes. num_threads 0: as many as there are.
/// Errors   InvalidArgument as above; a row_index outside [.., rows of `in`) is not noticed
void quantize_on_host(const QuantizeProblem& problem, const QuantizeArguments& arguments,
                      int num_threads = 0);

}  // namespace tilewright
