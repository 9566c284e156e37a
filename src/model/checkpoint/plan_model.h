// What the operators of a step of a model would launch, planned without weights or memory.
#pragma once

#include "tilewright/device.h"
#include "tilewright/format.h"
#include "tilewright/plan.h"

#include "model/model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::model {

struct StepShape {
  Config config;
  Share share = {};
  NumberFormat experts = NumberFormat::kMxfp4;
  RunnerOptions options = {};  ///< formats and room of the caches
  std::int64_t sequences = 1;
  std::int64_t tokens = 1;  ///< of the step, of all sequences
};

struct NamedPlan {
  std::string name;  ///< "wq_b", "experts", "sparse attention (CSA)"
  Plan plan;
};

/// One of each kind: layers of a kind have the same operators. `device` may be one that was opened
/// to plan alone.
/// Errors   as the operators' plan functions, with the operator named
std::vector<NamedPlan> plan_model(const Device& device, const StepShape& shape);

}  // namespace tilewright::model
