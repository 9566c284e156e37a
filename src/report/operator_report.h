// What the tools of operators say alike: the plan, the time, what a simulator counted.
#pragma once

#include "report/terminal.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

/// Median and bounds of it (summarize()), with the samples themselves.
nlohmann::json time_summary(const std::vector<double>& samples_us);

/// "time       12.1 us, median of 20 runs (11.9 to 12.4)" without a line's end. `conditions` follow
/// "runs".
std::string time_line(const nlohmann::json& time, const Style& style, int decimals = 1,
                      const std::string& conditions = "");

/// "correct", "WRONG" or "UNDECIDED" of a check's members "ok" and "decided".
std::string verdict_text(const nlohmann::json& error, const Style& style);

/// "46.1 % of the bound" of the largest |error| / bound.
std::string bound_text(double worst_of_bound);

/// "counted    ... warp instructions, ... tensor GFLOP" without a line's end; of take_counts().
std::string counted_line(const nlohmann::json& counted);

/// "predicted  ... us ..." with a line's end, if counts have a prediction; else nothing.
std::string predicted_line(const nlohmann::json& counted);

/// Plan, time and counts as far as the report has them.
void print_operator_report(const nlohmann::json& report, const Style& style);

}  // namespace tilewright::cli
