// Several ranks of one process as one runner.
#pragma once

#include "tilewright/device.h"

#include "model/kernel_runner/make.h"

#include <memory>
#include <vector>

namespace tilewright::model {

/// A kernel runner for each rank, all on `device`, each in a thread of its own while forward()
/// runs: for the simulator. `weights`: of every rank in order, of its share each. The logits are
/// those of rank 0, the stages, too. RunnerOptions::on_load is told of its layers alone.
/// Errors   as make_kernel_runner; InvalidArgument unless there are 1 to 64 ranks. What a rank
///          throws ends forward() on all, and is thrown; so do all later calls
std::unique_ptr<Runner> make_ranked_runner(
    const Device& device, const std::vector<std::shared_ptr<const Weights>>& weights,
    const RunnerOptions& options);

}  // namespace tilewright::model
