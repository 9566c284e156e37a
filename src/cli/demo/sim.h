// The part of the demo that runs a kernel on the simulator.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tilewright::cli {

/// Reverses an array through shared memory without the barrier that this needs. Members: kernel,
/// findings, text (the first finding as it is printed).
nlohmann::json find_a_race();

}  // namespace tilewright::cli
