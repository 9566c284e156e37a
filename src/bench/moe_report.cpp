// The table and the page of a log of bench moe.
#include "base/markup.h"
#include "bench/moe.h"
#include "report/log_page.h"
#include "report/log_plot.h"
#include "report/page_style.h"
#include "report/time_summary.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct MoeReportPoint {
  double us = 0, floor_us = 0, relative_rms = -1;
  bool is_chosen = false, is_ok = true;
};

// A kernel with its activations, ours or a peer.
struct MoeReportRow {
  std::string name;
  bool is_peer = false, is_fp8 = false;
  std::map<std::int64_t, MoeReportPoint> points;  // by tokens
};

struct MoeReportView {
  std::string title;
  std::vector<MoeReportRow> rows;
  std::map<std::int64_t, std::pair<double, double>> floors;  // bf16, fp8
  std::map<std::int64_t, double> active;
};

std::vector<MoeReportView> read_moe_views(const json& log) {
  std::vector<MoeReportView> views;
  for (const json& sample : log.at("samples")) {
    const json& p = sample.at("problem");
    const std::string title =
        fmt::format("{}: {} experts, top {}, hidden {}, inter {}", sample.value("shape", ""),
                    p.at("experts").get<int>(), p.at("topk").get<int>(), p.at("hidden").get<int>(),
                    p.at("inter").get<int>());
    auto view = std::ranges::find(views, title, &MoeReportView::title);
    if (view == views.end()) view = views.insert(views.end(), {title, {}, {}, {}});
    const bool is_peer = sample.value("source", "tilewright") != "tilewright";
    const bool is_fp8 = sample.value("activations", "") == "fp8";
    const std::string name = fmt::format(
        "{}{}", sample.value("kernel", ""),
        is_peer ? "" : fmt::format(" {} {}", sample.value("format", ""), is_fp8 ? "A8" : "A16"));
    auto row = std::ranges::find(view->rows, name, &MoeReportRow::name);
    if (row == view->rows.end())
      row = view->rows.insert(view->rows.end(), {name, is_peer, is_fp8, {}});
    const std::int64_t tokens = p.at("tokens");
    MoeReportPoint& point = row->points[tokens];
    point.is_chosen = sample.value("is_chosen", false);
    if (sample.contains("error")) {
      point.is_ok = sample["error"].value("ok", false);
      point.relative_rms = sample["error"].value("relative_rms", -1.0);
    }
    if (sample.contains("samples_us") && !sample["samples_us"].empty())
      point.us = summarize(sample["samples_us"].get<std::vector<double>>()).median_us;
    if (is_peer) continue;
    const double bf16 = sample.at("floor_bf16_us"), fp8 = sample.at("floor_fp8_us");
    view->floors[tokens] = {bf16, fp8};
    view->active[tokens] = sample.at("active_experts");
    point.floor_us = is_fp8 ? fp8 : bf16;
  }
  return views;
}

double best_moe_us(const MoeReportView& view, std::int64_t tokens) {
  double best = 0;
  for (const MoeReportRow& row : view.rows) {
    const auto at = row.points.find(tokens);
    if (row.is_peer || at == row.points.end() || at->second.us <= 0) continue;
    best = best == 0 ? at->second.us : std::min(best, at->second.us);
  }
  return best;
}

std::string plot_moe(const MoeReportView& view) {
  std::vector<LogSeries> series;
  int color = 5;
  for (const MoeReportRow& row : view.rows) {
    LogSeries s = {.name = row.name, .color = color++ % kLadderColors};
    if (row.is_peer) s.look = LogSeries::Look::kDashed;
    for (const auto& [tokens, point] : row.points)
      if (point.us > 0) s.points.emplace_back(static_cast<double>(tokens), point.us);
    if (!s.points.empty()) series.push_back(std::move(s));
  }
  LogSeries bf16 = {.name = "floor A16", .color = 0, .look = LogSeries::Look::kFloor};
  LogSeries fp8 = {.name = "floor A8", .color = 1, .look = LogSeries::Look::kFloor};
  for (const auto& [tokens, floors] : view.floors) {
    bf16.points.emplace_back(static_cast<double>(tokens), floors.first);
    fp8.points.emplace_back(static_cast<double>(tokens), floors.second);
  }
  series.push_back(std::move(bf16));
  series.push_back(std::move(fp8));
  return plot_log(series, "tokens", "microseconds");
}

// Cells of a table: text, and whether it is the best of its column.
template <class Cell>
std::string moe_cells_of(const MoeReportView& view, const MoeReportRow& row, Cell&& cell) {
  std::string text;
  for (const auto& [tokens, floors] : view.floors) {
    const auto at = row.points.find(tokens);
    text += cell(tokens, at == row.points.end() ? nullptr : &at->second);
  }
  return text;
}

std::string moe_html_table(const MoeReportView& view) {
  std::string html = "<table><tr><th>tokens</th>";
  for (const auto& [tokens, floors] : view.floors) html += fmt::format("<th>{}</th>", tokens);
  html += "</tr><tr><td>experts visited</td>";
  for (const auto& [tokens, active] : view.active) html += fmt::format("<td>{:.0f}</td>", active);
  html += "</tr><tr><td>floor A16, us</td>";
  for (const auto& [tokens, f] : view.floors) html += fmt::format("<td>{:.0f}</td>", f.first);
  html += "</tr><tr><td>floor A8, us</td>";
  for (const auto& [tokens, f] : view.floors) html += fmt::format("<td>{:.0f}</td>", f.second);
  html += "</tr>";
  for (const MoeReportRow& row : view.rows) {
    html += fmt::format("<tr><td>{}</td>", escape_markup(row.name));
    html +=
        moe_cells_of(view, row, [&](std::int64_t tokens, const MoeReportPoint* p) -> std::string {
          if (p == nullptr || p->us <= 0) return "<td class='none'>&ndash;</td>";
          const bool is_best = !row.is_peer && p->us <= best_moe_us(view, tokens);
          const std::string share =
              p->floor_us > 0 ? fmt::format("<br>{:.0f} %", 100 * p->floor_us / p->us) : "";
          return fmt::format("<td class='{}'>{:.0f}{}{}</td>", is_best ? "most" : "", p->us,
                             p->is_chosen ? "*" : "", share);
        });
    html += "</tr>";
  }
  return html + "</table>";
}

std::string moe_color_css() {
  std::string css;
  for (int i = 0; i < kLadderColors; ++i)
    css += fmt::format(".s{0} path{{stroke:var(--c{0})}} .s{0} text{{fill:var(--c{0})}}\n", i);
  return css;
}

}  // namespace

std::string moe_table(const json& log, const Style& style) {
  std::string text;
  for (const MoeReportView& view : read_moe_views(log)) {
    text += view.title + "\n";
    text += fmt::format("{:<20}", "tokens");
    for (const auto& [tokens, f] : view.floors) text += fmt::format("{:>9}", tokens);
    text += fmt::format("\n{:<20}", "floor A16, us");
    for (const auto& [tokens, f] : view.floors) text += fmt::format("{:>9.1f}", f.first);
    text += fmt::format("\n{:<20}", "floor A8, us");
    for (const auto& [tokens, f] : view.floors) text += fmt::format("{:>9.1f}", f.second);
    for (const MoeReportRow& row : view.rows) {
      text += fmt::format("\n{:<20}", row.name);
      text +=
          moe_cells_of(view, row, [&](std::int64_t tokens, const MoeReportPoint* p) -> std::string {
            if (p == nullptr) return fmt::format("{:>9}", "-");
            if (!p->is_ok) return style.bad(fmt::format("{:>9}", "WRONG"));
            if (p->us <= 0) return style.good(fmt::format("{:>9}", "right"));
            const std::string cell = fmt::format("{:.1f}{}", p->us, p->is_chosen ? "*" : "");
            const bool is_best = !row.is_peer && p->us <= best_moe_us(view, tokens);
            return is_best ? style.bold(fmt::format("{:>9}", cell)) : fmt::format("{:>9}", cell);
          });
      text += fmt::format("\n{:<20}", "  % of its floor");
      text += moe_cells_of(view, row, [&](std::int64_t, const MoeReportPoint* p) -> std::string {
        if (p == nullptr || p->us <= 0 || p->floor_us <= 0) return fmt::format("{:>9}", "");
        return fmt::format("{:>9.1f}", 100 * p->floor_us / p->us);
      });
    }
    text += "\n\n";
  }
  return text + "* chosen by plan()\n";
}

std::string moe_report(const json& log) {
  std::string body;
  for (const MoeReportView& view : read_moe_views(log)) {
    body += fmt::format("<h2>{}</h2><figure>{}</figure><figure>{}</figure>",
                        escape_markup(view.title), plot_moe(view), moe_html_table(view));
  }
  return log_page(
      log,
      {.window_title = "Mixture-of-Experts layers",
       .title = "Mixture-of-Experts layers",
       .css = moe_color_css(),
       .introduction = fmt::format(
           "Time of a layer by its number of tokens, both logarithmic: permutation, both "
           "products, combination. Dotted: what no kernel can be faster than, {}. Dashed: "
           "others. A star marks what plan() takes; the share of its roofline stands below each "
           "time.",
           escape_markup(log.value("floors", ""))),
       .body = body});
}

}  // namespace tilewright::cli
