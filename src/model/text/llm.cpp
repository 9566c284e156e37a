#include "tilewright/llm.h"

#include "base/env.h"
#include "base/error.h"
#include "model/checkpoint/memory.h"
#include "model/float64/reference_runner.h"
#include "model/kernel_runner/make.h"
#include "model/kernel_runner/ranked_runner.h"
#include "model/ranks.h"
#include "model/text/ranked_batch.h"

#include <algorithm>
#include <array>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tilewright {

namespace {

template <class Value, std::size_t kCount>
Value by_name(const std::array<std::pair<std::string_view, Value>, kCount>& names, const char* what,
              const std::string& name) {
  std::vector<std::string_view> known;
  for (const auto& [word, value] : names) {
    if (word == name) return value;
    known.push_back(word);
  }
  fail(ErrorKind::kInvalidArgument, "llm: {} = \"{}\"; expected one of {}", what, name,
       fmt::join(known, ", "));
}

std::optional<KvFormat> kv_format(const std::string& name) {
  using Named = std::pair<std::string_view, std::optional<KvFormat>>;
  constexpr std::array kNames = {Named{"exact", std::nullopt}, Named{"bf16", KvFormat::kBf16},
                                 Named{"fp8", KvFormat::kFp8}, Named{"nvfp4", KvFormat::kNvfp4}};
  return by_name(kNames, "kv", name);
}

model::IndexFormat index_format(const std::string& name) {
  using Named = std::pair<std::string_view, model::IndexFormat>;
  constexpr std::array kNames = {Named{"bf16", model::IndexFormat::kBf16},
                                 Named{"fp8", model::IndexFormat::kFp8},
                                 Named{"mxfp4", model::IndexFormat::kMxfp4}};
  return by_name(kNames, "index", name);
}

model::ExpertFormat expert_format(const std::string& name) {
  const auto format = model::expert_format_by_name(name);
  require(format.has_value(), ErrorKind::kInvalidArgument,
          "llm: experts = \"{}\"; expected one of stored, bf16, fp8, mxfp4, nvfp4", name);
  return *format;
}

constexpr std::int64_t kMostGpus = 64;

model::RankArgs rank_args(const LlmOptions& options) {
  require(options.gpus >= 0 && options.gpus <= kMostGpus, ErrorKind::kInvalidArgument,
          "llm: gpus = {}; expected 1 to {}, or 0 where parallel alone is said", options.gpus,
          kMostGpus);
  if (!options.parallel.empty()) {
    using Named = std::pair<std::string_view, bool>;
    by_name(std::array{Named{"tensor", true}, Named{"expert", true}}, "parallel", options.parallel);
  }
  return {.gpus = static_cast<int>(options.gpus), .parallel = options.parallel};
}

model::RunnerOptions runner_options(const LlmOptions& options) {
  return {.kv = kv_format(options.kv),
          .index = index_format(options.index),
          .max_tokens = options.max_tokens,
          .cache_tokens = options.cache_tokens,
          .step_tokens = options.step_tokens,
          .has_draft = options.has_draft};
}

// For several ranks of one process. On GPUs they would be processes, which no library starts.
Device open_for_threads(const std::string& asked, std::int64_t gpus, const comm::Launch& launch) {
  const auto refuse = [&](const std::string& device) {
    const std::string started = launch.started_by.empty()
                                    ? "no launcher has started this process"
                                    : launch.started_by + " has started one process";
    fail(ErrorKind::kInvalidArgument,
         "llm: gpus = {} on {}, but {}, and every GPU needs one of its own; start {} (torchrun "
         "--nproc-per-node {}, mpirun -n {}, srun -n {}), or leave gpus out",
         gpus, device, started, gpus, gpus, gpus, gpus);
  };
  if (asked.starts_with("cuda")) refuse(asked);
  Device device = Device::open(asked);
  if (!device.is_simulated()) refuse(device.spec());
  return device;
}

LlmFinish to_finish(const std::optional<model::FinishReason>& reason) {
  if (!reason) return LlmFinish::kNone;
  switch (*reason) {
    case model::FinishReason::kEnd:
      return LlmFinish::kEnd;
    case model::FinishReason::kLength:
      return LlmFinish::kLength;
    case model::FinishReason::kCancelled:
      return LlmFinish::kCancelled;
  }
  fail(ErrorKind::kInternal, "llm: no such reason to finish");
}

}  // namespace

struct Llm::State {
  /// `ranks`: processes, each with a program of its own.
  State(std::unique_ptr<model::Runner> of_model, const LlmOptions& options,
        std::unique_ptr<model::Agreement> ranks = nullptr)
      : runner(std::move(of_model)),
        description(runner->description()),
        engine(*runner, {.sequences = options.sequences, .has_draft = options.has_draft},
               std::move(ranks)) {}

  static std::unique_ptr<State> open(const std::filesystem::path& folder,
                                     const LlmOptions& options);

  std::unique_ptr<model::Runner> runner;
  std::string description;
  model::RankedBatch engine;
  std::deque<LlmToken> ready;  // of the last step
  std::int64_t requests = 0;
};

std::unique_ptr<Llm::State> Llm::State::open(const std::filesystem::path& folder,
                                             const LlmOptions& options) {
  const model::RankArgs args = rank_args(options);
  const model::RunnerOptions room = runner_options(options);
  const auto open_part = [&](const model::Share& share) {
    return std::make_shared<const model::Weights>(
        folder, model::WeightsOptions{.experts = expert_format(options.experts),
                                      .share = share,
                                      .has_drafts = options.has_draft});
  };
  const auto open_share = [&](const Device& device, const model::Share& share) {
    auto weights = open_part(share);
    model::require_memory(device, *weights, room, options.sequences);
    return weights;
  };
  const std::string asked = options.device.empty() ? env_text("TILEWRIGHT_DEVICE") : options.device;
  const bool is_reference = options.device == "reference";
  const comm::Launch launch = launch_of(args);
  check_ranks(args, launch, is_reference, fmt::format("llm: gpus = {}", args.gpus));
  if (launch.size > 1) {
    std::unique_ptr<State> state;
    as_process_rank(args, launch, asked, open_share, [&](const model::OpenRank& rank) {
      state = std::make_unique<State>(
          model::make_kernel_runner(rank.device, rank.weights, room, {}, rank.comm), options,
          std::make_unique<model::Agreement>(rank.device, rank.comm));
    });
    return state;
  }
  if (args.gpus > 1) {
    const Device device = open_for_threads(asked, args.gpus, launch);
    return std::make_unique<State>(
        model::make_ranked_runner(device, thread_weights(args, device, open_share), room), options);
  }
  if (is_reference)
    return std::make_unique<State>(model::make_reference_runner(open_part({}), room), options);
  const Device device = Device::open(options.device);
  return std::make_unique<State>(model::make_kernel_runner(device, open_share(device, {}), room),
                                 options);
}

Llm::Llm(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Llm::~Llm() = default;
Llm::Llm(Llm&& other) noexcept = default;
Llm& Llm::operator=(Llm&& other) noexcept = default;

Llm Llm::open(const std::filesystem::path& folder, const LlmOptions& options) {
  return Llm(State::open(folder, options));
}

const std::string& Llm::description() const noexcept {
  return state_->description;
}

std::int64_t Llm::vocab_size() const noexcept {
  return state_->runner->config().vocab;
}

std::int64_t Llm::add(std::span<const std::int32_t> prompt, const LlmSampling& sampling,
                      std::span<const std::int32_t> ends) {
  model::BatchRequest request = {.prompt = {prompt.begin(), prompt.end()},
                                 .max_tokens = sampling.max_tokens,
                                 .sampler = {.temperature = sampling.temperature,
                                             .top_k = sampling.top_k,
                                             .top_p = sampling.top_p,
                                             .min_p = sampling.min_p,
                                             .seed = sampling.seed},
                                 .sampler_sequence = static_cast<std::uint64_t>(state_->requests),
                                 .ends = {ends.begin(), ends.end()}};
  const auto& of_config = state_->runner->config().ends;
  if (!sampling.ignores_end)
    request.ends.insert(request.ends.end(), of_config.begin(), of_config.end());
  const std::int64_t number = state_->engine.add(std::move(request));
  state_->requests = number + 1;
  return number;
}

bool Llm::cancel(std::int64_t request) {
  const std::size_t dropped =
      std::erase_if(state_->ready, [&](const LlmToken& token) { return token.request == request; });
  return state_->engine.cancel(request) || dropped > 0;
}

std::optional<LlmToken> Llm::next() {
  while (state_->ready.empty() && !state_->engine.is_idle()) {
    for (const model::BatchEvent& event : state_->engine.step()) {
      for (const std::int32_t token : event.tokens)
        state_->ready.push_back({.request = event.request, .token = token});
      if (!event.finish) continue;
      if (event.tokens.empty()) state_->ready.push_back({.request = event.request});
      state_->ready.back().finish = to_finish(event.finish);
    }
  }
  if (state_->ready.empty()) return std::nullopt;
  const LlmToken token = state_->ready.front();
  state_->ready.pop_front();
  return token;
}

LlmCounts Llm::counts() const noexcept {
  const model::BatchCounts& counts = state_->engine.counts();
  return {.steps = counts.steps,
          .prompt_tokens = counts.prompt_tokens,
          .new_tokens = counts.new_tokens,
          .drafted = counts.drafted,
          .accepted = counts.accepted};
}

}  // namespace tilewright
