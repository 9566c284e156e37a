#include "bench/timing/timing.h"

#include "tilewright/device.h"

#include "base/error.h"
#include "base/progress.h"
#include "bench/timing/calibration.h"
#include "bench/timing/operators.h"
#include "bench/timing/ranges.h"
#include "verify/device_facts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

constexpr double kClockMhz = 1980;  ///< of the simulated H200

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

template <class T>
bool is_chosen(const std::vector<T>& list, const T& value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

struct Pair {
  double predicted = 0, measured = 0;
  std::string kernel;
};

/// Ranks from 0; equal values have the mean of theirs.
std::vector<double> ranks(const std::vector<Pair>& pairs, double Pair::*member) {
  std::vector<double> out;
  for (const Pair& pair : pairs) {
    double below = 0, equal = 0;
    for (const Pair& other : pairs) {
      below += other.*member < pair.*member;
      equal += other.*member == pair.*member;
    }
    out.push_back(below + (equal - 1) / 2);
  }
  return out;
}

/// Spearman's coefficient: the correlation of ranks.
double rank_correlation(const std::vector<Pair>& pairs) {
  const std::vector<double> a = ranks(pairs, &Pair::predicted), b = ranks(pairs, &Pair::measured);
  const double mean = static_cast<double>(pairs.size() - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  return aa == 0 || bb == 0 ? 0 : ab / std::sqrt(aa * bb);
}

/// Of kernels at one shape: pairs further apart than 3 %, and those in the right order.
struct OrderedPairs {
  int all = 0, right = 0;

  void add(const std::vector<Pair>& pairs) {
    constexpr double kApart = 1.03;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Pair &a = pairs[i], &b = pairs[j];
        const double ratio = a.measured / b.measured;
        if (ratio < kApart && ratio > 1 / kApart) continue;
        ++all;
        right += (a.predicted < b.predicted) == (ratio < 1) && a.predicted != b.predicted;
      }
    }
  }
};

/// What the choice of the kernel that is predicted to be the fastest costs at a shape.
json choice_at(const std::string& shape, const std::vector<Pair>& pairs) {
  const Pair chosen = *std::ranges::min_element(pairs, {}, &Pair::predicted);
  const Pair fastest = *std::ranges::min_element(pairs, {}, &Pair::measured);
  return {{"shape", shape},
          {"kernels", pairs.size()},
          {"chosen", chosen.kernel},
          {"fastest", fastest.kernel},
          {"cost", chosen.measured / fastest.measured - 1}};
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

bool is_chosen_attention(TimingPoint& point, const TimingChoice& choice) {
  const json& problem = point.problem;
  const bool is_causal = problem["causal"];
  const bool is_mask = choice.mask == "both" || is_causal == (choice.mask == "causal");
  return is_mask && is_chosen(choice.kernels, point.kernel) &&
         is_chosen(choice.lengths, problem["kv_len"].get<std::int64_t>()) &&
         is_chosen(choice.head_dims, problem["head_dim"].get<std::int64_t>());
}

/// Kernels of one kind of weights and activations are compared with each other: the kind becomes
/// part of the shape.
bool is_chosen_linear(TimingPoint& point, const TimingChoice& choice) {
  const std::size_t colon = point.kernel.find(':');
  if (colon == std::string::npos) return false;
  const json& problem = point.problem;
  const std::int64_t m = problem["m"], n = problem["n"], k = problem["k"];
  point.shape = fmt::format("{} m{} n{} k{}", point.kernel.substr(0, colon), m, n, k);
  const bool is_kernel = is_chosen(choice.kernels, point.kernel) ||
                         is_chosen(choice.kernels, point.kernel.substr(colon + 1));
  return is_kernel && is_chosen(choice.rows, m) && is_chosen(choice.features, n);
}

bool is_chosen_decode(TimingPoint& point, const TimingChoice& choice) {
  const json& p = point.problem;
  const std::int64_t keys = p["keys"], head_dim = p["head_dim"], batch = p["batch"],
                     page = p["page"];
  point.shape =
      fmt::format("{} h{}/{} d{} b{} n{}{}", p["kv"].get<std::string>(),
                  p["heads"].get<std::int64_t>(), p["kv_heads"].get<std::int64_t>(), head_dim,
                  batch, keys, page == 0 ? "" : fmt::format(" pages of {}", page));
  return is_chosen(choice.kernels, point.kernel) && is_chosen(choice.lengths, keys) &&
         is_chosen(choice.head_dims, head_dim) && is_chosen(choice.rows, batch);
}

bool is_chosen_sparse(TimingPoint& point, const TimingChoice& choice) {
  const std::int64_t batch = point.problem["batch"];
  point.shape = fmt::format("{} {} b{}", point.shape, point.format, batch);
  return is_chosen(choice.kernels, point.kernel) && is_chosen(choice.rows, batch);
}

bool is_chosen_indexer(TimingPoint& point, const TimingChoice& choice) {
  const json& p = point.problem;
  const std::int64_t batch = p["batch"], q_len = p["q_len"], keys = p["keys"];
  point.shape = fmt::format("{} h{} b{} q{} n{} {}", point.format, p["heads"].get<std::int64_t>(),
                            batch, q_len, keys, p["lengths"].get<std::string>());
  return is_chosen(choice.lengths, keys) && is_chosen(choice.rows, batch);
}

bool is_chosen_experts(TimingPoint& point, const TimingChoice& choice) {
  const std::int64_t tokens = point.problem["tokens"];
  return is_chosen(choice.kernels, point.kernel) && is_chosen(choice.rows, tokens);
}

/// Logs that have measured rows, by their `kind` and `tool`. Where clocks are not beside each row,
/// short calls in a graph are taken to run at the highest clock.
struct LogKind {
  const char *kind, *tool;
  TimedOperator timed;
  bool has_row_clocks;
  bool (*is_chosen)(TimingPoint&, const TimingChoice&);
};
constexpr LogKind kLogKinds[] = {
    {"attention", "tilewright ladder", TimedOperator::kAttention, true, is_chosen_attention},
    {"linear", "bench/linear_peers.py", TimedOperator::kLinear, true, is_chosen_linear},
    {"decode", "tilewright bench decode", TimedOperator::kDecode, false, is_chosen_decode},
    {"sparse", "tilewright bench sparse", TimedOperator::kSparse, false, is_chosen_sparse},
    {"indexer", "tilewright bench indexer", TimedOperator::kIndexer, false, is_chosen_indexer},
    {"moe", "tilewright bench moe", TimedOperator::kExperts, false, is_chosen_experts},
};

const LogKind& kind_of(const json& log) {
  const std::string kind = log.is_object() ? log.value("kind", "") : "";
  const std::string tool = log.is_object() ? log.value("tool", "") : "";
  const auto* const found = std::ranges::find_if(
      kLogKinds, [&](const LogKind& k) { return kind == k.kind && tool.starts_with(k.tool); });
  require(found != std::end(kLogKinds), ErrorKind::kInvalidArgument,
          "bench timing: a log of `tilewright ladder`, `tilewright bench decode`, `bench sparse`, "
          "`bench indexer` or `bench moe`, or of bench/linear_peers.py is expected, as in "
          "bench/results");
  return *found;
}

std::string percent(double part) {
  return fmt::format("{:+.1f} %", 100 * part);
}

}  // namespace

std::vector<TimingPoint> timing_points(const json& log, const TimingChoice& choice) {
  const LogKind& kind = kind_of(log);
  std::vector<TimingPoint> points;
  for (const json& row : log["samples"]) {
    if (!row.contains("samples_us") || row.value("source", "") != "tilewright") continue;
    const json clocks = row.value("clocks_after", log.value("clocks_after", json()));
    const bool is_counted = row.contains("samples_mhz");
    if (!is_counted && !clocks.is_object()) continue;
    TimingPoint point{.shape = row.value("case", row.value("shape", "")),
                      .kernel = row["kernel"],
                      .format = row.value("format", ""),
                      .timed = kind.timed,
                      .problem = row["problem"],
                      .measured_us = median(row["samples_us"].get<std::vector<double>>()),
                      .clock_mhz = is_counted
                                       ? median(row["samples_mhz"].get<std::vector<double>>())
                                   : kind.has_row_clocks ? clocks["sm_mhz"].get<double>()
                                                         : kClockMhz,
                      .is_clock_counted = is_counted,
                      .has_single = row.contains("single"),
                      .is_for_fp8 = row.value("activations", "") == "fp8",
                      .calibrates = constants_from(log, row)};
    if (point.measured_us <= choice.most_us && kind.is_chosen(point, choice)) {
      points.push_back(std::move(point));
    }
  }
  return points;
}

/// What was predicted beside what was measured: microseconds, and where the SMs counted them,
/// clocks.
void compare(const TimingPoint& point, const json& predicted, json& row) {
  const double us = predicted["us"], clocks = predicted["clocks"], mhz = clocks / us;
  row["predicted_us"] = us, row["predicted_mhz"] = mhz;
  row["measured_us"] = point.measured_us;
  if (point.is_clock_counted) {
    row["measured_mhz"] = point.clock_mhz;
    row["clocks_error"] = clocks / (point.measured_us * point.clock_mhz) - 1;
  } else if (point.clock_mhz < mhz) {  // the limit of power, which is not predicted
    row["measured_us"] = point.measured_us * point.clock_mhz / mhz;
  }
  row["error"] = us / row["measured_us"].get<double>() - 1;
}

std::string title_of(const TimingPoint& point) {
  if (point.timed != TimedOperator::kExperts) return point.shape;
  return fmt::format("{} {}{}{} m{}", point.shape, point.format, point.is_for_fp8 ? " for FP8" : "",
                     point.has_single ? " and FP8" : "",
                     point.problem["tokens"].get<std::int64_t>());
}

json run_timing(const std::vector<TimingPoint>& points, const TimingChoice& choice) {
  request_predictions(choice.sample);
  const Device device = Device::open("sim:h200");
  Progress progress(stderr, "bench timing", static_cast<std::int64_t>(points.size()), "points");
  json out = json::array(), calibration = json::array();
  for (const TimingPoint& point : points) {
    progress.add();
    json row = {{"shape", title_of(point)}, {"kernel", point.kernel}};
    if (!point.calibrates.empty()) {
      row["constants"] = point.calibrates;
      calibration.push_back(std::move(row));
      continue;
    }
    try {
      const json predicted = predict_point(device, point);
      if (predicted.contains("problem")) {
        row["problem"] = predicted["problem"];
      } else {
        compare(point, predicted, row);
        add_range(row, point.timed);
        for (const char* const key :
             {"ctas", "ctas_traced", "launches", "launch_us", "busy_us", "wait_us", "kernels"}) {
          row[key] = predicted[key];
        }
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) throw;
      row["problem"] = error.what();  // a kernel that is there no more
    }
    out.push_back(std::move(row));
  }
  progress.finish();
  return {{"device", "h200"}, {"clock_mhz", kClockMhz},     {"sample", choice.sample},
          {"points", out},    {"calibration", calibration}, {"summary", timing_summary(out)}};
}

json timing_summary(const json& points) {
  std::vector<double> errors, clocks_errors;
  std::map<std::string, std::vector<Pair>> shapes;
  double bias = 0, worst = 0;
  for (const json& point : points) {
    if (!point.contains("predicted_us")) continue;
    const Pair pair{point["predicted_us"], point["measured_us"], point["kernel"]};
    const double error = pair.predicted / pair.measured - 1;
    errors.push_back(std::abs(error));
    if (point.contains("clocks_error")) {
      clocks_errors.push_back(std::abs(point["clocks_error"].get<double>()));
    }
    bias += error;
    if (std::abs(error) > std::abs(worst)) worst = error;
    shapes[point["shape"]].push_back(pair);
  }
  if (errors.empty()) return {{"points", 0}};
  std::vector<double> correlations, regrets;
  json choices = json::array();
  OrderedPairs order;
  for (const auto& [shape, pairs] : shapes) {
    if (pairs.size() < 2) continue;
    if (pairs.size() > 2) correlations.push_back(rank_correlation(pairs));
    choices.push_back(choice_at(shape, pairs));
    regrets.push_back(choices.back()["cost"]);
    order.add(pairs);
  }
  json summary = {{"points", errors.size()},
                  {"mean_absolute_error", mean(errors)},
                  {"median_absolute_error", median(errors)},
                  {"worst_error", worst},
                  {"bias", bias / static_cast<double>(errors.size())},
                  {"rank_correlation", mean(correlations)},
                  {"pairs", order.all},
                  {"pairs_in_order", order.right},
                  {"regret", mean(regrets)},
                  {"worst_regret", regrets.empty() ? 0 : std::ranges::max(regrets)},
                  {"choices", choices}};
  if (!clocks_errors.empty()) summary["mean_absolute_error_of_clocks"] = mean(clocks_errors);
  return summary;
}

/// Of each shape that has several kernels.
std::string choices_table(const json& choices, const Style& style) {
  if (choices.empty()) return "";
  Table table({"shape", "kernels", "predicted fastest", "measured fastest", "costs"});
  for (const json& choice : choices) {
    table.add({choice["shape"], fmt::format("{}", choice["kernels"].get<int>()), choice["chosen"],
               choice["fastest"], percent(choice["cost"].get<double>())});
  }
  return "\n" + table.text(style);
}

/// How well kernels at a shape are told apart, where a log has several.
std::string order_text(const json& summary) {
  if (summary["choices"].empty()) return "";
  const double correlation = summary["rank_correlation"];  // of three kernels and more; else 0
  return fmt::format(
      "kernels at a shape: {}of {} pairs more than 3 % apart {} in the right order;\n"
      "the one predicted to be fastest takes {:.1f} % longer than the fastest, at most {:.1f} %\n",
      correlation == 0 ? "" : fmt::format("rank correlation {:.3f}; ", correlation),
      summary["pairs"].get<int>(), summary["pairs_in_order"].get<int>(),
      100 * summary["regret"].get<double>(), 100 * summary["worst_regret"].get<double>());
}

/// Which rows were left out, since constants come from them.
std::string calibration_text(const json& rows) {
  if (rows.empty()) return "";
  std::string out =
      fmt::format("{} not scored: constants of the model come from {}\n",
                  rows.size() == 1 ? "1 row is" : fmt::format("{} rows are", rows.size()),
                  rows.size() == 1 ? "it" : "them");
  for (const json& row : rows) {
    out += fmt::format("  {} {}: {}\n", row["shape"].get<std::string>(),
                       row["kernel"].get<std::string>(), row["constants"].get<std::string>());
  }
  return out;
}

std::string timing_table(const json& result, const Style& style) {
  Table table({"shape", "kernel", "predicted us", "range", "measured us", "error", "of clocks"});
  std::string problems;
  for (const json& point : result["points"]) {
    if (point.contains("problem")) {
      problems +=
          fmt::format("{} {}: {}\n", point["shape"].get<std::string>(),
                      point["kernel"].get<std::string>(), point["problem"].get<std::string>());
      continue;
    }
    table.add({point["shape"], point["kernel"],
               fmt::format("{:.1f}", point["predicted_us"].get<double>()), range_text(point),
               fmt::format("{:.1f}", point["measured_us"].get<double>()),
               percent(point["error"].get<double>()),
               point.contains("clocks_error") ? percent(point["clocks_error"].get<double>()) : ""});
  }
  const json& summary = result["summary"];
  std::string out = table.text(style) + problems + calibration_text(result["calibration"]);
  if (summary["points"] == 0) return out + "no point has a prediction\n";
  return out + choices_table(summary["choices"], style) +
         fmt::format("\n{} {}: mean error {:.1f} %{}, median {:.1f} %, worst {}, bias {}\n",
                     summary["points"].get<int>(), summary["points"] == 1 ? "point" : "points",
                     100 * summary["mean_absolute_error"].get<double>(),
                     summary.contains("mean_absolute_error_of_clocks")
                         ? fmt::format(" ({:.1f} % of clocks)",
                                       100 * summary["mean_absolute_error_of_clocks"].get<double>())
                         : "",
                     100 * summary["median_absolute_error"].get<double>(),
                     percent(summary["worst_error"].get<double>()),
                     percent(summary["bias"].get<double>())) +
         order_text(summary);
}

}  // namespace tilewright::cli
