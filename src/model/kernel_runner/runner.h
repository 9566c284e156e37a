// Of make.h: the class, whose drawing of tokens and drafts are in draw.cpp.
#pragma once

#include "tilewright/device.h"
#include "tilewright/graph.h"

#include "comm/communicator.h"
#include "comm/peers/rank_rows.h"
#include "comm/peers/rank_sum.h"
#include "model/kernel_runner/memory.h"
#include "model/kernel_runner/sampler.h"
#include "model/kernel_runner/step.h"
#include "model/kernel_runner/weights.h"
#include "model/model.h"
#include "model/sequences.h"
#include "model/share.h"

#include <compare>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::model {

// Up to so many new tokens of each sequence: a step of decoding, which is recorded.
constexpr std::int64_t kDecodeTokens = 2;

// Steps whose launches are the same.
struct StepKey {
  StepTokens tokens;
  std::int64_t longest = 0;  // new tokens of a sequence
  bool is_draft = false;
  DrawShape draw = {};  // none: no token is drawn
  auto operator<=>(const StepKey&) const = default;
};

// Steps of similar sizes are filled up to one, so that few are recorded. A token that fills up has
// the id -1, and belongs to no sequence.
std::int64_t filled_up(std::int64_t count, std::int64_t most);

// Where the rows of each sequence begin in a result: behind those of the ones before.
std::vector<std::int64_t> first_rows(std::span<const std::int64_t> logit_rows);

// Whose token is row `row` of a step.
const NewTokens& owner_of(const StepPlan& plan, std::int64_t row);

class KernelRunner final : public Runner {
 public:
  KernelRunner(const Device& device, std::shared_ptr<const Weights> weights,
               const RunnerOptions& options, const KernelNumbers& numbers,
               std::shared_ptr<comm::Communicator> comm)
      : device_(device),
        stream_(device),
        weights_(std::move(weights)),
        options_(options),
        numbers_(numbers),
        comm_(std::move(comm)),
        share_(weights_->share()),
        own_config_(rank_config(share_, weights_->config())),
        model_(device, *weights_, options.on_load, options.has_draft),
        sequences_(weights_->config(), options, divides_sequences() ? share_.world : 1) {
    if (divides_head() || (divides_sequences() && share_.world <= kMostKeptTokens))
      sum_ = comm::make_rank_sum(device, comm_, config().hidden);
    if (divides_sequences()) rows_ = comm::make_rank_rows(device, comm_);
  }

  const Config& config() const override { return weights_->config(); }
  std::string description() const override;
  RunnerLimits limits() const override { return sequences_.limits(); }
  void start(std::int64_t num_sequences) override;
  bool begin(std::int64_t sequence, std::int64_t tokens) override;
  void end(std::int64_t sequence) override;
  void take_back(std::int64_t sequence, std::int64_t tokens) override;
  Logits run(std::span<const std::vector<std::int32_t>> tokens,
             std::span<const std::int64_t> logit_rows) override;
  Logits draft(std::span<const std::vector<std::int32_t>> next,
               std::span<const std::int64_t> logit_rows) override;
  bool can_draw() const override { return true; }
  double waited_s() const override { return waited_s_; }
  std::vector<std::int32_t> run_and_draw(std::span<const std::vector<std::int32_t>> tokens,
                                         std::span<const DrawnRows> rows) override;
  std::vector<std::int32_t> draft_and_draw(std::span<const std::vector<std::int32_t>> next,
                                           std::span<const std::int64_t> rows) override;

 private:
  bool divides_sequences() const {
    return comm_ != nullptr && share_.scheme == Scheme::kExpertParallel;
  }
  bool divides_head() const { return comm_ != nullptr && share_.scheme == Scheme::kTensorParallel; }
  std::int64_t logits_width() const {
    return divides_head() ? config().vocab : model_.head.width();
  }
  std::size_t own_plan() const {
    return divides_sequences() ? static_cast<std::size_t>(share_.rank) : 0;
  }
  std::vector<StepPlan> plan_ranks(const NewText& text, std::vector<std::int64_t>& done) const;
  void assign_blocks(std::int64_t sequence);
  template <class Step>
  void for_each_step(const NewText& text, const Step& step);
  template <class Call>
  auto tell_of_failure(const Call& call);
  Logits run_steps(const NewText& text);
  std::vector<StepPlan> plan_draft(std::span<const std::vector<std::int32_t>> next,
                                   std::span<const std::int64_t> rows,
                                   std::vector<std::int32_t>& ids);
  void run_draft(const std::vector<StepPlan>& plans, std::vector<std::int32_t> ids,
                 const DrawShape& draw);
  void synchronize();
  StepKey key_of(const std::vector<StepPlan>& plans) const;
  DrawShape draw_shape(const StepKey& key, const std::vector<StepPlan>& plans) const;
  std::vector<DrawnRow> drawn_rows(const StepPlan& plan, std::span<const DrawnRows> rows) const;
  std::vector<std::int32_t> drawn_ids(const DrawShape& draw, const std::vector<StepPlan>& plans);
  void run_step(const std::vector<StepPlan>& plans, StepKey key);
  void launch_step(const StepKey& key, const StepContext& context);
  void run_head(const StepPlan& plan, const std::uint16_t* input);
  std::span<const float> logits(const std::vector<StepPlan>& plans);
  std::vector<double> head_rows(std::span<const float> values) const;
  void emit_logits(const NewTokens& owner, std::int64_t row, std::span<const double> values) const;
  const KernelStep& step_for(const StepTokens& tokens);
  const ProjectionRun& head_for(std::int64_t rows);
  void* workspace(std::size_t bytes);

  Device device_;
  Stream stream_;
  std::shared_ptr<const Weights> weights_;
  RunnerOptions options_;
  KernelNumbers numbers_;
  std::shared_ptr<comm::Communicator> comm_;  // null: no other ranks
  std::unique_ptr<comm::RankSum> sum_;        // null: sums as comm_ makes them
  std::unique_ptr<comm::RankRows> rows_;      // null: rows as comm_ moves them
  Share share_;
  Config own_config_;  // of this rank's part
  ModelArrays model_;
  Sequences sequences_;
  std::unique_ptr<KernelMemory> memory_;
  std::unique_ptr<Activations> at_;
  std::unique_ptr<Bf16Array> head_input_;
  std::unique_ptr<FloatArray> logits_, gathered_logits_;
  std::vector<float> host_logits_, joined_logits_;
  std::unique_ptr<KernelSampler> sampler_;
  std::unique_ptr<ByteArray> workspace_;
  std::vector<std::unique_ptr<ByteArray>> old_workspaces_;  // that graphs still use
  std::map<StepTokens, KernelStep> steps_;
  // Steps of few tokens a sequence: all launches as one. Empty: run once, not yet kept.
  std::map<StepKey, std::optional<Graph>> graphs_;
  std::optional<std::vector<StepPlan>> last_;    // the only step of the last run()
  std::map<std::int64_t, ProjectionRun> heads_;  // by rows
  double waited_s_ = 0;
};

// Other ranks hear of what `call` throws.
template <class Call>
auto KernelRunner::tell_of_failure(const Call& call) {
  if (comm_ == nullptr) return call();
  try {
    return call();
  } catch (const std::exception& error) {
    comm_->tell_failure(error.what());
    throw;
  }
}

// step(plans): of so many tokens as there is room for, one after the other.
template <class Step>
void KernelRunner::for_each_step(const NewText& text, const Step& step) {
  std::vector<std::int64_t> done(text.tokens.size(), 0);
  std::int64_t steps = 0;
  const auto is_done = [&] {
    for (std::size_t s = 0; s < text.tokens.size(); ++s)
      if (done[s] < std::ssize(text.tokens[s])) return false;
    return true;
  };
  while (!is_done()) {
    const std::vector<StepPlan> plans = plan_ranks(text, done);
    synchronize();  // no kernel reads the inputs of the last step any more
    last_.reset();
    step(plans);
    if (++steps == 1) last_ = plans;
  }
  if (steps > 1) last_.reset();
  sequences_.append(text.tokens);
}

}  // namespace tilewright::model
