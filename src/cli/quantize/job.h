// A checkpoint through the quantiser: from one file or a folder of shards to the same, tensor by
// tensor, nothing under its name before all is written.
#pragma once

#include "tilewright/device.h"

#include "cli/quantize/select.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace tilewright::cli {

struct QuantizeJob {
  std::string in, out;
  std::string format = "nvfp4";  ///< block format; of --dequantize: empty
  std::string scales = "nearest";
  CheckpointNames names = CheckpointNames::kModelOpt;
  DType plain_dtype = DType::kBF16;  ///< of --dequantize
  TensorFilter filter;
  bool has_errors = true;
  bool shares_scales = true;  ///< nvfp4: one tensor scale for gate and up, and for q, k, v
};

/// Device: none for the host. The report: tensors, errors, sizes.
/// Errors   as SafetensorsModel, find_checkpoint_weight, SafetensorsWriter; CheckFailed for weights
///          that are not finite. Nothing is left behind then
nlohmann::json run_quantize_job(const QuantizeJob& job, const std::optional<Device>& device);

}  // namespace tilewright::cli
