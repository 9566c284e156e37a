// The table and the page of a log of bench indexer.
#include "bench/batch_report.h"
#include "bench/indexer.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

// Decode by its batch; a prompt by its tokens.
BatchView describe_view(const json& problem) {
  const bool is_prompt = problem.at("batch") == 1;
  const std::string tokens =
      is_prompt ? "one prompt" : fmt::format("{} tokens a sequence", problem.value("q_len", 1));
  return {.title = fmt::format("{}, {} keys ({}), {} heads, the best {}", tokens,
                               problem.at("keys").get<int>(), problem.value("lengths", ""),
                               problem.at("heads").get<int>(), problem.at("topk").get<int>()),
          .batch_name = is_prompt ? "tokens" : "batch",
          .peer_name = "DeepGEMM",
          .other_names = {"to select", "of a call", "with the schedule"}};
}

std::vector<BatchView> read_index_views(const json& log) {
  std::vector<BatchView> views;
  for (const json& sample : log.at("samples")) {
    const json& p = sample.at("problem");
    BatchView& view = find_view(views, describe_view(p));
    const std::string name =
        fmt::format("{} {}", sample.value("kernel", ""), sample.value("format", ""));
    BatchPoint point = {.us = median_us(sample, "samples_us"),
                        .floor_us = sample.at("floor_us"),
                        .is_ok = sample.at("error").value("ok", false),
                        .other_us = {median_us(sample, "select_us"), median_us(sample, "call_us"),
                                     median_us(sample, "with_schedule_us")}};
    if (point.us > 0) point.tflops = sample.at("flops").get<double>() / point.us * 1e-6;
    const bool is_peer = sample.value("source", "tilewright") != "tilewright";
    view.add(name, is_peer, p.at(p.at("batch") == 1 ? "q_len" : "batch"), std::move(point));
  }
  return views;
}

}  // namespace

std::string index_table(const json& log, const Style& style) {
  std::string text;
  for (const BatchView& view : read_index_views(log)) text += batch_table(view, style);
  return text;
}

std::string index_report(const json& log) {
  const std::string text = fmt::format(
      "Time of the logits by the batch, both logarithmic; below it that of the selection, and of a "
      "whole call from queries to rows. Dotted: what no kernel can be faster than, {}; the share "
      "of it stands behind the TFLOP/s. Dashed: others.",
      log.value("floors", ""));
  return batch_page(log, "The lightning indexer", text, read_index_views(log));
}

}  // namespace tilewright::cli
