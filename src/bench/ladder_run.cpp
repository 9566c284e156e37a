#include "tilewright/kernels.h"

#include "base/error.h"
#include "base/progress.h"
#include "base/source_commit.h"
#include "bench/ladder.h"
#include "verify/attention/check.h"
#include "verify/attention/device.h"
#include "verify/device_facts.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

// One kernel on one shape, while the shape is measured.
struct LadderEntry {
  Attention attention;
  json log;
  ClockedTimes times;
  int wanted = 0;
};

json strides_json(const Strides& s) {
  return {s.batch, s.row, s.head};
}

json problem_json(const AttentionProblem& p) {
  return {{"dtype", p.dtype == DType::kF16 ? "f16" : "bf16"},
          {"batch", p.batch},
          {"heads", p.heads},
          {"kv_heads", p.kv_heads},
          {"q_len", p.q_len},
          {"kv_len", p.kv_len},
          {"head_dim", p.head_dim},
          {"value_dim", value_dim(p)},
          {"causal", p.causal},
          {"q_strides", strides_json(p.q_strides)}};
}

json launch_json(const AttentionPlan& plan) {
  json launches = json::array();
  for (const Launch& l : plan.launches)
    launches.push_back({{"entry", l.entry},
                        {"grid", l.grid},
                        {"block", l.block},
                        {"shared_bytes", l.shared_bytes}});
  return {{"tile_queries", plan.tile_queries},
          {"tile_keys", plan.tile_keys},
          {"workspace_bytes", plan.workspace_bytes},
          {"launches", launches}};
}

class LadderRunner {
 public:
  LadderRunner(const Device& device, const LadderPlan& plan, LadderSource& source)
      : device_(device),
        plan_(plan),
        source_(source),
        progress_(stderr, "ladder",
                  static_cast<std::int64_t>(plan.cases.size() * plan.kernels.size()), "results"),
        random_(plan.seed) {}

  json run() {
    for (const LadderCase& ladder_case : plan_.cases) run_case(ladder_case);
    progress_.finish();
    return std::move(samples_);
  }

 private:
  void run_case(const LadderCase& ladder_case) {
    AttentionData& data = source_.load(ladder_case);
    data.problem = ladder_case.problem;
    if (operands_of_ != ladder_case.inputs || bench_ == nullptr) {
      bench_.reset();
      bench_ = std::make_unique<AttentionBench>(device_, data);
      operands_of_ = ladder_case.inputs;
    }
    std::vector<LadderEntry> entries = open_entries(ladder_case);
    if (entries.empty()) return;
    data.problem = entries.front().attention.plan().problem;
    const std::vector<ExactRow> exact = exact_rows(data, plan_.check_rows, plan_.seed);
    for (LadderEntry& entry : entries) check(entry, data, exact);
    if (!device_.is_simulated()) measure(entries);
    for (LadderEntry& entry : entries) {
      if (!device_.is_simulated()) entry.times.write(entry.log);
      samples_.push_back(std::move(entry.log));
    }
  }

  std::vector<LadderEntry> open_entries(const LadderCase& ladder_case) {
    std::vector<LadderEntry> entries;
    for (const std::string& kernel : plan_.kernels) {
      json log = {{"case", ladder_case.name},
                  {"inputs", ladder_case.inputs},
                  {"problem", problem_json(ladder_case.problem)},
                  {"source", "tilewright"},
                  {"kernel", kernel}};
      AttentionProblem problem = ladder_case.problem;
      problem.kernel = kernel;
      try {
        Attention attention(device_, problem);
        for (const Launch& launch : attention.plan().launches) {
          held_.try_emplace(launch.entry, device_, problem);
        }
        log["kernel"] = attention.plan().kernel;
        log["idea"] = find_rung(attention.plan().kernel)->idea;
        log["plan"] = launch_json(attention.plan());
        log["flops"] = attention.plan().flops;
        log["bytes"] = attention.plan().bytes;
        entries.push_back({std::move(attention), std::move(log), {}, 0});
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kUnsupported) throw;
        log["refused"] = error.what();
        samples_.push_back(std::move(log));
        progress_.add();
      }
    }
    return entries;
  }

  void check(LadderEntry& entry, const AttentionData& data, const std::vector<ExactRow>& exact) {
    const AttentionProblem& p = entry.attention.plan().problem;
    bench_->prepare(entry.attention.plan());
    take_counts(device_);
    const auto begin = std::chrono::steady_clock::now();
    bench_->enqueue(entry.attention);
    bench_->synchronize();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (json counts = take_counts(device_); !counts.is_null()) {
      entry.log["counted"] = std::move(counts);
    }
    entry.log["error"] = to_json(check_attention(data, entry.attention.plan(), exact,
                                                 bench_->read_out(p), bench_->read_lse(p)));
    const double affordable = plan_.budget_s / std::max(seconds, 1e-6);
    entry.wanted = static_cast<int>(std::clamp(affordable, 3.0, double(plan_.samples)));
    progress_.add();
  }

  // One sample of each kernel in random order, again and again: a GPU that warms up and lowers its
  // clocks does so for all of them.
  void measure(std::vector<LadderEntry>& entries) {
    const json before = read_clocks(device_);
    for (LadderEntry& entry : entries) {
      bench_->prepare(entry.attention.plan());
      bench_->time_cold(entry.attention);  // the first one pays for loading
    }
    for (int round = 0; round < plan_.samples; ++round) {
      std::vector<LadderEntry*> order;
      for (LadderEntry& entry : entries)
        if (round < entry.wanted) order.push_back(&entry);
      std::ranges::shuffle(order, random_);
      for (LadderEntry* const entry : order) entry->times.add(bench_->time_cold(entry->attention));
    }
    const json after = read_clocks(device_);
    for (LadderEntry& entry : entries) {
      entry.log["clocks_before"] = before;
      entry.log["clocks_after"] = after;
    }
  }

  const Device& device_;
  const LadderPlan& plan_;
  LadderSource& source_;
  Progress progress_;
  std::mt19937_64 random_;
  std::unique_ptr<AttentionBench> bench_;
  std::string operands_of_;
  std::map<std::string, Attention> held_;  // modules stay loaded from one shape to the next
  json samples_ = json::array();
};

}  // namespace

json ladder_header(const Device& device, const std::string& command) {
  const SourceCommit commit = source_commit(kBuiltCommit);
  const auto now =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  const int version = device.driver_version();
  return {{"schema", 1},
          {"kind", "attention"},
          {"tool", std::string("tilewright ladder ") + TILEWRIGHT_VERSION},
          {"commit", commit.hash},
          {"dirty", commit.is_dirty},
          {"command", command},
          {"started", fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(now))},
          {"device",
           {{"name", device.name()},
            {"spec", device.spec()},
            {"is_simulated", device.is_simulated()},
            {"multiprocessors", device.num_sms()},
            {"l2_bytes", device.l2_bytes()},
            {"clock_khz", device.clock_khz()},
            {"driver_cuda_version", fmt::format("{}.{}", version / 1000, version % 1000 / 10)}}},
          {"toolkit", kernel_compiler()},
          {"cache", device.is_simulated()
                        ? "simulated: no times"
                        : "cold: 256 MiB or 4 times the L2 are written before every timed run"},
          {"ceiling_tflops", 989},
          {"ceiling", "H200 bf16 dense, 1830 MHz boost"}};
}

json run_ladder(const Device& device, const LadderPlan& plan, LadderSource& source) {
  return LadderRunner(device, plan, source).run();
}

}  // namespace tilewright::cli
