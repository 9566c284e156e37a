// The direct kernels of Mixture-of-Experts layers from their parts. What they are:
// direct_mxfp4.cu.
#pragma once

#include "kernels/linear/swiglu.h"
#include "kernels/moe/direct/bricks.h"
#include "kernels/moe/direct/ring.h"
#include "ptx/address.h"
#include "ptx/grid_dependency.h"
#include "ptx/prefetch.h"
#include "tile/entry.h"

#include <cooperative_groups.h>

namespace tilewright::kernels {

extern __shared__ __align__(128) std::uint8_t direct_memory[];

/// Factors of the products of a group.
struct DirectAlphas {
  float gate, up, down;

  __device__ static DirectAlphas load(const MoeDirectExperts& e, std::int32_t expert) {
    return {e.gate_up.alphas[2 * expert], e.gate_up.alphas[2 * expert + 1], e.down.alphas[expert]};
  }
};
inline constexpr int kDirectMostGroups = MoeDirectGroups::kSlots + 1,
                     kDirectSingle = kDirectMostGroups;

/// What a CTA knows of its work.
struct DirectShared {
  MoeDirectGroups groups;
  DirectSpan spans[kDirectPhases];
  DirectAlphas alphas[kDirectMostGroups + 1];  ///< of groups; of the expert beside
  /// Barriers of one phase each: keys that experts are chosen by are there; ids of all tokens are;
  /// groups and spans are.
  std::uint64_t keys_there, ids_there, routed;
};

/// What a phase's products become, and whose they are.
template <DirectPhase Phase>
class DirectResults {
 public:
  __device__ DirectResults(const MoeDirectParams& params, const DirectShared& shared)
      : params_(params),
        e_(kIsSingle ? params.single : params.routed),
        p_(kIsDown ? e_.down : e_.gate_up),
        s_(shared.groups),
        span_(shared.spans[Phase]),
        alphas_(shared.alphas) {}

  __device__ std::int32_t count() const { return span_.count; }
  /// Units between two barriers.
  __device__ std::int32_t end_of_round(std::int32_t first) const {
    return min(first + p_.slots * p_.teams, span_.count);
  }
  /// Of the units of a round. All threads, a warp for each brick.
  __device__ void finish_round(std::int32_t first, std::int32_t end, std::uint32_t buffer) const {
    constexpr int kRows = kIsDown ? 16 : 8;  // results of a brick and token
    const auto warp = static_cast<std::int32_t>(threadIdx.x / 32);
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
#pragma unroll 1
    for (std::int32_t job = warp; job < (end - first) * p_.unit_bricks; job += kMoeDirectWarps) {
      const std::int32_t number = job / p_.unit_bricks, brick = job - number * p_.unit_bricks;
      const DirectUnit unit = span_.unit(p_, first + number);
      if (brick >= unit.bricks) continue;
      const std::int32_t slot = number / p_.teams, team = number - slot * p_.teams;
      const std::int32_t results = tokens_of(unit.group) * kRows;
      const float* const sums =
          sums_of(buffer, team * p_.slots + slot, 0) + brick * e_.tokens * kBrickRows;
#pragma unroll 1
      for (std::int32_t i = lane; i < results; i += 32) {
        const std::int32_t token = i / kRows, r = i % kRows;
        const float* const from = sums + token * kBrickRows + r;
        if constexpr (kIsDown) {
          put_y(unit.group, unit.first + brick, token, r, add_up(from));
        } else {
          put_h(unit.group, unit.first + brick, token, r, {add_up(from), add_up(from + 8)});
        }
      }
    }
  }

  /// The sum over a token's experts, of this CTA's columns. All threads; y is there.
  __device__ void combine() const {
    const std::int32_t routed = e_.tokens * e_.topk;
    const std::int32_t first = span_.offset * p_.unit_bricks * kBrickRows;
    const std::int32_t all = min(columns(), p_.n - first);
#pragma unroll 1
    for (auto token = static_cast<std::int32_t>(threadIdx.x / 32); token < e_.tokens;
         token += kMoeDirectWarps) {
#pragma unroll 1
      for (auto column = static_cast<std::int32_t>(threadIdx.x % 32); column < all; column += 32) {
        float sum = 0;
#pragma unroll 4
        for (std::int32_t slot = token * e_.topk; slot < (token + 1) * e_.topk; ++slot) {
          if (s_.expert[slot] < 0) continue;
          const float weight = e_.is_weight_after_down ? s_.weights[slot] : 1.0f;
          sum = fmaf(weight, y_of(slot, column), sum);
        }
        if (e_.has_shared) sum += y_of(routed + token, column);
        store(token, first + column, sum);
      }
    }
  }

 protected:
  static constexpr bool kIsDown = Phase == kRoutedDown || Phase == kSingleDown;
  static constexpr bool kIsSingle = Phase == kSingleUp || Phase == kSingleDown;

  // --- Groups.

  __device__ std::int32_t tokens_of(std::int32_t group) const {
    return kIsSingle ? e_.tokens : s_.size(group);
  }
  __device__ std::int32_t slot_of(std::int32_t group, std::int32_t token) const {
    return kIsSingle ? token : s_.pair_slot[s_.group_begin[group] + token];
  }
  __device__ std::int32_t expert_of(std::int32_t group) const {
    return kIsSingle ? 0 : s_.group_expert[group];
  }

  // In shared memory: [team][slot][part of K][brick][token][row].
  __device__ std::int32_t of_part() const {
    return p_.unit_bricks * e_.tokens * kBrickRows;
  }
  __device__ float* sums_of(std::uint32_t buffer, std::int32_t slot, std::int32_t part) const {
    return reinterpret_cast<float*>(direct_memory + params_.sums_at + buffer * params_.sums_bytes) +
           (slot * p_.k_warps + part) * of_part();
  }

  // All parts of K, in their order.
  __device__ float add_up(const float* sums) const {
    float sum = 0;
#pragma unroll 4
    for (std::int32_t part = 0; part < p_.k_warps; ++part) sum += sums[part * of_part()];
    return sum;
  }

  __device__ void put_h(std::int32_t group, std::int32_t brick, std::int32_t token, std::int32_t r,
                        tile::GateAndUp sums) const {
    const std::int32_t slot = slot_of(group, token);
    const DirectAlphas& alphas = alphas_[kIsSingle ? kDirectSingle : group];
    sums.gate *= alphas.gate;
    sums.up *= alphas.up;
    const auto [gate, up] = tile::limited(sums, e_.limit);
    const float weight = kIsSingle || e_.is_weight_after_down ? 1.0f : s_.weights[slot];
    const float h = gate / (1 + __expf(-gate)) * up * weight;
    reinterpret_cast<__nv_bfloat16*>(e_.h)[std::int64_t{slot} * (p_.n / 2) + brick * 8 + r] =
        __float2bfloat16_rn(h);
  }

  __device__ void put_y(std::int32_t group, std::int32_t brick, std::int32_t token, std::int32_t r,
                        float sum) const {
    const float y = sum * alphas_[kIsSingle ? kDirectSingle : group].down;
    if constexpr (kIsSingle) {
      store(token, brick * kBrickRows + r, y);
    } else {
      const std::int32_t column = (brick - span_.offset * p_.unit_bricks) * kBrickRows + r;
      y_of(slot_of(group, token), column) =
          e_.routing.is_single ? y : __bfloat162float(__float2bfloat16_rn(y));
    }
  }
  // [slot][columns of the CTA]
  __device__ float& y_of(std::int32_t slot, std::int32_t column) const {
    return reinterpret_cast<float*>(direct_memory + params_.y_at)[slot * columns() + column];
  }
  __device__ std::int32_t columns() const {
    return span_.of_group * p_.unit_bricks * kBrickRows;
  }

  __device__ void store(std::int32_t token, std::int32_t column, float value) const {
    const std::int64_t at = std::int64_t{token} * p_.n + column;
    if (e_.is_out_f32) {
      static_cast<float*>(e_.out)[at] = value;
    } else {
      static_cast<__nv_bfloat16*>(e_.out)[at] = __float2bfloat16_rn(value);
    }
  }

  const MoeDirectParams& params_;
  const MoeDirectExperts& e_;
  const MoeDirectProduct& p_;
  const MoeDirectGroups& s_;
  const DirectSpan span_;
  const DirectAlphas* alphas_;
};

/// The products of a phase, of units of so many bricks.
template <WeightFormat Format, WordOrder Order, DirectPhase Phase, int Bricks>
class DirectWork : public DirectResults<Phase> {
 public:
  __device__ DirectWork(const MoeDirectParams& params, const DirectShared& shared)
      : Results(params, shared), place_(p_), at_(span_, place_.team) {
    if (at_.index < span_.count) aim();
    load_next();
  }

  /// The units before `end` that are not yet, into that buffer of sums.
  __device__ void multiply(DirectRing& ring, std::int32_t end, std::uint32_t buffer) {
    float* to = this->sums_of(buffer, place_.team * p_.slots, place_.part);
#pragma unroll 1
    while (at_.index < end) {
      multiply_unit(ring, to);
      to += p_.k_warps * this->of_part();
    }
  }

 private:
  using Results = DirectResults<Phase>;
  using Results::e_, Results::p_, Results::s_, Results::span_;
  using Results::kIsDown, Results::kIsSingle;
  static constexpr bool kHasScales = Format == WeightFormat::kFp8;
  static constexpr int kHalves = kIsDown ? 1 : 2;  // of block scales

  // --- Tokens and scales, a block ahead of the products.

  struct Operands {
    uint4 tokens[2];
    float scales[kHasScales ? Bricks : 1][2];
  };

  // Row and scales of the unit at_, and this warp's first block of it.
  __device__ void aim() {
    const DirectUnit unit = span_.unit(p_, at_.group, at_.row);
    last_ = unit.bricks - 1;
    const auto token = static_cast<std::int32_t>(lane_.g);
    first_ = place_.part * kBrickK;
    const std::int32_t column = first_ + static_cast<std::int32_t>(lane_.t) * kGroupK;
    // Of K that this lane has from here on: nothing without a token.
    ahead_ = p_.k - column;
    if (token < this->tokens_of(unit.group)) {
      const std::int32_t slot = this->slot_of(unit.group, token), routed = e_.tokens * e_.topk;
      const std::int32_t row = kIsDown || kIsSingle ? slot
                               : slot < routed      ? slot / e_.topk
                                                    : slot - routed;
      row_ = (kIsDown ? e_.h : e_.x) + std::int64_t{row} * p_.k + column;
    } else {
      ahead_ = 0;
    }
    if constexpr (kHasScales) {
      const std::int64_t steps = (p_.k + kFp8BlockK - 1) / kFp8BlockK;
      scales_ = p_.block_scales + this->expert_of(unit.group) * steps * kHalves * p_.scale_rows;
      first_brick_ = unit.first;
    }
  }
  // Of the block first_ of at_.
  __device__ void load_next() {
    if (at_.index >= span_.count) return;
    next_.tokens[0] = next_.tokens[1] = uint4{};
    if (ahead_ > 0) {
      // Past the first cache: h is from other SMs.
      next_.tokens[0] = __ldcg(reinterpret_cast<const uint4*>(row_));
      next_.tokens[1] = __ldcg(reinterpret_cast<const uint4*>(row_) + 1);
    }
    if constexpr (kHasScales) {
      const float* const of_step = scales_ + first_ / kFp8BlockK * kHalves * p_.scale_rows;
#pragma unroll
      for (int i = 0; i < Bricks; ++i) {
        const std::int32_t block =
            min((first_brick_ + i) / (kFp8BlockRows / kBrickRows * kHalves), p_.scale_rows - 1);
        next_.scales[i][0] = __ldg(of_step + block);
        next_.scales[i][1] =
            kHalves == 1 ? next_.scales[i][0] : __ldg(of_step + p_.scale_rows + block);
      }
    }
  }
  __device__ void advance() {
    const std::int32_t step = p_.k_warps * kBrickK;
    first_ += step;
    row_ += step;
    ahead_ -= step;
    if (first_ < p_.k) return;
    at_.advance(span_, p_.teams);
    if (at_.index < span_.count) aim();
  }

  // --- Products.

  // One unit's blocks of this warp.
  __device__ void multiply_unit(DirectRing& ring, float* to) {
    const std::int32_t index = at_.index, last = last_;
    DirectSums sums[Bricks] = {};
#pragma unroll 1
    do {
      const Operands now = next_;
      advance();
      load_next();
      const std::uint32_t stage = ring.wait();
      constexpr bool kIsCrossed = tile::is_crossed(Format, Order);
      DirectTokens b;
      tile::pair_tokens<kIsCrossed>(b[0], now.tokens[0].x, now.tokens[1].x);
      tile::pair_tokens<kIsCrossed>(b[1], now.tokens[0].y, now.tokens[1].y);
      tile::pair_tokens<kIsCrossed>(b[2], now.tokens[0].z, now.tokens[1].z);
      tile::pair_tokens<kIsCrossed>(b[3], now.tokens[0].w, now.tokens[1].w);
      multiply_bricks<Format, Order>(sums, stage, last, lane_, b, now.scales);
      ring.release();
      if constexpr (Phase == kSingleUp) {
        ring.fill();
      } else {
        ring.refill();
      }
    } while (at_.index == index);
    const auto row = static_cast<std::int32_t>(lane_.g);
    const auto token = static_cast<std::int32_t>(lane_.t * 2);
    to += token * kBrickRows + row;
#pragma unroll
    for (int i = 0; i < Bricks; ++i, to += e_.tokens * kBrickRows) {
      if (token < e_.tokens) to[0] = sums[i][0], to[8] = sums[i][2];
      if (token + 1 < e_.tokens) to[16] = sums[i][1], to[24] = sums[i][3];
    }
  }

  DirectPlace place_;
  DirectLane lane_;
  // Of the operands that are loaded next, or last.
  DirectCursor at_;
  std::int32_t first_ = 0, ahead_ = 0, last_ = 0, first_brick_ = 0;
  const std::uint16_t* row_ = nullptr;
  const float* scales_ = nullptr;
  Operands next_;
};

/// Block scales of one expert's product: all CTAs read the same few lines at about the same time.
__device__ inline void prefetch_scales(const MoeDirectProduct& p, std::int32_t halves) {
  constexpr std::int32_t kLine = 128;
  if (p.block_scales == nullptr) return;
  const std::int32_t bytes = (p.k + kFp8BlockK - 1) / kFp8BlockK * halves * p.scale_rows * 4;
  for (std::int32_t at = static_cast<std::int32_t>(threadIdx.x) * kLine; at < bytes;
       at += kMoeDirectThreads * kLine)
    ptx::prefetch_global_L2(reinterpret_cast<const std::uint8_t*>(p.block_scales) + at);
}
__device__ inline void prefetch_scales(const MoeDirectExperts& e) {
  prefetch_scales(e.gate_up, 2);
  prefetch_scales(e.down, 1);
}

/// The router's bias: a trip to memory before experts are chosen.
__device__ inline void prefetch_bias(const MoeRouteParams& route) {
  constexpr std::int32_t kLine = 32;  // numbers
  const auto at = static_cast<std::int32_t>(threadIdx.x) * kLine;
  if (route.bias != nullptr && at < route.experts) ptx::prefetch_global_L2(route.bias + at);
}

/// All rounds of the expert beside but the last, which is multiplied alone: its first unit. The
/// results of that are finished with those of the first round of the routed experts.
template <DirectPhase Phase, int Bricks = 1>
__device__ std::int32_t begin_single(const MoeDirectParams& params, const DirectShared& shared,
                                     DirectRing& ring, std::uint32_t buffer) {
  constexpr auto kFp8 = WeightFormat::kFp8;
  if constexpr (Bricks < moe_direct_bricks(kFp8)) {
    if (product_of(params, Phase).unit_bricks > Bricks)
      return begin_single<Phase, Bricks + 1>(params, shared, ring, buffer);
  }
  DirectWork<kFp8, WordOrder::kBf16, Phase, Bricks> work(params, shared);
  std::int32_t first = 0;
#pragma unroll 1
  for (;;) {
    const std::int32_t end = work.end_of_round(first);
    work.multiply(ring, end, buffer);
    if (end == work.count()) return first;
    __syncthreads();
    work.finish_round(first, end, buffer);
    __syncthreads();
    first = end;
  }
}

/// The routed experts, and what is left of the one beside from unit `single` on, if there is any.
template <WeightFormat Format, WordOrder Order, DirectPhase Phase, DirectPhase Single,
          int Bricks = 1>
__device__ void run_routed(const MoeDirectParams& params, const DirectShared& shared,
                           DirectRing& ring, std::uint32_t& buffer, std::int32_t single) {
  if constexpr (Bricks < moe_direct_bricks(Format)) {
    if (product_of(params, Phase).unit_bricks > Bricks)
      return run_routed<Format, Order, Phase, Single, Bricks + 1>(params, shared, ring, buffer,
                                                                  single);
  }
  DirectWork<Format, Order, Phase, Bricks> work(params, shared);
  std::int32_t first = 0;
#pragma unroll 1
  do {
    const std::int32_t end = work.end_of_round(first);
    buffer ^= 1;
    work.multiply(ring, end, buffer);
    __syncthreads();
    // The other buffer's sums are read before the next barrier, and written behind it.
    work.finish_round(first, end, buffer);
    if (first == 0 && params.single.tokens > 0) {
      const DirectResults<Single> beside(params, shared);
      beside.finish_round(single, beside.count(), buffer ^ 1);
      if (end < work.count()) __syncthreads();  // the next round's sums come in its place
    }
    first = end;
  } while (first < work.count());
}

/// Keys of a token, where the sums of the first round of the routed experts come later.
__device__ inline std::uint32_t* route_keys(const MoeDirectParams& params, std::int32_t token) {
  static_assert(kMoeDirectMaxTokens * kRouteKeys * 4 <= kMoeDirectMinSumsBytes);
  return reinterpret_cast<std::uint32_t*>(direct_memory + params.sums_at + params.sums_bytes) +
         token * kRouteKeys;
}

/// What experts are chosen by, by all warps: one of them would take a dozen turns of a long chain.
__device__ inline void prepare_choice(const MoeDirectParams& params, DirectShared& shared) {
  static_assert(kRoutePerLane <= kMoeDirectWarps);
  const auto warp = static_cast<std::int32_t>(threadIdx.x / 32);
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  const std::int32_t tokens = warp < kRoutePerLane ? params.routed.tokens : 0;
#pragma unroll 1
  for (std::int32_t token = 0; token < tokens; ++token)
    store_keys(params.routed.routing.route, token, warp, lane, route_keys(params, token));
  __syncwarp();
  if (lane == 0) ptx::mbarrier_arrive(ptx::shared_address(&shared.keys_there));
}

/// Finds groups and spans when the ids of all tokens are known: the first warp, while others begin
/// with the expert beside; or all, if there is none, or there is more to do.
__device__ inline void find_work(const MoeDirectParams& params, DirectShared& shared) {
  const MoeDirectExperts& routed = params.routed;
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const bool is_of_one = params.single.tokens > 0 && routed.tokens * routed.topk <= 32;
  if (is_of_one && thread >= 32) return;
  ptx::mbarrier_wait_parity(ptx::shared_address(&shared.ids_there), 0);
  const MoeDirectRouter router(routed, shared.groups, is_of_one ? 32 : kMoeDirectThreads);
  router.find(blockIdx.x == 0);
  if (thread > kSingleUp && thread < kDirectPhases)
    shared.spans[thread] =
        DirectSpan::make(product_of(params, thread),
                         thread == kSingleDown ? 1 : shared.groups.count, is_down(thread));
  router.sync();
  if (thread == 0) ptx::mbarrier_arrive(ptx::shared_address(&shared.routed));
}

template <WeightFormat Format, WordOrder Order>
__device__ void moe_direct(const MoeDirectParams& params) {
  __shared__ DirectShared shared;
  const MoeDirectExperts& routed = params.routed;
  const auto thread = static_cast<std::int32_t>(threadIdx.x), warp = thread / 32;
  prefetch_scales(params.single);
  if (routed.routing.is_single) prefetch_scales(routed);
  prefetch_bias(routed.routing.route);
  if (thread == 0) {
    ptx::mbarrier_init(ptx::shared_address(&shared.keys_there), kMoeDirectWarps);
    ptx::mbarrier_init(ptx::shared_address(&shared.ids_there),
                       static_cast<std::uint32_t>(routed.tokens));
    ptx::mbarrier_init(ptx::shared_address(&shared.routed), 1);
    shared.spans[kSingleUp] = DirectSpan::make(params.single.gate_up, 1, false);
  }
  DirectRing ring(params, shared.groups, shared.spans, ptx::shared_address(direct_memory),
                  ptx::shared_address(&shared.routed));
  __syncthreads();
  ring.fill();
  if (thread == kMoeDirectThreads - 1 && params.single.tokens > 0)
    shared.alphas[kDirectSingle] = DirectAlphas::load(params.single, 0);
  // Which weights a single expert has is known before the kernel before has ended.
  if (!routed.routing.is_single) ptx::griddepcontrol_wait();
  const bool is_choice = !routed.routing.is_single && chooses(routed.routing.route);
  if (is_choice) prepare_choice(params, shared);
  if (warp < routed.tokens) {
    if (is_choice) ptx::mbarrier_wait_parity(ptx::shared_address(&shared.keys_there), 0);
    if (!routed.routing.is_single)
      MoeDirectRouter(routed, shared.groups, 32).take_ids(warp, route_keys(params, warp));
    __syncwarp();
    if (thread % 32 == 0) ptx::mbarrier_arrive(ptx::shared_address(&shared.ids_there));
  }
  find_work(params, shared);
  ring.fill();
  if (routed.routing.is_single) {
    ring.wait_routed();
    ring.fill();
    ptx::griddepcontrol_wait();
  }
  ptx::griddepcontrol_launch_dependents();

  std::uint32_t buffer = 0;
  std::int32_t single = begin_single<kSingleUp>(params, shared, ring, buffer);
  ring.wait_routed();
  ring.fill();
  const std::int32_t group = kMoeDirectThreads - 1 - thread;  // not by the warp that is late
  if (group < shared.groups.count)
    shared.alphas[group] = DirectAlphas::load(routed, shared.groups.group_expert[group]);
  run_routed<Format, Order, kRoutedUp, kSingleUp>(params, shared, ring, buffer, single);
  cooperative_groups::this_grid().sync();  // h is there
  single = begin_single<kSingleDown>(params, shared, ring, buffer);
  run_routed<Format, Order, kRoutedDown, kSingleDown>(params, shared, ring, buffer, single);
  __syncthreads();
  DirectResults<kRoutedDown>(params, shared).combine();
}

}  // namespace tilewright::kernels

/// Entry moe_direct_NAME.
#define TILEWRIGHT_MOE_DIRECT(NAME, FORMAT, ORDER)                                               \
  TILEWRIGHT_KERNEL(moe_direct_##NAME, MoeDirectParams, __launch_bounds__(kMoeDirectThreads, 1), \
                    moe_direct<WeightFormat::FORMAT, WordOrder::ORDER>)
