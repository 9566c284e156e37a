// Written by tools/make_predicted_times.py from bench/results/*-predicted-*.json: see ranges.h.
#pragma once

#include "bench/timing/ranges.h"

namespace tilewright::cli {

// clang-format off
inline constexpr RecordedErrors kRecordedErrors[] = {
    {"attention", 12, -0.117, 0.086},
    {"decode", 21, -0.075, 0.074},
    {"sparse", 20, -0.151, 0.027},
    {"indexer", 30, -0.104, 0.059},
    {"moe", 4, -0.189, -0.107},
    {"linear", 39, -0.157, 0.026},
    {"all", 126, -0.146, 0.048},
};
// clang-format on

}  // namespace tilewright::cli
