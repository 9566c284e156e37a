#include "bench/ladder_log.h"

#include "base/json_node.h"
#include "bench/decode.h"
#include "bench/ladder.h"
#include "report/time_summary.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

// Logs did not always say. Nothing in a ladder is packed, and lse is wanted.
double bytes_of(const json& sample) {
  if (sample.contains("bytes")) return sample["bytes"];
  const json& p = sample.at("problem");
  const auto size = [&](const char* name) { return p.value(name, std::int64_t{0}); };
  const AttentionProblem problem = {
      .dtype = p.value("dtype", "") == "e4m3" ? DType::kF8_E4M3 : DType::kBF16,
      .batch = size("batch"),
      .heads = size("heads"),
      .kv_heads = size("kv_heads"),
      .q_len = size("q_len"),
      .kv_len = size("kv_len"),
      .head_dim = size("head_dim"),
      .has_lse = true};
  return count_work(problem).bytes;
}

LadderPoint read_point(const json& sample) {
  LadderPoint point;
  point.refused = sample.value("refused", "");
  if (sample.contains("samples_us") && !sample["samples_us"].empty()) {
    const TimeSummary time = summarize(sample["samples_us"].get<std::vector<double>>());
    point.tflops = sample.value("flops", 0.0) / time.median_us * 1e-6;
  }
  if (const double bytes = bytes_of(sample); bytes > 0)
    point.flops_per_byte = sample.value("flops", 0.0) / bytes;
  if (sample.contains("error")) {
    const json& error = sample["error"];
    point.worst_of_bound =
        std::max(error.value("worst_of_bound", 0.0), error.value("worst_lse_of_bound", 0.0));
    point.relative_rms = error.value("relative_rms", 0.0);
  }
  if (sample.contains("counted")) point.counted = sample["counted"];
  return point;
}

template <class T, class U>
std::size_t find_or_add(std::vector<T>& list, const U& matches, T added) {
  const auto at = std::ranges::find_if(list, matches);
  if (at != list.end()) return static_cast<std::size_t>(at - list.begin());
  list.push_back(std::move(added));
  return list.size() - 1;
}

std::size_t find_group(LadderView& view, const json& sample) {
  const json& problem = sample.at("problem");
  const std::string inputs = sample.value("inputs", "");
  const bool is_drawn = inputs == "N(0,1)" || inputs.empty();
  LadderGroup group;
  group.head_dim = problem.at("head_dim");
  group.is_causal = problem.at("causal");
  group.title = fmt::format("{}, head_dim {}{}", group.is_causal ? "causal" : "full",
                            group.head_dim, is_drawn ? "" : ", " + inputs);
  return find_or_add(
      view.groups, [&](const LadderGroup& g) { return g.title == group.title; }, group);
}

bool is_fp8_kernel(const std::string& name) {
  const AttentionKernelInfo* const rung = find_rung(name);
  return rung != nullptr && rung->computes_in_e4m3;
}

void add_sample(LadderView& view, const json& sample) {
  const LadderKernel kernel = {sample.at("kernel"), sample.value("idea", ""),
                               sample.value("source", "tilewright")};
  const std::size_t k = find_or_add(
      view.kernels, [&](const LadderKernel& x) { return x == kernel; }, kernel);
  view.kernels[k].is_fp8 = sample.at("problem").value("dtype", "") == "e4m3" ||
                           (!kernel.is_peer() && is_fp8_kernel(kernel.name));
  std::string& idea = view.kernels[k].idea;
  if (idea.empty()) idea = kernel.idea;
  if (idea != kernel.idea && kernel.name == "auto") idea = "what plan() chooses, shape by shape";
  LadderGroup& group = view.groups[find_group(view, sample)];
  const std::int64_t length = sample.at("problem").at("q_len");
  const std::size_t n = find_or_add(
      group.lengths, [&](std::int64_t x) { return x == length; }, length);
  if (group.points.size() <= k) group.points.resize(k + 1);
  if (group.points[k].size() <= n) group.points[k].resize(n + 1);
  group.points[k][n] = read_point(sample);
}

void require_log(const json& log, const char* what) {
  require(log.is_object() && log.value("schema", 0) == 1 && log.value("kind", "") == "attention" &&
              log.contains("samples"),
          ErrorKind::kParseError, "ladder: {} is no log of attention results of schema 1", what);
}

}  // namespace

std::span<const AttentionKernelInfo> ladder_rungs() {
  static const std::vector<AttentionKernelInfo> rungs = [] {
    std::vector<AttentionKernelInfo> kept;
    std::ranges::remove_copy_if(attention_kernels(), std::back_inserter(kept),
                                &AttentionKernelInfo::reads_pages);
    return kept;
  }();
  return rungs;
}

const AttentionKernelInfo* find_rung(std::string_view name) {
  const std::span<const AttentionKernelInfo> all = ladder_rungs();
  const auto at = std::ranges::find(all, name, &AttentionKernelInfo::name);
  return at == all.end() ? nullptr : &*at;
}

LadderView read_ladder(const json& log) {
  require_log(log, "this");
  LadderView view;
  view.is_simulated = log.at("device").value("is_simulated", false);
  view.ceiling_tflops = log.value("ceiling_tflops", 989.0);
  try {
    // In the order of the rungs, whatever the order of their results.
    for (const json& name : log.value("kernels", json::array()))
      view.kernels.push_back({name.get<std::string>(), "", "tilewright"});
    for (const json& sample : log.at("samples")) add_sample(view, sample);
  } catch (const json::exception& error) {
    fail(ErrorKind::kParseError, "ladder: a sample of the log lacks something: {}", error.what());
  }
  for (LadderGroup& group : view.groups) {
    group.points.resize(view.kernels.size());
    for (auto& row : group.points) row.resize(group.lengths.size());
  }
  return view;
}

void merge_peers(json& log, const json& peers) {
  require_log(peers, "the peers' file");
  for (const json& sample : peers.at("samples")) log["samples"].push_back(sample);
  log["peers"].push_back({{"command", peers.value("command", "")},
                          {"device", peers.value("device", json::object())},
                          {"started", peers.value("started", "")}});
}

bool is_ladder_correct(const json& log) {
  if (log.contains("decode") && !is_decode_log_correct(log["decode"])) return false;
  bool has_result = false;
  for (const json& sample : log.at("samples")) {
    if (sample.contains("error") && !sample["error"].value("ok", false)) return false;
    has_result = has_result || sample.contains("error") || sample.contains("samples_us");
  }
  return has_result;
}

std::vector<std::pair<std::string, double>> ladder_bounds(const LadderPoint& point) {
  std::vector<std::pair<std::string, double>> bounds;
  if (!point.counted.contains("bounds")) return bounds;
  for (const auto& [unit, seconds] : point.counted["bounds"]["seconds"].items())
    bounds.emplace_back(unit, seconds.get<double>());
  std::ranges::stable_sort(bounds, std::greater<>(), [](const auto& b) { return b.second; });
  return bounds;
}

}  // namespace tilewright::cli
