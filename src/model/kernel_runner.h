// The model through Tilewright's kernels, on a GPU or its simulator.
#pragma once

#include "tilewright/device.h"

#include "model/kernel_step.h"
#include "model/model.h"

#include <memory>

namespace tilewright::model {

/// A runner whose every matrix and attention step is an operator of Tilewright. Several sequences
/// of different lengths share a step; long prompts go in chunks; rows of window and compressors lie
/// in paged caches of RunnerOptions::kv.
///
/// Numbers  streams, queries and inputs of products bf16, results of sub-layers, sums and the
///          inputs of norms and of compressors fp32 (docs/06-deepseek-v4.md has what each costs)
/// Stages   those of a reference file that the kernels store: cache rows as bytes
/// Errors   InvalidArgument if options.kv is nothing, or a size does not suit a kernel; Unsupported
///          on a device without the kernels; OutOfMemory; DeviceError
std::unique_ptr<Runner> make_kernel_runner(const Device& device,
                                           std::shared_ptr<const Weights> weights,
                                           const RunnerOptions& options,
                                           const KernelNumbers& numbers = {});

}  // namespace tilewright::model
