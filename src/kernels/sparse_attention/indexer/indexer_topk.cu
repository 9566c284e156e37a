// targets: sm_90a sm_100f
//
// The topk largest logits of a row, exactly, and where their entries lie in the cache. A CTA, or a
// cluster of them, per row; each keeps its part of the row in shared memory as keys that order like
// the numbers.
//
//   load: keys, least and largest | histogram of 2048 equal steps between them | the step with the
//   topk-th | its keys, up to 512, are ranked against each other (more: three digits of 11, 11 and
//   10 bits) | a warp per stretch: counts what is above and what equals | scan | writes entries in
//   ascending order, translated through the block table
//
// Equal steps of value spread neighbours over many counters, so that atomics hardly meet and the
// chosen step holds a handful of keys; digits of the bit pattern would put most of a row into a few
// binades.
//
// Limit: instructions, about 100 an entry of a row over all passes; reading it is 4 bytes an entry.
// Rows of up to 262,144 are shared by a cluster of eight.
// Measured: H200, 256 rows of 8192 in 17.2 us, 4 of 65,536 in 22 us, one of 262,000 in 31 us.
// Sources: none; radix selection is folklore.
#include "kernels/sparse_attention/indexer/indexer_topk.h"
#include "kernels/sparse_attention/sequence_tokens.h"
#include "ptx/cluster.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

#include <math.h>

namespace tilewright::kernels {
namespace {

constexpr int kThreads = kIndexerTopkThreads, kWarps = kThreads / 32;
constexpr int kBins = 2048, kBinsPerThread = kBins / kThreads;
constexpr int kCandidates = kThreads;
constexpr std::uint32_t kNothing = 0;  // below the key of -inf
// Of Blackwell, ptxas keeps to 32 registers and spills unless it is told that one CTA is enough.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int kMinCtas = 1;
#else
constexpr int kMinCtas = 0;
#endif

// Orders like the float; -0 like 0, NaN like -inf.
__device__ std::uint32_t order_key(float x) {
  const float clean = isnan(x) ? -INFINITY : x + 0.0f;
  const std::uint32_t bits = __float_as_uint(clean);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ float value_of(std::uint32_t key) {
  return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

struct Found {
  std::int32_t bin, above, inside;  // keys in higher bins, in this one
};

struct Shared {
  std::uint32_t histogram[kBins];
  std::uint32_t candidates[kCandidates];
  std::uint32_t above[kWarps], equal[kWarps];  // what warps contribute
  std::uint32_t least, largest, num_candidates, threshold;
  std::uint32_t cta_above, cta_equal;  // of all warps
  Found found;
};

// The part of a row that a CTA has.
struct Part {
  const float* logits;
  const std::uint32_t* held;  // keys of the first num_held
  std::int32_t begin, count, num_held;
  std::uint32_t rank, ctas;

  // Four keys from `at` on, a multiple of 4; what lies behind the row is kNothing.
  __device__ uint4 read(std::int32_t at) const {
    const float4 x = __ldg(reinterpret_cast<const float4*>(logits + begin + at));
    return make_uint4(
        at < count ? order_key(x.x) : kNothing, at + 1 < count ? order_key(x.y) : kNothing,
        at + 2 < count ? order_key(x.z) : kNothing, at + 3 < count ? order_key(x.w) : kNothing);
  }
  __device__ uint4 keys(std::int32_t at) const {
    return at < num_held ? *reinterpret_cast<const uint4*>(held + at) : read(at);
  }
};

template <class Function>
__device__ void for_each(const uint4& keys, Function&& function) {
  function(keys.x, 0);
  function(keys.y, 1);
  function(keys.z, 2);
  function(keys.w, 3);
}

// Every key of the part once, by some thread.
template <class Function>
__device__ void for_each_key(const Part& part, Function&& function) {
  for (auto at = 4 * static_cast<std::int32_t>(threadIdx.x); at < part.count; at += 4 * kThreads) {
    for_each(part.keys(at), [&](std::uint32_t key, int) {
      if (key != kNothing) function(key);
    });
  }
}

__device__ void sync_row(const Part& part) {
  if (part.ctas > 1) {
    ptx::cluster_sync();
  } else {
    __syncthreads();
  }
}

// A word of another CTA's shared memory.
__device__ std::uint32_t read_from(const std::uint32_t* word, std::uint32_t rank) {
  return ptx::ld_shared_cluster_u32(
      ptx::mapa_shared_cluster(static_cast<std::uint32_t>(__cvta_generic_to_shared(word)), rank));
}

__device__ std::uint32_t scan_warp(std::uint32_t x) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::uint32_t before = __shfl_up_sync(~0u, x, step);
    if (lane >= step) x += before;
  }
  return x;
}

// Sum over the threads before this one. Barriers before the next call are the caller's.
__device__ std::uint32_t scan_cta(Shared& shared, std::uint32_t x) {
  const auto lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const std::uint32_t sum = scan_warp(x);
  if (lane == 31) shared.above[warp] = sum;
  __syncthreads();
  std::uint32_t before = 0;
  for (int i = 0; i < warp; ++i) before += shared.above[i];
  return before + sum - x;
}

__device__ void clear_histogram(Shared& shared) {
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) shared.histogram[i] = 0;
  __syncthreads();
}

// The bin with the `wanted`-th largest key of the row, of the histograms of all its CTAs.
__device__ Found find_bin(Shared& shared, const Part& part, std::int32_t wanted) {
  sync_row(part);
  const int first = kBins - kBinsPerThread * (static_cast<int>(threadIdx.x) + 1);
  std::uint32_t counts[kBinsPerThread], sum = 0;
#pragma unroll
  for (int i = 0; i < kBinsPerThread; ++i) {
    counts[i] = shared.histogram[first + i];
    for (std::uint32_t peer = 1; peer < part.ctas; ++peer)
      counts[i] += read_from(&shared.histogram[first + i], (part.rank + peer) % part.ctas);
    sum += counts[i];
  }
  auto above = static_cast<std::int32_t>(scan_cta(shared, sum));
#pragma unroll
  for (int i = kBinsPerThread - 1; i >= 0; --i) {
    const auto inside = static_cast<std::int32_t>(counts[i]);
    if (above < wanted && wanted <= above + inside) shared.found = {first + i, above, inside};
    above += inside;
  }
  sync_row(part);  // no thread reads the histograms any more
  return shared.found;
}

// Equal steps between the least and the largest finite number. Not decreasing in x, whatever the
// two are: what is not a number becomes step 0 together with all finite ones.
struct Steps {
  float low, per_value;

  __device__ Steps(std::uint32_t least, std::uint32_t largest) {
    low = value_of(least);
    per_value = (kBins - 1) / (value_of(largest) - low);
  }
  __device__ int bin(std::uint32_t key) const {
    const int step = __float2int_rz((value_of(key) - low) * per_value);
    return min(max(step, 0), kBins - 1);
  }
};

constexpr std::uint32_t kKeyOfMinusInfinity = 0x007fffffu, kKeyOfInfinity = 0xff800000u;

// Reads the part of the row, and finds the least and largest finite key of the row.
__device__ Steps load_part(Shared& shared, std::uint32_t* held, const Part& part) {
  std::uint32_t least = kKeyOfInfinity, largest = kKeyOfMinusInfinity;
  const auto look = [&](std::uint32_t key, int) {
    if (key <= kKeyOfMinusInfinity || key >= kKeyOfInfinity) return;
    least = min(least, key);
    largest = max(largest, key);
  };
#pragma unroll 4
  for (auto at = 4 * static_cast<std::int32_t>(threadIdx.x); at < part.count; at += 4 * kThreads) {
    const uint4 keys = part.read(at);
    if (at < part.num_held) *reinterpret_cast<uint4*>(held + at) = keys;
    for_each(keys, look);
  }
  least = __reduce_min_sync(~0u, least);
  largest = __reduce_max_sync(~0u, largest);
  if (threadIdx.x == 0) {
    shared.least = kKeyOfInfinity;
    shared.largest = kKeyOfMinusInfinity;
    shared.num_candidates = 0;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    atomicMin(&shared.least, least);
    atomicMax(&shared.largest, largest);
  }
  sync_row(part);
  least = shared.least;
  largest = shared.largest;
  for (std::uint32_t peer = 1; peer < part.ctas; ++peer) {
    least = min(least, read_from(&shared.least, (part.rank + peer) % part.ctas));
    largest = max(largest, read_from(&shared.largest, (part.rank + peer) % part.ctas));
  }
  if (least > largest) least = largest = 0x80000000u;  // nothing finite
  return Steps(least, largest);
}

// The `wanted`-th largest of the keys of one bin, of which there are at most kCandidates.
__device__ std::uint32_t rank_candidates(Shared& shared, const Part& part, const Steps& steps,
                                         const Found& found, std::int32_t wanted) {
  for_each_key(part, [&](std::uint32_t key) {
    if (steps.bin(key) == found.bin) shared.candidates[atomicAdd(&shared.num_candidates, 1u)] = key;
  });
  sync_row(part);
  std::uint32_t mine = kNothing, first = 0;  // number threadIdx.x of all CTAs' candidates
  for (std::uint32_t peer = 0; peer < part.ctas; ++peer) {
    const std::uint32_t count = read_from(&shared.num_candidates, peer);
    const std::uint32_t idx = threadIdx.x - first;
    if (idx < count) mine = read_from(&shared.candidates[idx], peer);
    first += count;
  }
  sync_row(part);  // all have been read
  shared.candidates[threadIdx.x] = mine;
  __syncthreads();
  if (mine != kNothing) {
    // Equal ones in the order of their threads: exactly one has that place.
    std::int32_t before = 0;
    for (std::int32_t i = 0; i < found.inside; ++i) {
      const std::uint32_t other = shared.candidates[i];
      const bool is_earlier = i < static_cast<std::int32_t>(threadIdx.x);
      before += other > mine || (other == mine && is_earlier) ? 1 : 0;
    }
    if (before + 1 == wanted) shared.threshold = mine;
  }
  __syncthreads();
  return shared.threshold;
}

// The `wanted`-th largest key of the row, digit by digit.
__device__ std::uint32_t search_digits(Shared& shared, const Part& part, std::int32_t wanted) {
  constexpr int kShifts[3] = {21, 10, 0}, kBits[3] = {11, 11, 10};
  std::uint32_t prefix = 0, mask = 0;
  for (int i = 0; i < 3; ++i) {
    const std::uint32_t digit_mask = (1u << kBits[i]) - 1;
    clear_histogram(shared);
    for_each_key(part, [&](std::uint32_t key) {
      if ((key & mask) == prefix) atomicAdd(&shared.histogram[key >> kShifts[i] & digit_mask], 1u);
    });
    const Found found = find_bin(shared, part, wanted);
    prefix |= static_cast<std::uint32_t>(found.bin) << kShifts[i];
    mask |= digit_mask << kShifts[i];
    wanted -= found.above;
  }
  return prefix;
}

// The topk-th largest key of the row.
__device__ std::uint32_t find_threshold(Shared& shared, std::uint32_t* held, const Part& part,
                                        std::int32_t topk) {
  const Steps steps = load_part(shared, held, part);
  clear_histogram(shared);
  for_each_key(part, [&](std::uint32_t key) { atomicAdd(&shared.histogram[steps.bin(key)], 1u); });
  const Found found = find_bin(shared, part, topk);
  if (found.inside > kCandidates) return search_digits(shared, part, topk);
  return rank_candidates(shared, part, steps, found, topk - found.above);
}

// Where selected entries go.
struct Output {
  const IndexerTopkParams& params;
  std::int32_t sequence;
  std::int32_t* rows;

  __device__ void store(std::uint32_t place, std::int32_t entry) const {
    rows[place] =
        params.table.table == nullptr
            ? entry
            : tile::physical_row(params.table, sequence, entry, params.page_size, params.num_rows);
  }
};

// Keys above the threshold and equal to it: in the CTAs and warps before this one, and how many of
// the equal ones the whole row wants.
struct Before {
  std::uint32_t above, equal, wanted_equal;
};

__device__ Before count_before(Shared& shared, const Part& part, std::uint32_t above,
                               std::uint32_t equal, std::uint32_t topk) {
  const auto warp = static_cast<std::uint32_t>(threadIdx.x / 32);
  above = __reduce_add_sync(~0u, above);
  equal = __reduce_add_sync(~0u, equal);
  if (threadIdx.x % 32 == 0) shared.above[warp] = above, shared.equal[warp] = equal;
  __syncthreads();
  Before before = {0, 0, 0};
  std::uint32_t all_above = 0, all_equal = 0;
  for (std::uint32_t i = 0; i < kWarps; ++i) {
    if (i == warp) before.above = all_above, before.equal = all_equal;
    all_above += shared.above[i];
    all_equal += shared.equal[i];
  }
  if (part.ctas > 1) {
    if (threadIdx.x == 0) shared.cta_above = all_above, shared.cta_equal = all_equal;
    sync_row(part);
    all_above = 0;
    for (std::uint32_t peer = 0; peer < part.ctas; ++peer) {
      const std::uint32_t of_peer = read_from(&shared.cta_above, peer);
      all_above += of_peer;
      if (peer >= part.rank) continue;
      before.above += of_peer;
      before.equal += read_from(&shared.cta_equal, peer);
    }
    sync_row(part);  // no CTA ends before it was read
  }
  before.wanted_equal = topk - all_above;
  return before;
}

// Writes this CTA's selected entries: a warp has a stretch of the part.
__device__ void write_selected(Shared& shared, const Output& out, const Part& part,
                               std::uint32_t threshold) {
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  const auto warp = static_cast<std::int32_t>(threadIdx.x / 32);
  const std::int32_t stretch = (part.count + kWarps * 128 - 1) / (kWarps * 128) * 128;
  const std::int32_t begin = warp * stretch, end = min(begin + stretch, part.count);
  std::uint32_t above = 0, equal = 0;
  for (std::int32_t at = begin + 4 * lane; at < end; at += 128) {
    for_each(part.keys(at), [&](std::uint32_t key, int) {
      above += key > threshold ? 1 : 0;
      equal += key == threshold ? 1 : 0;
    });
  }
  Before before =
      count_before(shared, part, above, equal, static_cast<std::uint32_t>(out.params.topk));
  for (std::int32_t first = begin; first < end; first += 128) {
    const std::int32_t at = first + 4 * lane;
    const uint4 keys = at < end ? part.keys(at) : make_uint4(0, 0, 0, 0);
    std::uint32_t mine = 0;  // above in the low half, equal in the high half
    for_each(keys, [&](std::uint32_t key, int) {
      mine += key > threshold ? 1u : key == threshold ? 0x10000u : 0u;
    });
    if (__ballot_sync(~0u, mine != 0) == 0) continue;
    const std::uint32_t sum = scan_warp(mine), total = __shfl_sync(~0u, sum, 31);
    std::uint32_t my_above = before.above + ((sum - mine) & 0xffff);
    std::uint32_t my_equal = before.equal + ((sum - mine) >> 16);
    for_each(keys, [&](std::uint32_t key, int i) {
      if (key < threshold) return;
      const bool is_selected = key > threshold || my_equal < before.wanted_equal;
      const std::uint32_t place = my_above + min(my_equal, before.wanted_equal);
      (key > threshold ? my_above : my_equal) += 1;
      if (is_selected) out.store(place, part.begin + at + i);
    });
    before.above += total & 0xffff;
    before.equal += total >> 16;
  }
}

// Rows with no more entries than are selected.
__device__ void write_all(const Output& out, std::int32_t length) {
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < out.params.topk; i += kThreads) {
    if (i < length) {
      out.store(static_cast<std::uint32_t>(i), i);
    } else {
      out.rows[i] = -1;
    }
  }
}

__device__ void select_row(Shared& shared, std::uint32_t* held, const IndexerTopkParams& params) {
  const auto token = static_cast<std::int32_t>(blockIdx.y);
  const std::int32_t length = params.lengths.of(token);
  const Output out = {params, tile::sequence_of(params.sequences, token),
                      params.rows + token * params.rows_stride};
  Part part = {};
  part.rank = ptx::cluster_ctarank();
  part.ctas = ptx::cluster_nctarank();
  if (part.rank == 0 && threadIdx.x == 0 && params.counts != nullptr)
    params.counts[token] = min(length, params.topk);
  if (length <= params.topk) {
    if (part.rank == 0) write_all(out, length);
    return;
  }
  const auto ctas = static_cast<std::int32_t>(part.ctas);
  const std::int32_t slice = (length + 4 * ctas - 1) / (4 * ctas) * 4;
  part.logits = params.logits + token * params.logits_stride;
  part.held = held;
  part.begin = min(static_cast<std::int32_t>(part.rank) * slice, length);
  part.count = min(slice, length - part.begin);
  part.num_held = min(params.held, (part.count + 3) / 4 * 4);
  const std::uint32_t threshold = find_threshold(shared, held, part, params.topk);
  write_selected(shared, out, part, threshold);
}

__device__ void select(const IndexerTopkParams& params) {
  __shared__ Shared shared;
  extern __shared__ __align__(16) std::uint32_t held_keys[];
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  select_row(shared, held_keys, params);
}

}  // namespace

TILEWRIGHT_KERNEL(indexer_topk, IndexerTopkParams, __launch_bounds__(kIndexerTopkThreads, kMinCtas),
                  select)

}  // namespace tilewright::kernels
