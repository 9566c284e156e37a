// --time-sample: how many clusters of a launch run where a simulated device predicts times.
#pragma once

#include "tilewright/device.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tilewright::cli {

/// The option: a number of clusters, or "all".
void add_time_sample_option(CLI::App& app);

/// With --time, after the plan and before the operator runs: of more than 100 GFLOP or 1 GB a
/// simulated device runs 12 clusters of each launch with products, unless --time-sample says
/// otherwise or results are needed. Smaller ones run whole, in less than a minute of one core.
///   plan            plan_json()
///   needs_results   something that compares or writes them ("--check", "--out"), or ""
/// Errors   InvalidArgument if a sample is asked for by name and results are needed
void sample_if_large(const Device& device, const nlohmann::json& plan,
                     const std::string& needs_results);

/// Of a command whose results are always needed.
/// Errors   InvalidArgument if a sample is asked for; it says why the command cannot have one
void refuse_time_sample(const std::string& why);

}  // namespace tilewright::cli
