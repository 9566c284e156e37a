// targets: sm_100f
//
// One list of the lists of two neighbouring queries, for kernels that work on both at a time: what
// both see is gathered and decoded once.
//
//   threads    entries of the first query       entries of the second
//   time ->   | into a table by their rows |    | claim an equal one | append the others, scan |
//
// Neighbours in a sequence share all of a compressed list that names every entry, all but one row
// of a window, and some of a list that an indexer has chosen. Rows that are none are kept in the
// first list, where they cost nothing, and left out of the second.
//
// The order of the result depends on the lists alone: equal rows of one list are alike, and those
// that find no partner are appended in the order of the second list.
//
// Limit: latency. Two rounds of reads from L2 and a scan for each 256 entries.
#include "kernels/sparse_attention/pair/union_lists.h"
#include "kernels/sparse_attention/work.h"
#include "ptx/grid_dependency.h"

namespace tilewright::kernels {
namespace {

constexpr std::uint32_t kThreads = kSparseUnionThreads;
constexpr std::int32_t kFree = -1;

struct Table {
  std::int32_t* places;  ///< number of an entry of the first query, or kFree
  std::int32_t* rows;    ///< of these entries
  std::uint32_t* owners;
  std::uint32_t size;

  __device__ std::uint32_t first(std::int32_t row) const {
    return (static_cast<std::uint32_t>(row) * 2654435761u >> 7) & (size - 1);
  }
  __device__ void insert(std::int32_t entry, std::int32_t row) const {
    std::uint32_t at = first(row);
    while (atomicCAS(&places[at], kFree, entry) != kFree) at = (at + 1) & (size - 1);
  }
  /// True if an entry of the first query with this row had no partner yet; it has one now.
  __device__ bool claim(std::int32_t row) const {
    for (std::uint32_t at = first(row); places[at] != kFree; at = (at + 1) & (size - 1)) {
      const std::int32_t entry = places[at];
      if (rows[entry] == row && atomicOr(&owners[entry], 2u) == 1u) return true;
    }
    return false;
  }
};

struct Pair {
  std::int32_t batch, row;

  __device__ Pair(const SparseUnionParams& params, std::int32_t number) {
    const std::int32_t pairs = (params.q_len + 1) / 2;
    batch = number / pairs;
    row = number % pairs * 2;
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
  const Pair pair(params, number);
  const std::int32_t length = tile::sparse_length(keys, pair.batch, pair.row);
  const bool is_alone = pair.row + 1 >= params.q_len;
  const std::int32_t other = is_alone ? 0 : tile::sparse_length(keys, pair.batch, pair.row + 1);
  const auto size = static_cast<std::uint32_t>(sparse_union_places(keys.topk));
  const Table table = {words, words + size,
                       reinterpret_cast<std::uint32_t*>(words) + size + keys.topk, size};
  const std::int32_t query = pair.batch * params.q_len + pair.row;
  std::int32_t* const indices = to.indices + std::int64_t{number} * 2 * keys.topk;
  std::uint8_t* const masks = to.masks + std::int64_t{number} * 2 * keys.topk;
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  for (std::uint32_t i = threadIdx.x; i < size; i += kThreads) table.places[i] = kFree;
  __syncthreads();
  for (std::int32_t i = thread; i < length; i += kThreads) {
    const std::int32_t row = tile::sparse_row(keys, query, i);
    table.rows[i] = row;
    table.owners[i] = 1;
    if (row >= 0) table.insert(i, row);
    indices[i] = row;
  }
  __syncthreads();
  std::int32_t total = length;
  for (std::int32_t first = 0; first < other; first += kThreads) {
    const std::int32_t i = first + thread;
    const std::int32_t row = i < other ? tile::sparse_row(keys, query + 1, i) : -1;
    const bool is_new = row >= 0 && !table.claim(row);
    const std::int32_t at = place_among(is_new, total, warp_sums);
    if (is_new) {
      indices[at] = row;
      masks[at] = 2;
    }
  }
  __syncthreads();
  for (std::int32_t i = thread; i < length; i += kThreads)
    masks[i] = static_cast<std::uint8_t>(table.owners[i]);
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
