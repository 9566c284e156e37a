#include "bench/batch_report.h"

#include "base/markup.h"
#include "report/log_page.h"
#include "report/log_plot.h"
#include "report/page_style.h"
#include "report/time_summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

std::string plot_batches(const BatchView& view) {
  std::vector<LogSeries> series;
  int color = 5;
  for (const BatchRow& row : view.rows) {
    LogSeries s = {.name = row.name, .color = color++ % kLadderColors};
    if (row.is_peer) s.look = LogSeries::Look::kDashed;
    for (const auto& [batch, point] : row.points)
      if (point.us > 0) s.points.emplace_back(static_cast<double>(batch), point.us);
    if (!s.points.empty()) series.push_back(std::move(s));
  }
  LogSeries floor = {.name = "floor", .color = 0, .look = LogSeries::Look::kFloor};
  for (const auto& [batch, us] : view.floors)
    floor.points.emplace_back(static_cast<double>(batch), us);
  series.push_back(std::move(floor));
  return plot_log(series, view.batch_name, "microseconds");
}

std::string html_cell(const BatchView& view, const BatchRow& row, std::int64_t batch) {
  const auto at = row.points.find(batch);
  if (at == row.points.end() || at->second.us <= 0) return "<td class='none'>&ndash;</td>";
  const BatchPoint& p = at->second;
  std::string text = fmt::format("<td>{:.1f} us<br>{:.0f} TFLOP/s, {:.0f} %", p.us, p.tflops,
                                 100 * p.floor_us / p.us);
  for (std::size_t i = 0; i < p.other_us.size(); ++i)
    if (p.other_us[i] > 0)
      text += fmt::format("<br>{:.1f} us {}", p.other_us[i], escape_markup(view.other_names[i]));
  if (!row.is_peer && view.peer_us(batch) > 0)
    text += fmt::format("<br><b>{:.2f} x</b>", view.peer_us(batch) / p.us);
  return text + "</td>";
}

std::string html_table(const BatchView& view) {
  std::string html = fmt::format("<table><tr><th>{}</th>", escape_markup(view.batch_name));
  for (const auto& [batch, floor] : view.floors) html += fmt::format("<th>{}</th>", batch);
  html += "</tr><tr><td>floor, us</td>";
  for (const auto& [batch, floor] : view.floors) html += fmt::format("<td>{:.1f}</td>", floor);
  html += "</tr>";
  for (const BatchRow& row : view.rows) {
    html += fmt::format("<tr><td>{}</td>", escape_markup(row.name));
    for (const auto& [batch, floor] : view.floors) html += html_cell(view, row, batch);
    html += "</tr>";
  }
  return html + "</table>";
}

std::string color_css() {
  std::string css;
  for (int i = 0; i < kLadderColors; ++i)
    css += fmt::format(".s{0} path{{stroke:var(--c{0})}} .s{0} text{{fill:var(--c{0})}}\n", i);
  return css;
}

// One line of the table: a value for each batch, right-aligned.
template <class Cell>
std::string table_line(const BatchView& view, const std::string& name, Cell&& cell) {
  std::string text = fmt::format("{:<28}", name);
  for (const auto& [batch, floor] : view.floors) text += cell(batch);
  return text + '\n';
}

// A line of numbers below a row's times.
template <class Value>
std::string number_line(const BatchView& view, const BatchRow& row, const std::string& name,
                        Value&& value) {
  return table_line(view, "  " + name, [&](std::int64_t batch) {
    const auto at = row.points.find(batch);
    const bool is_timed = at != row.points.end() && at->second.us > 0;
    const double x = is_timed ? value(at->second, batch) : 0.0;
    return x > 0 ? fmt::format("{:>10.2f}", x) : fmt::format("{:>10}", "");
  });
}

std::string row_lines(const BatchView& view, const BatchRow& row, const Style& style) {
  std::string text = table_line(view, row.name, [&](std::int64_t batch) {
    const auto at = row.points.find(batch);
    if (at == row.points.end()) return fmt::format("{:>10}", "-");
    if (!at->second.is_ok) return style.bad(fmt::format("{:>10}", "WRONG"));
    return at->second.us > 0 ? fmt::format("{:>10.1f}", at->second.us)
                             : style.good(fmt::format("{:>10}", "right"));
  });
  text += number_line(view, row, "TFLOP/s", [](const BatchPoint& p, auto) { return p.tflops; });
  text += number_line(view, row, "% of the floor",
                      [](const BatchPoint& p, auto) { return 100 * p.floor_us / p.us; });
  if (row.is_peer) return text;
  for (std::size_t i = 0; i < view.other_names.size(); ++i)
    text += number_line(view, row, "us " + view.other_names[i], [i](const BatchPoint& p, auto) {
      return i < p.other_us.size() ? p.other_us[i] : 0.0;
    });
  text += number_line(view, row, "times as fast as " + view.peer_name,
                      [&](const BatchPoint& p, auto batch) { return view.peer_us(batch) / p.us; });
  return text;
}

}  // namespace

void BatchView::add(const std::string& name, bool is_peer, std::int64_t batch, BatchPoint point) {
  auto row = std::ranges::find(rows, name, &BatchRow::name);
  if (row == rows.end()) row = rows.insert(rows.end(), {name, is_peer, {}});
  if (!is_peer) floors[batch] = std::max(floors[batch], point.floor_us);
  row->points[batch] = std::move(point);
}

double BatchView::peer_us(std::int64_t batch) const {
  for (const BatchRow& row : rows) {
    const auto at = row.points.find(batch);
    if (row.is_peer && at != row.points.end()) return at->second.us;
  }
  return 0;
}

BatchView& find_view(std::vector<BatchView>& views, const BatchView& like) {
  const auto at = std::ranges::find(views, like.title, &BatchView::title);
  return at != views.end() ? *at : views.emplace_back(like);
}

double median_us(const json& sample, const char* key) {
  if (!sample.contains(key) || sample[key].empty()) return 0;
  return summarize(sample[key].get<std::vector<double>>()).median_us;
}

std::string batch_table(const BatchView& view, const Style& style) {
  std::string text = view.title + '\n';
  text += table_line(view, view.batch_name, [](auto b) { return fmt::format("{:>10}", b); });
  text += table_line(view, "floor, us",
                     [&](auto b) { return fmt::format("{:>10.1f}", view.floors.at(b)); });
  for (const BatchRow& row : view.rows) text += row_lines(view, row, style);
  return text + '\n';
}

std::string batch_page(const json& log, const std::string& heading, const std::string& text,
                       const std::vector<BatchView>& views) {
  std::string body;
  for (const BatchView& view : views) {
    body += fmt::format("<h2>{}</h2><figure>{}</figure><figure>{}</figure>",
                        escape_markup(view.title), plot_batches(view), html_table(view));
  }
  return log_page(log, {.window_title = escape_markup(heading),
                        .title = escape_markup(heading),
                        .css = color_css(),
                        .introduction = escape_markup(text),
                        .body = body});
}

}  // namespace tilewright::cli
