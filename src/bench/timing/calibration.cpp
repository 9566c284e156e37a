#include "bench/timing/calibration.h"

#include "base/json.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::cli {

extern const char* const kCalibrationText;  // of the build

namespace {

using nlohmann::json;

/// Whether `row` has all of these members; it may have more.
bool has_members(const json& row, const json& members) {
  for (const auto& [name, value] : members.items()) {
    if (!row.contains(name) || row[name] != value) return false;
  }
  return true;
}

}  // namespace

const json& calibration_list() {
  static const json list = parse_json(kCalibrationText, "bench/calibration.json");
  return list;
}

std::string constants_from(const json& log, const json& row) {
  for (const json& known : calibration_list()["rows"]) {
    if (known["started"] != log.value("started", "") || known["kernel"] != row["kernel"]) continue;
    if (!has_members(row["problem"], known["problem"])) continue;
    return fmt::format("{}", fmt::join(known["constants"].get<std::vector<std::string>>(), ", "));
  }
  return {};
}

}  // namespace tilewright::cli
