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
};

/// A phase of the launch, of units of so many bricks.
template <WeightFormat Format, WordOrder Order, DirectPhase Phase, int Bricks>
class DirectWork {
 public:
  __device__ DirectWork(const MoeDirectParams& params, const DirectShared& shared)
      : params_(params),
        e_(kIsSingle ? params.single : params.routed),
        p_(kIsDown ? e_.down : e_.gate_up),
        s_(shared.groups),
        span_(shared.spans[Phase]),
        place_(p_),
        alphas_(shared.alphas),
        at_(span_, place_.team) {}

  /// `buffer`: the one of the two of sums that is free.
  __device__ void run(DirectRing& ring, std::uint32_t& buffer) {
    if (at_.index < span_.count) aim();
    load_next();
    const std::int32_t of_round = p_.slots * place_.teams;
#pragma unroll 1
    for (std::int32_t first = 0; first < span_.count; first += of_round) {
      const std::int32_t end = min(first + of_round, span_.count);
      float* to = sums_of(buffer, place_.team * p_.slots, place_.part);
#pragma unroll 1
      while (at_.index < end) {
        multiply_unit(ring, to);
        to += p_.k_warps * of_part();
      }
      __syncthreads();
      // The other buffer's sums are read before the next barrier, and written behind it.
      finish_round(first, end, buffer);
      buffer ^= 1;
    }
  }

 private:
  static constexpr bool kIsDown = Phase == kRoutedDown || Phase == kSingleDown;
  static constexpr bool kIsSingle = Phase == kSingleUp || Phase == kSingleDown;
  static constexpr bool kHasScales = Format == WeightFormat::kFp8;
  static constexpr int kHalves = kIsDown ? 1 : 2;  // of block scales

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
    if (token < tokens_of(unit.group)) {
      const std::int32_t slot = slot_of(unit.group, token), routed = e_.tokens * e_.topk;
      const std::int32_t row = kIsDown || kIsSingle ? slot
                               : slot < routed      ? slot / e_.topk
                                                    : slot - routed;
      row_ = (kIsDown ? e_.h : e_.x) + std::int64_t{row} * p_.k + column;
    } else {
      ahead_ = 0;
    }
    if constexpr (kHasScales) {
      const std::int64_t steps = (p_.k + kFp8BlockK - 1) / kFp8BlockK;
      scales_ = p_.block_scales + expert_of(unit.group) * steps * kHalves * p_.scale_rows;
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
    at_.advance(span_, place_.teams);
    if (at_.index < span_.count) aim();
  }

  // --- Products.

  // In shared memory: [team][slot][part of K][brick][token][row].
  __device__ std::int32_t of_part() const {
    return p_.unit_bricks * e_.tokens * kBrickRows;
  }
  __device__ float* sums_of(std::uint32_t buffer, std::int32_t slot, std::int32_t part) const {
    return reinterpret_cast<float*>(direct_memory + params_.sums_at + buffer * params_.sums_bytes) +
           (slot * p_.k_warps + part) * of_part();
  }

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
      const DirectTokens b = {{now.tokens[0].x, now.tokens[1].x},
                              {now.tokens[0].y, now.tokens[1].y},
                              {now.tokens[0].z, now.tokens[1].z},
                              {now.tokens[0].w, now.tokens[1].w}};
      multiply_bricks<Format, Order>(sums, stage, last, lane_, b, now.scales);
      ring.release();
      ring.fill(kDirectPhases);
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

  // --- Results.

  // All parts of K, in their order.
  __device__ float add_up(const float* sums) const {
    float sum = 0;
#pragma unroll 4
    for (std::int32_t part = 0; part < p_.k_warps; ++part) sum += sums[part * of_part()];
    return sum;
  }

  // A warp for each brick.
  __device__ void finish_round(std::int32_t first, std::int32_t end, std::uint32_t buffer) const {
    constexpr int kRows = kIsDown ? 16 : 8;  // results of a brick and token
    const auto warp = static_cast<std::int32_t>(threadIdx.x / 32);
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    const int shift = __ffs(place_.teams) - 1;  // a power of two
#pragma unroll 1
    for (std::int32_t job = warp; job < (end - first) * p_.unit_bricks; job += kMoeDirectWarps) {
      const std::int32_t number = job / p_.unit_bricks, brick = job - number * p_.unit_bricks;
      const DirectUnit unit = span_.unit(p_, first + number);
      if (brick >= unit.bricks) continue;
      const std::int32_t team = number & (place_.teams - 1), slot = number >> shift;
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

 public:
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

 private:
  const MoeDirectParams& params_;
  const MoeDirectExperts& e_;
  const MoeDirectProduct& p_;
  const MoeDirectGroups& s_;
  const DirectSpan span_;
  DirectPlace place_;
  DirectLane lane_;
  const DirectAlphas* alphas_;
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

template <WeightFormat Format, WordOrder Order, DirectPhase Phase, int Bricks = 1>
__device__ void run_phase(const MoeDirectParams& params, const DirectShared& shared,
                          DirectRing& ring, std::uint32_t& buffer) {
  if constexpr (Bricks < moe_direct_bricks(Format)) {
    if (product_of(params, Phase).unit_bricks > Bricks)
      return run_phase<Format, Order, Phase, Bricks + 1>(params, shared, ring, buffer);
  }
  if (shared.spans[Phase].count > 0)
    DirectWork<Format, Order, Phase, Bricks>(params, shared).run(ring, buffer);
}

template <WeightFormat Format, WordOrder Order>
__device__ void moe_direct(const MoeDirectParams& params) {
  __shared__ DirectShared shared;
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const auto find_span = [&](std::int32_t groups) {
    shared.spans[thread] = DirectSpan::make(product_of(params, thread), groups, is_down(thread));
  };
  prefetch_scales(params.single);
  if (params.routed.routing.is_single) prefetch_scales(params.routed);
  if (thread == kSingleUp || thread == kSingleDown) find_span(1);
  __syncthreads();
  DirectRing ring(params, shared.groups, shared.spans, ptx::shared_address(direct_memory));
  ring.fill(kRoutedUp);
  if (thread == 0 && params.single.tokens > 0)
    shared.alphas[kDirectSingle] = DirectAlphas::load(params.single, 0);
  // Which weights a single expert has is known before the kernel before has ended.
  if (!params.routed.routing.is_single) ptx::griddepcontrol_wait();
  MoeDirectRouter(params.routed, shared.groups).run(blockIdx.x == 0);
  if (thread == kRoutedUp || thread == kRoutedDown) find_span(shared.groups.count);
  __syncthreads();
  ring.fill(kDirectPhases);
  if (thread < shared.groups.count)
    shared.alphas[thread] = DirectAlphas::load(params.routed, shared.groups.group_expert[thread]);
  if (params.routed.routing.is_single) ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();

  std::uint32_t buffer = 0;
  constexpr auto kFp8 = WeightFormat::kFp8;
  constexpr auto kBf16 = WordOrder::kBf16;
  run_phase<kFp8, kBf16, kSingleUp>(params, shared, ring, buffer);
  run_phase<Format, Order, kRoutedUp>(params, shared, ring, buffer);
  cooperative_groups::this_grid().sync();  // h is there
  run_phase<Format, Order, kRoutedDown>(params, shared, ring, buffer);
  run_phase<kFp8, kBf16, kSingleDown>(params, shared, ring, buffer);
  __syncthreads();
  DirectWork<Format, Order, kRoutedDown, 1>(params, shared).combine();
}

}  // namespace tilewright::kernels

/// Entry moe_direct_NAME.
#define TILEWRIGHT_MOE_DIRECT(NAME, FORMAT, ORDER)                                               \
  TILEWRIGHT_KERNEL(moe_direct_##NAME, MoeDirectParams, __launch_bounds__(kMoeDirectThreads, 1), \
                    moe_direct<WeightFormat::FORMAT, WordOrder::ORDER>)
