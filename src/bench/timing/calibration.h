// Which rows of logs the timing model's constants come from: bench/calibration.json, which is
// compiled in. A prediction of such a row proves nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tilewright::cli {

/// {"probes": [...], "rows": [...], "looked_at": [...]}, as in the file.
const nlohmann::json& calibration_list();

/// Names of the constants that come from this row of a log, with commas between; "" if none does.
/// The log is known by when it was started, the row by its kernel and its problem.
std::string constants_from(const nlohmann::json& log, const nlohmann::json& row);

}  // namespace tilewright::cli
