#include "ops/sparse_attention_kernels.h"

#include "kernels/sparse_attention/sparse_naive.h"
#include "ops/sparse_attention_problem.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

int ceil_div(std::int64_t a, std::int64_t b) {
  return static_cast<int>((a + b - 1) / b);
}

std::string entry_name(const char* kernel, const SparseAttentionProblem& p) {
  return fmt::format("{}_{}", kernel, to_string(sparse_format(p)));
}

SparseKernelShape naive_shape(const SparseAttentionProblem& p) {
  const int ctas = ceil_div(p.heads, kernels::kSparseNaiveHeads);
  return {.entry = entry_name("sparse_naive", p),
          .head_slots = ctas * kernels::kSparseNaiveHeads,
          .head_ctas = ctas,
          .ctas_per_sm = 2,
          .threads = kernels::kSparseNaiveThreads,
          .shared_bytes = kernels::kSparseNaiveSharedBytes};
}

// From counts, not measured: 1024 flops and as many loads from shared memory for a key and head.
SparseRates naive_rates(const SparseAttentionProblem&) {
  return {.block_us = 12, .piece_us = 4, .launch_us = 4};
}

constexpr SparseKernel kKernels[] = {
    {"naive", [](const SparseAttentionProblem&) { return std::string(); }, naive_shape,
     naive_rates},
};

}  // namespace

std::span<const SparseKernel> sparse_kernels() noexcept {
  return kKernels;
}

const SparseKernel* find_sparse_kernel(const std::string& name) noexcept {
  const auto* const at = std::ranges::find(kKernels, name, &SparseKernel::name);
  return at == std::end(kKernels) ? nullptr : at;
}

int sparse_groups(const SparseKernelShape& shape, const device::DeviceInfo& device) noexcept {
  return std::max(1, device.num_sms * shape.ctas_per_sm / (shape.cluster * shape.head_ctas));
}

double sparse_cost_us(const SparseKernel& kernel, const device::DeviceInfo& device,
                      const SparseAttentionProblem& p) noexcept {
  constexpr double kBytesPerS = 4.2e12;
  const SparseRates rates = kernel.rates(p);
  const double groups = sparse_groups(kernel.shape(p), device);
  const auto queries = static_cast<double>(sparse_queries(p));
  const auto blocks = static_cast<double>(sparse_blocks_of_query(p));
  // Split no finer than into blocks.
  const double pieces = std::max(queries, std::min(groups, queries * blocks));
  const double shares = std::min(groups, std::max(1.0, queries * blocks));
  const double work = (queries * blocks * rates.block_us + pieces * rates.piece_us) / shares;
  return std::max(work, 1e6 * sparse_bytes(p) / kBytesPerS) + rates.launch_us;
}

}  // namespace tilewright::ops
