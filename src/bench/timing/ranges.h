// How far a predicted time may be off: the range that recorded errors of its family make likely.
#pragma once

#include "bench/timing/timing.h"

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tilewright::cli {

/// Errors, predicted over measured less 1, of a family's points in bench/results against an H200:
/// four of five lie between the two (the quantiles 0.1 and 0.9). Of fewer than 20 points they are
/// the least and the largest, as one point in ten says nothing there.
struct RecordedErrors {
  const char* family;  ///< "attention"; "all": those of all families
  int points;
  double low, high;
};

/// Those of the operator's family; of quantising, which no log has, those of all families.
const RecordedErrors& recorded_errors(TimedOperator timed);

/// row["range_us"] = [predicted / (1 + high), predicted / (1 + low)], and row["range_from"], of a
/// row with "predicted_us".
void add_range(nlohmann::json& row, TimedOperator timed);

/// "82 to 101" of such a row.
std::string range_text(const nlohmann::json& row);

}  // namespace tilewright::cli
