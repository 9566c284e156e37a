// Operands of a linear layer on the host: from files or drawn, as checkpoints store them.
#pragma once

#include "tilewright/linear.h"

#include "base/safetensors_model.h"
#include "base/tensor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::cli {

/// A weight in a checkpoint's order; `source` shows the vectors.
struct LinearWeightData {
  LinearWeightData() = default;
  LinearWeightData(LinearWeightData&&) noexcept = default;
  LinearWeightData& operator=(LinearWeightData&&) noexcept = default;

  std::string origin;  ///< "N(0,1)", or file and tensor
  std::int64_t n = 0, k = 0;
  std::vector<std::uint8_t> values, scales;
  LinearWeightSource source;
  std::vector<float> original;  ///< [n, k] before quantising; empty if it came quantised
};

/// Rounds weights [n, k] to a format, by the rules of formats/block_scale.h (bf16: nearest even).
/// `has_pow2_scales`: those of kFp8 are powers of two.
LinearWeightData quantise_weight(NumberFormat format, std::vector<float> weights, std::int64_t n,
                                 std::int64_t k, bool has_pow2_scales = false);

/// N(0,1) rounded to bf16; the same for the same seed everywhere.
std::vector<float> draw_normal_floats(std::int64_t count, std::uint64_t seed);

/// The weight `name` of a safetensors file, or of the index or folder of several. Quantised forms
/// are found by their companions:
///   NVFP4, ModelOpt      NAME U8 [n, k/2], NAME_scale F8_E4M3 [n, k/16], NAME_scale_2 F32
///   NVFP4, compressed    NAME_packed U8, NAME_scale F8_E4M3, NAME_global_scale F32 (a divisor)
///   MXFP4, DeepSeek-V4   NAME I8 or U8 [n, k/2], the scale beside it F8_E8M0 [n, k/32]
///   FP8, DeepSeek        NAME F8_E4M3 [n, k], the scale or NAME_scale_inv [n/128, k/128]
/// where "the scale" of layers.0.w1.weight is layers.0.w1.scale. Others (BF16, F16, F32) are
/// rounded to `format`.
/// Errors   InvalidArgument naming what is missing
LinearWeightData load_weight(const std::string& file, const std::string& name, NumberFormat format,
                             bool has_pow2_scales = false);
LinearWeightData load_weight(const SafetensorsModel& file, const std::string& name,
                             NumberFormat format, bool has_pow2_scales = false);

}  // namespace tilewright::cli
