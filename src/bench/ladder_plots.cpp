#include "bench/ladder_plots.h"

#include "base/markup.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

// A round step so that about `count` of them reach `top`.
double round_step(double top, int count) {
  const double raw = top / count, power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0})
    if (factor * power >= raw) return factor * power;
  return 10 * power;
}

struct LabelAt {
  double y;
  std::size_t series;
};

// Labels at the ends of lines, moved apart so that they can be read.
std::vector<LabelAt> spread_labels(std::vector<LabelAt> labels, double distance, double bottom) {
  std::ranges::sort(labels, {}, &LabelAt::y);
  for (std::size_t i = 1; i < labels.size(); ++i)
    labels[i].y = std::max(labels[i].y, labels[i - 1].y + distance);
  double limit = bottom;
  for (std::size_t i = labels.size(); i-- > 0; limit -= distance)
    labels[i].y = std::min(labels[i].y, limit);
  return labels;
}

// Where the lines are: steps of equal width, and values of 0 to `top`.
struct LineFrame {
  static constexpr double kWidth = 600, kHeight = 340, kLeft = 46, kRight = 144, kTop = 26,
                          kBottom = 30;
  std::size_t num_labels;
  double top;

  double x_of(std::size_t i) const {
    const double steps = std::max<double>(1, static_cast<double>(num_labels) - 1);
    return kLeft + (kWidth - kLeft - kRight) * static_cast<double>(i) / steps;
  }
  double y_of(double y) const { return kHeight - kBottom - (kHeight - kTop - kBottom) * y / top; }

  std::string axes(const std::vector<std::string>& labels, double ceiling) const;
  std::string line(const std::vector<std::string>& labels, const PlotSeries& series,
                   const std::string& unit) const;
};

std::string LineFrame::axes(const std::vector<std::string>& labels, double ceiling) const {
  std::string svg;
  const double step = round_step(top, 5);
  for (double y = 0; y <= top; y += step) {
    svg += fmt::format(
        "<line class='grid' x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}'/>"
        "<text class='tick' x='{3}' y='{4:.1f}' text-anchor='end'>{5:g}</text>",
        kLeft, kWidth - kRight, y_of(y), kLeft - 7, y_of(y) + 4, y);
  }
  if (ceiling > 0) {
    svg += fmt::format(
        "<line class='ceiling' x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}'/>"
        "<text class='tick' x='{3}' y='{4:.1f}'>ceiling {5:g}</text>",
        kLeft, kWidth - kRight, y_of(ceiling), kWidth - kRight + 8, y_of(ceiling) + 4, ceiling);
  }
  for (std::size_t i = 0; i < labels.size(); ++i)
    svg += fmt::format("<text class='tick' x='{:.1f}' y='{}' text-anchor='middle'>{}</text>",
                       x_of(i), kHeight - 9, escape_markup(labels[i]));
  return svg;
}

// A series with its dots; empty if it has no values.
std::string LineFrame::line(const std::vector<std::string>& labels, const PlotSeries& series,
                            const std::string& unit) const {
  std::string path, dots;
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    const double y = series.y[i];
    if (!(y > 0)) continue;
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_of(i), y_of(y));
    dots += fmt::format(
        "<circle cx='{:.1f}' cy='{:.1f}' r='3'><title>{}, {}: {:.4g} {}</title>"
        "</circle>",
        x_of(i), y_of(y), escape_markup(series.name), escape_markup(labels[i]), y,
        escape_markup(unit));
  }
  if (path.empty()) return {};
  return fmt::format("<g class='s{}{}'><path d='{}'/>{}</g>", series.color,
                     series.is_dashed ? " peer" : "", path, dots);
}

}  // namespace

std::string plot_lines(const std::vector<std::string>& labels,
                       const std::vector<PlotSeries>& series, const std::string& unit,
                       double ceiling) {
  double top = 0;
  for (const PlotSeries& s : series)
    for (const double y : s.y) top = std::max(top, y);
  if (top <= 0) return {};
  const LineFrame frame = {labels.size(), ceiling > 0 ? std::max(top, ceiling) * 1.03 : top * 1.08};
  constexpr double kHeight = LineFrame::kHeight, kEnd = LineFrame::kWidth - LineFrame::kRight;
  std::string svg = fmt::format("<svg viewBox='0 0 {} {}' role='img'>", LineFrame::kWidth, kHeight);
  svg += fmt::format("<text class='unit' x='0' y='13'>{}</text>", escape_markup(unit));
  svg += frame.axes(labels, ceiling);
  std::vector<LabelAt> ends;
  for (std::size_t s = 0; s < series.size(); ++s) {
    const std::string line = frame.line(labels, series[s], unit);
    if (line.empty()) continue;
    svg += line;
    const auto last =
        std::find_if(series[s].y.rbegin(), series[s].y.rend(), [](double y) { return y > 0; });
    ends.push_back({frame.y_of(*last), s});
  }
  for (const LabelAt& label : spread_labels(std::move(ends), 14, kHeight - LineFrame::kBottom)) {
    svg += fmt::format("<text class='name t{}' x='{}' y='{:.1f}'>{}</text>",
                       series[label.series].color, kEnd + 8, label.y + 4,
                       escape_markup(series[label.series].name));
  }
  return svg + "</svg>";
}

std::string plot_bars(const std::vector<PlotBar>& bars, const std::string& unit) {
  constexpr double kWidth = 940, kRow = 42, kLeft = 168, kRight = 250, kTop = 24;
  double low = INFINITY, high = 0;
  for (const PlotBar& bar : bars) {
    if (!(bar.value > 0)) continue;
    low = std::min(low, bar.value);
    high = std::max(high, bar.value);
  }
  if (high <= 0) return {};
  const double first = std::floor(std::log10(low / 1.5)), last = std::log10(high);
  const auto x_of = [&](double value) {
    return kLeft + (kWidth - kLeft - kRight) * (std::log10(value) - first) / (last - first + 1e-9);
  };
  const double height = kTop + kRow * static_cast<double>(bars.size()) + 26;
  std::string svg = fmt::format("<svg viewBox='0 0 {} {}' role='img'>", kWidth, height);
  svg += fmt::format("<text class='unit' x='{}' y='13'>{}</text>", kLeft, escape_markup(unit));
  for (double power = first; power <= last + 1e-9; power += 1) {
    const double value = std::pow(10.0, power);
    svg += fmt::format(
        "<line class='grid' x1='{0:.1f}' x2='{0:.1f}' y1='{1}' y2='{2}'/>"
        "<text class='tick' x='{0:.1f}' y='{3}' text-anchor='middle'>{4:g}</text>",
        x_of(value), kTop, height - 22, height - 6, value);
  }
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const PlotBar& bar = bars[i];
    const double y = kTop + kRow * static_cast<double>(i) + 4;
    const double end = bar.value > 0 ? std::max(x_of(bar.value), kLeft + 2) : kLeft;
    svg += fmt::format(
        "<text class='label' x='{}' y='{:.1f}' text-anchor='end'>{}</text>"
        "<rect class='f{}' x='{}' y='{:.1f}' width='{:.1f}' height='{}' rx='3'/>"
        "<text class='note' x='{:.1f}' y='{:.1f}'>{}</text>"
        "<text class='tick' x='{}' y='{:.1f}'>{}</text>",
        kLeft - 10, y + 14, escape_markup(bar.label), bar.color, kLeft, y, end - kLeft, kRow - 24,
        end + 9, y + 14, escape_markup(bar.note), kLeft, y + kRow - 10, escape_markup(bar.idea));
  }
  return svg + "</svg>";
}

}  // namespace tilewright::cli
