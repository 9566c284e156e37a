// What the timing model predicts of our kernels on a B200, which we have not got.
#pragma once

#include "report/terminal.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

/// Kernels for sm_100a at shapes of which others have published figures, and at those of our logs.
/// `sample`: clusters of a launch that are run. `kernels`: only these; empty: all.
/// Returns   {"device", "points": [...]}
nlohmann::json predict_blackwell(int sample, const std::vector<std::string>& kernels);

std::string blackwell_table(const nlohmann::json& result, const Style& style);

}  // namespace tilewright::cli
