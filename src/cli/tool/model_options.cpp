#include "cli/tool/model_options.h"

#include "base/env.h"
#include "base/error.h"
#include "base/progress.h"
#include "cli/tool/words.h"
#include "model/checkpoint/memory.h"
#include "model/checkpoint/synthetic.h"
#include "model/float64/reference_runner.h"
#include "model/kernel_runner/make.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using model::IndexFormat;
using model::RunnerOptions;

// "exact" stands for no format at all.
const std::map<std::string, std::optional<KvFormat>> kKvFormats = {{"exact", std::nullopt},
                                                                   {"bf16", KvFormat::kBf16},
                                                                   {"fp8", KvFormat::kFp8},
                                                                   {"nvfp4", KvFormat::kNvfp4}};
const std::map<std::string, IndexFormat> kIndexFormats = {
    {"bf16", IndexFormat::kBf16}, {"fp8", IndexFormat::kFp8}, {"mxfp4", IndexFormat::kMxfp4}};

}  // namespace

void add_model_options(CLI::App& command, ModelArgs& args) {
  args.folder = std::string(TILEWRIGHT_SOURCE_DIR) + "/examples/models/tiny-dsv4";
  command
      .add_option("--model", args.folder, "folder of a DeepSeek-V4 checkpoint; default: bundled")
      ->type_name("DIR");
  command
      .add_option("--synthetic-weights", args.synthetic,
                  "random weights of the released sizes instead, to time a model without its "
                  "checkpoint")
      ->check(quiet(CLI::IsMember({"flash", "pro"})))
      ->excludes("--model")
      ->type_name("flash|pro");
  command.add_option("--layers", args.layers, "--synthetic-weights: the first ones; default: all")
      ->check(positive())
      ->needs("--synthetic-weights")
      ->type_name("N");
  command
      .add_option("--kv", args.kv,
                  "number format of window and compressed rows; exact: nothing is rounded anywhere "
                  "(--device reference)")
      ->check(quiet(CLI::IsMember({"exact", "bf16", "fp8", "nvfp4"})))
      ->type_name("exact|bf16|fp8|nvfp4")
      ->capture_default_str();
  command.add_option("--index", args.index, "number format of the indexer's keys and queries")
      ->check(one_of({"bf16", "fp8", "mxfp4"}, {{"fp4", "mxfp4"}}))
      ->type_name("bf16|fp8|mxfp4")
      ->capture_default_str();
  command
      .add_option("--experts", args.experts,
                  "number format of routed experts; converted if the checkpoint has another")
      ->check(quiet(CLI::IsMember({"stored", "bf16", "fp8", "mxfp4", "nvfp4"})))
      ->type_name("stored|bf16|fp8|mxfp4|nvfp4")
      ->capture_default_str();
  command.add_option("--prefill-chunk", args.prefill_chunk, "prompt tokens in one forward pass")
      ->check(positive())
      ->type_name("N")
      ->capture_default_str();
}

RunnerOptions runner_options(const ModelArgs& args, std::int64_t max_tokens) {
  RunnerOptions options;
  options.kv = kKvFormats.at(args.kv);
  options.index = kIndexFormats.at(args.index);
  options.max_tokens = max_tokens;
  return options;
}

model::Config model_config(const ModelArgs& args) {
  if (args.synthetic.empty()) return model::read_config(args.folder);
  return model::synthetic_config(args.synthetic, args.layers);
}

std::shared_ptr<const model::Weights> open_weights(const ModelArgs& args, const model::Share& share,
                                                   bool has_drafts) {
  if (!args.synthetic.empty())
    return model::synthetic_weights(
        {.config = model_config(args), .share = share, .has_drafts = has_drafts});
  const auto experts = model::expert_format_by_name(args.experts).value();
  return std::make_shared<model::Weights>(
      args.folder,
      model::WeightsOptions{.experts = experts, .share = share, .has_drafts = has_drafts});
}

Tokenizer open_tokenizer(const ModelArgs& args, const model::Config& config) {
  if (!args.synthetic.empty()) return Tokenizer::of_bytes();  // any ids do
  const std::filesystem::path path = std::filesystem::path(args.folder) / "tokenizer.json";
  constexpr ErrorKind kInvalid = ErrorKind::kInvalidArgument;
  const bool has_file = std::filesystem::exists(path);
  require(has_file || config.vocab == 256, kInvalid,
          "{}: no such file; a model of {} tokens needs the tokenizer that it was trained with",
          path.string(), config.vocab);
  const Tokenizer tokenizer = has_file ? Tokenizer::open(path) : Tokenizer::of_bytes();
  require(tokenizer.vocab_size() == config.vocab, kInvalid,
          "{}: {} tokens, the model has {}; it is the tokenizer of another model: take the file "
          "that came with the checkpoint",
          path.string(), tokenizer.vocab_size(), config.vocab);
  return tokenizer;
}

std::vector<std::int32_t> end_tokens(const model::Config& config, const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ends = config.ends;
  // The bar is U+FF5C, the line U+2581.
  const auto end = tokenizer.find_added("<\uff5cend\u2581of\u2581sentence\uff5c>");
  if (end && std::ranges::count(ends, *end) == 0) ends.push_back(*end);
  return ends;
}

void add_chat_option(CLI::App& command, std::string& mode) {
  command
      .add_option("--chat", mode,
                  "the text is what a user says, in DeepSeek-V4's form; thinking: the model thinks "
                  "before it answers")
      ->check(quiet(CLI::IsMember({"chat", "thinking"})))
      ->type_name("chat|thinking");
}

ChatMode chat_mode(const std::string& mode) {
  return mode == "thinking" ? ChatMode::kThinking : ChatMode::kChat;
}

namespace {

std::string asked_device(const std::string& spec) {
  return spec.empty() ? env_text("TILEWRIGHT_DEVICE") : spec;
}

}  // namespace

bool is_reference(const std::string& spec) {
  return asked_device(spec) == "reference";
}

namespace {

// How many layers are on the device.
class LoadReport {
 public:
  explicit LoadReport(std::int64_t layers)
      : layers_(layers), next_line_(Clock::now() + kBetweenLines) {
    if (progress_style(stderr).is_shown) progress_.emplace(stderr, "load", layers, "layers");
  }
  void operator()(std::int64_t done) {
    if (progress_) {
      if (done > done_) progress_->add(done - done_);
      if (done == layers_) progress_->finish();
    } else if (Clock::now() >= next_line_) {
      fmt::print(stderr, "load: {} of {} layers\n", done, layers_);
      next_line_ = Clock::now() + kBetweenLines;
    }
    done_ = done;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kBetweenLines{10};

  std::int64_t layers_, done_ = 0;
  Clock::time_point next_line_;
  std::optional<Progress> progress_;
};

}  // namespace

model::LoadSink load_report(std::int64_t layers) {
  return [report = std::make_shared<LoadReport>(layers)](std::int64_t done) { (*report)(done); };
}

void require_room(const Device& device, const ModelArgs& args, const RunnerOptions& options,
                  std::int64_t sequences, const model::Share& share, bool has_runner) {
  const bool is_synthetic = !args.synthetic.empty();
  if (!is_synthetic && args.experts == "stored") return;
  const model::Config config = model_config(args);
  check_share(share, config);
  const auto experts = number_format_from_string(args.experts);
  model::require_memory(device, is_synthetic ? args.synthetic : args.folder,
                        {.config = config,
                         .share = share,
                         .experts = experts.value_or(NumberFormat::kMxfp4),
                         .options = options,
                         .sequences = sequences},
                        has_runner);
}

std::unique_ptr<model::Runner> make_runner(const std::string& spec,
                                           std::shared_ptr<const model::Weights> weights,
                                           const RunnerOptions& options, std::int64_t sequences) {
  if (is_reference(spec)) return model::make_reference_runner(std::move(weights), options);
  const Device device = Device::open(asked_device(spec));
  model::require_memory(device, *weights, options, sequences);
  return make_device_runner(device, std::move(weights), options);
}

std::unique_ptr<model::Runner> make_device_runner(const Device& device,
                                                  std::shared_ptr<const model::Weights> weights,
                                                  const RunnerOptions& options,
                                                  std::shared_ptr<comm::Communicator> comm) {
  RunnerOptions with_report = options;
  with_report.on_load = load_report(weights->config().num_layers());
  return model::make_kernel_runner(device, std::move(weights), with_report, {}, std::move(comm));
}

}  // namespace tilewright::cli
