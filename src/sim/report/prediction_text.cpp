#include "sim/report/prediction_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

using nlohmann::json;

double us(double seconds) {
  return seconds * 1e6;
}

struct Part {
  std::string_view name;
  double seconds = 0;
};

/// The largest parts, none below a hundredth of the whole.
template <class Name, std::size_t kCount>
std::string parts_text(const std::array<double, kCount>& seconds, double whole) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (seconds[i] > 0.01 * whole) parts.push_back({name_of(static_cast<Name>(i)), seconds[i]});
  }
  std::ranges::stable_sort(parts, std::greater<>(), &Part::seconds);
  if (parts.size() > 5) parts.resize(5);
  std::string out;
  for (const Part& part : parts) {
    out += fmt::format("{}{} {:.0f} %", out.empty() ? "" : ", ", part.name,
                       100 * part.seconds / whole);
  }
  return out.empty() ? "nothing much" : out;
}

std::string costs_from(const Prediction& prediction) {
  if (prediction.has_machine_code) return "machine code";
  return prediction.note.empty() ? "PTX" : fmt::format("PTX ({})", prediction.note);
}

}  // namespace

json prediction_json(const Prediction& prediction) {
  if (!prediction.problem.empty()) return {{"problem", prediction.problem}};
  json busy = json::object(), waits = json::object();
  for (std::size_t i = 0; i < kNumTimedUnits; ++i) {
    busy[std::string(name_of(static_cast<TimedUnit>(i)))] = us(prediction.busy[i]);
  }
  for (std::size_t i = 0; i < kNumWaitCauses; ++i) {
    waits[std::string(name_of(static_cast<WaitCause>(i)))] = us(prediction.waits[i]);
  }
  return {{"us", us(prediction.seconds)},
          {"clocks", prediction.clock_hz * prediction.seconds},
          {"launch_us", us(prediction.launch_seconds)},
          {"launches", prediction.num_launches},
          {"ctas", prediction.num_ctas},
          {"ctas_traced", prediction.num_traced},
          {"ctas_left_out", prediction.num_left_out},
          {"costs_from", costs_from(prediction)},
          {"busy_us", busy},
          {"wait_us", waits}};
}

json line_wait_json(const std::array<double, kNumWaitCauses>& causes) {
  json out = json::object();
  for (std::size_t i = 0; i < kNumWaitCauses; ++i) {
    if (causes[i] > 0) out[std::string(name_of(static_cast<WaitCause>(i)))] = us(causes[i]);
  }
  return out;
}

std::string prediction_text(const Prediction& prediction) {
  if (!prediction.problem.empty()) {
    return fmt::format("  predicted     no time: {}\n", prediction.problem);
  }
  const double whole = prediction.seconds;
  const std::string left_out =
      prediction.num_left_out == 0
          ? ""
          : fmt::format("                {} CTAs did not run: there are no results\n",
                        prediction.num_left_out);
  return fmt::format(
      "  predicted     {:.2f} us at {:.0f} MHz, {:.2f} of them the launch; "
      "{} of {} CTAs were looked at, costs are of {}\n"
      "                units busy: {}\n"
      "                warps wait for: {}\n{}",
      us(whole), prediction.clock_hz * 1e-6, us(prediction.launch_seconds), prediction.num_traced,
      prediction.num_ctas, costs_from(prediction), parts_text<TimedUnit>(prediction.busy, whole),
      parts_text<WaitCause>(prediction.waits, whole), left_out);
}

void PredictionList::add(const std::string& kernel, const Prediction& prediction) {
  const auto at = std::ranges::find(kernels_, kernel, &std::pair<std::string, Prediction>::first);
  if (at == kernels_.end()) {
    kernels_.emplace_back(kernel, prediction);
  } else {
    at->second.add(prediction);
  }
}

std::string PredictionList::text() const {
  if (kernels_.empty()) return {};
  auto sorted = kernels_;
  std::ranges::stable_sort(sorted, std::greater<>(),
                           [](const auto& entry) { return entry.second.seconds; });
  double sum = 0;
  std::string out;
  for (const auto& [kernel, prediction] : sorted) {
    sum += prediction.seconds;
    out += fmt::format("{}, {} launches\n{}", kernel, prediction.num_launches,
                       prediction_text(prediction));
  }
  return fmt::format("sim: predicted {:.2f} us in all ({})\n", us(sum), kPredictionNote) + out;
}

json timeline_json(const std::string& kernel, const Prediction& prediction) {
  json events = json::array();
  const double to_us = 1e6 / std::max(1.0, prediction.clock_hz);
  constexpr int kTensorRow = 9999;
  const auto name_row = [&](int row, const std::string& name) {
    events.push_back({{"ph", "M"},
                      {"pid", 0},
                      {"tid", row},
                      {"name", "thread_name"},
                      {"args", {{"name", name}}}});
  };
  events.push_back({{"ph", "M"},
                    {"pid", 0},
                    {"name", "process_name"},
                    {"args", {{"name", kernel + ", predicted"}}}});
  name_row(kTensorRow, "tensor cores");
  std::int32_t last_warp = -1;
  for (const TimelineSpan& span : prediction.timeline) last_warp = std::max(last_warp, span.warp);
  for (std::int32_t warp = 0; warp <= last_warp; ++warp) {
    name_row(warp, fmt::format("warp {} waits", warp));
  }
  for (const TimelineSpan& span : prediction.timeline) {
    const bool is_tensor = span.warp < 0;
    json event = {{"ph", "X"},
                  {"pid", 0},
                  {"tid", is_tensor ? kTensorRow : span.warp},
                  {"ts", span.begin * to_us},
                  {"dur", (span.end - span.begin) * to_us},
                  {"name", is_tensor ? std::string_view("product") : name_of(span.cause)}};
    if (!is_tensor) event["args"] = {{"PTX line", span.line}};
    if (span.ended_by >= 0) event["args"]["ended by"] = fmt::format("warp {}", span.ended_by);
    events.push_back(std::move(event));
  }
  return {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
}

}  // namespace tilewright::sim
