#include "bench/ladder_upper.h"

#include "base/markup.h"
#include "bench/decode.h"
#include "bench/ladder.h"
#include "bench/ladder_plots.h"
#include "report/log_plot.h"
#include "report/page_style.h"
#include "report/time_summary.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

bool has_fp8_times(const LadderView& view, const LadderGroup& group) {
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    if (view.kernels[k].is_fp8 &&
        std::ranges::any_of(group.points[k], [](const auto& point) { return value_of(point) > 0; }))
      return true;
  }
  return false;
}

// What callers would run without it: at each length the fastest of ours.
PlotSeries best_of_16_bits(const LadderView& view, const LadderGroup& group) {
  PlotSeries best = {"best of 16 bits", 0, true, std::vector<double>(group.lengths.size(), 0)};
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    if (view.kernels[k].is_fp8 || view.kernels[k].is_peer()) continue;
    for (std::size_t n = 0; n < group.lengths.size(); ++n)
      best.y[n] = std::max(best.y[n], value_of(group.points[k][n]));
  }
  return best;
}

std::string fp8_plot(const LadderView& view, const LadderGroup& group) {
  std::vector<PlotSeries> series = {best_of_16_bits(view, group)};
  for (std::size_t k = 0; k < view.kernels.size(); ++k) {
    if (!view.kernels[k].is_fp8) continue;
    std::vector<double> y;
    for (const auto& point : group.points[k]) y.push_back(value_of(point));
    series.push_back({view.kernels[k].name, color_of(view, k), view.kernels[k].is_peer(), y});
  }
  return fmt::format(
      "<figure><h3>{}</h3>{}</figure>", escape_markup(group.title),
      plot_lines(length_labels(group), series, "TFLOP/s by length", view.fp8_ceiling_tflops()));
}

/// (flops a byte, TFLOP/s): where a result stands under the rooflines.
using Placed = std::vector<std::pair<double, double>>;

// The longest sequences of every rung and mask; peers may have longer ones.
Placed place_kernels(const LadderView& view, bool is_fp8) {
  Placed placed;
  for (const LadderGroup& group : view.groups) {
    for (std::size_t k = 0; k < view.kernels.size(); ++k) {
      if (view.kernels[k].is_fp8 != is_fp8 || view.kernels[k].is_peer()) continue;
      std::int64_t longest = -1;
      std::pair<double, double> place;
      for (std::size_t n = 0; n < group.lengths.size(); ++n) {
        const auto& point = group.points[k][n];
        if (!(value_of(point) > 0 && point->flops_per_byte > 0)) continue;
        if (group.lengths[n] < longest) continue;
        longest = group.lengths[n];
        place = {point->flops_per_byte, point->tflops};
      }
      if (longest >= 0) placed.push_back(place);
    }
  }
  return placed;
}

std::map<std::string, Placed> place_decode(const json& log) {
  std::map<std::string, Placed> placed;
  for (const json& sample : log.at("samples")) {
    if (!sample.contains("samples_us")) continue;
    const double us = summarize(sample["samples_us"].get<std::vector<double>>()).median_us;
    const double flops = sample.at("flops"), bytes = sample.at("bytes");
    placed["decode, " + sample.at("problem").at("kv").get<std::string>()].emplace_back(
        flops / bytes, flops / us * 1e-6);
  }
  return placed;
}

LogSeries memory_roof(const char* name, double bytes_per_s, double first, double peak_tflops) {
  const double ridge = peak_tflops * 1e12 / bytes_per_s;
  return {.name = name,
          .color = 0,
          .look = LogSeries::Look::kFloor,
          .points = {{first, first * bytes_per_s * 1e-12}, {ridge, peak_tflops}}};
}

// Left of the ridge the memory limits, right of it the tensor cores.
std::string roofline(const LadderView& view, const json& decode) {
  std::map<std::string, Placed> placed = place_decode(decode);
  if (placed.empty()) return {};
  placed["rungs of 16 bits"] = place_kernels(view, false);
  placed["rungs of e4m3"] = place_kernels(view, true);
  double first = INFINITY, last = 0;
  std::vector<LogSeries> series;
  int color = 5;
  for (auto& [name, points] : placed) {
    if (points.empty()) continue;
    for (const auto& [x, y] : points) first = std::min(first, x), last = std::max(last, x);
    series.push_back({.name = name,
                      .color = color++ % kLadderColors,
                      .look = LogSeries::Look::kPoints,
                      .points = std::move(points)});
  }
  const json& roofs = decode.at("roofs");
  const double peak = view.ceiling_tflops, peak_fp8 = view.fp8_ceiling_tflops();
  last = std::max(last, 2 * peak_fp8 * 1e12 / kDecodeReadBytesPerS);
  series.push_back(
      memory_roof("measured read", roofs.at("read_bytes_per_s").get<double>(), first, peak_fp8));
  series.push_back(
      memory_roof("data sheet", roofs.at("peak_bytes_per_s").get<double>(), first, peak_fp8));
  for (const auto& [name, tflops] : {std::pair("bf16 products", peak), {"e4m3 products", peak_fp8}})
    series.push_back({.name = name,
                      .color = 0,
                      .look = LogSeries::Look::kFloor,
                      .points = {{tflops * 1e12 / kDecodePeakBytesPerS, tflops}, {last, tflops}}});
  return "<figure>" + plot_log(series, "flops a byte", "TFLOP/s") + "</figure>";
}

// Without times: what each needs of memory and products, and so what it cannot be faster than.
std::string decode_floors(const LadderView& view, const json& decode) {
  const double read = decode.at("roofs").at("read_bytes_per_s");
  std::string html =
      "<figure><table><tr><th>problem</th><th>keys</th><th>MB</th><th>flops a byte</th><th>floor, "
      "us</th><th>error, % of its bound</th></tr>";
  for (const json& sample : decode.at("samples")) {
    const json& p = sample.at("problem");
    const double bytes = sample.at("bytes"), flops = sample.at("flops");
    const double floor_s = std::max(bytes / read, flops / (view.ceiling_tflops * 1e12));
    html += fmt::format(
        "<tr><td>{} heads, {} of keys, head_dim {}, batch {}, {}</td><td>{}</td><td>{:.3f}</td>"
        "<td>{:.1f}</td><td>{:.3f}</td><td>{:.0f}</td></tr>",
        p.at("heads").get<int>(), p.at("kv_heads").get<int>(), p.at("head_dim").get<int>(),
        p.at("batch").get<int>(), escape_markup(p.at("kv").get<std::string>()),
        p.at("keys").get<std::int64_t>(), bytes * 1e-6, flops / bytes, floor_s * 1e6,
        100 * sample.at("error").value("worst_of_bound", 0.0));
  }
  return html + "</table></figure>";
}

}  // namespace

double value_of(const std::optional<LadderPoint>& point) {
  return point && !point->is_refused() ? point->tflops : 0;
}

int color_of(const LadderView& view, std::size_t kernel) {
  constexpr int kPeerColors = 3;
  const auto k = static_cast<int>(kernel);
  if (view.kernels[kernel].is_peer()) return kLadderColors - kPeerColors + k % kPeerColors;
  return k % (kLadderColors - kPeerColors);
}

std::vector<std::string> length_labels(const LadderGroup& group) {
  std::vector<std::string> labels;
  for (const std::int64_t n : group.lengths)
    labels.push_back(n >= 1024 && n % 1024 == 0 ? fmt::format("{}k", n / 1024) : std::to_string(n));
  return labels;
}

std::string fp8_section(const LadderView& view) {
  std::string html;
  for (const LadderGroup& group : view.groups)
    if (has_fp8_times(view, group)) html += fp8_plot(view, group);
  if (html.empty()) return {};
  return fmt::format(
      "<h2>Products of e4m3</h2><p>K7 and K8, with a ceiling twice as high: {:g} TFLOP/s. K8 "
      "rounds "
      "its operands itself, and so does K7 where they have 16 bits; that is part of the time.</p>"
      "<div class='plots'>{}</div>",
      view.fp8_ceiling_tflops(), html);
}

std::string decode_section(const LadderView& view, const json& log) {
  if (!log.contains("decode")) return {};
  const json& decode = log["decode"];
  const std::string plot = roofline(view, decode);
  std::string html = "<h2>Decode attention</h2>";
  if (plot.empty())
    return html +
           "<p>Flash decode: few queries over many keys, so that bytes count and products hardly "
           "do. The lower bound is the larger of the times of memory at 4.2 TB/s and the tensor "
           "cores "
           "at their peak.</p>" +
           decode_floors(view, decode);
  html +=
      "<p>Flash decode: few queries over many keys. Left of the ridge bytes limit, right of it "
      "products; dotted are the rooflines of memory (measured, and by its data sheet) and of "
      "tensor "
      "cores.</p>" +
      plot;
  return html + decode_figures(decode);
}

nlohmann::json run_ladder_decode(const Device& device, int samples) {
  const bool is_small = device.is_simulated();
  DecodeSweep sweep = {.models = {find_decode_model(is_small ? "small" : "llama-8b")},
                       .kvs = {"bf16", "e4m3"},
                       .batches = {1, 16},
                       .keys = {1024, 4096, 16384},
                       .pages = {0},
                       .q_lens = {1},
                       .samples = samples};
  if (is_small) sweep.batches = {2}, sweep.keys = {64, 300};
  return run_decode_sweep(device, sweep, "tilewright ladder");
}

}  // namespace tilewright::cli
