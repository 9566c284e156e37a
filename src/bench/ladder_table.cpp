// The ladder's results as tables for a terminal.
#include "bench/ladder.h"
#include "bench/ladder_log.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

std::string error_text(double worst_of_bound, double relative_rms, const Style& style) {
  if (worst_of_bound < 0) return "-";
  if (worst_of_bound > 1) return style.bad("WRONG");
  return fmt::format("{:.1e}", relative_rms);
}

std::string timed_group(const LadderView& view, const LadderGroup& group, const Style& style) {
  std::vector<std::string> header = {"TFLOP/s"};
  for (const std::int64_t n : group.lengths) header.push_back(fmt::format("n {}", n));
  header.insert(header.end(), {"error", "idea"});
  Table table(header);
  std::vector<double> best(group.lengths.size(), 0);
  for (const auto& row : group.points)
    for (std::size_t n = 0; n < row.size(); ++n)
      if (row[n]) best[n] = std::max(best[n], row[n]->tflops);
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    std::vector<std::string> cells = {view.kernels[k].name};
    double worst = -1, rms = 0;
    bool has_any = false;
    for (std::size_t n = 0; n < group.lengths.size(); ++n) {
      const auto& point = group.points[k][n];
      const bool is_there = point && point->tflops > 0;
      cells.push_back(is_there ? fmt::format("{:.{}f}", point->tflops, point->tflops < 20 ? 1 : 0)
                               : "-");
      has_any = has_any || is_there;
      if (point && point->worst_of_bound >= worst) {
        worst = point->worst_of_bound;
        rms = std::max(rms, point->relative_rms);
      }
    }
    if (!has_any) continue;
    cells.push_back(error_text(worst, rms, style));
    cells.push_back(view.kernels[k].is_peer() ? view.kernels[k].source : view.kernels[k].idea);
    table.add(std::move(cells));
  }
  return style.bold(group.title) + "\n" + table.text(style) + "\n";
}

/// Of --time.
bool has_prediction(const LadderPoint& point) {
  return point.counted.contains("predicted") && point.counted["predicted"].contains("us");
}

bool has_predictions(const LadderView& view) {
  for (const LadderGroup& group : view.groups)
    for (const auto& row : group.points)
      for (const auto& point : row)
        if (point && has_prediction(*point)) return true;
  return false;
}

std::string predicted_text(const LadderPoint& point) {
  if (!has_prediction(point)) return "-";
  return fmt::format("{:.1f}", point.counted["predicted"]["us"].get<double>());
}

std::string counted_group(const LadderView& view, const LadderGroup& group, std::size_t n,
                          const Style& style) {
  std::vector<std::string> titles = {"rung",      "error", "% of bound", "Minstr", "tensor GFLOP",
                                     "shared MB", "L2 MB", "least us",   "by"};
  if (has_predictions(view)) titles.emplace_back("predicted us");
  titles.emplace_back("idea");
  Table table(titles);
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    const auto& point = group.points[k][n];
    if (!point) continue;
    const LadderKernel& kernel = view.kernels[k];
    if (point->is_refused()) {
      std::vector<std::string> cells(titles.size(), "-");
      cells.front() = kernel.name;
      cells.back() = "not for this head_dim";
      table.add(std::move(cells));
      continue;
    }
    const nlohmann::json total =
        point->counted.contains("total") ? point->counted["total"] : nlohmann::json::object();
    const auto count = [&](const char* key, double factor) {
      return total.contains(key) ? total[key].get<double>() * factor : 0.0;
    };
    const auto bounds = ladder_bounds(*point);
    std::vector<std::string> cells = {
        kernel.name,
        error_text(point->worst_of_bound, point->relative_rms, style),
        fmt::format("{:.0f}", 100 * point->worst_of_bound),
        fmt::format("{:.2f}", count("warp_instructions", 1e-6)),
        fmt::format("{:.2f}", count("tensor_flop", 1e-9)),
        fmt::format("{:.1f}",
                    count("shared_wavefronts", 128e-6) + count("shared_async_bytes", 1e-6)),
        fmt::format("{:.1f}", count("global_requested_bytes", 1e-6) + count("bulk_bytes", 1e-6)),
        bounds.empty() ? "-" : fmt::format("{:.1f}", bounds[0].second * 1e6),
        bounds.empty() ? "-" : bounds[0].first};
    if (has_predictions(view)) cells.push_back(predicted_text(*point));
    cells.push_back(kernel.idea);
    table.add(std::move(cells));
  }
  return style.bold(fmt::format("{}, n {}", group.title, group.lengths[n])) + "\n" +
         table.text(style) + "\n";
}

}  // namespace

std::string ladder_table(const nlohmann::json& log, const Style& style) {
  const LadderView view = read_ladder(log);
  std::string text;
  for (const LadderGroup& group : view.groups) {
    if (!view.is_simulated) {
      text += timed_group(view, group, style);
      continue;
    }
    // The longest shape says most; the report has all.
    text += counted_group(view, group, group.lengths.size() - 1, style);
  }
  std::size_t num_checked = 0, num_wrong = 0;
  for (const nlohmann::json& sample : log.at("samples")) {
    if (!sample.contains("error")) continue;
    ++num_checked;
    num_wrong += !sample["error"].value("ok", false);
  }
  const std::string verdict =
      fmt::format("{} results checked against float64, {} wrong", num_checked, num_wrong);
  text += num_wrong == 0 ? style.good(verdict) : style.bad(verdict);
  if (view.is_simulated) {
    text += style.faint(
        "\nsimulated: no times. \"least us\" is a bound for an H200: the busiest unit at its peak "
        "rate, all else free");
    if (has_predictions(view)) {
      text += style.faint(
          "\n\"predicted us\" is by a model; docs/12-predicted-times.md says how far it is off");
    }
  }
  return text + "\n";
}

}  // namespace tilewright::cli
