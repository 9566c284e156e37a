#include "bench/timing/blackwell.h"

#include "base/error.h"
#include "base/progress.h"
#include "bench/timing/blackwell_points.h"
#include "bench/timing/operators.h"
#include "bench/timing/ranges.h"
#include "bench/timing/timing.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

/// The largest of the parts, with its share of `whole`.
std::string largest(const json& parts, double whole) {
  std::string name;
  double most = 0;
  for (const auto& [key, value] : parts.items()) {
    if (value.get<double>() > most) name = key, most = value;
  }
  return name.empty() ? "-" : fmt::format("{} {:.0f} %", name, 100 * most / whole);
}

}  // namespace

json predict_blackwell(int sample, const std::vector<std::string>& kernels,
                       const std::vector<std::string>& parts) {
  request_predictions(sample);
  const Device device = Device::open("sim:b200");
  std::vector<BlackwellPoint> points = blackwell_points();
  const auto is_among = [](const std::vector<std::string>& list, const std::string& name) {
    return list.empty() || std::ranges::find(list, name) != list.end();
  };
  std::erase_if(points, [&](const BlackwellPoint& point) {
    return !is_among(kernels, point.timing.kernel) || !is_among(parts, point.part);
  });
  require(!points.empty(), ErrorKind::kInvalidArgument,
          "bench timing: there is no point of --kernels {} in --parts {}; expected kernels of the "
          "table that --b200 prints, and some of the parts {}",
          kernels.empty() ? "(all)" : fmt::format("{}", fmt::join(kernels, ",")),
          parts.empty() ? "(all)" : fmt::format("{}", fmt::join(parts, ",")),
          fmt::join(blackwell_parts(), ", "));
  Progress progress(stderr, "bench timing", static_cast<std::int64_t>(points.size()), "points");
  json out = json::array();
  for (const BlackwellPoint& point : points) {
    progress.add();
    json row = {
        {"shape", title_of(point.timing)}, {"kernel", point.timing.kernel}, {"part", point.part}};
    const auto began = std::chrono::steady_clock::now();
    try {
      const json predicted = predict_point(device, point.timing);
      if (predicted.contains("problem")) {
        row["problem"] = predicted["problem"];
      } else {
        const double us = predicted["us"];
        row["predicted_us"] = us;
        row["tflops"] = point.flop / us * 1e-6;
        if (point.bytes != 0) row["tb_per_s"] = point.bytes / us * 1e-6;
        row["busiest"] = largest(predicted["busy_us"], us);
        row["longest_wait"] = largest(predicted["wait_us"], us);
        row["costs_from"] = predicted["costs_from"];
        row["kernels"] = predicted["kernels"];
        add_range(row, point.timing.timed);
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) throw;
      row["problem"] = error.what();
    }
    row["took_s"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    out.push_back(std::move(row));
  }
  progress.finish();
  return {{"device", "b200"}, {"sample", sample}, {"points", out}};
}

std::string blackwell_table(const json& result, const Style& style) {
  Table table(
      {"shape", "kernel", "predicted us", "range", "TFLOP/s", "TB/s", "busiest", "warps wait for"});
  std::string problems;
  for (const json& point : result["points"]) {
    if (point.contains("problem")) {
      problems +=
          fmt::format("{} {}: {}\n", point["shape"].get<std::string>(),
                      point["kernel"].get<std::string>(), point["problem"].get<std::string>());
      continue;
    }
    table.add(
        {point["shape"], point["kernel"],
         fmt::format("{:.1f}", point["predicted_us"].get<double>()), range_text(point),
         fmt::format("{:.0f}", point["tflops"].get<double>()),
         point.contains("tb_per_s") ? fmt::format("{:.2f}", point["tb_per_s"].get<double>()) : "",
         point["busiest"], point["longest_wait"]});
  }
  return table.text(style) + problems +
         "\npredicted by a model that no measurement of a B200 by us stands behind; the range "
         "supposes that\nit errs there as it does on an H200\n";
}

}  // namespace tilewright::cli
