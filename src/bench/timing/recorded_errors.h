// Written by tools/make_predicted_times.py from bench/results/*-predicted-*.json: see ranges.h.
#pragma once

#include "bench/timing/ranges.h"

namespace tilewright::cli {

// clang-format off
inline constexpr RecordedErrors kRecordedErrors[] = {
    {"attention", 36, -0.019, 0.074},
    {"decode", 42, -0.089, 0.071},
    {"sparse", 26, -0.141, 0.038},
    {"indexer", 30, -0.128, 0.065},
    {"moe", 8, -0.156, -0.050},
    {"linear", 40, -0.131, 0.002},
    {"all", 182, -0.125, 0.063},
};
// clang-format on

}  // namespace tilewright::cli
