#include "bench/step_timer.h"

#include "base/error.h"
#include "model/checkpoint/draw.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using model::Activations;
using model::ByteArray;
using model::Config;
using model::FloatArray;
using model::KernelMemory;
using model::KernelStep;
using model::LayerMemory;
using model::ModelArrays;
using model::PageTable;
using model::ProjectionRun;
using model::RunnerOptions;
using model::StepRanks;
using model::StepTokens;

// The first part of an array, `count` times.
void repeat_first(const Stream& stream, std::uint8_t* data, std::int64_t bytes,
                  std::int64_t count) {
  for (std::int64_t done = 1; done < count; done *= 2)
    copy_on_device(stream, data, data + done * bytes,
                   static_cast<std::size_t>(bytes * std::min(done, count - done)));
}

RunnerOptions with_room(RunnerOptions options, std::int64_t tokens) {
  options.max_tokens = tokens;
  return options;
}

}  // namespace

struct StepTimer::State {
  State(const Device& device_, const ModelArrays& model_, const Config& config_,
        const RunnerOptions& options, const TimedSequences& sequences_, const StepRanks& ranks_)
      : device(device_),
        stream(device_),
        begin(device_),
        end(device_),
        model(model_),
        config(config_),
        sequences(sequences_),
        ranks(ranks_),
        step_tokens(std::max(sequences.count, std::min(sequences.chunk, sequences.context))),
        memory(device, config, with_room(options, sequences.context), sequences.count,
               std::min(sequences.chunk, sequences.context)),
        at(device, config, model, memory, numbers, step_tokens,
           ranks.divides_experts() ? ranks.share.world * step_tokens : 0),
        logits(device, sequences.count * model.head.width()),
        gathered(device, ranks.divides_heads()
                             ? ranks.share.world * sequences.count * model.head.width()
                             : 0) {}

  void synchronize() const {
    if (ranks.comm != nullptr)
      ranks.comm->synchronize(stream);
    else
      stream.synchronize();
  }

  StepTokens tokens_of(std::int64_t own) const {
    StepTokens tokens = {.own = own};
    if (ranks.divides_experts())
      tokens.of_ranks.assign(static_cast<std::size_t>(ranks.share.world), own);
    return tokens;
  }

  const KernelStep& step_for(std::int64_t own) {
    const auto found = steps.find(own);
    if (found != steps.end()) return found->second;
    return steps.try_emplace(own, device, config, model, memory, numbers, at, tokens_of(own), ranks)
        .first->second;
  }

  void* workspace(std::size_t bytes) {
    if (!space || static_cast<std::size_t>(space->count()) < bytes) {
      synchronize();
      space.reset();
      space = std::make_unique<ByteArray>(device, static_cast<std::int64_t>(bytes));
    }
    return space->get();
  }

  // Of this rank, then of all where each has sequences of its own.
  void draw_tokens(std::int64_t count, std::vector<std::int32_t>& to) {
    std::vector<std::int32_t> all;
    for (model::NamedRandom& random : randoms)
      for (std::int64_t i = 0; i < count; ++i)
        all.push_back(
            static_cast<std::int32_t>(random.bits() % static_cast<std::uint64_t>(config.vocab)));
    const auto own = all.begin() + (ranks.divides_experts() ? ranks.share.rank * count : 0);
    to.insert(to.end(), own, own + count);
    if (ranks.divides_experts()) to.insert(to.end(), all.begin(), all.end());
  }

  std::vector<model::NamedRandom> make_randoms() const {
    if (!ranks.divides_experts()) return {{1, "tokens"}};
    std::vector<model::NamedRandom> of_ranks;
    for (std::int64_t r = 0; r < ranks.share.world; ++r)
      of_ranks.emplace_back(1, fmt::format("tokens {}", r));
    return of_ranks;
  }

  void upload(const std::vector<std::int32_t>& inputs) {
    synchronize();
    at.inputs.buffer().upload(std::as_bytes(std::span(inputs)));
  }

  void run(const KernelStep& step, std::int64_t longest, void* memory_of_step,
           std::function<void(const char*)> mark = {}) {
    step.run({.model = model,
              .memory = memory,
              .at = at,
              .longest = longest,
              .mark = std::move(mark),
              .stream = stream.handle()},
             memory_of_step);
  }

  // Events between the operators of a step; `ahead` keeps the device busy while they are enqueued.
  std::map<std::string, OperatorTime> time_operators(const KernelStep& step, void* memory_of_step,
                                                     const Graph& ahead) {
    std::vector<std::pair<const char*, Event>> marks;
    const auto mark = [&](const char* what) {
      marks.emplace_back(what, Event(device)).second.record(stream);
    };
    constexpr int kAhead = 3;
    for (int i = 0; i < kAhead; ++i) ahead.launch(stream);
    mark("");
    run(step, 1, memory_of_step, mark);
    synchronize();
    std::map<std::string, OperatorTime> times;
    for (std::size_t i = 1; i < marks.size(); ++i) {
      OperatorTime& time = times[marks[i].first];
      ++time.calls;
      time.us += elapsed_us(marks[i - 1].second, marks[i].second);
    }
    return times;
  }

  // Logits of `rows` tokens of a step from token `first` on.
  void run_head(const KernelStep& step, const ProjectionRun& head, std::int64_t first,
                std::int64_t rows, void* memory_of_step) {
    head.run(step.own_rows(at) + first * config.hidden, logits.get(), memory_of_step,
             stream.handle());
    if (!ranks.divides_heads()) return;
    const std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks.share.world),
                                          rows * model.head.width() * 4);
    ranks.comm->all_gather(logits.get(), gathered.get(), bytes, stream.handle());
  }

  double time_us(const std::function<void()>& enqueue) {
    begin.record(stream);
    enqueue();
    end.record(stream);
    synchronize();
    return elapsed_us(begin, end);
  }

  Device device;
  Stream stream;
  Event begin, end;
  const ModelArrays& model;
  Config config;
  model::KernelNumbers numbers;
  TimedSequences sequences;
  StepRanks ranks;
  std::int64_t step_tokens;
  KernelMemory memory;
  Activations at;
  FloatArray logits, gathered;
  std::map<std::int64_t, KernelStep> steps;  // by tokens of this rank
  std::unique_ptr<ByteArray> space;
  // Every rank knows what all of them draw.
  std::vector<model::NamedRandom> randoms = make_randoms();
};

StepTimer::StepTimer(const Device& device, const ModelArrays& model, const Config& config,
                     const RunnerOptions& options, const TimedSequences& sequences,
                     const StepRanks& ranks)
    : state_(std::make_unique<State>(device, model, config, options, sequences, ranks)) {}
StepTimer::~StepTimer() = default;

std::vector<double> StepTimer::prefill(std::int64_t tokens) {
  State& s = *state_;
  const std::int64_t all = tokens == 0 ? s.sequences.context : tokens;
  require(all >= 1 && all <= s.sequences.context, ErrorKind::kInvalidArgument,
          "prefill: {} tokens; expected 1 to {}, the room of a sequence", all, s.sequences.context);
  std::vector<double> times;
  const ProjectionRun head(s.model.head, 1, DType::kF32);
  for (std::int64_t done = 0; done < all; done += s.sequences.chunk) {
    const std::int64_t count = std::min(s.sequences.chunk, all - done);
    const bool is_last = done + count == all;
    // The other sequences wait: nothing of them is read or written.
    std::vector<std::int32_t> inputs(static_cast<std::size_t>(2 * s.sequences.count + 1), 0);
    std::fill_n(inputs.begin() + 1, s.sequences.count, static_cast<std::int32_t>(count));
    inputs[static_cast<std::size_t>(s.sequences.count + 1)] = static_cast<std::int32_t>(done);
    s.draw_tokens(count, inputs);
    const KernelStep& step = s.step_for(count);
    void* const memory = s.workspace(std::max(step.workspace_bytes(), head.workspace_bytes()));
    s.upload(inputs);
    times.push_back(s.time_us([&] {
      s.run(step, count, memory);
      if (is_last) s.run_head(step, head, count - 1, 1, memory);
    }));
  }
  return times;
}

void StepTimer::copy_first_sequence() {
  State& s = *state_;
  const std::int64_t count = s.sequences.count;
  // Pages of the sequences take turns.
  const auto pages = [&](const PageTable& table, const ByteArray& array) {
    const std::int64_t page = array.count() / table.num_pages();
    for (std::int64_t block = 0; block < table.num_pages() / count; ++block)
      repeat_first(s.stream, array.get() + block * count * page, page, count);
  };
  const auto states = [&](const ByteArray& array) {
    repeat_first(s.stream, array.get(), array.count() / count, count);
  };
  for (std::size_t i = 0; i < s.memory.layers.size(); ++i) {
    const LayerMemory& layer = s.memory.layers[i];
    pages(s.memory.window_table, layer.window);
    if (layer.entries) pages(s.memory.entries(s.config.layers[i])->table, *layer.entries);
    if (layer.state) states(*layer.state);
    if (layer.index_keys) pages(s.memory.index->table, *layer.index_keys);
    if (layer.index_state) states(*layer.index_state);
  }
  s.synchronize();
}

DecodeTimes StepTimer::decode(std::int64_t context, int samples) {
  State& s = *state_;
  const std::int64_t count = s.sequences.count;
  require(context >= 1 && context <= s.sequences.context, ErrorKind::kInvalidArgument,
          "decode: a context of {} tokens; expected 1 to {}, the room of a sequence", context,
          s.sequences.context);
  std::vector<std::int32_t> inputs;
  for (std::int64_t i = 0; i <= count; ++i) inputs.push_back(static_cast<std::int32_t>(i));
  inputs.insert(inputs.end(), static_cast<std::size_t>(count),
                static_cast<std::int32_t>(context - 1));
  s.draw_tokens(count, inputs);
  const KernelStep& step = s.step_for(count);
  const ProjectionRun head(s.model.head, count, DType::kF32);
  void* const memory = s.workspace(std::max(step.workspace_bytes(), head.workspace_bytes()));
  s.upload(inputs);
  const auto enqueue = [&] {
    s.run(step, 1, memory);
    s.run_head(step, head, 0, count, memory);
  };
  enqueue();  // once before it is recorded: what is found at the first call is found now
  s.synchronize();
  const Graph graph = Graph::capture(s.stream, enqueue);
  DecodeTimes times;
  times.launches = graph.nodes();
  // The first launch brings ranks together and lets the host get ahead; the others are timed.
  const int launches = s.device.is_simulated() ? 1 : 4;
  for (int i = 0; i < samples; ++i) {
    if (!s.device.is_simulated()) graph.launch(s.stream);
    times.us.push_back(s.time_us([&] {
      for (int launch = 0; launch < launches; ++launch) graph.launch(s.stream);
    }) / launches);
  }
  if (!s.device.is_simulated()) times.by_operator = s.time_operators(step, memory, graph);
  times.logits.resize(static_cast<std::size_t>(s.model.head.width()));
  s.logits.buffer().download(std::as_writable_bytes(std::span(times.logits)));
  return times;
}

}  // namespace tilewright::cli
