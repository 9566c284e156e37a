// What the timing model predicts of our kernels on a B200, which we have not got.
#pragma once

#include "report/terminal.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

/// Kernels for sm_100a at shapes of which others have published figures, and at those of our logs.
/// `sample`: clusters of a launch that are run. `kernels`, `parts`: only these; empty: all.
/// Returns   {"device", "sample", "points": [...]}; of each point the kernels that ran, how long
///           the prediction took (`took_s`), and the range (ranges.h)
/// Errors    InvalidArgument if nothing is chosen
nlohmann::json predict_blackwell(int sample, const std::vector<std::string>& kernels,
                                 const std::vector<std::string>& parts);

std::string blackwell_table(const nlohmann::json& result, const Style& style);

}  // namespace tilewright::cli
