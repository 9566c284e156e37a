// targets: sm_90a sm_100f
//
// The schedule of sparse decode, made where the lengths are, by one CTA.
//
// All queries form a line on which each takes piece_cost + its blocks. The line is cut every
// `width`; a cut falls on the nearest block of a query, or before its first. Eight widths are tried
// at once, a thread for each (width, group), and the one whose slowest group is fastest is taken:
// some from the line's length over the number of groups upwards, one that is a multiple of the
// mean query, and, with two groups or more for each query, equal parts of each query in place of a
// width. With equal lists the least wide cut would often leave a splinter of a query to every
// group, where a slightly wider one gives each of them whole queries, and equal parts give each as
// many blocks.
//
//   threads     a few queries each      (width, group)         group        piece
//   time ->   | lengths, sums, scan | cost of each width | cuts, scan | merges, pieces |
//
// Limit: latency of two scans and of two searches, ten dependent reads of shared memory each; in
// the shadow of the preceding kernel, or made once for all layers of a model. A first form with
// sixteen widths, both ends of a group searched and a warp per group in the last step took 9 us on
// an H200 for 132 groups and 16 for 264.
#include "kernels/sparse_attention/sparse_schedule.h"
#include "kernels/sparse_attention/work.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kThreads = kSparseScheduleThreads;
constexpr int kWidths = 8;
// Of an equal part: what it costs to merge one more takes longer than a block less saves.
constexpr int kFewestBlocks = 3;
constexpr int kLaneGroups = 31;  // of a warp; the last lane has the end of the last one
constexpr unsigned kAllLanes = 0xffffffffu;

struct Cut {
  std::int32_t query, block;  // block 0: before the query
};

struct Shared {
  std::int32_t starts[kSparseScheduleMaxQueries + 1];  // on the line; the last is its length
  Cut cuts[kSparseScheduleMaxGroups + 1];
  std::int32_t first_pieces[kSparseScheduleMaxGroups + 1];
  std::int32_t warp_sums[32];
  std::int32_t dearest[kWidths];
  unsigned splits;  // bit i: width i cuts queries
  std::int32_t width;
};

// Sum of what the threads before have; barriers of the CTA inside.
__device__ std::int32_t sum_before(std::int32_t mine, Shared& shared) {
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::int32_t sum = mine;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::int32_t other = __shfl_up_sync(kAllLanes, sum, step);
    if (lane >= static_cast<std::uint32_t>(step)) sum += other;
  }
  __syncthreads();  // the sums of an earlier call have been read
  if (lane == 31) shared.warp_sums[warp] = sum;
  __syncthreads();
  std::int32_t before = 0;
  for (std::uint32_t i = lane; i < warp; i += 32) before += shared.warp_sums[i];
  return static_cast<std::int32_t>(__reduce_add_sync(kAllLanes, before)) + sum - mine;
}

struct Scheduler {
  const SparseScheduleParams& params;
  Shared& shared;
  std::int32_t queries = params.batch * params.q_len;

  __device__ std::int32_t num_blocks(std::int32_t query) const {
    const std::int32_t length = shared.starts[query + 1] - shared.starts[query];
    return (length - params.piece_cost) / kSparseBlockCost;
  }

  __device__ std::int32_t query_cost(std::int32_t query) const {
    const std::int32_t batch = query / params.q_len, row = query % params.q_len;
    std::int32_t blocks = 0;
#pragma unroll
    for (const SparseKeys& keys : params.keys)
      blocks += tile::sparse_blocks(tile::sparse_length(keys, batch, row));
    return params.piece_cost + kSparseBlockCost * blocks;
  }

  __device__ void lay_out() {
    const std::int32_t per_thread = (queries + kThreads - 1) / kThreads;
    const std::int32_t first = static_cast<std::int32_t>(threadIdx.x) * per_thread;
    const std::int32_t end = min(first + per_thread, queries);
    std::int32_t sum = 0;
#pragma unroll 1
    for (std::int32_t query = first; query < end; ++query) {
      const std::int32_t cost = query_cost(query);
      shared.starts[query] = cost;
      sum += cost;
    }
    std::int32_t start = sum_before(sum, shared);
    if (threadIdx.x == kThreads - 1) shared.starts[queries] = start + sum;
#pragma unroll 1
    for (std::int32_t query = first; query < end; ++query) {
      const std::int32_t cost = shared.starts[query];
      shared.starts[query] = start;
      start += cost;
    }
    if (threadIdx.x < kWidths) shared.dearest[threadIdx.x] = 0;
    if (threadIdx.x == kWidths) shared.splits = 0;
    __syncthreads();
  }

  // The last query that starts at or before `at`; `queries` at the end of the line.
  __device__ std::int32_t find_query(std::int32_t at) const {
    std::int32_t low = 0, high = queries;
    while (low < high) {
      const std::int32_t middle = (low + high + 1) / 2;
      if (shared.starts[middle] <= at) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  // A group's of `parts` equal parts of each query. Queries of fewer blocks have fewer parts, and
  // groups without one begin where the next query does.
  __device__ Cut find_even_cut(std::int32_t group, std::int32_t parts) const {
    const std::int32_t query = group / parts, part = group - query * parts;
    if (query >= queries) return {queries, 0};
    const std::int32_t blocks = num_blocks(query), cuts = min(parts, max(blocks, 1));
    if (part >= cuts) return {query + 1, 0};
    return {query, static_cast<std::int32_t>(std::int64_t{part} * blocks / cuts)};
  }

  __device__ Cut find_cut(std::int32_t group, std::int32_t width) const {
    if (width < 0) return find_even_cut(group, -width);
    const std::int64_t wanted = std::int64_t{group} * width;
    if (wanted >= shared.starts[queries]) return {queries, 0};
    const auto at = static_cast<std::int32_t>(wanted);
    const std::int32_t query = find_query(at);
    const std::int32_t inside =
        at - shared.starts[query] - params.piece_cost + kSparseBlockCost / 2;
    if (inside < kSparseBlockCost) return {query, 0};
    const std::int32_t block = inside / kSparseBlockCost;
    if (block >= num_blocks(query)) return {query + 1, 0};
    return {query, block};
  }

  __device__ std::int32_t position(const Cut& cut) const {
    return shared.starts[cut.query] +
           (cut.block > 0 ? params.piece_cost + kSparseBlockCost * cut.block : 0);
  }
  // A cut inside a query costs the group after it another piece, and both a partial result.
  __device__ std::int32_t cost(const Cut& from, const Cut& to) const {
    return position(to) - position(from) +
           (from.block > 0 ? params.piece_cost + params.partial_cost : 0) +
           (to.block > 0 && (to.query != from.query || from.block == 0) ? params.partial_cost : 0);
  }

  // Below 0: into how many equal parts each query is cut.
  __device__ std::int32_t width_of(int number) const {
    const std::int32_t all = shared.starts[queries];
    const std::int32_t least = max((all + params.groups - 1) / params.groups, kSparseBlockCost);
    if (number == kWidths - 2 && 2 * queries <= params.groups) {
      const std::int32_t blocks = (all / queries - params.piece_cost) / kSparseBlockCost;
      return -min(params.groups / queries, max((blocks + kFewestBlocks - 1) / kFewestBlocks, 1));
    }
    if (number < kWidths - 1) return least + max(number, least / 32 * number);
    const std::int32_t query = (all + queries - 1) / queries;
    return (least + query - 1) / query * query;
  }

  __device__ void choose_width() {
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    const std::int32_t parts = (params.groups + kLaneGroups - 1) / kLaneGroups;
#pragma unroll 1
    for (auto i = static_cast<std::int32_t>(threadIdx.x / 32); i < kWidths * parts;
         i += kThreads / 32) {
      const int number = i % kWidths;
      const std::int32_t group = i / kWidths * kLaneGroups + lane;
      const Cut from = find_cut(group, width_of(number));
      const Cut to = {__shfl_down_sync(kAllLanes, from.query, 1),
                      __shfl_down_sync(kAllLanes, from.block, 1)};
      const std::int32_t mine = lane < kLaneGroups ? cost(from, to) : 0;
      const std::int32_t most = __reduce_max_sync(kAllLanes, mine);
      const bool has_split = __any_sync(kAllLanes, from.block > 0) != 0;
      if (lane == 0) {
        atomicMax(&shared.dearest[number], most);
        if (has_split) atomicOr(&shared.splits, 1u << number);
      }
    }
    __syncthreads();
    if (threadIdx.x < 32) {
      // The cheapest; of equals the last, the widest, but for equal parts.
      const bool is_try = threadIdx.x < kWidths;
      const std::int32_t combining = shared.splits >> threadIdx.x & 1 ? params.combine_cost : 0;
      const std::uint32_t key =
          is_try ? static_cast<std::uint32_t>(shared.dearest[threadIdx.x] + combining) : kAllLanes;
      const std::uint32_t best = __reduce_min_sync(kAllLanes, key);
      const unsigned equals = __ballot_sync(kAllLanes, is_try && key == best);
      if (threadIdx.x == 0) shared.width = width_of(31 - __clz(static_cast<int>(equals)));
    }
    __syncthreads();
  }

  // Pieces before a cut: whole queries, cuts inside queries, and the query that it is in.
  __device__ void cut() {
    const auto group = static_cast<std::int32_t>(threadIdx.x);
    const Cut mine = group < params.groups ? find_cut(group, shared.width) : Cut{queries, 0};
    const std::int32_t before = sum_before(mine.block > 0 ? 1 : 0, shared);
    if (group < params.groups) {
      shared.cuts[group] = mine;
      shared.first_pieces[group] = mine.query + before + (mine.block > 0 ? 1 : 0);
    }
    if (group == kThreads - 1) {  // before it come the inner cuts of all others
      shared.cuts[params.groups] = {queries, 0};
      shared.first_pieces[params.groups] = queries + before + (mine.block > 0 ? 1 : 0);
    }
    __syncthreads();
  }

  __device__ SparseWork piece(std::int32_t group, std::int32_t index) const {
    const Cut from = shared.cuts[group], to = shared.cuts[group + 1];
    const std::int32_t query = from.query + index, blocks = num_blocks(query);
    const std::int32_t begin = index == 0 ? from.block : 0;
    const std::int32_t end = query == to.query ? to.block : blocks;
    const bool is_whole = begin == 0 && end == blocks;
    return {query, begin, end, is_whole ? -1 : 2 * group + (index == 0 ? 0 : 1)};
  }

  // The query whose first part ends this group, and how many cuts fall into it.
  __device__ SparseMerge merge(std::int32_t group, std::int32_t pieces) const {
    if (pieces == 0) return {-1, 0, 0};
    const SparseWork last = piece(group, pieces - 1);
    if (last.partial < 0 || last.begin_block > 0) return {-1, 0, 0};
    if (shared.width < 0)
      return {last.query, last.partial, min(-shared.width, num_blocks(last.query))};
    const std::int32_t behind = shared.starts[last.query + 1] - kSparseBlockCost / 2;
    const std::int32_t last_cut = (behind + shared.width - 1) / shared.width - 1;
    return {last.query, last.partial, last_cut - group + 1};
  }

  __device__ std::int32_t find_group(std::int32_t piece) const {
    std::int32_t low = 0, high = params.groups - 1;
    while (low < high) {
      const std::int32_t middle = (low + high + 1) / 2;
      if (shared.first_pieces[middle] <= piece) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  __device__ void write_slots(std::int32_t group, const SparseMerge& of) const {
    for (int i = 0; i < kSparseCountersOfGroup; ++i)
      params.counters[kSparseCountersOfGroup * group + i] = 0;
#pragma unroll 1
    for (std::int32_t part = 0; part < of.parts; ++part)
      params.merge_of_slot[sparse_part_slot(of.first_slot, part)] = of;
  }

  __device__ void write() const {
    const auto thread = static_cast<std::int32_t>(threadIdx.x);
    const std::int32_t pieces = shared.first_pieces[params.groups];
    if (thread < params.groups) {
      const std::int32_t first = shared.first_pieces[thread];
      params.work_begin[thread] = first;
      const SparseMerge of = merge(thread, shared.first_pieces[thread + 1] - first);
      params.merges[thread] = of;
      if (params.merge_of_slot != nullptr) write_slots(thread, of);
    }
    if (thread == 0) params.work_begin[params.groups] = pieces;
#pragma unroll 1
    for (std::int32_t i = thread; i < pieces; i += kThreads) {
      const std::int32_t group = find_group(i);
      params.work[i] = piece(group, i - shared.first_pieces[group]);
    }
  }
};

__device__ void schedule(const SparseScheduleParams& params) {
  __shared__ Shared shared;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  Scheduler scheduler{params, shared};
  scheduler.lay_out();
  scheduler.choose_width();
  scheduler.cut();
  scheduler.write();
}

}  // namespace

TILEWRIGHT_KERNEL(sparse_schedule, SparseScheduleParams, __launch_bounds__(kSparseScheduleThreads),
                  schedule)

}  // namespace tilewright::kernels
