#include "report/log_plot.h"

#include "base/markup.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct LogAxes {
  static constexpr double kWidth = 750, kHeight = 420, kLeft = 56, kTop = 26, kBottom = 40;
  double right = 0;
  double x_min = 1e300, x_max = 0, y_min = 1e300, y_max = 0;

  void include(double x, double y) {
    x_min = std::min(x_min, x), x_max = std::max(x_max, x);
    y_min = std::min(y_min, y), y_max = std::max(y_max, y);
  }
  double x(double value) const {
    const double span = std::max(std::log(x_max / x_min), 1e-9);
    return kLeft + (kWidth - kLeft - right) * std::log(value / x_min) / span;
  }
  double y(double value) const {
    const double span = std::max(std::log(y_max / y_min), 1e-9);
    return kHeight - kBottom - (kHeight - kTop - kBottom) * std::log(value / y_min) / span;
  }
};

std::string log_grid(const LogAxes& axes) {
  std::string svg;
  for (double power = 1e-3; power < 1e9; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double y = factor * power;
      if (y < axes.y_min || y > axes.y_max) continue;
      svg += fmt::format(
          "<line class='grid' x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}'/><text class='tick' "
          "x='{3}' y='{4:.1f}' text-anchor='end'>{5:g}</text>",
          LogAxes::kLeft, LogAxes::kWidth - axes.right, axes.y(y), LogAxes::kLeft - 7,
          axes.y(y) + 4, y);
    }
  }
  for (double x = 1; x <= axes.x_max; x *= 2) {
    if (x < axes.x_min) continue;
    svg += fmt::format("<text class='tick' x='{:.1f}' y='{}' text-anchor='middle'>{:g}</text>",
                       axes.x(x), LogAxes::kHeight - LogAxes::kBottom + 17, x);
  }
  return svg;
}

const char* log_dashes(LogSeries::Look look) {
  if (look == LogSeries::Look::kLine || look == LogSeries::Look::kMarked) return "";
  return look == LogSeries::Look::kDashed ? " stroke-dasharray='6 4'" : " stroke-dasharray='2 3'";
}

std::string log_line(const LogSeries& series, const LogAxes& axes) {
  std::string path;
  for (const auto& [x, y] : series.points)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", axes.x(x), axes.y(y));
  if (series.points.size() == 1 && series.look == LogSeries::Look::kFloor) path += "m-6 0h12";
  return fmt::format("<g class='s{}'><path d='{}'{}/></g>", series.color, path,
                     log_dashes(series.look));
}

std::string log_name(const LogSeries& series, double x, double y) {
  return fmt::format("<g class='s{}'><text class='name' x='{:g}' y='{:.1f}'>{}</text></g>",
                     series.color, x, y + 4, escape_markup(series.name));
}

// Strokes without length, which have the colour of the line.
std::string log_marks(const LogSeries& series, const LogAxes& axes) {
  std::string marks;
  for (const auto& [x, y] : series.points)
    marks += fmt::format(
        "<path d='M{:.1f} {:.1f}h0' style='stroke-width:8px;stroke-linecap:round'><title>{}: "
        "{:.4g} "
        "at {:.4g}</title></path>",
        axes.x(x), axes.y(y), escape_markup(series.name), y, x);
  return fmt::format("<g class='s{}'>{}</g>", series.color, marks);
}

std::string log_dots(const LogSeries& series, const LogAxes& axes) {
  std::string dots;
  for (const auto& [x, y] : series.points)
    dots += fmt::format(
        "<circle cx='{:.1f}' cy='{:.1f}' r='3.5' style='fill:var(--c{})'><title>{}: {:.4g} at "
        "{:.4g}</title></circle>",
        axes.x(x), axes.y(y), series.color, escape_markup(series.name), y, x);
  return fmt::format("<g class='s{}'>{}</g>", series.color, dots);
}

}  // namespace

std::string plot_log(const std::vector<LogSeries>& series, const std::string& x_name,
                     const std::string& y_name, double right) {
  LogAxes axes;
  axes.right = right;
  for (const LogSeries& s : series)
    for (const auto& [x, y] : s.points) axes.include(x, y);
  if (axes.x_max <= 0) return {};
  axes.y_min /= 1.15;
  axes.y_max *= 1.15;
  std::string svg =
      fmt::format("<svg viewBox='0 0 {} {}' role='img'>", LogAxes::kWidth, LogAxes::kHeight);
  svg += fmt::format(
      "<text class='unit' x='0' y='13'>{}</text><text class='unit' x='{}' y='{}' "
      "text-anchor='end'>{}</text>",
      escape_markup(y_name), LogAxes::kWidth - axes.right, LogAxes::kHeight - 4,
      escape_markup(x_name));
  svg += log_grid(axes);
  struct Label {
    double y;
    const LogSeries* series;
  };
  std::vector<Label> labels;
  for (const LogSeries& s : series) {
    if (s.points.empty()) continue;
    svg += s.look == LogSeries::Look::kPoints ? log_dots(s, axes) : log_line(s, axes);
    if (s.look == LogSeries::Look::kMarked) svg += log_marks(s, axes);
    if (s.name.empty()) continue;
    labels.push_back({axes.y(s.points.back().second), &s});
  }
  std::ranges::sort(labels, {}, &Label::y);
  constexpr double kDistance = 15;
  double limit = LogAxes::kHeight - LogAxes::kBottom;
  for (std::size_t i = 1; i < labels.size(); ++i)
    labels[i].y = std::max(labels[i].y, labels[i - 1].y + kDistance);
  for (std::size_t i = labels.size(); i-- > 0; limit -= kDistance)
    labels[i].y = std::min(labels[i].y, limit);
  for (const Label& label : labels)
    svg += log_name(*label.series, LogAxes::kWidth - axes.right + 8, label.y);
  return svg + "</svg>";
}

}  // namespace tilewright::cli
