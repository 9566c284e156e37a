#include "bench/model.h"

#include "base/error.h"
#include "bench/ladder.h"
#include "bench/step_timer.h"
#include "model/checkpoint/memory.h"
#include "model/checkpoint/step_work.h"
#include "model/kernel_runner/make.h"
#include "model/text/steady_load.h"
#include "report/time_summary.h"
#include "verify/device_facts.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

double floor_us_of(const model::StepWork& work) {
  const double bytes_s = work.bytes() / kModelBytesPerS;
  const double flops_s =
      work.fp8_flops / kModelFp8FlopsPerS + work.bf16_flops / kModelBf16FlopsPerS;
  return 1e6 * std::max(bytes_s, flops_s);
}

json work_json(const model::StepWork& work) {
  return {{"bytes", work.bytes()},           {"weight_bytes", work.weight_bytes},
          {"cache_bytes", work.cache_bytes}, {"fp8_flops", work.fp8_flops},
          {"bf16_flops", work.bf16_flops},   {"exchanged_bytes", work.exchanged_bytes}};
}

// How often each was launched, most often first.
json launch_counts(const std::vector<std::string>& launches) {
  std::map<std::string, int> counts;
  for (const std::string& name : launches) ++counts[name];
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, int>::second);
  json list = json::array();
  for (const auto& [name, count] : sorted) list.push_back({{"name", name}, {"count", count}});
  return list;
}

// The longest first.
json operator_times(const std::map<std::string, OperatorTime>& times) {
  std::vector<std::pair<std::string, OperatorTime>> sorted(times.begin(), times.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
  json list = json::array();
  for (const auto& [name, time] : sorted)
    list.push_back({{"name", name}, {"calls", time.calls}, {"us", time.us}});
  return list;
}

// Random weights give no text, but numbers they do.
bool are_numbers(const std::vector<float>& logits) {
  const auto is_finite = [](float x) { return std::isfinite(x); };
  return !logits.empty() && std::ranges::all_of(logits, is_finite) &&
         std::ranges::min(logits) < std::ranges::max(logits);
}

bool divides_heads(const model::Share& share) {
  return share.world > 1 && share.scheme == model::Scheme::kTensorParallel;
}

bool divides_experts(const model::Share& share) {
  return share.world > 1 && share.scheme == model::Scheme::kExpertParallel;
}

// In some of its steps.
bool sums_ranks(const model::Share& share) {
  return divides_heads(share) || (divides_experts(share) && share.world <= model::kMostKeptTokens);
}

model::StepShape shape_of(const model::Weights& weights, const model::RunnerOptions& options) {
  return {
      .config = weights.config(),
      .share = weights.share(),
      .experts = number_format_from_string(weights.expert_format()).value_or(NumberFormat::kBf16),
      .options = options};
}

// Of a prompt in steps of `chunk` tokens that has logits after its last one.
double prompt_floor_us(const model::StepShape& shape, std::int64_t tokens, std::int64_t chunk) {
  double us = 0;
  for (std::int64_t done = 0; done < tokens; done += chunk) {
    const std::int64_t count = std::min(chunk, tokens - done);
    us += floor_us_of(step_work(
        shape, {.tokens = count, .start = done, .logit_rows = done + count == tokens ? 1 : 0}));
  }
  return us;
}

// Of a request in the long run: its prompt alone, and its part of the steps that write.
double request_floor_us(const model::StepShape& shape, const ServeSweep& serve,
                        std::int64_t step_tokens) {
  const double step_us = floor_us_of(step_work(
      shape, {.sequences = serve.sequences, .tokens = 1, .start = serve.input + serve.output / 2}));
  return prompt_floor_us(shape, serve.input, step_tokens) +
         step_us * static_cast<double>(serve.output) / static_cast<double>(serve.sequences);
}

// A sample of the log. Every rank makes the same call.
json serve(const Device& device, std::shared_ptr<const model::Weights> weights,
           const std::shared_ptr<comm::Communicator>& comm, const ModelSweep& sweep) {
  const ServeSweep& load = sweep.serve;
  const double floor_us =
      request_floor_us(shape_of(*weights, sweep.options), load, sweep.options.step_tokens);
  const auto runner =
      model::make_kernel_runner(device, std::move(weights), sweep.options, {}, comm);
  model::SteadyLoad steady(
      *runner, {.sequences = load.sequences, .input = load.input, .output = load.output});
  steady.warm_up();
  const model::LoadMark before = steady.mark();
  const auto begin = std::chrono::steady_clock::now();
  steady.run(load.requests);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin);
  const model::LoadMark after = steady.mark();
  const auto of_rank = [&](std::int64_t model::BatchCounts::*count) {
    return (after.counts.*count - before.counts.*count) / runner->limits().groups;
  };
  const std::int64_t steps = after.counts.steps - before.counts.steps;
  json sample = {{"phase", "serve"},
                 {"sequences", load.sequences},
                 {"input", load.input},
                 {"output", load.output},
                 {"step_tokens", sweep.options.step_tokens},
                 {"requests", load.requests},
                 {"prompt_tokens", of_rank(&model::BatchCounts::prompt_tokens)},
                 {"new_tokens", of_rank(&model::BatchCounts::new_tokens)},
                 {"steps", steps},
                 {"floor_us", floor_us}};
  if (device.is_simulated()) return sample;  // the host's times say nothing about a GPU
  const double waited_s = after.waited_s - before.waited_s;
  sample["seconds"] = seconds.count();
  sample["mixed_s"] = after.counts.prefill_s - before.counts.prefill_s;
  sample["decode_s"] = after.counts.decode_s - before.counts.decode_s;
  sample["host_us_a_step"] = 1e6 * (seconds.count() - waited_s) / static_cast<double>(steps);
  return sample;
}

class ModelSweeper {
 public:
  ModelSweeper(const Device& device, const model::Weights& weights,
               const std::shared_ptr<comm::Communicator>& comm, const ModelSweep& sweep)
      : device_(device),
        sweep_(sweep),
        sum_(sums_ranks(weights.share())
                 ? comm::make_rank_sum(device, comm, weights.config().hidden)
                 : nullptr),
        rows_(divides_experts(weights.share()) ? comm::make_rank_rows(device, comm) : nullptr),
        ranks_{comm.get(), weights.share(), sum_.get(), rows_.get()},
        config_(rank_config(weights.share(), weights.config())),
        shape_(shape_of(weights, sweep.options)),
        arrays_(device, weights, sweep.options.on_load) {}

  bool has_peers() const { return sum_ != nullptr || rows_ != nullptr; }

  json run() {
    if (sweep_.prompt > 0) time_prompt();
    for (const std::int64_t batch : sweep_.batches) time_batch(batch);
    return std::move(samples_);
  }

 private:
  // None if there is no room, which the log says then, with what would fit.
  std::unique_ptr<StepTimer> open(std::int64_t batch, std::int64_t context, const json& what) {
    try {
      require_room(batch, context);
      return std::make_unique<StepTimer>(
          device_, arrays_, config_, sweep_.options,
          TimedSequences{batch, context, std::min(sweep_.chunk, context)}, ranks_);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kOutOfMemory) throw;
      json sample = what;
      sample["refused"] = error.what();
      samples_.push_back(std::move(sample));
      return nullptr;
    }
  }

  void require_room(std::int64_t batch, std::int64_t context) const {
    model::StepShape step = shape_;
    step.share.rank = 0;  // it has the most experts, and all ranks come to one answer
    step.sequences = batch;
    step.tokens = std::max(batch, std::min(sweep_.chunk, context));
    step.options.max_tokens = context;
    const std::string problem = model::memory_problem(
        device_, {.step = std::move(step)}, static_cast<std::int64_t>(device_.memory_bytes()));
    require(problem.empty(), ErrorKind::kOutOfMemory, "{}: {}", sweep_.name, problem);
  }

  void time_prompt() {
    json sample = {{"phase", "prefill"}, {"tokens", sweep_.prompt}, {"chunk", sweep_.chunk}};
    auto timer = open(1, sweep_.prompt, sample);
    if (!timer) return;
    timer->prefill(std::min(sweep_.chunk, sweep_.prompt));  // kernels and connections are loaded
    const auto begin = std::chrono::steady_clock::now();
    sample["steps_us"] = timer->prefill();
    const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin);
    double exchanged = 0;
    for (std::int64_t done = 0; done < sweep_.prompt; done += sweep_.chunk) {
      const std::int64_t count = std::min(sweep_.chunk, sweep_.prompt - done);
      const model::StepWork work = step_work(
          shape_,
          {.tokens = count, .start = done, .logit_rows = done + count == sweep_.prompt ? 1 : 0});
      exchanged += work.exchanged_bytes;
    }
    sample["floor_us"] = prompt_floor_us(shape_, sweep_.prompt, sweep_.chunk);
    sample["exchanged_bytes"] = exchanged;
    sample["host_s"] = seconds.count();
    drop_times(sample, "steps_us");
    samples_.push_back(std::move(sample));
  }

  void time_batch(std::int64_t batch) {
    const std::int64_t longest = *std::ranges::max_element(sweep_.contexts);
    auto timer =
        open(batch, longest, {{"phase", "decode"}, {"batch", batch}, {"context", longest}});
    if (!timer) return;
    timer->prefill();
    timer->copy_first_sequence();
    for (const std::int64_t context : sweep_.contexts) {
      const DecodeTimes times = timer->decode(context, sweep_.samples);
      const model::StepWork work =
          step_work(shape_, {.sequences = batch, .tokens = 1, .start = context - 1});
      json sample = {{"phase", "decode"},
                     {"batch", batch},
                     {"context", context},
                     {"samples_us", times.us},
                     {"floor_us", floor_us_of(work)},
                     {"work", work_json(work)},
                     {"launches", times.launches.size()},
                     {"launched", launch_counts(times.launches)},
                     {"by_operator", operator_times(times.by_operator)},
                     {"ok", are_numbers(times.logits)}};
      drop_times(sample, "samples_us");
      samples_.push_back(std::move(sample));
    }
  }

  // The host's say nothing about a GPU.
  void drop_times(json& sample, const char* key) const {
    if (!device_.is_simulated()) return;
    sample[key] = json::array();
    sample.erase("host_s");
  }

  const Device& device_;
  const ModelSweep& sweep_;
  std::unique_ptr<comm::RankSum> sum_;
  std::unique_ptr<comm::RankRows> rows_;
  model::StepRanks ranks_;
  model::Config config_;    // of this rank
  model::StepShape shape_;  // of all
  model::ModelArrays arrays_;
  json samples_ = json::array();
};

}  // namespace

json run_model_sweep(const Device& device, std::shared_ptr<const model::Weights> weights,
                     const std::shared_ptr<comm::Communicator>& comm, const ModelSweep& sweep,
                     const std::string& command) {
  json log = ladder_header(device, command);
  log["kind"] = "model";
  log["tool"] = std::string("tilewright bench model ") + TILEWRIGHT_VERSION;
  log["cache"] = device.is_simulated()
                     ? "simulated: no times"
                     : "a step is a graph; several are launched one behind the other, on caches "
                       "that a prompt has filled";
  for (const char* const key : {"ceiling_tflops", "ceiling"}) log.erase(key);
  log["floors"] = "4.3 TB/s, 790 TFLOP/s bf16, 1600 TFLOP/s e4m3, exchanges not counted";
  const model::Share& share = weights->share();
  log["model"] = {{"name", sweep.name},
                  {"config", config_text(weights->config())},
                  {"experts", weights->expert_format()}};
  log["ranks"] = {{"count", share.world},
                  {"scheme", share.world > 1 ? to_string(share.scheme) : ""},
                  {"communicator", comm != nullptr ? comm->description() : ""}};
  log["clocks_before"] = read_clocks(device);
  if (sweep.serve.sequences > 0) {
    log["samples"] = json::array({serve(device, std::move(weights), comm, sweep)});
    log["clocks_after"] = read_clocks(device);
    return log;
  }
  const auto begin = std::chrono::steady_clock::now();
  ModelSweeper sweeper(device, *weights, comm, sweep);
  weights.reset();  // the device has them
  log["load_s"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  log["ranks"]["has_peers"] = sweeper.has_peers();
  log["samples"] = sweeper.run();
  log["clocks_after"] = read_clocks(device);
  return log;
}

bool is_model_log_correct(const json& log) {
  for (const json& sample : log.at("samples"))
    if (!sample.value("ok", true)) return false;
  return !log.at("samples").empty();
}

}  // namespace tilewright::cli
