#include "bench/sparse.h"

#include "base/error.h"
#include "base/progress.h"
#include "bench/ladder.h"
#include "verify/device_facts.h"
#include "verify/sparse_device.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace tilewright::cli {

namespace {

using nlohmann::json;

class SparseRunner {
 public:
  SparseRunner(const Device& device, const SparseSweep& sweep)
      : device_(device),
        sweep_(sweep),
        progress_(stderr, "bench sparse",
                  static_cast<std::int64_t>(sweep.shapes.size() * sweep.batches.size() *
                                            sweep.formats.size()),
                  "problems") {
    if (!sweep.flashmla.empty()) peer_.emplace(sweep.flashmla);
  }

  json run() {
    for (const SparseShape& shape : sweep_.shapes) {
      for (const std::int64_t batch : sweep_.batches) {
        for (const NumberFormat format : sweep_.formats) {
          run_problem(shape, batch, format);
          progress_.add();
          if (shape.is_prefill) break;  // rows are bf16
        }
      }
    }
    progress_.finish();
    return std::move(samples_);
  }

 private:
  void run_problem(const SparseShape& shape, std::int64_t batch, NumberFormat format) {
    SparseData data = draw_sparse(shape, format, batch, sweep_.sets, 1);
    data.problem.positive_empty_lse = true;  // as FlashMLA, whose results are compared as well
    const SparseAttentionPlan chosen = plan_sparse_attention(device_, data.problem);
    SparseOperands operands(device_, data);
    std::vector<std::string> kernels = sweep_.kernels;
    if (kernels.empty()) kernels = {chosen.kernel};
    for (const std::string& kernel : kernels) run_kernel(shape, data, kernel, chosen, operands);
    if (!peer_ || device_.is_simulated() || !FlashMlaPeer::obstacle(data.problem).empty()) return;
    json log = describe(shape, data, chosen);
    log.update(peer_->run(device_, data, sweep_.samples));
    log["source"] = "FlashMLA";
    samples_.push_back(std::move(log));
  }

  void run_kernel(const SparseShape& shape, const SparseData& data, const std::string& kernel,
                  const SparseAttentionPlan& chosen, SparseOperands& operands) {
    SparseAttentionProblem problem = data.problem;
    problem.kernel = kernel;
    std::optional<SparseAttention> attention;
    try {
      attention.emplace(device_, problem);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) throw;
      return;
    }
    json log = describe(shape, data, chosen);
    log["kernel"] = kernel;
    log["is_chosen"] = kernel == chosen.kernel;
    log["plan"] = attention->plan().to_string();
    operands.prepare(attention->plan());
    operands.poison();
    attention->run(operands.arguments(0));
    operands.stream().synchronize();
    log["error"] = operands.check(4, 0);
    if (!device_.is_simulated()) {
      const auto enqueue = [&](bool reuses_schedule) {
        return [&, reuses_schedule](std::size_t set) {
          SparseAttentionArguments a = operands.arguments(set);
          a.reuses_schedule = reuses_schedule;
          attention->run(a);
        };
      };
      operands.measure(enqueue(true), sweep_.samples, log).write(log);
      log["with_schedule_us"] = operands.measure(enqueue(false), sweep_.samples, log).us;
    }
    samples_.push_back(std::move(log));
  }

  static json describe(const SparseShape& shape, const SparseData& data,
                       const SparseAttentionPlan& plan) {
    const SparseAttentionProblem& p = data.problem;
    // Of the lengths that were drawn, as FlashMLA counts.
    const double share = used_share(data);
    return {{"shape", shape.name},
            {"problem",
             {{"batch", shape.is_prefill ? p.q_len : p.batch},
              {"q_len", shape.is_prefill ? 1 : p.q_len},
              {"heads", p.heads},
              {"window", p.window.topk},
              {"window_page", p.window.cache.page_size},
              {"compressed", p.compressed.topk},
              {"compressed_page", p.compressed.cache.page_size},
              {"has_lengths", shape.lengths != SparseLengths::kFull}}},
            {"source", "tilewright"},
            {"format", to_string(p.window.cache.format)},
            {"flops", plan.flops * share},
            {"bytes", plan.bytes * share},
            {"floor_us", plan.floor_us(kSparseBytesPerS, kSparseFlopsPerS) * share}};
  }

  static double used_share(const SparseData& data) {
    double used = 0, all = 0;
    for (const SparseListData* list : {&data.window, &data.compressed}) {
      if (list->is_absent()) continue;
      double share = 1;
      if (!list->lengths.empty()) {
        share = 0;
        for (const std::int32_t length : list->lengths) share += length;
        share /= static_cast<double>(list->list.topk) * static_cast<double>(list->lengths.size());
      }
      used += share * static_cast<double>(list->list.topk);
      all += static_cast<double>(list->list.topk);
    }
    return used / all;
  }

  const Device& device_;
  const SparseSweep& sweep_;
  Progress progress_;
  std::optional<FlashMlaPeer> peer_;
  json samples_ = json::array();
};

}  // namespace

json run_sparse_sweep(const Device& device, const SparseSweep& sweep, const std::string& command) {
  json log = ladder_header(device, command);
  log["kind"] = "sparse";
  log["tool"] = std::string("tilewright bench sparse ") + TILEWRIGHT_VERSION;
  log["cache"] = device.is_simulated()
                     ? "simulated: no times"
                     : "cold: lists over caches larger than the L2 take turns in a graph; the "
                       "schedule is made once, as for the layers of a model (with_schedule_us: "
                       "in every call)";
  for (const char* const key : {"ceiling_tflops", "ceiling"}) log.erase(key);
  log["floors"] = "4.3 TB/s, 790 TFLOP/s bf16";
  log["clocks_before"] = read_clocks(device);
  log["samples"] = SparseRunner(device, sweep).run();
  log["clocks_after"] = read_clocks(device);
  return log;
}

bool is_sparse_log_correct(const json& log) {
  for (const json& sample : log.at("samples"))
    if (!sample.at("error").value("ok", false)) return false;
  return !log.at("samples").empty();
}

}  // namespace tilewright::cli
