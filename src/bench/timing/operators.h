// Runs a measured point of a log again, on a simulated device that predicts its time.
#pragma once

#include "tilewright/device.h"

#include "bench/timing/timing.h"

#include <nlohmann/json_fwd.hpp>

namespace tilewright::cli {

/// Before the device is opened: then the simulator reads what it is to do, so many clusters of a
/// launch. Its checks take long and change no prediction.
void request_predictions(int sample);

/// What the simulator says of the launches that the log timed: {"us", ...}, see
/// sim/report/prediction_text.h. Calls that were timed in a graph are run in one.
/// Errors   Unsupported if there is no such kernel
nlohmann::json predict_point(const Device& device, const TimingPoint& point);

}  // namespace tilewright::cli
