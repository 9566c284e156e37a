// Written by tools/make_predicted_times.py from bench/results/*-predicted-*.json: see ranges.h.
#pragma once

#include "bench/timing/ranges.h"

namespace tilewright::cli {

// clang-format off
inline constexpr RecordedErrors kRecordedErrors[] = {
    {"attention", 12, -0.106, 0.169},
    {"decode", 21, -0.081, 0.056},
    {"sparse", 20, -0.169, 0.082},
    {"indexer", 30, -0.090, 0.048},
    {"moe", 8, -0.295, -0.126},
    {"linear", 39, -0.158, 0.038},
    {"all", 130, -0.159, 0.052},
};
// clang-format on

}  // namespace tilewright::cli
