// Weights of a checkpoint, plain or quantised: what a tensor and its neighbours by name amount to.
#pragma once

#include "base/safetensors_model.h"
#include "formats/block_scale.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// How a checkpoint names the parts of the quantised weight "x.weight".
///
///   kModelOpt   weight U8 (4-bit codes) or F8_E4M3, weight_scale (F8_E4M3; U8 for mxfp4; F32
///               [rows, 1, cols, 1] for FP8 blocks), weight_scale_2 F32 [] = 1 / G, and
///               input_scale, which is of activations
///   kDeepSeek   weight I8 (4-bit codes) or F8_E4M3, scale F8_E8M0; with fp32 scales
///               weight_scale_inv, which in spite of its name is what codes are multiplied by
enum class CheckpointNames { kModelOpt, kDeepSeek };

/// A matrix [rows, cols]. Views are valid as long as the model. They may show a part of a wider
/// matrix, whose rows do not follow each other without gaps (contiguous_rows()).
struct CheckpointWeight {
  std::string name;
  std::string format;  ///< block format by name; empty: plain numbers
  std::int64_t rows = 0, cols = 0;
  ConstTensorView codes;   ///< or the numbers: BF16, F16, F32
  ConstTensorView scales;  ///< row-major, two dimensions
  float tensor_scale = 1;
  std::vector<std::string> companions;  ///< names of the other tensors that belong to it
};

/// Whether the scales themselves are read at once, or by check_checkpoint_scales() when the weight
/// is: a checkpoint of hundreds of gigabytes has gigabytes of them.
enum class ScaleCheck { kNow, kLater };

/// Finds out what the tensor is. `name` ends in ".weight" if it is quantised.
/// Errors   InvalidArgument: no such tensor, not a matrix; scales missing, of a wrong type or
///          shape, negative or NaN; a tensor scale that is not finite and above 0
CheckpointWeight find_checkpoint_weight(const SafetensorsModel& model, std::string_view name,
                                        ScaleCheck check = ScaleCheck::kNow);

/// Errors   InvalidArgument with the place of a scale that is negative or not finite
void check_checkpoint_scales(const CheckpointWeight& weight);

/// Whether the tensor belongs to a quantised weight without being its codes: "x.weight_scale" where
/// there is a quantised "x.weight".
bool is_checkpoint_companion(const SafetensorsModel& model, std::string_view name);

/// Rows [first, last) of a matrix of codes or scales without gaps: a view of where they stand, or
/// of `copy`, where they are put if they have gaps.
ConstTensorView contiguous_rows(const ConstTensorView& matrix, std::int64_t first,
                                std::int64_t last, std::vector<std::uint8_t>& copy);

/// Rows [first, last) as fp32; first is a multiple of 128 or of the format's block_rows.
std::vector<float> read_checkpoint_rows(const CheckpointWeight& weight, std::int64_t first,
                                        std::int64_t last);

/// The same of codes and scales in memory, of a matrix with `cols` columns: of rows whose first is
/// the first of a block. Codes are [rows, cols] and scales row-major, without padding.
std::vector<float> dequantize_rows(const BlockFormat& format, const void* codes, const void* scales,
                                   float tensor_scale, std::int64_t rows, std::int64_t cols);

/// One part of a quantised weight as it is stored.
struct CheckpointPart {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
};
/// The parts of the weight `name` ("x.weight") in that format: codes, scales, and for nvfp4 the
/// tensor scale.
/// Errors   Unsupported if the names have no place for the format
std::vector<CheckpointPart> checkpoint_parts(CheckpointNames names, const BlockFormat& format,
                                             const std::string& name, std::int64_t rows,
                                             std::int64_t cols);

}  // namespace tilewright
