// targets: sm_100f
//
// One list of the lists of neighbouring queries, for kernels that work on several at a time: what
// they all see is gathered and decoded once.
//
//   threads    entries of the first query      entries of the next
//   time ->   | into a table by their rows |  | claim an equal one | append the others, scan | ...
//
// Neighbours in a sequence share all of a compressed list that names every entry, all but one row
// of a window, and some of a list that an indexer has chosen. Rows that are none stay in the first
// list, where they cost nothing, and are left out of the others.
//
// The result depends on the lists alone unless one of them names a row twice: which of two equal
// entries is claimed, or appended first, is not determined. Sums are then added in another order.
//
// Limit: latency. A round of reads from L2 and a scan for each 256 entries.
#include "kernels/sparse_attention/pair/union_lists.h"
#include "kernels/sparse_attention/walk.h"
#include "ptx/grid_dependency.h"

namespace tilewright::kernels {
namespace {

constexpr std::uint32_t kThreads = kSparseUnionThreads;
constexpr std::int32_t kFree = -1;

// The rows of the union so far.
struct Table {
  std::int32_t* places;  ///< number of an entry, or kFree
  std::int32_t* rows;    ///< of entries
  std::uint32_t* owners;
  std::uint32_t size;

  __device__ std::uint32_t first(std::int32_t row) const {
    return (static_cast<std::uint32_t>(row) * 2654435761u >> 7) & (size - 1);
  }
  __device__ void insert(std::int32_t entry, std::int32_t row, std::uint32_t owner) const {
    rows[entry] = row;
    owners[entry] = owner;
    if (row < 0) return;
    std::uint32_t at = first(row);
    while (atomicCAS(&places[at], kFree, entry) != kFree) at = (at + 1) & (size - 1);
  }
  /// True if there is an entry of this row that `owner` had not yet; it has it now.
  __device__ bool claim(std::int32_t row, std::uint32_t owner) const {
    for (std::uint32_t at = first(row); places[at] != kFree; at = (at + 1) & (size - 1)) {
      const std::int32_t entry = places[at];
      if (rows[entry] == row && (atomicOr(&owners[entry], owner) & owner) == 0) return true;
    }
    return false;
  }
};

// How many threads before this one have `mine`, and adds that of all to `total`.
__device__ std::int32_t place_among(bool mine, std::int32_t& total, std::int32_t* warp_sums) {
  const std::uint32_t bits = __ballot_sync(0xffffffffu, mine);
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) warp_sums[warp] = __popc(bits);
  __syncthreads();
  std::int32_t before = total + __popc(bits & ((1u << lane) - 1));
  for (std::uint32_t i = 0; i < kThreads / 32; ++i) {
    if (i < warp) before += warp_sums[i];
    total += warp_sums[i];
  }
  __syncthreads();
  return before;
}

__device__ void unite(const SparseUnionParams& params, const SparseKeys& keys,
                      const SparseUnion& to) {
  extern __shared__ std::int32_t words[];
  __shared__ std::int32_t warp_sums[kThreads / 32];
  const auto number = static_cast<std::int32_t>(blockIdx.x);
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const std::int32_t tiles = (params.q_len + params.queries - 1) / params.queries;
  const std::int32_t batch = number / tiles, first_row = number % tiles * params.queries;
  const std::int32_t most = params.queries * keys.topk;
  const auto size = static_cast<std::uint32_t>(sparse_union_places(most));
  const Table table = {words, words + size, reinterpret_cast<std::uint32_t*>(words) + size + most,
                       size};
  for (std::uint32_t i = threadIdx.x; i < size; i += kThreads) table.places[i] = kFree;
  __syncthreads();
  std::int32_t total = 0;
  for (std::int32_t q = 0; q < min(params.queries, params.q_len - first_row); ++q) {
    const std::int32_t row = first_row + q;
    const std::int32_t length = tile::sparse_length(keys, batch, row);
    for (std::int32_t first = 0; first < length; first += kThreads) {
      const std::int32_t i = first + thread;
      const std::int32_t key =
          i < length ? tile::sparse_row(keys, batch * params.q_len + row, i) : -1;
      const bool is_new = q == 0 ? i < length : key >= 0 && !table.claim(key, 1u << q);
      const std::int32_t at = place_among(is_new, total, warp_sums);
      if (is_new) table.insert(at, key, 1u << q);
      __syncthreads();
    }
  }
  for (std::int32_t i = thread; i < total; i += kThreads) {
    to.indices[std::int64_t{number} * most + i] = table.rows[i];
    to.masks[std::int64_t{number} * most + i] = static_cast<std::uint16_t>(table.owners[i]);
  }
  if (thread == 0) to.lengths[number] = total;
}

}  // namespace
}  // namespace tilewright::kernels

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kSparseUnionThreads)
    sparse_union_lists(const __grid_constant__ tilewright::kernels::SparseUnionParams params) {
  using namespace tilewright::kernels;
  tilewright::ptx::griddepcontrol_wait();
  tilewright::ptx::griddepcontrol_launch_dependents();
  if (blockIdx.y == 0) {
    if (params.keys[0].topk > 0) unite(params, params.keys[0], params.unions[0]);
  } else {
    if (params.keys[1].topk > 0) unite(params, params.keys[1], params.unions[1]);
  }
}
