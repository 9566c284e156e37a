// The log of linear layers, ours and peers', as plots.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tilewright::cli {

/// One HTML page that needs nothing else: for each shape, time against rows of x (both logarithmic)
/// with the floor, and the share of the floor.
/// Errors   ParseError if the log is none of schema 1 and kind "linear"
std::string linear_report(const nlohmann::json& log);

/// Adds the samples of another log.
void merge_linear_logs(nlohmann::json& log, const nlohmann::json& other);

}  // namespace tilewright::cli
