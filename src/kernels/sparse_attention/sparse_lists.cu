// targets: sm_90a
//
// Lists of rows that follow from positions alone, a warp per query, a lane per entry.
//
// Limit: 4 bytes written for each entry; a launch.
// Measured: not run on hardware.
#include "kernels/sparse_attention/sparse_lists.h"
#include "ptx/grid_dependency.h"

namespace tilewright::kernels {
namespace {

struct Entries {
  std::int32_t first, count;
};

__device__ Entries find_entries(const SparseListParams& params, std::int32_t position) {
  if (params.ratio > 0) return {0, min((position + 1) / params.ratio, params.topk)};
  const std::int32_t count = max(0, min(min(params.window, position + 1), params.topk));
  return {position + 1 - count, count};
}

__device__ std::int32_t find_row(const SparseListParams& params, std::int32_t batch,
                                 std::int32_t entry) {
  const std::int32_t at = params.ring > 0 ? entry % params.ring : entry;
  if (params.page_table == nullptr)
    return static_cast<std::int32_t>(batch * params.rows_per_sequence) + at;
  const std::int32_t page = at / params.page_size;
  if (page >= params.pages_per_sequence) return -1;
  const std::int32_t number =
      params.page_table[std::int64_t{batch} * params.pages_per_sequence + page];
  return number < 0 ? -1 : number * params.page_size + at % params.page_size;
}

}  // namespace
}  // namespace tilewright::kernels

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kSparseListThreads)
    sparse_lists(const __grid_constant__ tilewright::kernels::SparseListParams params) {
  using namespace tilewright::kernels;
  tilewright::ptx::griddepcontrol_wait();
  tilewright::ptx::griddepcontrol_launch_dependents();
  const auto query = static_cast<std::int32_t>(blockIdx.x * kSparseListQueries + threadIdx.x / 32);
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  if (query >= params.queries) return;
  const std::int32_t batch = query / params.q_len;
  const Entries entries =
      find_entries(params, params.first_positions[batch] + query % params.q_len);
  std::int32_t* const to = params.indices + query * params.index_stride;
  for (std::int32_t i = lane; i < params.topk; i += 32)
    to[i] = i < entries.count ? find_row(params, batch, entries.first + i) : -1;
  if (lane == 0 && params.lengths != nullptr) params.lengths[query] = entries.count;
}
