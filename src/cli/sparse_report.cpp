// The table and the page of a log of bench sparse.
#include "tilewright/cache.h"

#include "base/markup.h"
#include "cli/attention_bench.h"
#include "cli/ladder_style.h"
#include "cli/log_page.h"
#include "cli/log_plot.h"
#include "cli/sparse_bench.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct SparseReportPoint {
  double us = 0, with_schedule_us = 0, tflops = 0, floor_us = 0;
  bool is_ok = true;
};

struct SparseReportRow {
  std::string name;
  bool is_peer = false;
  std::map<std::int64_t, SparseReportPoint> points;  // by batch
};

struct SparseReportView {
  std::string title, batch_name;
  std::vector<SparseReportRow> rows;
  std::map<std::int64_t, double> floors;

  // Of the same batch; 0 if it was not run.
  double peer_us(std::int64_t batch) const {
    for (const SparseReportRow& row : rows) {
      const auto at = row.points.find(batch);
      if (row.is_peer && at != row.points.end()) return at->second.us;
    }
    return 0;
  }
};

double sparse_median_us(const json& sample, const char* key) {
  if (!sample.contains(key) || sample[key].empty()) return 0;
  return summarize(sample[key].get<std::vector<double>>()).median_us;
}

std::vector<SparseReportView> read_sparse_views(const json& log) {
  std::vector<SparseReportView> views;
  for (const json& sample : log.at("samples")) {
    const json& p = sample.at("problem");
    const std::string title = fmt::format(
        "{}: {} heads, {} + {} rows in pages of {} and {}{}", sample.value("shape", ""),
        p.at("heads").get<int>(), p.at("window").get<int>(), p.at("compressed").get<int>(),
        p.at("window_page").get<int>(), p.at("compressed_page").get<int>(),
        p.value("has_lengths", false) ? ", random lengths" : "");
    auto view = std::ranges::find(views, title, &SparseReportView::title);
    if (view == views.end())
      view = views.insert(
          views.end(), {title, fmt::format("batch, of {} queries", p.value("q_len", 1)), {}, {}});
    const bool is_peer = sample.value("source", "tilewright") != "tilewright";
    const std::string name =
        fmt::format("{} {}", sample.value("kernel", ""), sample.value("format", ""));
    auto row = std::ranges::find(view->rows, name, &SparseReportRow::name);
    if (row == view->rows.end()) row = view->rows.insert(view->rows.end(), {name, is_peer, {}});
    const std::int64_t batch = p.at("batch");
    SparseReportPoint& point = row->points[batch];
    point.is_ok = sample.at("error").value("ok", false);
    point.us = sparse_median_us(sample, "samples_us");
    point.with_schedule_us = sparse_median_us(sample, "with_schedule_us");
    point.floor_us = sample.at("floor_us");
    if (point.us > 0) point.tflops = sample.at("flops").get<double>() / point.us * 1e-6;
    if (!is_peer) view->floors[batch] = std::max(view->floors[batch], point.floor_us);
  }
  return views;
}

std::string plot_sparse(const SparseReportView& view) {
  std::vector<LogSeries> series;
  int color = 5;
  for (const SparseReportRow& row : view.rows) {
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

std::string sparse_html_cell(const SparseReportView& view, const SparseReportRow& row,
                             std::int64_t batch) {
  const auto at = row.points.find(batch);
  if (at == row.points.end() || at->second.us <= 0) return "<td class='none'>&ndash;</td>";
  const SparseReportPoint& p = at->second;
  std::string text = fmt::format("<td>{:.1f} us<br>{:.0f} TFLOP/s, {:.0f} %", p.us, p.tflops,
                                 100 * p.floor_us / p.us);
  if (!row.is_peer && p.with_schedule_us > 0)
    text += fmt::format("<br>{:.1f} us scheduled", p.with_schedule_us);
  if (!row.is_peer && view.peer_us(batch) > 0)
    text += fmt::format("<br><b>{:.2f} x</b>", view.peer_us(batch) / p.us);
  return text + "</td>";
}

std::string sparse_html_table(const SparseReportView& view) {
  std::string html = fmt::format("<table><tr><th>{}</th>", escape_markup(view.batch_name));
  for (const auto& [batch, floor] : view.floors) html += fmt::format("<th>{}</th>", batch);
  html += "</tr><tr><td>floor, us</td>";
  for (const auto& [batch, floor] : view.floors) html += fmt::format("<td>{:.1f}</td>", floor);
  html += "</tr>";
  for (const SparseReportRow& row : view.rows) {
    html += fmt::format("<tr><td>{}</td>", escape_markup(row.name));
    for (const auto& [batch, floor] : view.floors) html += sparse_html_cell(view, row, batch);
    html += "</tr>";
  }
  return html + "</table>";
}

std::string sparse_color_css() {
  std::string css;
  for (int i = 0; i < kLadderColors; ++i)
    css += fmt::format(".s{0} path{{stroke:var(--c{0})}} .s{0} text{{fill:var(--c{0})}}\n", i);
  return css;
}

// One line of the table: a value for each batch, right-aligned.
template <class Cell>
std::string sparse_table_line(const SparseReportView& view, const std::string& name, Cell&& cell) {
  std::string text = fmt::format("{:<24}", name);
  for (const auto& [batch, floor] : view.floors) text += cell(batch);
  return text + '\n';
}

}  // namespace

std::string sparse_table(const json& log, const Style& style) {
  std::string text;
  for (const SparseReportView& view : read_sparse_views(log)) {
    text += view.title + '\n';
    text +=
        sparse_table_line(view, view.batch_name, [](auto b) { return fmt::format("{:>10}", b); });
    text += sparse_table_line(view, "floor, us",
                              [&](auto b) { return fmt::format("{:>10.1f}", view.floors.at(b)); });
    for (const SparseReportRow& row : view.rows) {
      const auto find = [&](std::int64_t batch) -> const SparseReportPoint* {
        const auto at = row.points.find(batch);
        return at == row.points.end() ? nullptr : &at->second;
      };
      text += sparse_table_line(view, row.name, [&](std::int64_t batch) {
        const SparseReportPoint* p = find(batch);
        if (p == nullptr) return fmt::format("{:>10}", "-");
        if (!p->is_ok) return style.bad(fmt::format("{:>10}", "WRONG"));
        return p->us > 0 ? fmt::format("{:>10.1f}", p->us)
                         : style.good(fmt::format("{:>10}", "right"));
      });
      const auto line = [&](const char* name, auto value) {
        text += sparse_table_line(view, name, [&](std::int64_t batch) {
          const SparseReportPoint* p = find(batch);
          const double x = p == nullptr || p->us <= 0 ? 0.0 : value(*p, batch);
          return x > 0 ? fmt::format("{:>10.2f}", x) : fmt::format("{:>10}", "");
        });
      };
      line("  TFLOP/s", [](const SparseReportPoint& p, std::int64_t) { return p.tflops; });
      line("  % of the floor",
           [](const SparseReportPoint& p, std::int64_t) { return 100 * p.floor_us / p.us; });
      if (row.is_peer) continue;
      line("  us with the schedule",
           [](const SparseReportPoint& p, std::int64_t) { return p.with_schedule_us; });
      line("  times as fast as FlashMLA", [&](const SparseReportPoint& p, std::int64_t batch) {
        return view.peer_us(batch) / p.us;
      });
    }
    text += '\n';
  }
  return text;
}

std::string sparse_report(const json& log) {
  std::string body;
  for (const SparseReportView& view : read_sparse_views(log)) {
    body += fmt::format("<h2>{}</h2><figure>{}</figure><figure>{}</figure>",
                        escape_markup(view.title), plot_sparse(view), sparse_html_table(view));
  }
  return log_page(
      log,
      {.window_title = "Sparse attention",
       .title = "Sparse attention over paged caches",
       .css = sparse_color_css(),
       .introduction = fmt::format(
           "Time of a call by its batch, both logarithmic: attention and the combination of "
           "partial results. Dotted: what no kernel can be faster than, {}; the share of it stands "
           "behind the TFLOP/s. Dashed: others.",
           escape_markup(log.value("floors", ""))),
       .body = body});
}

}  // namespace tilewright::cli
