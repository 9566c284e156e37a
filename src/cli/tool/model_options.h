// What `generate` and `eval` have in common: which model runs on what, with which formats.
#pragma once

#include "tilewright/tokenizer.h"

#include "cli/tool/command.h"
#include "comm/communicator.h"
#include "model/model.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tilewright::cli {

struct ModelArgs {
  std::string folder;
  std::string kv = "fp8", index = "mxfp4", experts = "stored";
  std::string synthetic;    ///< "flash" or "pro": random weights instead of a folder's
  std::int64_t layers = 0;  ///< of those; 0: all
  std::int64_t prefill_chunk = 512;
};

/// Options --model, --synthetic-weights, --layers, --kv, --index, --experts and --prefill-chunk.
void add_model_options(CLI::App& command, ModelArgs& args);

/// The formats by name.
/// Errors   InvalidArgument for names that are none
model::RunnerOptions runner_options(const ModelArgs& args, std::int64_t max_tokens);

/// The sizes alone: of config.json, or of synthetic weights.
model::Config model_config(const ModelArgs& args);
/// Refuses weights for which the device has no room before they are drawn or converted, which costs
/// time. What is read as it is stored is known once it is open: model::require_memory().
/// `sequences`: of all ranks, beside the idle one that a runner keeps, if there will be one.
/// Errors   as make_runner
void require_room(const Device& device, const ModelArgs& args, const model::RunnerOptions& options,
                  std::int64_t sequences, const model::Share& share = {}, bool has_runner = true);
/// All weights, or those of a rank.
std::shared_ptr<const model::Weights> open_weights(const ModelArgs& args,
                                                   const model::Share& share = {},
                                                   bool has_drafts = false);

/// The tokenizer.json of the model's folder; without one, bytes for a model of 256 tokens.
/// Errors   as Tokenizer::open; InvalidArgument if it has not as many tokens as the model, or if
///          there is none and the model needs one
Tokenizer open_tokenizer(const ModelArgs& args, const model::Config& config);

/// Tokens that end what the model writes: those of config.json, and the one that DeepSeek's
/// tokenizers have for it.
std::vector<std::int32_t> end_tokens(const model::Config& config, const Tokenizer& tokenizer);

/// Shows how many layers are on the device: on a terminal, and elsewhere in a line every ten
/// seconds.
model::LoadSink load_report(std::int64_t layers);

/// Option --chat: a text is what the user says. `mode` stays empty without it.
void add_chat_option(CLI::App& command, std::string& mode);
ChatMode chat_mode(const std::string& mode);

/// Whether make_runner() gives the float64 model for `spec`.
bool is_reference(const std::string& spec);

/// `spec` as --device, or "reference" for the float64 model; empty: TILEWRIGHT_DEVICE, then auto.
/// How far loading is shows on a terminal, and elsewhere in a line every ten seconds.
/// Errors   as Device::open; Unsupported if the formats do not fit the runner; OutOfMemory with
///          what would fit if the device has no room for `sequences` of options.max_tokens
std::unique_ptr<model::Runner> make_runner(const std::string& spec,
                                           std::shared_ptr<const model::Weights> weights,
                                           const model::RunnerOptions& options,
                                           std::int64_t sequences = 1);
/// The same on a device, of which the caller knows that it has room. `comm`: the other ranks, for
/// weights of a share.
std::unique_ptr<model::Runner> make_device_runner(
    const Device& device, std::shared_ptr<const model::Weights> weights,
    const model::RunnerOptions& options, std::shared_ptr<comm::Communicator> comm = nullptr);

}  // namespace tilewright::cli
