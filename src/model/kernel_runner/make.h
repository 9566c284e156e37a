// The model through Tilewright's kernels, on a GPU or its simulator.
#pragma once

#include "tilewright/device.h"

#include "comm/communicator.h"
#include "model/kernel_runner/step.h"
#include "model/model.h"

#include <memory>

namespace tilewright::model {

/// A runner whose every matrix and attention step is an operator of Tilewright. Several sequences
/// of different lengths share a step; long prompts go in chunks; rows of window and compressors lie
/// in paged caches of RunnerOptions::kv.
///
/// Numbers  streams, queries and inputs of products bf16, results of sub-layers, sums and the
///          inputs of norms and of compressors fp32 (docs/06-deepseek-v4.md has what each costs)
/// Caches   with RunnerOptions::cache_tokens one pool of pages for all sequences, with experts in
///          parallel one for those of each rank; window rings and states of compressors are each
///          sequence's own
/// Steps    sizes are filled up to a few, and recorded as graphs from the second of a size on. What
///          fills up belongs to no sequence, and writes to no cache
/// Stages   those of a reference file that the kernels store: cache rows as bytes
/// Ranks    weights of a share need `comm`, with the ranks of that share. Every rank has a runner
///          of its own, of its weights and the same options, and all are called alike, with the
///          tokens of all sequences: each does its part, and all return the same logits, so that
///          all continue with the same tokens. With experts in parallel sequences are divided in
///          their order (rank_range()). Stages are those of the rank's heads; with experts in
///          parallel there are none (Unsupported)
/// Errors   InvalidArgument if options.kv is nothing, a size does not suit a kernel, or the ranks
///          are others than those that share the weights; Unsupported on a device without the
///          kernels; OutOfMemory; DeviceError, also for a rank that failed: its error is told to
///          the others
std::unique_ptr<Runner> make_kernel_runner(const Device& device,
                                           std::shared_ptr<const Weights> weights,
                                           const RunnerOptions& options,
                                           const KernelNumbers& numbers = {},
                                           std::shared_ptr<comm::Communicator> comm = nullptr);

}  // namespace tilewright::model
