// Running timing probes on a device.

#include "base/error.h"
#include "device/graph.h"
#include "device/kernel_registry.h"
#include "device/memory.h"
#include "device/tensor_map.h"
#include "hardware/timing_case.h"
#include "kernels/probe/timing/probe.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include <fmt/format.h>

namespace tilewright::hardware {

namespace {

using device::Buffer;
using device::Device;
using device::Event;
using device::Kernel;
using device::LaunchConfig;
using device::Stream;
using kernels::TimingProbeParams;
using Words = std::vector<std::uint32_t>;

constexpr std::uint64_t kFlushBytes = 256 << 20;
constexpr std::uint64_t kMemoryBytes = 1 << 30;
constexpr std::uint64_t kRowBytes = 128;
constexpr std::uint32_t kNever = 0x9e3779b9;
constexpr std::uint32_t kWord = 0x3f800000;

template <class T>
T* pointer(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.address());
}

std::uint32_t num_marks(const TimingCase& timing) {
  if (timing.reading == Reading::kGaps) return 3;
  return timing.reading == Reading::kClock ? 4 : timing.num_marks;
}

/// What the words of a launch say.
class Reader {
 public:
  Reader(const TimingCase& timing, const Words& words) : timing_(timing), words_(words) {}

  void read(TimingSamples& to) const {
    if (timing_.reading == Reading::kGaps) return read_gaps(to);
    for (std::uint32_t i = 0; i < timing_.iterations; ++i) {
      switch (timing_.reading) {
        case Reading::kSpan:
          to.values.push_back({span(0, i)});
          break;
        case Reading::kMean:
          to.values.push_back({mean_span(i)});
          break;
        case Reading::kWarps:
          to.values.push_back(warpgroups(i));
          break;
        case Reading::kMarks:
          to.values.push_back(marks(i));
          break;
        case Reading::kClock:
          to.values.push_back(clock());
          break;
        case Reading::kGaps:
        case Reading::kPlaces:
        case Reading::kMicroseconds:
          break;
      }
    }
  }

 private:
  std::uint32_t num_warps() const { return timing_.threads / 32; }
  std::uint32_t word(std::uint32_t block, std::uint32_t iteration, std::uint32_t warp,
                     std::uint32_t mark) const {
    return words_[((std::size_t{block} * timing_.iterations + iteration) * num_warps() + warp) *
                      num_marks(timing_) +
                  mark];
  }
  /// Clocks are compared by their distance to one of them: the low word runs over.
  double span(std::uint32_t block, std::uint32_t iteration) const {
    const std::uint32_t origin = word(block, iteration, 0, 0);
    std::int32_t begin = 0, end = 0;
    for (std::uint32_t warp = 0; warp < num_warps(); ++warp) {
      begin = std::min(begin, static_cast<std::int32_t>(word(block, iteration, warp, 0) - origin));
      end = std::max(end, static_cast<std::int32_t>(word(block, iteration, warp, 1) - origin));
    }
    return end - begin;
  }
  double mean_span(std::uint32_t iteration) const {
    double sum = 0;
    for (std::uint32_t block = 0; block < timing_.blocks; ++block) sum += span(block, iteration);
    return sum / timing_.blocks;
  }
  std::vector<double> warpgroups(std::uint32_t iteration) const {
    std::vector<double> out;
    for (std::uint32_t warp = 0; warp < num_warps(); warp += 4) {
      out.push_back(word(0, iteration, warp, 1) - word(0, iteration, warp, 0));
    }
    return out;
  }
  std::vector<double> marks(std::uint32_t iteration) const {
    const bool is_copy = timing_.kernel.starts_with("copy_");
    const std::uint32_t count = is_copy ? 2 + timing_.count : num_marks(timing_);
    std::vector<double> out;
    for (std::uint32_t mark = 1; mark < count; ++mark) {
      out.push_back(word(0, iteration, 0, mark) - word(0, iteration, 0, 0));
    }
    return out;
  }
  std::vector<double> clock() const {
    double mhz = 0, us = 0;
    for (std::uint32_t block = 0; block < timing_.blocks; ++block) {
      const auto mark = [&](std::uint32_t number) { return word(block, 0, 0, number); };
      const double ns = mark(3) - mark(1);
      mhz += 1e3 * (mark(2) - mark(0)) / ns / timing_.blocks;
      us += 1e-3 * ns / timing_.blocks;
    }
    return {mhz, us};
  }
  void read_gaps(TimingSamples& to) const {
    struct Cta {
      std::uint32_t begin = 0, end = 0;
    };
    std::map<std::uint32_t, std::vector<Cta>> by_sm;
    for (std::uint32_t block = 0; block < timing_.blocks; ++block) {
      by_sm[words_[block * 3]].push_back({words_[block * 3 + 1], words_[block * 3 + 2]});
    }
    for (auto& [sm, ctas] : by_sm) {
      const std::uint32_t origin = ctas.front().begin;
      const auto at = [origin](std::uint32_t clock) {
        return static_cast<std::int32_t>(clock - origin);
      };
      std::ranges::sort(ctas, {}, [&](const Cta& cta) { return at(cta.begin); });
      std::vector<std::int32_t> ends;
      for (const Cta& cta : ctas) {
        // The first CTAs of an SM find it free; each other one takes the place of one that ended.
        const auto before =
            std::ranges::find_if(ends, [&](std::int32_t end) { return end <= at(cta.begin); });
        if (before != ends.end()) {
          to.values.push_back({static_cast<double>(at(cta.begin) - *before)});
          ends.erase(before);
        }
        ends.push_back(at(cta.end));
        std::ranges::sort(ends);
      }
    }
  }

  const TimingCase& timing_;
  const Words& words_;
};

}  // namespace

struct TimingRunner::State {
  explicit State(const Device& on)
      : device(on),
        stream(on),
        memory(on, kMemoryBytes),
        flush(on, kFlushBytes),
        sink(on, std::size_t{1024} * 1024 * 4),
        flush_kernel(device::load_kernel(on, "timing_probe_memory_stream")),
        code_kernel(device::load_kernel(on, "timing_probe_cold_code")) {
    memory.fill(std::byte{0});
    flush.fill(std::byte{0});
  }

  TimingProbeParams params_of(const TimingCase& timing, const Buffer& times) const {
    TimingProbeParams params = {};
    params.times = pointer<std::uint32_t>(times);
    params.sink = pointer<std::uint32_t>(sink);
    params.memory = pointer<std::uint32_t>(memory);
    params.memory_bytes = timing.memory_bytes;
    params.iterations = timing.iterations;
    params.stride = timing.stride;
    params.count = timing.count;
    params.word = timing.has_zeros ? 0 : kWord;
    params.never = kNever;
    if (timing.kernel.starts_with("copy_")) set_tensor_map(params, timing);
    return params;
  }

  void set_tensor_map(TimingProbeParams& params, const TimingCase& timing) const {
    const bool is_matrix = timing.kernel == "copy_boxes";
    const std::uint64_t rows =
        is_matrix ? 64 : std::min<std::uint64_t>(256, timing.stride / kRowBytes);
    const std::uint64_t row_bytes = is_matrix ? timing.stride : kRowBytes;
    const auto map =
        device::encode_tensor_map(device, {.name = "probe",
                                           .type = device::TensorMapType::kUint8,
                                           .address = memory.address(),
                                           .dims = {row_bytes, timing.memory_bytes / row_bytes},
                                           .strides_bytes = {row_bytes},
                                           .box = {kRowBytes, static_cast<std::uint32_t>(rows)},
                                           .swizzle = device::TensorMapSwizzle::k128B});
    static_assert(sizeof map == sizeof params.tensor_map);
    std::memcpy(params.tensor_map, &map, sizeof params.tensor_map);
  }

  LaunchConfig config_of(const TimingCase& timing) const {
    LaunchConfig config;
    config.grid = {timing.blocks};
    config.block = {timing.threads};
    if (timing.cluster > 1) config.cluster = device::Dim3{timing.cluster};
    config.dynamic_shared_bytes = timing.shared_bytes;
    return config;
  }

  // A graph of launches, one behind the other.
  TimingSamples run_places(const TimingCase& timing, const Kernel& kernel) const {
    const Buffer places(device, std::size_t{4} * timing.blocks * timing.iterations);
    LaunchConfig config = config_of(timing);
    config.is_dependent_launch = timing.is_dependent;
    const device::Graph graph = device::Graph::capture(stream, [&] {
      for (std::uint32_t i = 0; i < timing.iterations; ++i) {
        TimingProbeParams params = params_of(timing, places);
        params.times += i * timing.blocks;
        kernel.launch(config, params, stream);
      }
    });
    graph.launch(stream);
    stream.synchronize();
    const Words sms = places.to_vector<std::uint32_t>();
    TimingSamples samples;
    for (std::uint32_t i = 0; i < timing.iterations; ++i) {
      std::map<std::uint32_t, double> ctas;
      double most = 0;
      for (std::uint32_t block = 0; block < timing.blocks; ++block)
        most = std::max(most, ++ctas[sms[i * timing.blocks + block]]);
      samples.values.push_back({static_cast<double>(ctas.size()), most});
    }
    return samples;
  }

  void prepare_caches(Caches caches, const Buffer& times) {
    if (caches == Caches::kWarm) return;
    if (caches == Caches::kDirty) return flush.fill_async(std::byte{0}, stream);
    TimingProbeParams params = {};
    params.times = pointer<std::uint32_t>(times);
    if (caches == Caches::kOtherCode) {
      params.iterations = 1;
      params.never = kNever;
      params.count = kernels::kTimingColdPieces;
      params.sink = pointer<std::uint32_t>(sink);
      code_kernel.launch(LaunchConfig{.grid = {132}, .block = {128}}, params, stream);
    }
    params.sink = pointer<std::uint32_t>(sink);
    params.memory = pointer<std::uint32_t>(flush);
    params.memory_bytes = kFlushBytes;
    params.iterations = 1;
    params.never = kNever;
    constexpr std::uint32_t kBlocks = 132, kThreads = 1024;
    params.count = static_cast<std::uint32_t>(kFlushBytes / (kBlocks * kThreads * 16) + 1);
    flush_kernel.launch(LaunchConfig{.grid = {kBlocks}, .block = {kThreads}}, params, stream);
  }

  Device device;
  Stream stream;
  Buffer memory, flush, sink;
  Kernel flush_kernel, code_kernel;
};

TimingRunner::TimingRunner(const Device& device) : state_(std::make_unique<State>(device)) {}
TimingRunner::~TimingRunner() = default;

TimingSamples TimingRunner::run(const TimingCase& timing) {
  State& state = *state_;
  const Kernel kernel = device::load_kernel(state.device, "timing_probe_" + timing.kernel);
  if (timing.shared_bytes != 0) kernel.allow_dynamic_shared_bytes(timing.shared_bytes);
  if (timing.reading == Reading::kPlaces) return state.run_places(timing, kernel);
  const std::size_t num_words =
      std::size_t{timing.blocks} * timing.iterations * (timing.threads / 32) * num_marks(timing);
  constexpr std::size_t kFlushWords = std::size_t{132} * 32 * 2;
  const bool is_timed_outside = timing.reading == Reading::kMicroseconds;
  const Buffer times(state.device,
                     4 * std::max(kFlushWords, timing.kernel == "copy_stream" ? 0 : num_words));
  const TimingProbeParams params = state.params_of(timing, times);
  const LaunchConfig config = state.config_of(timing);
  TimingSamples samples;
  if (timing.caches == Caches::kWarm || is_timed_outside) {
    kernel.launch(config, params, state.stream);
  }
  for (std::uint32_t launch = 0; launch < timing.launches; ++launch) {
    state.prepare_caches(timing.caches, times);
    const Event before(state.device), after(state.device);
    before.record(state.stream);
    kernel.launch(config, params, state.stream);
    after.record(state.stream);
    state.stream.synchronize();
    if (is_timed_outside) {
      samples.values.push_back({1e3 * device::elapsed_ms(before, after)});
      continue;
    }
    const Words words = times.to_vector<std::uint32_t>();
    Reader(timing, words).read(samples);
  }
  return samples;
}

std::vector<LaunchSamples> time_launches(const Device& device) {
  constexpr int kInRow = 100, kSamples = 20;
  const Stream stream(device);
  const Kernel plain = device::load_kernel(device, "timing_probe_empty");
  const Kernel dependent = device::load_kernel(device, "timing_probe_empty_dependent");
  TimingProbeParams params = {};
  params.never = kNever;
  const auto enqueue = [&](const Kernel& kernel, int count, bool is_dependent) {
    const LaunchConfig config = {
        .grid = {132}, .block = {128}, .is_dependent_launch = is_dependent};
    for (int i = 0; i < count; ++i) kernel.launch(config, params, stream);
  };
  std::vector<LaunchSamples> out;
  const auto time = [&](std::string name, int count, const std::function<void()>& run) {
    LaunchSamples& samples = out.emplace_back();
    samples.name = std::move(name);
    samples.launches = count;
    run();
    for (int i = 0; i < kSamples; ++i) {
      const Event before(device), after(device);
      before.record(stream);
      run();
      after.record(stream);
      stream.synchronize();
      samples.microseconds.push_back(1e3 * device::elapsed_ms(before, after));
    }
  };
  time("nothing", 1, [] {});
  time("one launch", 1, [&] { enqueue(plain, 1, false); });
  time("launches in a row", kInRow, [&] { enqueue(plain, kInRow, false); });
  time("dependent launches in a row", kInRow, [&] { enqueue(dependent, kInRow, true); });
  for (const int count : {1, kInRow}) {
    for (const bool is_dependent : {false, true}) {
      const device::Graph graph = device::Graph::capture(
          stream, [&] { enqueue(is_dependent ? dependent : plain, count, is_dependent); });
      time(fmt::format("graph of {} {}launches", count, is_dependent ? "dependent " : ""), count,
           [&] { graph.launch(stream); });
    }
  }
  // Of the size of a kernel that has an SM to itself, alone or in clusters.
  for (const std::uint32_t blocks : {64U, 132U}) {
    for (const std::uint32_t cluster : {1U, 2U, 4U, 8U}) {
      for (const bool is_dependent : {false, true}) {
        const Kernel& kernel = is_dependent ? dependent : plain;
        LaunchConfig config = {.grid = {blocks / cluster * cluster},
                               .block = {384},
                               .dynamic_shared_bytes = kernels::kTimingSharedBytes,
                               .is_dependent_launch = is_dependent};
        if (cluster > 1) config.cluster = device::Dim3{cluster};
        kernel.allow_dynamic_shared_bytes(kernels::kTimingSharedBytes);
        const device::Graph graph = device::Graph::capture(stream, [&] {
          for (int i = 0; i < kInRow; ++i) kernel.launch(config, params, stream);
        });
        time(fmt::format("graph of {} {}launches, {} large CTAs in clusters of {}", kInRow,
                         is_dependent ? "dependent " : "", blocks, cluster),
             kInRow, [&] { graph.launch(stream); });
      }
    }
  }
  // Cooperative ones, and barriers of their grid.
  const Kernel barriers = device::load_kernel(device, "timing_probe_grid_barriers");
  barriers.allow_dynamic_shared_bytes(kernels::kTimingSharedBytes);
  for (const bool is_dependent : {false, true}) {
    for (const std::uint32_t count : {0U, 1U, 5U}) {
      for (const bool is_cooperative : {false, true}) {
        if (count != 0 && !is_cooperative) continue;
        TimingProbeParams meetings = params;
        meetings.count = count;
        const LaunchConfig config = {.grid = {132},
                                     .block = {512},
                                     .dynamic_shared_bytes = kernels::kTimingSharedBytes,
                                     .is_dependent_launch = is_dependent,
                                     .is_cooperative = is_cooperative};
        const device::Graph graph = device::Graph::capture(stream, [&] {
          for (int i = 0; i < kInRow; ++i) barriers.launch(config, meetings, stream);
        });
        time(fmt::format(
                 "graph of {} {}{}launches, 132 CTAs of 512 threads, {} barriers of the grid",
                 kInRow, is_dependent ? "dependent " : "", is_cooperative ? "cooperative " : "",
                 count),
             kInRow, [&] { graph.launch(stream); });
      }
    }
  }
  // What of a dependent launch runs beside the one before it.
  const Kernel around = device::load_kernel(device, "timing_probe_work_around_wait");
  around.allow_dynamic_shared_bytes(kernels::kTimingSharedBytes);
  struct Around {
    std::uint32_t blocks, cluster, before;
  };
  for (const auto& [blocks, cluster, before] :
       {Around{32, 1, 0}, Around{32, 1, 4000}, Around{32, 1, 8000}, Around{64, 1, 4000},
        Around{132, 1, 0}, Around{132, 1, 4000}, Around{32, 2, 4000}, Around{32, 4, 4000},
        Around{64, 2, 4000}, Around{64, 4, 4000}}) {
    TimingProbeParams work = params;
    work.stride = before, work.count = 4000;
    LaunchConfig config = {.grid = {blocks},
                           .block = {384},
                           .dynamic_shared_bytes = kernels::kTimingSharedBytes,
                           .is_dependent_launch = true};
    if (cluster > 1) config.cluster = device::Dim3{cluster};
    const device::Graph graph = device::Graph::capture(stream, [&] {
      for (int i = 0; i < kInRow; ++i) around.launch(config, work, stream);
    });
    time(fmt::format("graph of {} dependent launches, {} large CTAs in clusters of {}, {} clocks "
                     "before the wait and 4000 behind",
                     kInRow, blocks, cluster, before),
         kInRow, [&] { graph.launch(stream); });
  }
  return out;
}

}  // namespace tilewright::hardware
