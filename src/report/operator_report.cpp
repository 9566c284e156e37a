#include "report/operator_report.h"

#include "report/time_summary.h"

#include <fmt/format.h>

namespace tilewright::cli {

using nlohmann::json;

namespace {

/// Of a launch that was not run whole.
std::string sample_line(const json& predicted) {
  const double left_out = predicted.value("ctas_left_out", 0.0);
  if (left_out == 0) return {};
  const double all = predicted["ctas"].get<double>();
  return fmt::format(
      "sample     {:.0f} of {:.0f} CTAs ran: there are no results, and counts are theirs; "
      "--time-sample all runs all\n",
      all - left_out, all);
}

}  // namespace

json time_summary(const std::vector<double>& samples_us) {
  const TimeSummary time = summarize(samples_us);
  return {{"median_us", time.median_us},
          {"low_us", time.low_us},
          {"high_us", time.high_us},
          {"samples_us", samples_us}};
}

std::string time_line(const json& time, const Style& style, int decimals,
                      const std::string& conditions) {
  return fmt::format("time       {} us, median of {} runs{} ({:.1f} to {:.1f})",
                     style.bold(fmt::format("{:.{}f}", time["median_us"].get<double>(), decimals)),
                     time["samples_us"].size(), conditions, time["low_us"].get<double>(),
                     time["high_us"].get<double>());
}

std::string verdict_text(const json& error, const Style& style) {
  if (!error.value("decided", true))
    return style.bad("UNDECIDED") +
           " (scale or softcap are so large that rounding alone may change everything)";
  return error["ok"].get<bool>() ? style.good("correct") : style.bad("WRONG");
}

std::string bound_text(double worst_of_bound) {
  constexpr double kLargest = 1e6;
  if (worst_of_bound > kLargest) return "beyond any bound";
  return fmt::format("{:.1f} % of the bound", 100 * worst_of_bound);
}

std::string counted_line(const json& counted) {
  const json& total = counted["total"];
  return fmt::format("counted    {:.4g} warp instructions, {:.4g} tensor GFLOP",
                     total["warp_instructions"].get<double>(),
                     total["tensor_flop"].get<double>() * 1e-9);
}

std::string predicted_line(const json& counted) {
  if (!counted.contains("predicted")) return {};
  const json& predicted = counted["predicted"];
  if (predicted.contains("problem")) {  // of one launch of several: the others' sum is no time
    return fmt::format("predicted  no time: {}\n", predicted["problem"].get<std::string>());
  }
  // The unit and the wait that take most.
  const auto largest = [](const json& parts) {
    std::string name;
    double most = 0;
    for (const auto& [key, value] : parts.items()) {
      if (value.get<double>() <= most) continue;
      most = value.get<double>();
      name = key;
    }
    return std::pair(name, most);
  };
  const double us = predicted["us"].get<double>();
  const auto [unit, busy] = largest(predicted["busy_us"]);
  const auto [cause, wait] = largest(predicted["wait_us"]);
  return fmt::format(
             "predicted  {:.4g} us on the device, by a model: busiest is {}, {:.0f} %; warps wait "
             "most for {}, {:.0f} %\n",
             us, unit, 100 * busy / us, cause, 100 * wait / us) +
         sample_line(predicted);
}

void print_operator_report(const json& report, const Style& style) {
  print(report["plan"]["text"].get<std::string>());
  if (report.contains("time")) print(time_line(report["time"], style) + '\n');
  if (report.contains("counted"))
    print(counted_line(report["counted"]) + "; not measured: a simulator\n" +
          predicted_line(report["counted"]));
}

}  // namespace tilewright::cli
