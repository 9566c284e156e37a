// The table and the page of a log of bench model.
#include "base/markup.h"
#include "bench/batch_report.h"
#include "bench/model.h"
#include "report/log_page.h"
#include "report/log_plot.h"
#include "report/page_style.h"
#include "report/plot_image.h"
#include "report/time_summary.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

// A line of a table: a step of decoding, or all steps of a prompt.
struct ModelRow {
  std::string what;
  double us = 0;  // 0: not timed
  double floor_us = 0, tokens = 0;
  std::int64_t launches = 0;  // 0: not counted
  bool is_ok = true;
  std::string refused;

  double tokens_per_s() const { return us > 0 ? tokens / us * 1e6 : 0; }
  double share() const { return us > 0 ? 100 * floor_us / us : 0; }
};

// Ranks that divide the heads share their tokens.
double tokens_of(const json& log, double tokens) {
  const json& ranks = log.at("ranks");
  return ranks.value("scheme", "") == "tensor parallel" ? tokens / ranks.at("count").get<double>()
                                                        : tokens;
}

ModelRow model_row(const json& log, const json& sample) {
  ModelRow row;
  row.refused = sample.value("refused", "");
  row.is_ok = sample.value("ok", true);
  row.floor_us = sample.value("floor_us", 0.0);
  if (sample.at("phase") == "prefill") {
    row.tokens = tokens_of(log, sample.at("tokens"));
    row.what =
        fmt::format("prompt of {} tokens, {} a step", sample.at("tokens").get<std::int64_t>(),
                    sample.at("chunk").get<std::int64_t>());
    for (const json& us : sample.value("steps_us", json::array())) row.us += us.get<double>();
    return row;
  }
  if (sample.at("phase") == "serve") {
    const auto number = [&](const char* key) { return sample.at(key).get<std::int64_t>(); };
    row.tokens = tokens_of(log, static_cast<double>(number("input") + number("output")));
    row.what = fmt::format("mix of {} in, {} out, {} sequences, a request", number("input"),
                           number("output"), number("sequences"));
    row.us = 1e6 * sample.value("seconds", 0.0) / sample.at("requests").get<double>();
    return row;
  }
  row.tokens = tokens_of(log, sample.at("batch"));
  row.what = fmt::format("batch {}, context {}", sample.at("batch").get<std::int64_t>(),
                         sample.at("context").get<std::int64_t>());
  row.us = median_us(sample, "samples_us");
  row.launches = sample.value("launches", std::int64_t{0});
  return row;
}

std::vector<ModelRow> model_rows(const json& log) {
  std::vector<ModelRow> rows;
  for (const json& sample : log.at("samples")) rows.push_back(model_row(log, sample));
  return rows;
}

std::string model_title(const json& log) {
  const json& ranks = log.at("ranks");
  const auto count = ranks.at("count").get<int>();
  return fmt::format(
      "{}: {}; {}", log.at("model").value("name", ""), log.at("model").value("config", ""),
      count > 1 ? fmt::format("{} ranks, {}", count, ranks.value("scheme", "")) : "one rank");
}

std::string or_dash(double value, const char* format) {
  return value > 0 ? fmt::format(fmt::runtime(format), value) : "-";
}

// "  87  hyper_pre_bf16" and so on, of the first step of decoding.
std::string launched_text(const json& log, const char* separator) {
  for (const json& sample : log.at("samples")) {
    if (!sample.contains("launched")) continue;
    std::string text;
    for (const json& entry : sample["launched"])
      text += fmt::format("{}{:>5}  {}", text.empty() ? "" : separator,
                          entry.at("count").get<int>(), entry.at("name").get<std::string>());
    return text;
  }
  return "";
}

// "9120  43  experts": microseconds and calls, of the first step of decoding.
std::string operators_text(const json& log) {
  for (const json& sample : log.at("samples")) {
    if (!sample.contains("by_operator") || sample["by_operator"].empty()) continue;
    std::string text = fmt::format("operators of {}, us and calls:", model_row(log, sample).what);
    for (const json& entry : sample["by_operator"])
      text += fmt::format("\n{:>9.1f}{:>6}  {}", entry.at("us").get<double>(),
                          entry.at("calls").get<int>(), entry.at("name").get<std::string>());
    return text;
  }
  return "";
}

// Times of decode steps over one of batch and context, a line for each value of the other.
struct DecodeAxes {
  const char *along, *of_lines;

  /// `along`, or the other if all samples have one value of it.
  DecodeAxes(const json& samples, const char* first) : along(first), of_lines("batch") {
    if (std::string_view(along) == of_lines) of_lines = "context";
    std::set<std::int64_t> values;
    for (const json& sample : samples)
      if (sample.at("phase") == "decode") values.insert(sample.at(along).get<std::int64_t>());
    if (values.size() < 2) std::swap(along, of_lines);
  }
};

std::string decode_plot(const json& log, const DecodeAxes& axes) {
  std::map<std::int64_t, LogSeries> by_line, floors;
  for (const json& sample : log.at("samples")) {
    if (sample.at("phase") != "decode" || sample.contains("refused")) continue;
    const std::int64_t line = sample.at(axes.of_lines);
    const auto at = static_cast<double>(sample.at(axes.along).get<std::int64_t>());
    const double us = median_us(sample, "samples_us");
    if (us > 0) by_line[line].points.emplace_back(at, us / 1e3);
    floors[line].points.emplace_back(at, sample.at("floor_us").get<double>() / 1e3);
  }
  std::vector<LogSeries> series;
  int color = 0;
  for (auto& [value, floor] : floors) {
    LogSeries& times = by_line[value];
    times.name = fmt::format("{} {}", axes.of_lines, value);
    floor.name = fmt::format("floor, {} {}", axes.of_lines, value);
    times.color = floor.color = color++ % kLadderColors;
    floor.look = LogSeries::Look::kFloor;
    for (LogSeries* line : {&times, &floor}) {
      std::ranges::sort(line->points);
      if (line->points.size() > 1) series.push_back(std::move(*line));  // one point is no line
    }
  }
  return series.empty() ? "" : plot_log(series, axes.along, "milliseconds");
}

// "2 GPUs, experts, 43 layers"
std::string line_name(const json& log) {
  const json& ranks = log.at("ranks");
  const auto count = ranks.at("count").get<int>();
  const std::string layers = log.at("model").value("config", "");
  const std::string divided =
      ranks.value("scheme", "") == "tensor parallel" ? "tensors" : "experts";
  return fmt::format("{}, {}", count == 1 ? "1 GPU" : fmt::format("{} GPUs, {}", count, divided),
                     layers.substr(0, layers.find(" (")));
}

struct ComparedSteps {
  DecodeAxes axes;
  std::int64_t other = 0;  // what all points have
  std::vector<std::string> names;
  std::map<std::string, std::map<double, std::pair<double, double>>> lines;  // ms, floor
};

// Of what the axis is not, the value that most samples have; of as many the largest.
std::int64_t most_common(const std::vector<json>& samples, const char* key) {
  std::map<std::int64_t, int> counts;
  for (const json& sample : samples) ++counts[sample.at(key).get<std::int64_t>()];
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  std::int64_t most = 0;
  if (!counts.empty()) {
    const int count = std::ranges::max_element(counts, by_count)->second;
    for (const auto& [value, times] : counts)
      if (times == count) most = value;
  }
  return most;
}

ComparedSteps compared_steps(const std::vector<json>& logs) {
  std::vector<json> timed;
  std::vector<std::string> names;
  for (const json& log : logs) {
    for (const json& sample : log.at("samples")) {
      if (sample.at("phase") != "decode" || median_us(sample, "samples_us") <= 0) continue;
      timed.push_back(sample);
      names.push_back(line_name(log));
    }
  }
  ComparedSteps steps = {.axes = DecodeAxes(timed, "batch"), .names = {}, .lines = {}};
  steps.other = most_common(timed, steps.axes.of_lines);
  for (std::size_t i = 0; i < timed.size(); ++i) {
    const json& sample = timed[i];
    if (sample.at(steps.axes.of_lines) != steps.other) continue;
    if (std::ranges::count(steps.names, names[i]) == 0) steps.names.push_back(names[i]);
    const auto at = static_cast<double>(sample.at(steps.axes.along).get<std::int64_t>());
    steps.lines[names[i]][at] = {median_us(sample, "samples_us") / 1e3,
                                 sample.at("floor_us").get<double>() / 1e3};
  }
  return steps;
}

std::string compared_plot(const ComparedSteps& steps) {
  constexpr std::array kColors = {7, 12, 9, 13, 5, 4};
  constexpr double kNames = 200;
  std::vector<LogSeries> series;
  for (const std::string& name : steps.names) {
    const int color = kColors[series.size() / 2 % kColors.size()];
    LogSeries times = {name, color, LogSeries::Look::kMarked};
    LogSeries floor = {"", color, LogSeries::Look::kFloor};
    for (const auto& [at, ms] : steps.lines.at(name)) {
      times.points.emplace_back(at, ms.first);
      floor.points.emplace_back(at, ms.second);
    }
    series.push_back(std::move(times));
    series.push_back(std::move(floor));
  }
  const bool is_batch = std::string_view(steps.axes.along) == "batch";
  return plot_log(series, is_batch ? "sequences of a GPU; tensors in parallel: of all" : "context",
                  "milliseconds", kNames);
}

std::string model_html_table(const json& log) {
  std::string html =
      "<table><tr><th></th><th>ms</th><th>floor, ms</th><th>% of it</th><th>tokens/s a GPU</th>"
      "<th>launches</th></tr>";
  for (const ModelRow& row : model_rows(log)) {
    html += fmt::format("<tr><td>{}</td>", escape_markup(row.what));
    if (!row.refused.empty()) {
      html += fmt::format("<td colspan='5'>{}</td></tr>", escape_markup(row.refused));
      continue;
    }
    html += fmt::format("<td>{}</td><td>{:.3f}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                        or_dash(row.us / 1e3, "{:.3f}"), row.floor_us / 1e3,
                        or_dash(row.share(), "{:.0f}"), or_dash(row.tokens_per_s(), "{:.0f}"),
                        or_dash(static_cast<double>(row.launches), "{:.0f}"));
  }
  return html + "</table>";
}

// Plot, table and lists of one log.
std::string log_body(const json& log) {
  std::string body = fmt::format("<h2>{}</h2>", escape_markup(model_title(log)));
  const std::string plot = decode_plot(log, DecodeAxes(log.at("samples"), "context"));
  if (!plot.empty()) body += "<figure>" + plot + "</figure>";
  body += "<figure>" + model_html_table(log) + "</figure>";
  const std::string launched = launched_text(log, "\n");
  if (!launched.empty())
    body += "<h3>Launches of a decode step</h3><pre>" + escape_markup(launched) + "</pre>";
  const std::string operators = operators_text(log);
  if (!operators.empty())
    body += "<h3>Time of a decode step</h3><pre>" + escape_markup(operators) + "</pre>";
  return body;
}

}  // namespace

std::string model_table(const json& log, const Style& style) {
  std::string text = model_title(log) + "\n";
  text += fmt::format("{:<34}{:>10}{:>10}{:>8}{:>12}{:>10}\n", "", "ms", "floor", "%", "tokens/s",
                      "launches");
  for (const ModelRow& row : model_rows(log)) {
    if (!row.refused.empty()) {
      text += fmt::format("{:<34}  {}\n", row.what, row.refused);
      continue;
    }
    text += fmt::format("{:<34}", row.what);
    text += row.is_ok ? style.bold(fmt::format("{:>10}", or_dash(row.us / 1e3, "{:.3f}")))
                      : style.bad(fmt::format("{:>10}", "WRONG"));
    text += fmt::format("{:>10.3f}{:>8}{:>12}{:>10}\n", row.floor_us / 1e3,
                        or_dash(row.share(), "{:.1f}"), or_dash(row.tokens_per_s(), "{:.0f}"),
                        or_dash(static_cast<double>(row.launches), "{:.0f}"));
  }
  const std::string launched = launched_text(log, "\n");
  if (!launched.empty()) text += "launches of a decode step:\n" + launched + "\n";
  const std::string operators = operators_text(log);
  if (!operators.empty()) text += operators + "\n";
  return text + "tokens/s of a GPU; floors: " + log.value("floors", "") + "\n";
}

std::string model_image(const std::vector<json>& logs) {
  const ComparedSteps steps = compared_steps(logs);
  if (steps.names.empty()) return "";
  std::string model = logs[0].at("model").value("name", "");
  return plot_image(compared_plot(steps),
                    fmt::format("{}: a decode step, {} {}; dotted: its bytes and products", model,
                                steps.axes.of_lines, steps.other));
}

std::string model_report(const std::vector<json>& logs) {
  std::string css;
  for (int i = 0; i < kLadderColors; ++i)
    css += fmt::format(".s{0} path{{stroke:var(--c{0})}} .s{0} text{{fill:var(--c{0})}}\n", i);
  std::string body;
  if (const ComparedSteps steps = compared_steps(logs); logs.size() > 1 && !steps.names.empty())
    body += fmt::format("<h2>Decode steps, {} {}</h2><figure>{}</figure>", steps.axes.of_lines,
                        steps.other, compared_plot(steps));
  for (const json& log : logs) body += log_body(log);
  const std::string by =
      logs.size() > 1 ? ""
                      : fmt::format(" by {}", DecodeAxes(logs[0].at("samples"), "context").along);
  return log_page(
      logs.back(),
      {.window_title = "Steps of a model",
       .title = "Steps of a model",
       .css = css,
       .introduction = fmt::format(
           "Time of a decode step{}, both axes logarithmic; from the tokens to the logits. "
           "Dotted: what no kernel can be faster than, {}.",
           by, escape_markup(logs.back().value("floors", ""))),
       .body = body});
}

}  // namespace tilewright::cli
