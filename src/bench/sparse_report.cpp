// The table and the page of a log of bench sparse.
#include "bench/batch_report.h"
#include "bench/sparse.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

std::vector<BatchView> read_sparse_views(const json& log) {
  std::vector<BatchView> views;
  for (const json& sample : log.at("samples")) {
    const json& p = sample.at("problem");
    const std::string title = fmt::format(
        "{}: {} heads, {} + {} rows in pages of {} and {}{}", sample.value("shape", ""),
        p.at("heads").get<int>(), p.at("window").get<int>(), p.at("compressed").get<int>(),
        p.at("window_page").get<int>(), p.at("compressed_page").get<int>(),
        p.value("has_lengths", false) ? ", random lengths" : "");
    BatchView& view =
        find_view(views, {.title = title,
                          .batch_name = fmt::format("batch, of {} queries", p.value("q_len", 1)),
                          .peer_name = "FlashMLA",
                          .other_names = {"with the schedule"}});
    const std::string name =
        fmt::format("{} {}", sample.value("kernel", ""), sample.value("format", ""));
    BatchPoint point = {.us = median_us(sample, "samples_us"),
                        .floor_us = sample.at("floor_us"),
                        .is_ok = sample.at("error").value("ok", false),
                        .other_us = {median_us(sample, "with_schedule_us")}};
    if (point.us > 0) point.tflops = sample.at("flops").get<double>() / point.us * 1e-6;
    const bool is_peer = sample.value("source", "tilewright") != "tilewright";
    view.add(name, is_peer, p.at("batch"), std::move(point));
  }
  return views;
}

}  // namespace

std::string sparse_table(const json& log, const Style& style) {
  std::string text;
  for (const BatchView& view : read_sparse_views(log)) text += batch_table(view, style);
  return text;
}

std::string sparse_report(const json& log) {
  const std::string text = fmt::format(
      "Time of a call by its batch, both logarithmic: attention and the combination of partial "
      "results. Dotted: what no kernel can be faster than, {}; the share of it stands behind the "
      "TFLOP/s. Dashed: others.",
      log.value("floors", ""));
  return batch_page(log, "Sparse attention over paged caches", text, read_sparse_views(log));
}

}  // namespace tilewright::cli
