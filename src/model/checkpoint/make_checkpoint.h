// Checkpoints with random weights that have the names, types and files of released ones.
#pragma once

#include "tilewright/format.h"

#include "model/config.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace tilewright::model {

/// A model of a few layers with the layer schedule of "flash" or "pro" and a vocabulary of bytes:
/// small enough for the simulator.
/// Errors   InvalidArgument for another name
Config small_config(std::string_view like);

struct CheckpointRequest {
  Config config;
  NumberFormat experts = NumberFormat::kMxfp4;  ///< or kNvfp4, with ModelOpt's names
  std::uint64_t seed = 1;
};

/// Writes config.json, a safetensors file for each layer and so on (released.h), and the index. The
/// folder appears when it is complete (AtomicFolder); its parents are made if they are not there.
/// `progress` is told of bytes that were written.
/// Errors   InvalidArgument if the folder has files already; those of AtomicFolder and
///          SafetensorsWriter
void make_checkpoint(const std::filesystem::path& folder, const CheckpointRequest& request,
                     const std::function<void(std::int64_t bytes)>& progress = {});

}  // namespace tilewright::model
