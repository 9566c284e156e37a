// From traces of some CTAs to the time of a launch: waves, tails, the share of the chip's memory.
#pragma once

#include "sim/report/prediction.h"
#include "sim/state/code.h"
#include "sim/time/time_parameters.h"
#include "sim/time/trace.h"

namespace tilewright::sim {

/// `trace` has some of the launch's clusters or all. The SM that ends last, if each CTA takes its
/// next one as it is done, is played in detail.
Prediction predict_launch(const KernelCode& code, const Launch& launch, const DeviceModel& model,
                          const TimeParameters& parameters, const LaunchTrace& trace);

}  // namespace tilewright::sim
