#include "bench/linear_report.h"

#include "base/error.h"
#include "base/markup.h"
#include "bench/ladder_plots.h"
#include "report/page_style.h"
#include "report/time_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

// One operator on a shape: rows of x -> microseconds, and the floor.
struct Curve {
  std::string name, source;
  std::map<std::int64_t, double> us, floor_us;
  bool is_peer() const { return source != "tilewright"; }
};

struct ShapeView {
  std::string title;
  std::vector<Curve> curves;
  std::set<std::int64_t> rows;
};

void require_log(const json& log) {
  require(log.is_object() && log.value("schema", 0) == 1 && log.value("kind", "") == "linear" &&
              log.contains("samples"),
          ErrorKind::kParseError, "bench linear: this is no log of linear layers of schema 1");
}

std::vector<ShapeView> read_shapes(const json& log) {
  std::vector<ShapeView> shapes;
  for (const json& sample : log.at("samples")) {
    if (!sample.contains("samples_us") || sample["samples_us"].empty()) continue;
    const json& problem = sample.at("problem");
    const std::string title = fmt::format("n {}, k {}", problem.at("n").get<std::int64_t>(),
                                          problem.at("k").get<std::int64_t>());
    auto shape = std::ranges::find(shapes, title, &ShapeView::title);
    if (shape == shapes.end()) shape = shapes.insert(shapes.end(), {title, {}, {}});
    const std::string name = sample.at("kernel"), source = sample.value("source", "tilewright");
    auto curve = std::ranges::find_if(
        shape->curves, [&](const Curve& c) { return c.name == name && c.source == source; });
    if (curve == shape->curves.end())
      curve = shape->curves.insert(shape->curves.end(), {name, source, {}, {}});
    const std::int64_t m = problem.at("m");
    curve->us[m] = summarize(sample["samples_us"].get<std::vector<double>>()).median_us;
    curve->floor_us[m] = sample.value("floor_us", 0.0);
    shape->rows.insert(m);
  }
  return shapes;
}

// Both axes logarithmic.
class LogPlot {
 public:
  LogPlot(std::int64_t first_m, std::int64_t last_m, double low_us, double high_us)
      : first_(std::log2(static_cast<double>(first_m))),
        last_(std::max(std::log2(static_cast<double>(last_m)), first_ + 1)),
        low_(std::floor(std::log10(low_us))),
        high_(std::ceil(std::log10(high_us) + 1e-9)) {
    svg_ = fmt::format(
        "<svg viewBox='0 0 {} {}' role='img'><text class='unit' x='0' y='13'>us of a call; rows of "
        "x below</text>",
        kWidth, kHeight);
    for (double power = low_; power <= high_; ++power) grid_y(std::pow(10.0, power));
    for (double x = std::ceil(first_); x <= last_ + 1e-9; x += last_ - first_ > 8 ? 2 : 1)
      svg_ += fmt::format("<text class='tick' x='{:.1f}' y='{}' text-anchor='middle'>{:g}</text>",
                          x_of(std::exp2(x)), kHeight - 9, std::exp2(x));
  }

  void add(const std::map<std::int64_t, double>& points, const std::string& name, int color,
           const char* kind) {
    std::string path, dots;
    for (const auto& [m, us] : points) {
      if (!(us > 0)) continue;
      const double x = x_of(static_cast<double>(m)), y = y_of(us);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
      if (*kind == '\0' || std::string_view(kind) == " peer")
        dots += fmt::format(
            "<circle cx='{:.1f}' cy='{:.1f}' r='2.5'><title>{}, m {}: {:.4g} us"
            "</title></circle>",
            x, y, escape_markup(name), m, us);
    }
    svg_ += fmt::format("<g class='s{}{}'><path d='{}'/>{}</g>", color, kind, path, dots);
  }

  std::string text() const { return svg_ + "</svg>"; }

 private:
  static constexpr double kWidth = 560, kHeight = 340, kLeft = 46, kRight = 16, kTop = 26,
                          kBottom = 30;

  double x_of(double m) const {
    return kLeft + (kWidth - kLeft - kRight) * (std::log2(m) - first_) / (last_ - first_);
  }
  double y_of(double us) const {
    return kHeight - kBottom -
           (kHeight - kTop - kBottom) * (std::log10(us) - low_) / (high_ - low_);
  }
  void grid_y(double us) {
    svg_ += fmt::format(
        "<line class='grid' x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}'/><text class='tick' "
        "x='{3}' y='{4:.1f}' text-anchor='end'>{5:g}</text>",
        kLeft, kWidth - kRight, y_of(us), kLeft - 7, y_of(us) + 4, us);
  }

  double first_, last_, low_, high_;
  std::string svg_;
};

int color_of(std::size_t i) {
  return static_cast<int>((i * 4 + 9) % kLadderColors);
}

std::string time_plot(const ShapeView& shape) {
  double low = 1e300, high = 0;
  for (const Curve& curve : shape.curves) {
    for (const auto* const values : {&curve.us, &curve.floor_us}) {
      for (const auto& [m, us] : *values) {
        if (!(us > 0)) continue;
        low = std::min(low, us);
        high = std::max(high, us);
      }
    }
  }
  LogPlot plot(*shape.rows.begin(), *shape.rows.rbegin(), low, high);
  for (std::size_t i = 0; i < shape.curves.size(); ++i) {
    const Curve& curve = shape.curves[i];
    plot.add(curve.floor_us, "floor of " + curve.name, color_of(i), " floor");
    plot.add(curve.us, curve.name, color_of(i), curve.is_peer() ? " peer" : "");
  }
  return plot.text();
}

std::string share_plot(const ShapeView& shape) {
  std::vector<std::string> labels;
  for (const std::int64_t m : shape.rows) labels.push_back(fmt::format("{}", m));
  std::vector<PlotSeries> series;
  for (std::size_t i = 0; i < shape.curves.size(); ++i) {
    const Curve& curve = shape.curves[i];
    PlotSeries one = {curve.name, color_of(i), curve.is_peer(), {}};
    for (const std::int64_t m : shape.rows) {
      const auto us = curve.us.find(m);
      one.y.push_back(us == curve.us.end() ? 0 : 100 * curve.floor_us.at(m) / us->second);
    }
    series.push_back(std::move(one));
  }
  return plot_lines(labels, series, "% of the floor", 100);
}

std::string time_table(const ShapeView& shape) {
  std::string html = "<figure><table><tr><th>us</th>";
  for (const std::int64_t m : shape.rows) html += fmt::format("<th>m {}</th>", m);
  html += "</tr>";
  for (std::size_t i = 0; i < shape.curves.size(); ++i) {
    const Curve& curve = shape.curves[i];
    html += fmt::format("<tr><td>{} <span class='none'>{}</span></td>", escape_markup(curve.name),
                        curve.is_peer() ? escape_markup(curve.source) : "");
    for (const std::int64_t m : shape.rows) {
      const auto us = curve.us.find(m);
      html += us == curve.us.end() ? "<td></td>" : fmt::format("<td>{:.2f}</td>", us->second);
    }
    html += "</tr>";
  }
  return html + "</table></figure>";
}

std::string style_rules() {
  std::string css = kLadderCss;
  for (int i = 0; i < kLadderColors; ++i)
    css += fmt::format(
        ".s{0} path{{stroke:var(--c{0})}} .s{0} circle,.f{0}{{fill:var(--c{0})}} "
        "svg .t{0}{{fill:var(--c{0})}}\n",
        i);
  return css + "svg .floor path { stroke-width:1; stroke-dasharray:2 3; opacity:.7; }\n";
}

std::string check_text(const json& log) {
  std::size_t checked = 0, wrong = 0;
  for (const json& sample : log.at("samples")) {
    if (!sample.contains("error")) continue;
    ++checked;
    wrong += !sample["error"].value("ok", false);
  }
  return wrong == 0 ? fmt::format("{} results were checked against float64: all correct.", checked)
                    : fmt::format("<b class='bad'>{} of {} results are wrong.</b>", wrong, checked);
}

}  // namespace

std::string linear_report(const json& log) {
  require_log(log);
  const json device = log.value("device", json::object());
  std::string html = fmt::format(
      "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width'><title>Linear layers</title><style>{}</style><main>"
      "<h1>Linear layers</h1><p class='sub'>{}, {}, commit {}{}</p><p>{} Thin dotted lines are "
      "rooflines: every byte once at 4.3 TB/s, or every product at 790 TFLOP/s (bf16) or 1600 "
      "(FP8). "
      "Dashed lines are other libraries.</p>",
      style_rules(), escape_markup(device.value("name", "")),
      escape_markup(log.value("started", "")), escape_markup(log.value("commit", "")),
      log.value("dirty", false) ? ", changed" : "", check_text(log));
  for (const ShapeView& shape : read_shapes(log)) {
    html +=
        fmt::format("<h2>{}</h2><div class='plots'><figure>{}</figure><figure>{}</figure></div>",
                    escape_markup(shape.title), time_plot(shape), share_plot(shape));
    html += time_table(shape);
  }
  return html + fmt::format("<footer><code>{}</code></footer></main></html>\n",
                            escape_markup(log.value("command", "")));
}

void merge_linear_logs(json& log, const json& other) {
  require_log(other);
  for (const json& sample : other.at("samples")) log["samples"].push_back(sample);
  log["peers"].push_back({{"command", other.value("command", "")},
                          {"device", other.value("device", json::object())},
                          {"started", other.value("started", "")}});
}

}  // namespace tilewright::cli
