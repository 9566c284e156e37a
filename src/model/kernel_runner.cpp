#include "model/kernel_runner.h"

#include "tilewright/graph.h"

#include "base/error.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace tilewright::model {

namespace {

// The most tokens of a step. More of them would share a read of the weights, but need more memory.
constexpr std::int64_t kStepTokens = 256;

// New tokens of a step, and those whose logits are needed.
struct StepPlan {
  std::vector<NewTokens> tokens;
  std::vector<std::int32_t> inputs;  // as Activations::inputs
  std::int64_t count = 0, longest = 0;
  std::vector<std::int64_t> logit_rows;  // rows of the step, ascending
};

class KernelRunner final : public Runner {
 public:
  KernelRunner(const Device& device, std::shared_ptr<const Weights> weights,
               const RunnerOptions& options, const KernelNumbers& numbers)
      : device_(device),
        stream_(device),
        weights_(std::move(weights)),
        options_(options),
        numbers_(numbers),
        model_(device, *weights_, options.on_load) {}

  const Config& config() const override { return weights_->config(); }
  std::string description() const override;
  void start(std::int64_t num_sequences) override;
  Logits forward(std::span<const std::vector<std::int32_t>> tokens, LogitRows rows) override;

 private:
  StepPlan plan_step(std::span<const std::vector<std::int32_t>> tokens,
                     std::vector<std::int64_t>& done, LogitRows rows) const;
  void run_step(const StepPlan& plan);
  void launch_step(const KernelStep& step, const StepContext& context);
  std::vector<float> logits(const StepPlan& plan);
  const KernelStep& step_for(std::int64_t tokens);
  const ProjectionRun& head_for(std::int64_t rows);
  void* workspace(std::size_t bytes);

  Device device_;
  Stream stream_;
  std::shared_ptr<const Weights> weights_;
  RunnerOptions options_;
  KernelNumbers numbers_;
  ModelArrays model_;
  std::vector<std::int64_t> lengths_;
  std::unique_ptr<KernelMemory> memory_;
  std::unique_ptr<Activations> at_;
  std::unique_ptr<Bf16Array> head_input_;
  std::unique_ptr<FloatArray> logits_;
  std::unique_ptr<ByteArray> workspace_;
  std::map<std::int64_t, KernelStep> steps_;  // by tokens
  // Steps of one token a sequence, by tokens: all launches as one. Empty: run once, not yet kept.
  std::map<std::int64_t, std::optional<Graph>> graphs_;
  std::map<std::int64_t, ProjectionRun> heads_;  // by rows
};

const char* name_of(KvFormat format) {
  return to_string(to_cache_format(format));
}

std::string KernelRunner::description() const {
  return fmt::format("kernels on {} ({}), cache {}, experts {}", device_.name(), device_.spec(),
                     name_of(*options_.kv), weights_->expert_format());
}

void KernelRunner::start(std::int64_t num_sequences) {
  require(num_sequences >= 1, ErrorKind::kInvalidArgument,
          "model: start({}) sequences; expected at least 1", num_sequences);
  stream_.synchronize();
  graphs_.clear();
  steps_.clear();
  const std::int64_t step_tokens = std::min(kStepTokens, num_sequences * options_.max_tokens);
  at_.reset();
  memory_ = std::make_unique<KernelMemory>(device_, config(), options_, num_sequences,
                                           std::min(step_tokens, options_.max_tokens));
  at_ = std::make_unique<Activations>(device_, config(), model_, *memory_, numbers_, step_tokens);
  head_input_ = std::make_unique<Bf16Array>(device_, step_tokens * config().hidden);
  logits_ = std::make_unique<FloatArray>(device_, step_tokens * model_.head.width());
  lengths_.assign(static_cast<std::size_t>(num_sequences), 0);
}

// As many tokens as fit in a step, the first sequences first.
StepPlan KernelRunner::plan_step(std::span<const std::vector<std::int32_t>> tokens,
                                 std::vector<std::int64_t>& done, LogitRows rows) const {
  StepPlan plan;
  std::vector<std::int32_t> offsets = {0}, starts, ids;
  const std::int64_t room = at_->positions.count();
  for (std::size_t s = 0; s < tokens.size(); ++s) {
    const auto waiting = static_cast<std::int64_t>(tokens[s].size()) - done[s];
    const std::int64_t count = std::min(waiting, room - plan.count);
    plan.tokens.push_back({static_cast<std::int64_t>(s), plan.count, lengths_[s] + done[s], count});
    starts.push_back(static_cast<std::int32_t>(lengths_[s] + done[s]));
    for (std::int64_t i = 0; i < count; ++i) {
      ids.push_back(tokens[s][static_cast<std::size_t>(done[s] + i)]);
      if (rows == LogitRows::kAll || i + 1 == waiting) plan.logit_rows.push_back(plan.count + i);
    }
    done[s] += count;
    plan.count += count;
    plan.longest = std::max(plan.longest, count);
    offsets.push_back(static_cast<std::int32_t>(plan.count));
  }
  plan.inputs = std::move(offsets);
  plan.inputs.insert(plan.inputs.end(), starts.begin(), starts.end());
  plan.inputs.insert(plan.inputs.end(), ids.begin(), ids.end());
  return plan;
}

const KernelStep& KernelRunner::step_for(std::int64_t tokens) {
  const auto found = steps_.find(tokens);
  if (found != steps_.end()) return found->second;
  return steps_.try_emplace(tokens, device_, config(), model_, *memory_, numbers_, *at_, tokens)
      .first->second;
}

const ProjectionRun& KernelRunner::head_for(std::int64_t rows) {
  return heads_.try_emplace(rows, model_.head, rows, DType::kF32).first->second;
}

void* KernelRunner::workspace(std::size_t bytes) {
  if (!workspace_ || static_cast<std::size_t>(workspace_->count()) < bytes) {
    stream_.synchronize();
    graphs_.clear();  // they have the old address
    workspace_ = std::make_unique<ByteArray>(device_, static_cast<std::int64_t>(bytes));
  }
  return workspace_->get();
}

void KernelRunner::run_step(const StepPlan& plan) {
  stream_.synchronize();  // no kernel reads the inputs of the last step any more
  at_->inputs.buffer().upload(std::as_bytes(std::span(plan.inputs)));
  const KernelStep& step = step_for(plan.count);
  std::optional<StageTap> tap;
  if (stage_sink()) tap.emplace(device_, stage_sink(), plan.tokens);
  launch_step(step, {.model = model_,
                     .memory = *memory_,
                     .at = *at_,
                     .longest = plan.longest,
                     .tap = tap ? &*tap : nullptr,
                     .stream = stream_.handle()});
}

// Steps of decoding differ in the content of Activations::inputs alone: the second one of a size is
// recorded, and later ones are one launch.
void KernelRunner::launch_step(const KernelStep& step, const StepContext& context) {
  void* const memory = workspace(step.workspace_bytes());
  if (context.longest > 1 || context.tap != nullptr) {
    step.run(context, memory);
    return;
  }
  const auto [found, is_first] = graphs_.try_emplace(step.tokens());
  if (is_first) {
    step.run(context, memory);
    return;
  }
  std::optional<Graph>& graph = found->second;
  if (!graph) graph = Graph::capture(stream_, [&] { step.run(context, memory); });
  graph->launch(stream_);
}

std::vector<float> KernelRunner::logits(const StepPlan& plan) {
  const auto rows = static_cast<std::int64_t>(plan.logit_rows.size());
  if (rows == 0) return {};
  const std::uint16_t* input = at_->normed.get();
  const std::int64_t hidden = config().hidden;
  if (rows < plan.count) {
    for (std::size_t i = 0; i < plan.logit_rows.size(); ++i)
      copy_on_device(stream_, input + plan.logit_rows[i] * hidden,
                     head_input_->get() + static_cast<std::int64_t>(i) * hidden,
                     static_cast<std::size_t>(2 * hidden));
    input = head_input_->get();
  }
  const ProjectionRun& head = head_for(rows);
  head.run(input, logits_->get(), workspace(head.workspace_bytes()), stream_.handle());
  stream_.synchronize();
  std::vector<float> values(static_cast<std::size_t>(rows * model_.head.width()));
  logits_->buffer().download(std::as_writable_bytes(std::span(values)));
  return values;
}

Logits KernelRunner::forward(std::span<const std::vector<std::int32_t>> tokens, LogitRows rows) {
  require(memory_ != nullptr, ErrorKind::kInvalidArgument,
          "model: forward() before start(); begin the sequences first");
  check_forward(config(), options_, lengths_, tokens);
  std::vector<std::int64_t> done(tokens.size(), 0);
  std::vector<std::vector<double>> of_sequence(tokens.size());
  const std::int64_t vocab = config().vocab, width = model_.head.width();
  const auto is_done = [&] {
    for (std::size_t s = 0; s < tokens.size(); ++s)
      if (done[s] < static_cast<std::int64_t>(tokens[s].size())) return false;
    return true;
  };
  while (!is_done()) {
    const StepPlan plan = plan_step(tokens, done, rows);
    run_step(plan);
    const std::vector<float> values = logits(plan);
    for (std::size_t i = 0; i < plan.logit_rows.size(); ++i) {
      const std::int64_t row = plan.logit_rows[i];
      const auto owner = std::ranges::find_if(plan.tokens, [&](const NewTokens& t) {
        return row >= t.first_row && row < t.first_row + t.count;
      });
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(i) * width;
      auto& to = of_sequence[static_cast<std::size_t>(owner->sequence)];
      to.insert(to.end(), first, first + vocab);
      if (stage_sink())
        stage_sink()({.name = "logits",
                      .layer = -1,
                      .sequence = owner->sequence,
                      .first_row = owner->start + row - owner->first_row,
                      .shape = {1, vocab},
                      .values = std::span(to).last(static_cast<std::size_t>(vocab))});
    }
  }
  Logits result = {.vocab = vocab, .values = {}};
  for (std::size_t s = 0; s < tokens.size(); ++s) {
    lengths_[s] += static_cast<std::int64_t>(tokens[s].size());
    result.values.insert(result.values.end(), of_sequence[s].begin(), of_sequence[s].end());
  }
  return result;
}

}  // namespace

std::unique_ptr<Runner> make_kernel_runner(const Device& device,
                                           std::shared_ptr<const Weights> weights,
                                           const RunnerOptions& options,
                                           const KernelNumbers& numbers) {
  require(options.kv.has_value(), ErrorKind::kInvalidArgument,
          "model: kernels keep rows as bf16, fp8 or nvfp4; rows that are not rounded are for the "
          "float64 runner (--device reference)");
  require(options.index != IndexFormat::kBf16, ErrorKind::kInvalidArgument,
          "model: kernels keep the indexer's keys as fp8 or fp4; bf16 is for the float64 runner "
          "(--device reference)");
  return std::make_unique<KernelRunner>(device, std::move(weights), options, numbers);
}

}  // namespace tilewright::model
