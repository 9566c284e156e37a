// The arithmetic of the lightning indexer: what a call launches, and where a workspace has what.
#pragma once

#include "tilewright/indexer.h"

#include "device/device.h"
#include "device/kernel.h"
#include "formats/index_page.h"
#include "kernels/sparse_attention/indexer/indexer_query.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace tilewright::ops {

/// Checks, and fills in layouts.
/// Errors   InvalidArgument naming field, value and rule
IndexerProblem complete_indexer_problem(const IndexerProblem& problem);

constexpr IndexFormat indexer_format(const IndexerProblem& problem) noexcept {
  return problem.format == NumberFormat::kFp8 ? IndexFormat::kFp8 : IndexFormat::kMxfp4;
}

/// Tokens of a call, and the tokens of each sequence; 0: they differ.
struct IndexerCallSizes {
  std::int64_t tokens = 0, q_len = 0;
};

/// The device multiplies with tcgen05.mma, by kernels of its own.
bool has_tensor_memory(const device::DeviceInfo& device);
/// Heads of a token that the kernels have columns for: 8, 16, 32 or 64.
int indexer_head_slots(std::int64_t heads) noexcept;
/// Columns that Blackwell's kernel has for sequences of q_len tokens; 0: of any number.
int indexer_columns(int head_slots, std::int64_t q_len) noexcept;
/// The launch that scores the tokens of sequences of q_len.
device::LaunchConfig indexer_logits_launch(const device::DeviceInfo& device, IndexFormat format,
                                           int head_slots, std::int64_t q_len, bool has_ranges);

std::string indexer_entry(const device::DeviceInfo& device, const IndexerProblem& problem,
                          IndexerStep step);
device::LaunchConfig indexer_launch(const device::DeviceInfo& device, const IndexerProblem& problem,
                                    IndexerStep step, const IndexerCallSizes& call);
/// Logits of a row that each CTA of a launch keeps in shared memory.
std::int64_t indexer_held_logits(const IndexerProblem& problem, const device::LaunchConfig& select);

/// Byte offsets of what a workspace holds.
struct IndexerWorkspace {
  std::size_t shares, units, codes, scales, weights, logits, bytes;
  std::int64_t logits_stride;

  IndexerWorkspace(const device::DeviceInfo& device, const IndexerProblem& problem,
                   std::int64_t tokens, std::int64_t batch);
};

/// Of the step kQuery of a call, checked.
kernels::IndexerQueryParams indexer_query_params(const Device& device,
                                                 const IndexerProblem& problem,
                                                 const IndexerArguments& arguments);

/// Errors   as Indexer's constructor; InvalidArgument for numbers below 0
IndexerPlan make_indexer_plan(const device::DeviceInfo& device, const IndexerProblem& problem,
                              std::int64_t tokens, std::int64_t batch);

}  // namespace tilewright::ops
