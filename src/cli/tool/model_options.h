// What `generate` and `eval` have in common: which model runs on what, with which formats.
#pragma once

#include "cli/tool/command.h"
#include "model/model.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tilewright::cli {

struct ModelArgs {
  std::string folder;
  std::string kv = "fp8", index = "mxfp4", experts = "stored";
  std::int64_t prefill_chunk = 512;
};

/// Options --model, --kv, --index, --experts and --prefill-chunk.
void add_model_options(CLI::App& command, ModelArgs& args);

/// The formats by name.
/// Errors   InvalidArgument for names that are none
model::RunnerOptions runner_options(const ModelArgs& args, std::int64_t max_tokens);

std::shared_ptr<const model::Weights> open_weights(const ModelArgs& args);

/// Whether make_runner() gives the float64 model for `spec`.
bool is_reference(const std::string& spec);

/// `spec` as --device, or "reference" for the float64 model; empty: TILEWRIGHT_DEVICE, then auto.
/// Errors   as Device::open; Unsupported if the formats do not fit the runner
std::unique_ptr<model::Runner> make_runner(const std::string& spec,
                                           std::shared_ptr<const model::Weights> weights,
                                           const model::RunnerOptions& options);

}  // namespace tilewright::cli
