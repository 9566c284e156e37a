// `tilewright info --checkpoint`: what a model takes of each rank's memory.
#pragma once

#include "cli/tool/command.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::cli {

struct CheckpointInfoArgs {
  std::string checkpoint;  ///< a folder, "flash" or "pro"
  std::string kv = "fp8", index = "mxfp4";
  std::vector<std::int64_t> ranks = {1, 2, 4, 8};
  std::int64_t context = 8192, sequences = 1, step_tokens = 256;
  double memory_gb = 0;  ///< of a device; 0: an H200's
};

void add_checkpoint_info_options(CLI::App& command, CheckpointInfoArgs& args);
void run_checkpoint_info(const CheckpointInfoArgs& args, const Context& context);

}  // namespace tilewright::cli
