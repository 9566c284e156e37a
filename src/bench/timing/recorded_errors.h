// Written by tools/make_predicted_times.py from bench/results/*-predicted-*.json: see ranges.h.
#pragma once

#include "bench/timing/ranges.h"

namespace tilewright::cli {

// clang-format off
inline constexpr RecordedErrors kRecordedErrors[] = {
    {"attention", 36, -0.035, 0.043},
    {"long", 100, -0.047, 0.038},
    {"decode", 42, -0.087, 0.063},
    {"sparse", 26, -0.139, 0.042},
    {"indexer", 30, -0.110, 0.051},
    {"moe", 8, -0.144, -0.048},
    {"linear", 40, -0.133, 0.005},
    {"all", 282, -0.092, 0.039},
};
// clang-format on

}  // namespace tilewright::cli
