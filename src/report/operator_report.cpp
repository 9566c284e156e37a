#include "report/operator_report.h"

#include "report/time_summary.h"

#include <fmt/format.h>

namespace tilewright::cli {

using nlohmann::json;

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

void print_operator_report(const json& report, const Style& style) {
  print(report["plan"]["text"].get<std::string>());
  if (report.contains("time")) print(time_line(report["time"], style) + '\n');
  if (report.contains("counted"))
    print(counted_line(report["counted"]) + "; no time: a simulator\n");
}

}  // namespace tilewright::cli
