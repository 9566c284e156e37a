#include "model/kernel_runner/ranked_runner.h"

#include "comm/thread_group.h"

#include <type_traits>
#include <utility>

namespace tilewright::model {

namespace {

class RankedRunner final : public Runner {
 public:
  RankedRunner(const Device& device, const std::vector<std::shared_ptr<const Weights>>& weights,
               const RunnerOptions& options)
      : group_(static_cast<int>(weights.size())) {
    RunnerOptions of_rank = options;
    for (const auto& part : weights) {
      const int rank = static_cast<int>(runners_.size());
      runners_.push_back(make_kernel_runner(device, part, of_rank, {}, group_.join(rank, device)));
      of_rank.on_load = {};
    }
  }

  const Config& config() const override { return runners_[0]->config(); }
  std::string description() const override { return runners_[0]->description(); }
  void start(std::int64_t num_sequences) override {
    for (const auto& runner : runners_) runner->start(num_sequences);
  }
  RunnerLimits limits() const override { return runners_[0]->limits(); }
  bool begin(std::int64_t sequence, std::int64_t tokens) override {
    bool has_room = true;  // on all or on none: they count alike
    for (const auto& runner : runners_) has_room = runner->begin(sequence, tokens);
    return has_room;
  }
  void end(std::int64_t sequence) override {
    for (const auto& runner : runners_) runner->end(sequence);
  }
  void take_back(std::int64_t sequence, std::int64_t tokens) override {
    for (const auto& runner : runners_) runner->take_back(sequence, tokens);
  }
  Logits run(std::span<const std::vector<std::int32_t>> tokens,
             std::span<const std::int64_t> logit_rows) override {
    runners_[0]->set_stage_sink(stage_sink());
    return on_all([&](Runner& runner) { return runner.run(tokens, logit_rows); });
  }
  Logits draft(std::span<const std::vector<std::int32_t>> next,
               std::span<const std::int64_t> logit_rows) override {
    return on_all([&](Runner& runner) { return runner.draft(next, logit_rows); });
  }
  bool can_draw() const override { return runners_[0]->can_draw(); }
  std::vector<std::int32_t> run_and_draw(std::span<const std::vector<std::int32_t>> tokens,
                                         std::span<const DrawnRows> rows) override {
    return on_all([&](Runner& runner) { return runner.run_and_draw(tokens, rows); });
  }
  std::vector<std::int32_t> draft_and_draw(std::span<const std::vector<std::int32_t>> next,
                                           std::span<const std::int64_t> rows) override {
    return on_all([&](Runner& runner) { return runner.draft_and_draw(next, rows); });
  }

 private:
  // What rank 0 gives.
  template <class Call>
  std::invoke_result_t<Call, Runner&> on_all(const Call& call) {
    std::invoke_result_t<Call, Runner&> first;
    group_.run([&](int rank) {
      auto of_rank = call(*runners_[comm::rank_idx(rank)]);
      if (rank == 0) first = std::move(of_rank);
    });
    return first;
  }

  comm::ThreadGroup group_;
  std::vector<std::unique_ptr<Runner>> runners_;
};

}  // namespace

std::unique_ptr<Runner> make_ranked_runner(
    const Device& device, const std::vector<std::shared_ptr<const Weights>>& weights,
    const RunnerOptions& options) {
  return std::make_unique<RankedRunner>(device, weights, options);
}

}  // namespace tilewright::model
