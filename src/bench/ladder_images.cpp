#include "bench/ladder_images.h"

#include "base/markup.h"
#include "bench/ladder_plots.h"
#include "report/log_plot.h"
#include "report/page_style.h"

#include <algorithm>
#include <map>
#include <string_view>

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

// --name:value; of the page's style: first those for light, then those for dark.
std::map<std::string, std::string> read_palette(std::string_view css) {
  std::map<std::string, std::string> palette;
  for (std::size_t at = css.find("--"); at != css.npos; at = css.find("--", at)) {
    const std::size_t colon = css.find(':', at), end = css.find(';', at);
    if (colon >= end || end == css.npos) break;
    palette[std::string(css.substr(at, colon - at))] = css.substr(colon + 1, end - colon - 1);
    at = end;
  }
  return palette;
}

// Values in place of var(--name), which not every program that draws SVG knows.
std::string resolve(std::string css, const std::map<std::string, std::string>& palette) {
  constexpr std::string_view kBegin = "var(";
  for (std::size_t at = css.find(kBegin); at != css.npos; at = css.find(kBegin, at)) {
    const std::size_t end = css.find(')', at);
    css.replace(at, end + 1 - at, palette.at(css.substr(at + 4, end - at - 4)));
  }
  return css;
}

std::string image_colors(const std::map<std::string, std::string>& palette) {
  std::string css =
      ".page{fill:var(--card)} text{fill:var(--ink)} .tick,.unit,.note{fill:var(--soft)}\n"
      ".grid{stroke:var(--line)} .ceiling{stroke:var(--soft)}\n";
  for (int i = 0; i < kLadderColors; ++i)
    css += fmt::format(
        ".s{0} path{{stroke:var(--c{0})}}\n"
        ".s{0} circle,.s{0} .name,.f{0},.t{0}{{fill:var(--c{0})}}\n",
        i);
  return resolve(std::move(css), palette);
}

std::string image_style() {
  const std::string_view css = kLadderCss;
  const std::size_t dark = css.find("@media (prefers-color-scheme: dark)"),
                    rest = css.find("\n* {");
  return "text{font-family:system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif;font-size:12px}\n"
         ".heading{font-size:16px;font-weight:600} .label{font-weight:600;font-size:13px}\n"
         ".tick,.unit{font-size:11px} .note{font-size:12.5px} .name{font-weight:600}\n"
         ".ceiling{stroke-dasharray:2 4} .peer path{stroke-dasharray:6 4}\n"
         "path{fill:none;stroke-width:2.2;stroke-linejoin:round}\n" +
         image_colors(read_palette(css.substr(0, dark))) +
         "@media (prefers-color-scheme: dark){\n" +
         image_colors(read_palette(css.substr(dark, rest - dark))) + "}\n";
}

// A plot of the page as a file: margins, a heading, a style and a background of its own.
std::string whole_image(const std::string& plot, const std::string& heading) {
  constexpr std::string_view kBegin = "<svg viewBox='0 0 ";
  constexpr int kMargin = 20, kHeading = 34;
  const std::size_t size_end = plot.find('\'', kBegin.size()), begin = plot.find('>') + 1;
  const std::string size = plot.substr(kBegin.size(), size_end - kBegin.size());
  const std::size_t space = size.find(' ');
  const double width = std::stod(size.substr(0, space)) + 2 * kMargin;
  const double height = std::stod(size.substr(space + 1)) + 2 * kMargin + kHeading;
  std::string body = plot.substr(begin);
  for (std::size_t at = body.find("><"); at != body.npos; at = body.find("><", at))
    body.insert(at + 1, "\n");  // a line for each element, so that changes can be read
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='{2} {3} {0} {1}' "
      "role='img'>\n<style>\n{4}</style>\n"
      "<rect class='page' x='{2}' y='{3}' width='{0}' height='{1}'/>\n"
      "<text class='heading' x='0' y='{5}'>{6}</text>\n{7}\n",
      width, height, -kMargin, -kMargin - kHeading, image_style(), -kHeading / 2,
      escape_markup(heading), body);
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
        images.push_back({fmt::format("{}-{}.svg", what, shape), whole_image(plot, heading)});
    };
    add("rungs", ladder_bars(view, group),
        fmt::format("{}, n {}", group.title, group.lengths[shown_length(view, group)]));
    if (!view.is_simulated) add("lengths", length_lines(view, group), group.title);
  }
  return images;
}

}  // namespace tilewright::cli
