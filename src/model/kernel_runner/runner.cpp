#include "model/kernel_runner/runner.h"

#include "base/error.h"
#include "model/kernel_runner/make.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <numeric>

#include <fmt/format.h>

namespace tilewright::model {

namespace {

// Steps of so many sizes keep their operators; then all are made anew.
constexpr std::size_t kMostSteps = 64;

// Likewise of the most new tokens of a sequence: a bound.
std::int64_t longest_filled_up(std::int64_t count) {
  return count <= kDecodeTokens
             ? count
             : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)));
}

// [parts, rows, width] to [rows, parts * kept]: of every row of a part the first `kept`.
std::vector<float> join_columns(std::span<const float> values, std::int64_t parts,
                                std::int64_t rows, std::int64_t width, std::int64_t kept) {
  std::vector<float> joined(static_cast<std::size_t>(rows * parts * kept));
  for (std::int64_t part = 0; part < parts; ++part)
    for (std::int64_t r = 0; r < rows; ++r)
      std::copy_n(values.begin() + (part * rows + r) * width, kept,
                  joined.begin() + (r * parts + part) * kept);
  return joined;
}

const char* name_of(KvFormat format) {
  return to_string(to_cache_format(format));
}

}  // namespace

std::int64_t filled_up(std::int64_t count, std::int64_t most) {
  constexpr std::int64_t kOf8 = 8, kOf32 = 64, kOf64 = 512, kOf128 = 1024;  // beyond those sizes
  const std::int64_t step = count <= kOf8     ? 1
                            : count <= kOf32  ? 8
                            : count <= kOf64  ? 32
                            : count <= kOf128 ? 64
                                              : 128;
  return std::min((count + step - 1) / step * step, most);
}

std::vector<std::int64_t> first_rows(std::span<const std::int64_t> logit_rows) {
  std::vector<std::int64_t> first(logit_rows.size(), 0);
  std::exclusive_scan(logit_rows.begin(), logit_rows.end(), first.begin(), std::int64_t{0});
  return first;
}

const NewTokens& owner_of(const StepPlan& plan, std::int64_t row) {
  return *std::ranges::find_if(plan.tokens, [&](const NewTokens& t) {
    return row >= t.first_row && row < t.first_row + t.count;
  });
}

std::string KernelRunner::description() const {
  std::string text = fmt::format("kernels on {} ({}), cache {}, experts {}", device_.name(),
                                 device_.spec(), name_of(*options_.kv), weights_->expert_format());
  if (comm_ != nullptr)
    text += fmt::format(", {}: {}{}", to_string(share_.scheme), comm_->description(),
                        rows_  ? ", rows of few tokens through the memory of all ranks"
                        : sum_ ? ", small sums through the memory of all ranks"
                               : "");
  return text;
}

void KernelRunner::start(std::int64_t num_sequences) {
  sequences_.start(num_sequences);
  stream_.synchronize();
  graphs_.clear();
  steps_.clear();
  old_workspaces_.clear();
  // Where sequences are divided, each rank has one more that is idle: what runs on a rank without
  // new tokens, for the others need its experts.
  const std::int64_t size = divides_sequences() ? share_.world : 1;
  const std::int64_t idle = divides_sequences() ? 1 : 0;
  const std::int64_t own =
      divides_sequences() ? rank_range(share_, num_sequences).count : num_sequences;
  const std::int64_t most = (num_sequences + size - 1) / size + idle;
  const std::int64_t step_tokens = std::min(options_.step_tokens, most * options_.max_tokens);
  at_.reset();
  memory_ = std::make_unique<KernelMemory>(device_, own_config_, options_, own + idle,
                                           std::min(step_tokens, options_.max_tokens));
  at_ = std::make_unique<Activations>(device_, own_config_, model_, *memory_, numbers_, step_tokens,
                                      idle * size * step_tokens);
  head_input_ = std::make_unique<Bf16Array>(device_, step_tokens * config().hidden);
  logits_ = std::make_unique<FloatArray>(device_, step_tokens * model_.head.width());
  const std::int64_t drawn = std::min(step_tokens, kDecodeTokens * most);
  sampler_ = std::make_unique<KernelSampler>(
      device_, config(), model_.head, StepRanks{comm_.get(), share_, sum_.get(), rows_.get()},
      filled_up(drawn, step_tokens));
}

bool KernelRunner::begin(std::int64_t sequence, std::int64_t tokens) {
  const bool has_room = sequences_.begin(sequence, tokens);
  assign_blocks(sequence);
  return has_room;
}

void KernelRunner::end(std::int64_t sequence) {
  sequences_.end(sequence);
  assign_blocks(sequence);
}

// On the rank that has the sequence.
void KernelRunner::assign_blocks(std::int64_t sequence) {
  if (options_.cache_tokens == 0) return;
  const Range own =
      divides_sequences() ? rank_range(share_, sequences_.count()) : Range{0, sequences_.count()};
  if (sequence >= own.first && sequence < own.first + own.count)
    memory_->assign(sequence - own.first, sequences_[sequence].blocks);
}

// What the kernels stored of tokens that go is written over by those that come in their place.
void KernelRunner::take_back(std::int64_t sequence, std::int64_t tokens) {
  sequences_.take_back(sequence, tokens);
}

// Every rank knows what all do.
std::vector<StepPlan> KernelRunner::plan_ranks(const NewText& text,
                                               std::vector<std::int64_t>& done) const {
  const std::int64_t sequences = std::ssize(text.tokens), room = at_->positions.count();
  if (!divides_sequences()) return {sequences_.plan_step(text, done, {0, sequences}, room, false)};
  std::vector<StepPlan> plans;
  for (std::int64_t rank = 0; rank < share_.world; ++rank) {
    const Range range = rank_range({share_.scheme, rank, share_.world}, sequences);
    plans.push_back(sequences_.plan_step(text, done, range, room, true));
  }
  return plans;
}

void KernelRunner::synchronize() {
  const auto begin = std::chrono::steady_clock::now();
  if (comm_ != nullptr)
    comm_->synchronize(stream_);
  else
    stream_.synchronize();
  waited_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

const KernelStep& KernelRunner::step_for(const StepTokens& tokens) {
  const auto found = steps_.find(tokens);
  if (found != steps_.end()) return found->second;
  if (steps_.size() >= kMostSteps) {
    synchronize();
    graphs_.clear();
    steps_.clear();
  }
  return steps_
      .try_emplace(tokens, device_, own_config_, model_, *memory_, numbers_, *at_, tokens,
                   StepRanks{comm_.get(), share_, sum_.get(), rows_.get()})
      .first->second;
}

const ProjectionRun& KernelRunner::head_for(std::int64_t rows) {
  return heads_.try_emplace(rows, model_.head, rows, DType::kF32).first->second;
}

void* KernelRunner::workspace(std::size_t bytes) {
  if (!workspace_ || static_cast<std::size_t>(workspace_->count()) < bytes) {
    synchronize();
    // Graphs have the old address. Ranks have to agree on what is replayed, and not all of them
    // need more at the same time: there the old one stays.
    if (comm_ == nullptr)
      graphs_.clear();
    else if (workspace_)
      old_workspaces_.push_back(std::move(workspace_));
    workspace_ = std::make_unique<ByteArray>(device_, static_cast<std::int64_t>(bytes));
  }
  return workspace_->get();
}

// Stages are told of tokens that there are.
StepKey KernelRunner::key_of(const std::vector<StepPlan>& plans) const {
  const auto filled = [&](std::int64_t count) {
    return stage_sink() ? count : filled_up(count, at_->positions.count());
  };
  StepKey key = {.tokens = {.own = filled(plans[own_plan()].count)}};
  for (const StepPlan& each : plans) {  // of all ranks, which record a graph together or not
    key.longest = std::max(key.longest, longest_filled_up(each.longest));
    if (divides_sequences()) key.tokens.of_ranks.push_back(filled(each.count));
  }
  return key;
}

void KernelRunner::run_step(const std::vector<StepPlan>& plans, StepKey key) {
  const StepPlan& plan = plans[own_plan()];
  memory_->upload_tables();
  std::vector<std::int32_t> inputs = plan.inputs;
  const auto fill_up = [&](std::int64_t count) {
    inputs.insert(inputs.end(), static_cast<std::size_t>(count), -1);
  };
  fill_up(key.tokens.own - plan.count);
  if (divides_sequences()) {
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      const StepPlan& each = plans[rank];
      inputs.insert(inputs.end(), each.inputs.end() - each.count, each.inputs.end());
      fill_up(key.tokens.of_ranks[rank] - each.count);
    }
  }
  at_->inputs.buffer().upload(std::as_bytes(std::span(inputs)));
  std::optional<StageTap> tap;
  if (stage_sink()) tap.emplace(device_, stage_sink(), plan.tokens);
  launch_step(key, {.model = model_,
                    .memory = *memory_,
                    .at = *at_,
                    .longest = key.longest,
                    .tap = tap ? &*tap : nullptr,
                    .stream = stream_.handle()});
}

// Steps of one key differ in the content of inputs alone: the second one is recorded, and later
// ones are one launch.
void KernelRunner::launch_step(const StepKey& key, const StepContext& context) {
  const KernelStep& step = step_for(key.tokens);
  const bool draws = !key.draw.empty();
  void* const memory =
      workspace(std::max(step.workspace_bytes(), draws ? sampler_->workspace_bytes(key.draw) : 0));
  const auto run = [&] {
    if (key.is_draft)
      step.run_draft(context, memory);
    else
      step.run(context, memory);
    if (draws) sampler_->run(key.draw, step.own_rows(*at_), memory, stream_.handle());
  };
  if (context.tap != nullptr) return run();
  const auto [found, is_first] = graphs_.try_emplace(key);
  if (is_first) return run();
  std::optional<Graph>& graph = found->second;
  if (!graph) graph = Graph::capture(stream_, run);
  graph->launch(stream_);
}

void KernelRunner::run_head(const StepPlan& plan, const std::uint16_t* input) {
  const std::int64_t rows = plan.num_logit_rows();
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
}

// [rows of all ranks, logits_width()], until the next call: 0.5 MB a row, so that memory that is
// fetched anew from the system would take longer than the step.
std::span<const float> KernelRunner::logits(const std::vector<StepPlan>& plans) {
  const std::int64_t width = model_.head.width();
  std::vector<std::int64_t> bytes;
  std::int64_t rows = 0;
  for (const StepPlan& plan : plans) {
    rows += plan.num_logit_rows();
    bytes.push_back(plan.num_logit_rows() * width * 4);
  }
  if (rows == 0) return {};
  const StepPlan& own = plans[own_plan()];
  if (own.num_logit_rows() > 0) run_head(own, step_for(key_of(plans).tokens).own_rows(*at_));
  if (divides_head()) bytes.assign(static_cast<std::size_t>(share_.world), rows * width * 4);
  const std::int64_t count = rows * width * (divides_head() ? share_.world : 1);
  FloatArray* from = logits_.get();
  if (bytes.size() > 1) {
    if (!gathered_logits_ || gathered_logits_->count() < count)
      gathered_logits_ = std::make_unique<FloatArray>(device_, count);
    from = gathered_logits_.get();
    comm_->all_gather(logits_->get(), from->get(), bytes, stream_.handle());
  }
  synchronize();
  host_logits_.resize(std::max(host_logits_.size(), static_cast<std::size_t>(count)));
  const auto values = std::span(host_logits_).first(static_cast<std::size_t>(count));
  from->buffer().download(std::as_writable_bytes(values));
  if (!divides_head()) return values;
  joined_logits_ = join_columns(values, share_.world, rows, width, config().vocab / share_.world);
  return joined_logits_;
}

void KernelRunner::emit_logits(const NewTokens& owner, std::int64_t row,
                               std::span<const double> values) const {
  if (!stage_sink()) return;
  stage_sink()({.name = "logits",
                .layer = -1,
                .sequence = owner.sequence,
                .first_row = owner.start + row - owner.first_row,
                .shape = {1, config().vocab},
                .values = values});
}

Logits KernelRunner::run(std::span<const std::vector<std::int32_t>> tokens,
                         std::span<const std::int64_t> logit_rows) {
  require(!stage_sink() || !divides_sequences(), ErrorKind::kUnsupported,
          "model: ranks that divide the experts do not tell stages; use one rank, or tensor "
          "parallel ones");
  sequences_.check_run(tokens, logit_rows);
  return tell_of_failure([&] { return run_steps({tokens, logit_rows}); });
}

Logits KernelRunner::run_steps(const NewText& text) {
  std::vector<std::int64_t> next_row = first_rows(text.logit_rows);
  const std::int64_t num_rows =
      std::accumulate(text.logit_rows.begin(), text.logit_rows.end(), std::int64_t{0});
  const std::int64_t vocab = config().vocab, width = logits_width();
  Logits result = {.vocab = vocab, .values = {}};
  result.values.resize(static_cast<std::size_t>(num_rows * vocab));
  for_each_step(text, [&](const std::vector<StepPlan>& plans) {
    run_step(plans, key_of(plans));
    auto first = logits(plans).begin();
    for (const StepPlan& plan : plans) {
      for (const std::int64_t row : plan.logit_rows) {
        const NewTokens& owner = owner_of(plan, row);
        const std::int64_t at = next_row[static_cast<std::size_t>(owner.sequence)]++ * vocab;
        const auto to = std::span(result.values)
                            .subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(vocab));
        std::copy_n(first, vocab, to.begin());
        first += width;
        emit_logits(owner, row, to);
      }
    }
  });
  return result;
}

// Of each row the logits, without what the head has been filled up with.
std::vector<double> KernelRunner::head_rows(std::span<const float> values) const {
  std::vector<double> rows;
  rows.reserve(values.size());
  for (auto first = values.begin(); first != values.end(); first += logits_width())
    rows.insert(rows.end(), first, first + config().vocab);
  return rows;
}

std::unique_ptr<Runner> make_kernel_runner(const Device& device,
                                           std::shared_ptr<const Weights> weights,
                                           const RunnerOptions& options,
                                           const KernelNumbers& numbers,
                                           std::shared_ptr<comm::Communicator> comm) {
  require(options.kv.has_value(), ErrorKind::kInvalidArgument,
          "model: kernels keep rows as bf16, fp8 or nvfp4; rows that are not rounded are for the "
          "float64 runner (--device reference)");
  require(options.index != IndexFormat::kBf16, ErrorKind::kInvalidArgument,
          "model: kernels keep the indexer's keys as fp8 or fp4; bf16 is for the float64 runner "
          "(--device reference)");
  require(!options.has_draft || !weights->drafts.empty(), ErrorKind::kInvalidArgument,
          "model: has_draft, but {} has no draft layer; expected a checkpoint with mtp.0, opened "
          "with WeightsOptions::has_drafts",
          weights->source());
  const Share& share = weights->share();
  const std::int64_t rank = comm == nullptr ? 0 : comm->rank();
  const std::int64_t world = comm == nullptr ? 1 : comm->size();
  require(rank == share.rank && world == share.world, ErrorKind::kInvalidArgument,
          "model: the weights are those of rank {} of {}, the runner is rank {} of {}; expected "
          "weights of the same rank",
          share.rank, share.world, rank, world);
  return std::make_unique<KernelRunner>(device, std::move(weights), options, numbers,
                                        std::move(comm));
}

}  // namespace tilewright::model
