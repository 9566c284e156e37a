#include "bench/indexer.h"

#include "base/error.h"
#include "base/progress.h"
#include "bench/ladder.h"
#include "verify/device_facts.h"
#include "verify/indexer_device.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace tilewright::cli {

namespace {

using nlohmann::json;

class IndexRunner {
 public:
  IndexRunner(const Device& device, const IndexSweep& sweep)
      : device_(device),
        sweep_(sweep),
        progress_(stderr, "bench indexer",
                  static_cast<std::int64_t>(sweep.shapes.size() * sweep.formats.size()),
                  "problems") {
    if (!sweep.deepgemm.empty()) peer_.emplace(sweep.deepgemm);
  }

  json run() {
    for (const IndexShape& shape : sweep_.shapes) {
      for (const NumberFormat format : sweep_.formats) {
        IndexShape with_format = shape;
        with_format.format = format;
        run_problem(with_format);
        progress_.add();
      }
    }
    progress_.finish();
    return std::move(samples_);
  }

 private:
  void run_problem(const IndexShape& shape) {
    const IndexData data = draw_index(shape, sweep_.cache_bytes, sweep_.tables, 1);
    const Indexer indexer(device_, data.problem);
    const IndexOperands operands(device_, data, indexer);
    json log = describe(data);
    log["source"] = "tilewright";
    log["kernel"] = "indexer";
    log["plan"] = indexer.to_string(shape.tokens(), shape.batch);
    indexer.run(operands.arguments(0));
    operands.stream().synchronize();
    log["error"] = operands.check(4, 0);
    if (!device_.is_simulated()) measure(operands, log);
    samples_.push_back(std::move(log));
    if (!peer_ || device_.is_simulated() || !DeepGemmPeer::obstacle(shape).empty()) return;
    json beside = describe(data);
    beside["source"] = "DeepGEMM";
    beside.update(peer_->run(device_, operands, sweep_.samples));
    samples_.push_back(std::move(beside));
  }

  void measure(const IndexOperands& operands, json& log) const {
    const Indexer& indexer = operands.indexer();
    const auto step = [&](IndexerStep which) {
      return operands.measure(
          [&](std::size_t table) { indexer.run(operands.arguments(table), which); },
          sweep_.samples);
    };
    const auto call = [&](bool reuses_schedule) {
      return operands.measure(
          [&](std::size_t table) {
            IndexerArguments a = operands.arguments(table);
            a.reuses_schedule = reuses_schedule;
            indexer.run(a);
          },
          sweep_.samples);
    };
    step(IndexerStep::kLogits).write(log);
    log["select_us"] = step(IndexerStep::kSelect).us;
    log["call_us"] = call(true).us;
    log["with_schedule_us"] = call(false).us;
  }

  static json describe(const IndexData& data) {
    const IndexShape& shape = data.shape;
    const double bytes = data.bytes(), flops = data.flops();
    return {{"problem",
             {{"batch", shape.batch},
              {"q_len", shape.q_len},
              {"heads", shape.heads},
              {"keys", shape.keys},
              {"topk", shape.topk},
              {"key_page", shape.key_page},
              {"lengths", to_string(shape.lengths)}}},
            {"format", to_string(shape.format)},
            {"flops", flops},
            {"bytes", bytes},
            {"floor_us", 1e6 * std::max(bytes / kIndexBytesPerS, flops / kIndexFlopsPerS)}};
  }

  const Device& device_;
  const IndexSweep& sweep_;
  Progress progress_;
  std::optional<DeepGemmPeer> peer_;
  json samples_ = json::array();
};

}  // namespace

json run_index_sweep(const Device& device, const IndexSweep& sweep, const std::string& command) {
  json log = ladder_header(device, command);
  log["kind"] = "indexer";
  log["tool"] = std::string("tilewright bench indexer ") + TILEWRIGHT_VERSION;
  log["cache"] = device.is_simulated()
                     ? "simulated: no times"
                     : "cold: tables over caches larger than the L2 take turns in a graph, where "
                       "the keys of one prompt are read from the L2 anyway; the schedule is made "
                       "once, as for the layers of a model (with_schedule_us: in every call)";
  for (const char* const key : {"ceiling_tflops", "ceiling"}) log.erase(key);
  log["floors"] = "4.3 TB/s, 1600 TFLOP/s e4m3";
  log["clocks_before"] = read_clocks(device);
  log["samples"] = IndexRunner(device, sweep).run();
  log["clocks_after"] = read_clocks(device);
  return log;
}

bool is_index_log_correct(const json& log) {
  for (const json& sample : log.at("samples"))
    if (!sample.at("error").value("ok", false)) return false;
  return !log.at("samples").empty();
}

}  // namespace tilewright::cli
