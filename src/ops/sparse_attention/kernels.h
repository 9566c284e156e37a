// The kernels that attend over chosen rows, as a table: what each can do, and how it is launched.
#pragma once

#include "tilewright/sparse_attention.h"

#include "device/device.h"

#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace tilewright::ops {

/// Queries for each group of CTAs, both ends included; none if not said otherwise.
struct SparseMergeRange {
  double from = std::numeric_limits<double>::infinity(), to = 0;
};

/// How a kernel is launched for a problem.
struct SparseKernelShape {
  std::string entry;
  int head_slots = 0;  ///< heads that are multiplied, padding included
  int group_ctas = 1;  ///< CTAs along x that are a group
  int cluster = 1;     ///< of them that are a cluster
  int head_ctas = 1;   ///< CTAs along y, each with some of the heads
  int ctas_per_sm = 1;
  int threads = 0, shared_bytes = 0;
  bool takes_pairs = false;   ///< its argument is SparsePairParams
  bool takes_latent = false;  ///< its argument is LatentParams
  bool takes_wgmma = false;   ///< its argument is SparseWgmmaParams
  /// With so many queries for each group CTAs merge the parts that they computed, for which they
  /// wait for each other. Otherwise, as for kernels that cannot, another launch merges.
  SparseMergeRange merging = {};
  /// Neighbouring queries of a sequence at a time, over the union of their lists, if more than 1.
  int queries = 1;
};

/// What a kernel takes, in microseconds of a group: what plan() chooses by, and what the schedule
/// compares blocks and work items with. On an H200 measured, on Blackwell estimated from counts.
struct SparseRates {
  double block_us;    ///< for 64 keys
  double piece_us;    ///< for each query or part of one, beside its blocks
  double partial_us;  ///< more for a part of one: fp32 results through memory
  double launch_us;   ///< once
};

struct SparseKernel {
  const char* name;
  int capability;  ///< 90: Hopper alone; 100: Blackwell alone; 0: both
  /// Why it cannot do it; empty if it can.
  std::string (*obstacle)(const SparseAttentionProblem& problem);
  SparseKernelShape (*shape)(const SparseAttentionProblem& problem);
  SparseRates (*rates)(const device::DeviceInfo& device, const SparseAttentionProblem& problem);
  /// Why "auto" leaves it alone although it can; null: it never does.
  std::string (*reservation)(const SparseAttentionProblem& problem) = nullptr;
};

std::span<const SparseKernel> sparse_kernels() noexcept;
/// Why a kernel cannot do a problem on a device; empty if it can.
std::string sparse_obstacle(const SparseKernel& kernel, const device::DeviceInfo& device,
                            const SparseAttentionProblem& problem);
/// nullptr if there is none of that name.
const SparseKernel* find_sparse_kernel(const std::string& name) noexcept;

/// For the combination of partial results, if there are any.
inline constexpr double kSparseCombineUs = 2.5;

/// How much longer than a list the union of neighbours' lists is taken to be for each further
/// query. Not known to a plan: 0 where all entries are shared, 0.3 where an indexer chooses (an
/// assumption), 1 at most.
inline constexpr double kSparseUnionGrowth = 0.3;

/// What groups walk: queries, or tiles of them.
std::int64_t sparse_walks(const SparseAttentionProblem& problem,
                          const SparseKernelShape& shape) noexcept;
/// Groups that work at the same time on a device.
int sparse_groups(const SparseKernelShape& shape, const device::DeviceInfo& device) noexcept;

/// Expected time: the groups' shares of all blocks and pieces, but at least the bytes.
double sparse_cost_us(const SparseKernel& kernel, const device::DeviceInfo& device,
                      const SparseAttentionProblem& problem) noexcept;

}  // namespace tilewright::ops
