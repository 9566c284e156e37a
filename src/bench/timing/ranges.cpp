#include "bench/timing/ranges.h"

#include "base/error.h"
#include "bench/timing/recorded_errors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

std::string_view family_of(TimedOperator timed) {
  switch (timed) {
    case TimedOperator::kAttention:
      return "attention";
    case TimedOperator::kLinear:
    case TimedOperator::kBlockScaled:
      return "linear";
    case TimedOperator::kDecode:
      return "decode";
    case TimedOperator::kSparse:
    case TimedOperator::kLatent:
      return "sparse";
    case TimedOperator::kIndexer:
      return "indexer";
    case TimedOperator::kExperts:
      return "moe";
    case TimedOperator::kQuantize:
    case TimedOperator::kCompressor:
    case TimedOperator::kCacheWrite:
    case TimedOperator::kHyperConnection:
      return "all";
  }
  return "all";
}

}  // namespace

const RecordedErrors& recorded_errors(TimedOperator timed) {
  const auto* const found =
      std::ranges::find(kRecordedErrors, family_of(timed),
                        [](const RecordedErrors& e) { return std::string_view(e.family); });
  require(found != std::end(kRecordedErrors), ErrorKind::kInternal,
          "bench timing: no errors of {} are recorded", family_of(timed));
  return *found;
}

void add_range(nlohmann::json& row, TimedOperator timed) {
  const RecordedErrors& errors = recorded_errors(timed);
  const double us = row["predicted_us"];
  row["range_us"] = {us / (1 + errors.high), us / (1 + errors.low)};
  row["range_from"] = errors.family;
}

std::string range_text(const nlohmann::json& row) {
  if (!row.contains("range_us")) return "";
  const double low = row["range_us"][0], high = row["range_us"][1];
  const int digits = low < 100 ? 1 : 0;
  return fmt::format("{:.{}f} to {:.{}f}", low, digits, high, digits);
}

}  // namespace tilewright::cli
