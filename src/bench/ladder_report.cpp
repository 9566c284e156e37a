// The ladder's report: one HTML page that needs nothing else.
#include "base/markup.h"
#include "bench/decode.h"
#include "bench/ladder.h"
#include "bench/ladder_images.h"
#include "bench/ladder_log.h"
#include "bench/ladder_plots.h"
#include "bench/ladder_upper.h"
#include "report/page_style.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;
using Points = std::vector<std::optional<LadderPoint>>;

std::string color_rules() {
  std::string css;
  for (int i = 0; i < kLadderColors; ++i) {
    css += fmt::format(
        ".s{0} path{{stroke:var(--c{0})}} .s{0} circle,.f{0}{{fill:var(--c{0})}} "
        "svg .t{0}{{fill:var(--c{0})}}\n",
        i);
  }
  return css;
}

std::string card(const std::string& value, const std::string& text, const char* kind = "") {
  return fmt::format("<div class='card'><b class='{}'>{}</b><span>{}</span></div>", kind,
                     escape_markup(value), escape_markup(text));
}

std::string check_card(const json& log) {
  std::size_t num_checked = 0, num_wrong = 0;
  double worst = 0;
  for (const json& sample : log.at("samples")) {
    if (!sample.contains("error")) continue;
    ++num_checked;
    num_wrong += !sample["error"].value("ok", false);
    worst = std::max(worst, sample["error"].value("worst_of_bound", 0.0));
  }
  if (num_wrong > 0)
    return card(fmt::format("{} wrong", num_wrong),
                fmt::format("of {} results checked against float64", num_checked), "bad");
  return card(fmt::format("{} correct", num_checked),
              fmt::format("all results checked against float64; the largest error is {:.0f} % of "
                          "what the arithmetic allows",
                          100 * worst),
              "good");
}

// The largest number, and how ours compare with the best peer over all shapes from 2048 on.
std::string timed_cards(const LadderView& view) {
  double best = 0, share = 0, log_ratio = 0, least = INFINITY;
  std::string what, of;
  int num_ratios = 0;
  for (const LadderGroup& group : view.groups) {
    for (std::size_t n = 0; n < group.lengths.size(); ++n) {
      double ours = 0, peers = 0;
      for (std::size_t k = 0; k < view.kernels.size(); ++k) {
        const double value = value_of(group.points[k][n]);
        const double ceiling = view.ceiling_of(view.kernels[k]);
        if (!view.kernels[k].is_peer() && value / ceiling > share) {
          share = value / ceiling;
          of = fmt::format("of the ceiling, {:g} TFLOP/s dense {}: {}", ceiling,
                           view.kernels[k].is_fp8 ? "e4m3" : "bf16", view.kernels[k].name);
        }
        if (view.kernels[k].is_fp8) continue;  // has a page of its own
        double& of_side = view.kernels[k].is_peer() ? peers : ours;
        of_side = std::max(of_side, value);
        if (!view.kernels[k].is_peer() && value > best) {
          best = value;
          what = fmt::format("{}, {}, n {}", view.kernels[k].name, group.title, group.lengths[n]);
        }
      }
      if (ours <= 0 || peers <= 0 || group.lengths[n] < 2048) continue;
      log_ratio += std::log(ours / peers);
      least = std::min(least, ours / peers);
      ++num_ratios;
    }
  }
  std::string html = card(fmt::format("{:.0f} TFLOP/s", best), what);
  html += card(fmt::format("{:.0f} %", 100 * share), of);
  if (num_ratios > 0)
    html += card(fmt::format("{:.2f}x", std::exp(log_ratio / num_ratios)),
                 fmt::format("the best peer, geometric mean of {} shapes from 2048 on; least "
                             "{:.2f}x",
                             num_ratios, least));
  return html;
}

std::string counted_cards(const LadderView& view) {
  const LadderGroup& group = view.groups.front();
  double first = 0, last = 0;
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    const auto& point = group.points[k].back();
    if (!point || !point->counted.contains("total")) continue;
    const double instructions = point->counted["total"]["warp_instructions"];
    if (first == 0) first = instructions;
    last = last == 0 ? instructions : std::min(last, instructions);
  }
  if (last == 0) return {};
  return card(fmt::format("{:.0f}x", first / last),
              fmt::format("fewer warp instructions from the first rung to the leanest, {}, n {}",
                          group.title, group.lengths.back()));
}

std::string ladder_figure(const LadderView& view, const LadderGroup& group) {
  return fmt::format("<figure><h3>{}, n {}</h3>{}</figure>", escape_markup(group.title),
                     group.lengths[shown_length(view, group)], ladder_bars(view, group));
}

std::string timed_plot(const LadderView& view, const LadderGroup& group) {
  double best = 0;
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    if (view.kernels[k].is_fp8) continue;
    for (const auto& point : group.points[k]) best = std::max(best, value_of(point));
  }
  std::vector<PlotSeries> series;
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    if (view.kernels[k].is_fp8) continue;
    std::vector<double> y;
    for (const auto& point : group.points[k]) y.push_back(value_of(point));
    if (y.empty() || *std::ranges::max_element(y) < 0.1 * best) continue;  // the bars have these
    series.push_back({view.kernels[k].name, color_of(view, k), view.kernels[k].is_peer(), y});
  }
  return fmt::format(
      "<figure><h3>{}</h3>{}</figure>", escape_markup(group.title),
      plot_lines(length_labels(group), series, "TFLOP/s by length", view.ceiling_tflops));
}

std::string timed_table(const LadderView& view, const LadderGroup& group) {
  std::string html = fmt::format("<figure><h3>{}, TFLOP/s</h3><table><tr><th>kernel</th>",
                                 escape_markup(group.title));
  for (const std::int64_t n : group.lengths) html += fmt::format("<th>{}</th>", n);
  html += "<th>rms error</th><th></th></tr>";
  std::vector<double> best(group.lengths.size(), 0);
  for (const Points& row : group.points)
    for (std::size_t n = 0; n < row.size(); ++n) best[n] = std::max(best[n], value_of(row[n]));
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    std::string cells;
    double rms = 0;
    bool has_any = false;
    for (std::size_t n = 0; n < group.lengths.size(); ++n) {
      const double value = value_of(group.points[k][n]);
      has_any = has_any || value > 0;
      if (group.points[k][n]) rms = std::max(rms, group.points[k][n]->relative_rms);
      cells += value > 0 ? fmt::format("<td class='{}'>{:.{}f}</td>",
                                       value >= best[n] ? "most" : "", value, value < 20 ? 1 : 0)
                         : "<td class='none'>&ndash;</td>";
    }
    if (!has_any) continue;
    const LadderKernel& kernel = view.kernels[k];
    html += fmt::format("<tr><td>{}</td>{}<td>{:.1e}</td><td class='text'>{}</td></tr>",
                        escape_markup(kernel.name), cells, rms,
                        escape_markup(kernel.is_peer() ? kernel.source : kernel.idea));
  }
  return html + "</table></figure>";
}

// "exists for head_dim 64", without what could be done instead.
std::string refusal_text(const LadderPoint& point) {
  const std::string text = point.refused.substr(0, point.refused.find(". Possible"));
  const std::size_t begin = text.find("kernel ");
  return begin == std::string::npos ? text : text.substr(text.find(' ', begin + 7) + 1);
}

std::string counted_table(const LadderView& view, const LadderGroup& group, std::size_t n) {
  constexpr const char* kUnits[] = {"tensor",        "special function", "FMA",      "issue",
                                    "shared memory", "L2 bytes",         "HBM bytes"};
  std::string html =
      "<figure><table><tr><th>rung</th><th>million<br>instructions</th><th>bank<br>conflicts</th>";
  for (const char* const unit : kUnits) html += fmt::format("<th>{}<br>us</th>", unit);
  html += "<th>CTAs<br>an SM</th><th>rms error</th></tr>";
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    const auto& point = group.points[k][n];
    if (!point) continue;
    const LadderKernel& kernel = view.kernels[k];
    if (point->is_refused()) {
      html += fmt::format("<tr><td>{}</td><td class='none text' colspan='11'>{}</td></tr>",
                          escape_markup(kernel.name), escape_markup(refusal_text(*point)));
      continue;
    }
    const auto bounds = ladder_bounds(*point);
    if (bounds.empty()) continue;
    const json& total = point->counted["total"];
    html += fmt::format("<tr><td>{}</td><td>{:.2f}</td><td>{:.0f}</td>", escape_markup(kernel.name),
                        total["warp_instructions"].get<double>() * 1e-6,
                        total["shared_bank_conflicts"].get<double>());
    for (const char* const unit : kUnits) {
      const auto at = std::ranges::find(bounds, unit, [](const auto& b) { return b.first; });
      const double us = at == bounds.end() ? 0 : at->second * 1e6;
      html += fmt::format("<td class='{}'>{:.3g}</td>", at == bounds.begin() ? "most" : "", us);
    }
    html +=
        fmt::format("<td>{:.0f}</td><td>{:.1e}</td></tr>",
                    point->counted["occupancy"]["ctas_per_sm"].get<double>(), point->relative_rms);
  }
  return html + "</table></figure>";
}

std::string timed_body(const LadderView& view) {
  std::string html =
      "<h2>From rung to rung</h2><p>Each rung keeps what the one above it has and "
      "adds one idea. The longest sequences that most of them ran; the scale is logarithmic.</p>";
  for (const LadderGroup& group : view.groups)
    if (group.head_dim == 128 || view.groups.size() < 4) html += ladder_figure(view, group);
  html +=
      "<h2>By length, products of 16 bits</h2><p>What is below a tenth of the best is left to the "
      "table. Dashed: "
      "other libraries, same inputs, same protocol.</p><div class='plots'>";
  for (const LadderGroup& group : view.groups) html += timed_plot(view, group);
  html += "</div><h2>All numbers</h2>";
  for (const LadderGroup& group : view.groups) html += timed_table(view, group);
  return html;
}

std::string counted_body(const LadderView& view) {
  std::string html =
      "<h2>From rung to rung</h2><p>No GPU here: the kernels ran on the simulator, which counts "
      "what they do and knows no times. The bars show a bound: how long an H200's busiest unit "
      "needs for that work at its peak rate, if all else were free. Latency, and units that wait "
      "for each other, come on top; that is what the later rungs are about, and what only a GPU "
      "shows.</p>";
  for (const LadderGroup& group : view.groups)
    html += ladder_figure(view, group) + counted_table(view, group, group.lengths.size() - 1);
  return html;
}

}  // namespace

std::string ladder_report(const json& log) {
  const LadderView view = read_ladder(log);
  const json& device = log.at("device");
  const std::string title =
      view.is_simulated ? "The attention ladder, counted" : "The attention ladder, measured";
  std::string html = fmt::format(
      "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width,initial-scale=1'><title>{}</title><style>{}{}</style></head>"
      "<body><main><h1>{}</h1>",
      title, kLadderCss, color_rules() + decode_color_css(), title);
  html += fmt::format(
      "<p class='sub'>{} \u00b7 {} \u00b7 commit {}{} \u00b7 nvcc {}</p>",
      escape_markup(device.value("name", "")), escape_markup(log.value("started", "")),
      escape_markup(log.value("commit", "")), log.value("dirty", false) ? " with changes" : "",
      escape_markup(log.value("toolkit", "")));
  html += "<div class='cards'>" + check_card(log);
  if (!view.groups.empty()) html += view.is_simulated ? counted_cards(view) : timed_cards(view);
  html += "</div>" + (view.is_simulated ? counted_body(view) : timed_body(view));
  html += fp8_section(view) + decode_section(view, log);
  html += fmt::format(
      "<footer>Cache: {}. Inputs: {}. Made by <code>{}</code> from its log alone."
      "</footer></main></body></html>\n",
      escape_markup(log.value("cache", "")),
      escape_markup(log.at("samples").empty() ? "" : log["samples"][0].value("inputs", "")),
      escape_markup(log.value("command", "")));
  return html;
}

}  // namespace tilewright::cli
