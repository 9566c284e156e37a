// targets: sm_90a sm_100f
//
// A stable counting sort of slots by expert in one launch: one cluster, whose CTAs exchange
// their counts through distributed shared memory. Nothing is decided by the order in which warps
// run: there are no atomics but those on the status.
//
//     every warp      counts the experts of its slots, 32 at a time (match.any)
//     every thread    adds up the counts of one expert over the warps
//     cluster         counts of all CTAs; a scan over the experts gives the offsets
//     every warp      goes through its slots again and writes where they go
//
// Limit: latency, 2 to 10 us. 8192 tokens of 8 experts are 0.5 MB in and 1 MB out.
#include "kernels/moe/permute.h"
#include "kernels/moe/slot_expert.h"
#include "ptx/cluster.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kWarps = kMoePermuteThreads / 32;

struct Shared {
  std::uint16_t counts[kWarps][kMoeMaxExperts];  // then: slots of the expert in warps before
  std::int32_t totals[kMoeMaxExperts];           // of this CTA
  std::int32_t bases[kMoeMaxExperts];            // row of its first slot
};

static_assert(sizeof(Shared) == kMoePermuteSharedBytes);

// The slots of a warp: neighbours, in steps of 32.
struct Span {
  std::int32_t begin, end;
};

__device__ Span span_of_warp(std::int32_t slots) {
  const auto warps = static_cast<std::int32_t>(kWarps * ptx::cluster_nctarank());
  const auto warp = static_cast<std::int32_t>(ptx::cluster_ctarank() * kWarps + threadIdx.x / 32);
  const std::int32_t length = ((slots + warps - 1) / warps + 31) / 32 * 32;
  const std::int32_t begin = min(warp * length, slots);
  return {begin, min(begin + length, slots)};
}

// Calls visit(slot, expert or -1, lanes with that expert) for all slots of the warp, lanes that
// have none with slot = -1.
template <class Visit>
__device__ void for_each_slot(const MoePermuteParams& params, const Span& span, bool is_reporting,
                              Visit&& visit) {
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  for (std::int32_t first = span.begin; first < span.end; first += 32) {
    const std::int32_t slot = first + lane < span.end ? first + lane : -1;
    SlotFlaw flaw = SlotFlaw::kNone;
    const std::int32_t expert =
        slot >= 0 ? expert_of_slot(params.ids, params.topk, params.experts, slot, flaw) : -1;
    if (is_reporting) report_flaw(*params.status, flaw, slot);
    visit(slot, expert, __match_any_sync(kAllLanes, expert));
    __syncwarp();  // the next step reads the counts that this one changed
  }
}

__device__ bool is_first_of(unsigned lanes) {
  return __ffs(static_cast<int>(lanes)) - 1 == static_cast<int>(threadIdx.x % 32);
}

__device__ void count(const MoePermuteParams& params, const Span& span, Shared& shared) {
  std::uint16_t* const counts = shared.counts[threadIdx.x / 32];
  for_each_slot(params, span, true, [&](std::int32_t, std::int32_t expert, unsigned lanes) {
    if (expert >= 0 && is_first_of(lanes))
      counts[expert] = static_cast<std::uint16_t>(counts[expert] + __popc(lanes));
  });
}

// Per expert: counts of the warps before, and the CTA's total.
__device__ void add_up_warps(const MoePermuteParams& params, Shared& shared) {
  const auto expert = static_cast<std::int32_t>(threadIdx.x);
  if (expert >= params.experts) return;
  std::int32_t sum = 0;
#pragma unroll 8
  for (int warp = 0; warp < kWarps; ++warp) {
    const std::uint16_t here = shared.counts[warp][expert];
    shared.counts[warp][expert] = static_cast<std::uint16_t>(sum);
    sum += here;
  }
  shared.totals[expert] = sum;
}

// Inclusive sums over the threads of the CTA.
__device__ std::int32_t scan_block(std::int32_t value, std::int32_t (&warp_sums)[kWarps]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::int32_t before = __shfl_up_sync(kAllLanes, value, step);
    if (lane >= step) value += before;
  }
  if (lane == 31) warp_sums[warp] = value;
  __syncthreads();
  for (int w = 0; w < warp; ++w) value += warp_sums[w];
  return value;
}

// Offsets of all experts, and where this CTA's slots of each begin.
__device__ void place_experts(const MoePermuteParams& params, Shared& shared) {
  __shared__ std::int32_t warp_sums[kWarps];
  const auto expert = static_cast<std::int32_t>(threadIdx.x);
  const std::uint32_t rank = ptx::cluster_ctarank(), ranks = ptx::cluster_nctarank();
  std::int32_t total = 0, before = 0;
  if (expert < params.experts) {
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const std::int32_t there = *ptx::mapa(&shared.totals[expert], r);
      total += there;
      if (r < rank) before += there;
    }
  }
  const std::int32_t end = scan_block(total, warp_sums);
  if (expert < params.experts) shared.bases[expert] = end - total + before;
  if (rank != 0) return;
  if (expert < params.experts) params.offsets[expert + 1] = end;
  if (expert == 0) params.offsets[0] = 0;
  if (params.has_shared && expert == params.experts)
    params.offsets[expert + 1] = end + params.tokens;
}

__device__ void place_slots(const MoePermuteParams& params, const Span& span, Shared& shared) {
  std::uint16_t* const counts = shared.counts[threadIdx.x / 32];
  const unsigned before = (1u << threadIdx.x % 32) - 1;
  for_each_slot(params, span, false, [&](std::int32_t slot, std::int32_t expert, unsigned lanes) {
    std::int32_t row = -1;
    if (expert >= 0) row = shared.bases[expert] + counts[expert] + __popc(lanes & before);
    __syncwarp();
    if (expert >= 0 && is_first_of(lanes))
      counts[expert] = static_cast<std::uint16_t>(counts[expert] + __popc(lanes));
    if (slot < 0) return;
    params.slot_row[slot] = row;
    if (row < 0) return;
    params.row_token[row] = slot / params.topk;
    params.row_weight[row] = params.weights[slot];
  });
}

// One more row for every token.
__device__ void place_shared(const MoePermuteParams& params, const Shared& shared) {
  __shared__ std::int32_t first;
  if (threadIdx.x == 0) {
    // Behind the rows of the last expert, which this CTA knows but for those of later CTAs.
    const std::uint32_t ranks = ptx::cluster_nctarank();
    const std::int32_t last = params.experts - 1;
    std::int32_t sum = shared.bases[last];
    for (std::uint32_t r = ptx::cluster_ctarank(); r < ranks; ++r)
      sum += *ptx::mapa(const_cast<std::int32_t*>(&shared.totals[last]), r);
    first = sum;
  }
  __syncthreads();
  const auto threads = static_cast<std::int32_t>(kMoePermuteThreads * ptx::cluster_nctarank());
  for (auto token =
           static_cast<std::int32_t>(ptx::cluster_ctarank() * kMoePermuteThreads + threadIdx.x);
       token < params.tokens; token += threads) {
    params.row_token[first + token] = token;
    params.row_weight[first + token] = 1.0f;
  }
}

__device__ void permute(const MoePermuteParams& params) {
  extern __shared__ std::uint8_t dynamic[];
  Shared& shared = *reinterpret_cast<Shared*>(dynamic);
  auto* const words = reinterpret_cast<std::uint32_t*>(shared.counts);
  for (unsigned i = threadIdx.x; i < sizeof shared.counts / 4; i += kMoePermuteThreads)
    words[i] = 0;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  if (ptx::cluster_ctarank() == 0 && threadIdx.x == 0) *params.status = {0, 0, kMoeNone, kMoeNone};
  ptx::cluster_sync();
  const Span span = span_of_warp(params.tokens * params.topk);
  count(params, span, shared);
  __syncthreads();
  add_up_warps(params, shared);
  ptx::cluster_sync();
  place_experts(params, shared);
  __syncthreads();
  place_slots(params, span, shared);
  if (params.has_shared) place_shared(params, shared);
  ptx::cluster_sync();  // others may still read this CTA's totals
}

}  // namespace
TILEWRIGHT_KERNEL(moe_permute, MoePermuteParams, __launch_bounds__(kMoePermuteThreads), permute)

}  // namespace tilewright::kernels
