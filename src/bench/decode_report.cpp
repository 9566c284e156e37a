// The table and the page of a log of bench decode.
#include "base/markup.h"
#include "bench/decode.h"
#include "report/log_page.h"
#include "report/log_plot.h"
#include "report/page_style.h"
#include "report/time_summary.h"

#include <map>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct DecodeReportPoint {
  double us = 0, bytes = 0;
  bool is_ok = true;
  double gbytes_per_s() const { return us > 0 ? bytes / us * 1e-3 : 0; }
};

/// One line of a plot: all of a problem but the keys.
struct DecodeReportRow {
  std::string name;
  std::map<std::int64_t, DecodeReportPoint> points;  // by keys
};

/// A model: a plot and a table.
struct DecodeReportView {
  std::string title;
  std::vector<DecodeReportRow> rows;
};

template <class T>
T& found_or_added(std::vector<T>& in, std::string T::*key, const std::string& value) {
  for (T& one : in)
    if (one.*key == value) return one;
  T one;
  one.*key = value;
  return in.emplace_back(std::move(one));
}

std::vector<DecodeReportView> read_decode_views(const json& log) {
  std::vector<DecodeReportView> views;
  for (const json& sample : log.at("samples")) {
    const json& p = sample.at("problem");
    const std::string title = fmt::format("{}: {} heads, {} of keys, head_dim {}",
                                          sample.value("model", ""), p.at("heads").get<int>(),
                                          p.at("kv_heads").get<int>(), p.at("head_dim").get<int>());
    const int page = p.at("page"), q_len = p.at("q_len");
    std::string name =
        fmt::format("{}, batch {}", p.at("kv").get<std::string>(), p.at("batch").get<int>());
    if (q_len > 1) name += fmt::format(", {} queries", q_len);
    if (page > 0) name += fmt::format(", pages of {}", page);
    DecodeReportView& view = found_or_added(views, &DecodeReportView::title, title);
    DecodeReportRow& row = found_or_added(view.rows, &DecodeReportRow::name, name);
    DecodeReportPoint& point = row.points[p.at("keys").get<std::int64_t>()];
    point.bytes = sample.at("bytes");
    point.is_ok = sample.at("error").value("ok", false);
    if (sample.contains("samples_us"))
      point.us = summarize(sample["samples_us"].get<std::vector<double>>()).median_us;
  }
  return views;
}

// Both rooflines: what the memory gives to a kernel that only reads, and its data sheet.
std::string plot_decode(const DecodeReportView& view, const json& roofs) {
  std::vector<LogSeries> series;
  double first = 0, last = 0;
  int color = 5;
  for (const DecodeReportRow& row : view.rows) {
    LogSeries s = {.name = row.name, .color = color++ % kLadderColors};
    for (const auto& [keys, point] : row.points) {
      if (point.us <= 0) continue;
      const auto x = static_cast<double>(keys);
      s.points.emplace_back(x, point.gbytes_per_s());
      first = first == 0 ? x : std::min(first, x), last = std::max(last, x);
    }
    if (!s.points.empty()) series.push_back(std::move(s));
  }
  if (series.empty()) return "<p>A simulator: no times.</p>";
  for (const auto& [name, key] : {std::pair("measured read", "read_bytes_per_s"),
                                  std::pair("data sheet", "peak_bytes_per_s")}) {
    const double rate = roofs.at(key).get<double>() * 1e-9;
    series.push_back({.name = name,
                      .color = 0,
                      .look = LogSeries::Look::kFloor,
                      .points = {{first, rate}, {last, rate}}});
  }
  return plot_log(series, "keys of a sequence", "GB/s");
}

std::string decode_html_table(const DecodeReportView& view, double read_rate) {
  std::string html =
      "<table><tr><th></th><th>keys</th><th>us</th><th>GB/s</th><th>% of the measured read</th>"
      "</tr>";
  for (const DecodeReportRow& row : view.rows) {
    for (const auto& [keys, p] : row.points)
      html += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{:.2f}</td><td>{:.0f}</td><td>{:.0f}</td>"
          "</tr>",
          escape_markup(row.name), keys, p.us, p.gbytes_per_s(),
          100e9 * p.gbytes_per_s() / read_rate);
  }
  return html + "</table>";
}

}  // namespace

std::string decode_color_css() {
  std::string css;
  for (int i = 0; i < kLadderColors; ++i)
    css += fmt::format(".s{0} path{{stroke:var(--c{0})}} .s{0} text{{fill:var(--c{0})}}\n", i);
  return css;
}

std::string decode_figures(const json& log) {
  std::string html;
  for (const DecodeReportView& view : read_decode_views(log))
    html += fmt::format("<h3>{}</h3><figure>{}</figure><figure>{}</figure>",
                        escape_markup(view.title), plot_decode(view, log.at("roofs")),
                        decode_html_table(view, log.at("roofs").at("read_bytes_per_s")));
  return html;
}

std::string decode_table(const json& log, const Style& style) {
  const double read_rate = log.at("roofs").at("read_bytes_per_s");
  std::string text;
  for (const DecodeReportView& view : read_decode_views(log)) {
    text +=
        fmt::format("{}\n{:<40}{:>9}{:>10}{:>8}{:>6}\n", view.title, "", "keys", "us", "GB/s", "%");
    for (const DecodeReportRow& row : view.rows) {
      for (const auto& [keys, p] : row.points) {
        text += fmt::format("{:<40}{:>9}", row.name, keys);
        if (!p.is_ok) {
          text += style.bad("     WRONG");
        } else if (p.us <= 0) {
          text += style.good("     right");
        } else {
          text += fmt::format("{:>10.2f}{:>8.0f}{:>6.0f}", p.us, p.gbytes_per_s(),
                              100e9 * p.gbytes_per_s() / read_rate);
        }
        text += '\n';
      }
    }
  }
  return text;
}

std::string decode_report(const json& log) {
  return log_page(
      log, {.window_title = "Decode attention",
            .title = "Decode attention over long caches",
            .css = decode_color_css(),
            .introduction = "Bytes of keys, values, queries and results by the time of a call, "
                            "both axes logarithmic. Dotted: what a kernel that only reads gets "
                            "from the memory, and what its data sheet says.",
            .body = decode_figures(log)});
}

}  // namespace tilewright::cli
