#include "bench/ladder_images.h"

#include "bench/ladder_plots.h"
#include "report/log_plot.h"
#include "report/plot_image.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

std::string timed_bars(const LadderView& view, const LadderGroup& group, std::size_t n) {
  std::vector<PlotBar> bars;
  double previous = 0;
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    const double value = value_of(group.points[k][n]);
    if (value <= 0) continue;
    const bool is_peer = view.kernels[k].is_peer();
    std::string note = fmt::format("{:.{}f}", value, value < 20 ? 1 : 0);
    note += fmt::format(" \u00b7 {:.1f} %", 100 * value / view.ceiling_of(view.kernels[k]));
    if (previous > 0 && !is_peer) note += fmt::format(" \u00b7 {:.2f}x", value / previous);
    const LadderKernel& kernel = view.kernels[k];
    bars.push_back(
        {kernel.name, note, value, color_of(view, k), is_peer ? kernel.source : kernel.idea});
    if (!is_peer) previous = value;
  }
  return plot_bars(bars, "TFLOP/s \u00b7 share of the ceiling \u00b7 times the rung above");
}

std::string counted_bars(const LadderView& view, const LadderGroup& group, std::size_t n) {
  std::vector<PlotBar> bars;
  double previous = 0;
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    const auto& point = group.points[k][n];
    if (!point) continue;
    const auto bounds = ladder_bounds(*point);
    if (bounds.empty()) continue;
    const double us = bounds[0].second * 1e6;
    std::string note = fmt::format("{:.3g} us \u00b7 {}", us, bounds[0].first);
    if (previous > 0) note += fmt::format(" \u00b7 {:.2f}x", previous / us);
    bars.push_back({view.kernels[k].name, note, us, color_of(view, k), view.kernels[k].idea});
    previous = us;
  }
  return plot_bars(bars,
                   "least microseconds of the busiest unit \u00b7 which \u00b7 times less "
                   "than the rung above");
}

std::string length_lines(const LadderView& view, const LadderGroup& group) {
  std::vector<LogSeries> series;
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    const LadderKernel& kernel = view.kernels[k];
    LogSeries line = {kernel.name, color_of(view, k),
                      kernel.is_peer() ? LogSeries::Look::kDashed : LogSeries::Look::kLine};
    for (std::size_t n = 0; n < group.lengths.size(); ++n)
      if (const double value = value_of(group.points[k][n]); value > 0)
        line.points.emplace_back(group.lengths[n], value);
    std::ranges::sort(line.points);
    if (!line.points.empty()) series.push_back(std::move(line));
  }
  if (series.empty()) return {};
  const auto [least, most] = std::ranges::minmax(group.lengths);
  LogSeries roof = {fmt::format("ceiling {:g}", view.ceiling_tflops), 0, LogSeries::Look::kFloor};
  roof.points = {{least, view.ceiling_tflops}, {most, view.ceiling_tflops}};
  series.push_back(std::move(roof));
  return plot_log(series, "keys", "TFLOP/s");
}

}  // namespace

std::size_t shown_length(const LadderView& view, const LadderGroup& group) {
  std::size_t shown = 0;
  std::ptrdiff_t most = -1;
  for (std::size_t n = 0; n < group.lengths.size(); ++n) {
    std::ptrdiff_t count = 0;
    for (std::size_t k = 0; k < view.kernels.size(); ++k)
      count += !view.kernels[k].is_peer() && value_of(group.points[k][n]) > 0;
    if (count < most) continue;
    most = count;
    shown = n;
  }
  return shown;
}

std::string ladder_bars(const LadderView& view, const LadderGroup& group) {
  const std::size_t n = shown_length(view, group);
  return view.is_simulated ? counted_bars(view, group, n) : timed_bars(view, group, n);
}

std::vector<LadderImage> ladder_images(const LadderView& view) {
  std::vector<LadderImage> images;
  std::map<std::string, int> times_named;
  for (const LadderGroup& group : view.groups) {
    std::string shape = fmt::format("d{}-{}", group.head_dim, group.is_causal ? "causal" : "full");
    // Groups of several inputs may have the same shape.
    if (const int before = times_named[shape]++; before > 0)
      shape += fmt::format("-{}", before + 1);
    const auto add = [&](const char* what, const std::string& plot, const std::string& heading) {
      if (!plot.empty())
        images.push_back({fmt::format("{}-{}.svg", what, shape), plot_image(plot, heading)});
    };
    add("rungs", ladder_bars(view, group),
        fmt::format("{}, n {}", group.title, group.lengths[shown_length(view, group)]));
    if (!view.is_simulated) add("lengths", length_lines(view, group), group.title);
  }
  return images;
}

}  // namespace tilewright::cli
