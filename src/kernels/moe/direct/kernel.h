// The direct kernels of Mixture-of-Experts layers from their parts. What they are:
// direct_mxfp4.cu.
#pragma once

#include "kernels/linear/swiglu.h"
#include "kernels/moe/direct/blocks.h"
#include "kernels/moe/direct/groups.h"
#include "ptx/address.h"
#include "ptx/cp_async.h"
#include "ptx/grid_dependency.h"
#include "tile/element.h"
#include "tile/entry.h"

namespace tilewright::kernels {

/// A brick of an expert: what a warp multiplies with all tokens of a group.
struct DirectUnit {
  std::int32_t group, brick;
};

/// The work of a CTA: bricks of gate and up of all groups, one after another; or all groups of a
/// run of bricks of down.
template <bool IsDown>
struct DirectUnits {
  std::int32_t first = 0, count = 0;
  std::int32_t bricks = 1;  ///< of a matrix; of down, of this CTA

  DirectUnits() = default;
  __device__ DirectUnits(const MoeDirectProduct& p, std::int32_t groups, std::int32_t cta) {
    const std::int32_t all = p.n / kBrickRows;
    const auto part = [&](std::int64_t of, std::int32_t i) {
      return static_cast<std::int32_t>(of * i / p.ctas);
    };
    const std::int32_t of = IsDown ? all : all * groups;
    first = part(of, cta);
    const std::int32_t own = part(of, cta + 1) - first;
    bricks = IsDown ? own : all;
    count = IsDown ? own * groups : own;
  }
  __device__ DirectUnit operator[](std::int32_t index) const {
    if constexpr (IsDown) {
      const std::int32_t group = index / bricks;
      return {group, first + index - group * bricks};
    }
    const std::int32_t group = (first + index) / bricks;
    return {group, first + index - group * bricks};
  }
};

/// IsSingle: of one expert that has all tokens.
template <WeightFormat Format, WordOrder Order, bool IsDown, bool IsSingle>
class DirectProduct {
 public:
  __device__ DirectProduct(const MoeDirectProduct& product, MoeDirectGroups& groups,
                           std::uint8_t* memory, std::int32_t cta)
      : p_(product), s_(groups), memory_(memory), cta_(cta) {
    const std::uint32_t warp = threadIdx.x / 32;
    row_warps_ = blockDim.x / 32 / static_cast<std::uint32_t>(p_.parts);
    row_warp_ = static_cast<std::int32_t>(warp % row_warps_);
    const std::int32_t blocks = (p_.k + kBrickK - 1) / kBrickK;
    const auto part = static_cast<std::int32_t>(warp / row_warps_);
    begin_ = blocks * part / p_.parts;
    end_ = blocks * (part + 1) / p_.parts;
    ring_ = ptx::shared_address(memory_) + p_.rings_at + warp * kAhead * kSlotBytes;
    load_slot_ = read_slot_ = ring_;
  }

  __device__ void run() {
    // What routing reads was there before the launch of gate and up, which waits for it first.
    const bool is_early = IsDown || IsSingle || p_.routing.is_single;
    if (!is_early) begin_tokens();
    begin_weights();
    if (is_early) begin_tokens();
    // The oldest group of copies is that of the tokens, or is followed by it: all are waited for
    // but weights that were begun after them.
    if (is_early) {
      ptx::cp_async_wait_group<0>();
    } else {
      ptx::cp_async_wait_group<kAhead - 1>();
    }
    __syncthreads();
    multiply_all();
    if constexpr (IsDown) combine();
  }

 private:
  static constexpr int kAhead = moe_direct_ahead(Format);
  static constexpr std::uint32_t kSlotBytes = moe_direct_slot_bytes(Format);

  __device__ void begin_tokens() const {
    ptx::griddepcontrol_wait();
    ptx::griddepcontrol_launch_dependents();
    load_rows();
    ptx::cp_async_commit_group();
  }
  __device__ void begin_weights() {
    MoeDirectRouter<IsSingle>(p_, s_).run(!IsDown && cta_ == 0);
    units_ = DirectUnits<IsDown>(p_, s_.count, cta_);
    aim(row_warp_);
#pragma unroll 1
    for (int i = 0; i < kAhead - 1; ++i) load_next();
  }

  // The unit whose weights are loaded from now on.
  __device__ void aim(std::int32_t index) {
    next_index_ = index;
    next_block_ = begin_;
    has_next_ = index < units_.count;
    if (!has_next_) return;
    const DirectUnit unit = units_[index];
    const std::int64_t matrix = s_.group_expert[unit.group];
    const std::int64_t stride = std::int64_t{p_.n / kBrickRows} * kBrickBytes;
    next_ = p_.weights + matrix * p_.matrix_bytes + begin_ * stride + unit.brick * kBrickBytes;
    if constexpr (Format == WeightFormat::kFp8) {
      const std::int32_t halves = p_.scale_halves;
      const std::int64_t steps = (p_.k + kFp8BlockK - 1) / kFp8BlockK;
      const std::int32_t block =
          min(unit.brick / (kFp8BlockRows / kBrickRows * halves), p_.scale_rows - 1);
      scales_.stride = static_cast<std::uint32_t>(halves * p_.scale_rows);
      scales_.at[0] = p_.block_scales + matrix * steps * scales_.stride + block;
      scales_.at[1] = scales_.at[0] + (halves - 1) * p_.scale_rows;
    }
  }
  // The warp's next block into the ring's next slot; a group of copies in any case.
  __device__ void load_next() {
    if (has_next_) {
      copy_brick<Format>(load_slot_, next_, scales_, next_block_);
      next_ += std::int64_t{p_.n / kBrickRows} * kBrickBytes;
      if (++next_block_ == end_) aim(next_index_ + static_cast<std::int32_t>(row_warps_));
    }
    ptx::cp_async_commit_group();
    load_slot_ = slot_behind(load_slot_);
  }
  __device__ std::uint32_t slot_behind(std::uint32_t slot) const {
    slot += kSlotBytes;
    return slot == ring_ + kAhead * kSlotBytes ? ring_ : slot;
  }

  // Rows of tokens, or of the pairs, with zeros behind K.
  __device__ void load_rows() const {
    const std::int32_t rows = IsDown ? s_.pairs : p_.tokens;
    const std::int32_t chunks = (p_.k + kBrickK - 1) / kBrickK * (kBrickK / 8);
    const std::uint32_t base = ptx::shared_address(memory_);
#pragma unroll 1
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < rows * chunks;
         i += static_cast<std::int32_t>(blockDim.x)) {
      const std::int32_t row = i / chunks, chunk = i - row * chunks;
      const std::int64_t from = IsDown ? s_.pair_slot[row] : row;
      const std::uint32_t valid = chunk * 8 < p_.k ? 16 : 0;
      ptx::cp_async_cg_shared_global_16(base + static_cast<std::uint32_t>(row) * p_.token_bytes +
                                            static_cast<std::uint32_t>(chunk) * 16,
                                        p_.x + from * p_.k + (valid != 0 ? chunk * 8 : 0), valid);
    }
  }

  // This lane's token of a group. Lanes without one take the first: their sums are not used.
  __device__ const std::uint8_t* tokens_of(std::int32_t group) const {
    const auto token = static_cast<std::int32_t>(lane_.g);
    const std::int32_t pair = s_.group_begin[group] + (token < s_.size(group) ? token : 0);
    const std::int32_t row = IsDown ? pair : token_of(s_.pair_slot[pair]);
    return memory_ + static_cast<std::uint32_t>(row) * p_.token_bytes + lane_.t * 32;
  }
  __device__ std::int32_t token_of(std::int32_t slot) const {
    const std::int32_t routed = p_.tokens * p_.topk;
    return slot < routed ? slot / p_.topk : slot - routed;
  }

  __device__ void multiply_all() {
    const std::int32_t of_round = p_.round * static_cast<std::int32_t>(row_warps_);
    std::uint32_t buffer = 0;
#pragma unroll 1
    for (std::int32_t first = 0; first < units_.count; first += of_round) {
#pragma unroll 1
      for (std::int32_t i = 0; i < p_.round; ++i) {
        const std::int32_t index = first + i * static_cast<std::int32_t>(row_warps_) + row_warp_;
        if (index < units_.count) multiply_unit(index, sums(buffer, threadIdx.x / 32, i));
      }
      __syncthreads();
      // The other buffer's sums are read before the next barrier, and written behind it.
      finish_round(first, buffer);
      buffer ^= 1;
    }
  }

  __device__ float* sums(std::uint32_t buffer, std::uint32_t warp, std::int32_t i) const {
    const std::uint32_t slot =
        (buffer * (blockDim.x / 32) + warp) * static_cast<std::uint32_t>(p_.round) +
        static_cast<std::uint32_t>(i);
    return reinterpret_cast<float*>(memory_ + p_.sums_at + slot * 512);
  }

  __device__ void multiply_unit(std::int32_t index, float* to) {
    const std::uint8_t* tokens = tokens_of(units_[index].group) + begin_ * (kBrickK * 2);
    DirectSums sums = {};
#pragma unroll 1
    for (std::int32_t block = begin_; block < end_; ++block) {
      ptx::cp_async_wait_group<kAhead - 2>();
      __syncwarp();  // other lanes' copies; and they have read the slot that is filled next
      load_next();
      const auto* x = reinterpret_cast<const uint4*>(tokens);
      const uint4 u = x[0], v = x[1];
      const DirectTokens b = {{u.x, v.x}, {u.y, v.y}, {u.z, v.z}, {u.w, v.w}};
      multiply_brick<Format, Order>(sums, read_slot_, lane_, b);
      read_slot_ = slot_behind(read_slot_);
      tokens += kBrickK * 2;
    }
    float4 total;
    total.x = sums[0][0] + sums[1][0];
    total.y = sums[0][1] + sums[1][1];
    total.z = sums[0][2] + sums[1][2];
    total.w = sums[0][3] + sums[1][3];
    reinterpret_cast<float4*>(to)[threadIdx.x % 32] = total;
  }

  // Row r of the brick and token c of unit i of row warp `warp`, over the parts of K in order.
  __device__ float add_up(std::uint32_t buffer, std::uint32_t warp, std::int32_t i, int r,
                          int c) const {
    const int at = (r % 8 * 4 + c / 2) * 4 + r / 8 * 2 + c % 2;
    float sum = 0;
    for (std::uint32_t part = 0; part < static_cast<std::uint32_t>(p_.parts); ++part)
      sum += sums(buffer, part * row_warps_ + warp, i)[at];
    return sum;
  }

  __device__ void finish_round(std::int32_t first, std::uint32_t buffer) const {
    constexpr int kRows = IsDown ? 16 : 8;  // results of a brick and token
    const int all = p_.round * static_cast<int>(row_warps_) * 8 * kRows;
#pragma unroll 1
    for (int item = static_cast<int>(threadIdx.x); item < all;
         item += static_cast<int>(blockDim.x)) {
      const int r = item % kRows, c = item / kRows % 8, of_round = item / (kRows * 8);
      if (first + of_round >= units_.count) break;
      const DirectUnit unit = units_[first + of_round];
      if (c >= s_.size(unit.group)) continue;
      const auto warp = static_cast<std::uint32_t>(of_round) % row_warps_;
      const auto i = static_cast<std::int32_t>(static_cast<std::uint32_t>(of_round) / row_warps_);
      const std::int32_t pair = s_.group_begin[unit.group] + c;
      const float low = add_up(buffer, warp, i, r, c);
      if constexpr (IsDown) {
        put_y(unit, pair, r, low);
      } else {
        put_h(unit, pair, r, {low, add_up(buffer, warp, i, r + 8, c)});
      }
    }
  }

  __device__ void put_h(const DirectUnit& unit, std::int32_t pair, int r,
                        tile::GateAndUp sums) const {
    const std::int32_t expert = s_.group_expert[unit.group], slot = s_.pair_slot[pair];
    sums.gate *= p_.alphas[2 * expert];
    sums.up *= p_.alphas[2 * expert + 1];
    const auto [gate, up] = tile::limited(sums, p_.limit);
    const float weight = p_.is_weight_after_down ? 1.0f : s_.weights[slot];
    const float h = gate / (1 + __expf(-gate)) * up * weight;
    const std::int64_t at = std::int64_t{slot} * (p_.n / 2) + unit.brick * 8 + r;
    static_cast<__nv_bfloat16*>(p_.y)[at] = __float2bfloat16_rn(h);
  }

  // [slot][columns of the CTA]
  __device__ float& y_of(std::int32_t slot, std::int32_t column) const {
    auto* const y = reinterpret_cast<float*>(memory_ + p_.y_at);
    return y[slot * units_.bricks * kBrickRows + column];
  }
  __device__ void put_y(const DirectUnit& unit, std::int32_t pair, int r, float sum) const {
    const float y = sum * p_.alphas[s_.group_expert[unit.group]];
    const std::int32_t column = (unit.brick - units_.first) * kBrickRows + r;
    y_of(s_.pair_slot[pair], column) =
        p_.routing.is_single ? y : __bfloat162float(__float2bfloat16_rn(y));
  }

  __device__ void combine() const {
    __syncthreads();
    const std::int32_t columns = units_.bricks * kBrickRows, routed = p_.tokens * p_.topk;
#pragma unroll 1
    for (auto i = static_cast<std::int32_t>(threadIdx.x); i < p_.tokens * columns;
         i += static_cast<std::int32_t>(blockDim.x)) {
      const std::int32_t token = i / columns, column = i - token * columns;
      float sum = 0;
      for (std::int32_t slot = token * p_.topk; slot < (token + 1) * p_.topk; ++slot) {
        if (s_.expert[slot] < 0) continue;
        const float weight = p_.is_weight_after_down ? s_.weights[slot] : 1.0f;
        sum = fmaf(weight, y_of(slot, column), sum);
      }
      if (p_.has_shared) sum += y_of(routed + token, column);
      const std::int64_t at = std::int64_t{token} * p_.n + units_.first * kBrickRows + column;
      if (p_.is_out_f32) {
        static_cast<float*>(p_.y)[at] = sum;
      } else {
        static_cast<__nv_bfloat16*>(p_.y)[at] = __float2bfloat16_rn(sum);
      }
    }
  }

  static constexpr int kBrickBytes = brick_bytes(Format);

  const MoeDirectProduct& p_;
  MoeDirectGroups& s_;
  std::uint8_t* memory_;
  std::int32_t cta_;
  DirectLane lane_;
  std::uint32_t row_warps_;  // warps that have bricks of their own
  std::int32_t row_warp_;
  std::int32_t begin_, end_;  // K blocks of this warp
  DirectUnits<IsDown> units_;
  // The ring: where the next block goes, where the oldest is; the block that is loaded next.
  std::uint32_t ring_, load_slot_, read_slot_;
  const std::uint8_t* next_ = nullptr;
  std::int32_t next_index_ = 0, next_block_ = 0;
  DirectScales scales_ = {};
  bool has_next_ = false;
};

template <WeightFormat Format, WordOrder Order, bool IsDown>
__device__ void moe_direct(const MoeDirectParams& params) {
  extern __shared__ __align__(128) std::uint8_t direct_memory[];
  __shared__ MoeDirectGroups groups;
  const auto cta = static_cast<std::int32_t>(blockIdx.x);
  if (cta < params.first.ctas) {
    DirectProduct<Format, Order, IsDown, false>(params.first, groups, direct_memory, cta).run();
  } else {
    DirectProduct<WeightFormat::kFp8, WordOrder::kBf16, IsDown, true>(
        params.second, groups, direct_memory, cta - params.first.ctas)
        .run();
  }
}

}  // namespace tilewright::kernels

/// Entries moe_direct_gate_up_NAME and moe_direct_down_NAME.
#define TILEWRIGHT_MOE_DIRECT(NAME, FORMAT, ORDER)                             \
  TILEWRIGHT_KERNEL(moe_direct_gate_up_##NAME, MoeDirectParams,                \
                    __launch_bounds__(MoeDirectTile::kMaxWarps * 32, 1),       \
                    moe_direct<WeightFormat::FORMAT, WordOrder::ORDER, false>) \
  TILEWRIGHT_KERNEL(moe_direct_down_##NAME, MoeDirectParams,                   \
                    __launch_bounds__(MoeDirectTile::kMaxWarps * 32, 1),       \
                    moe_direct<WeightFormat::FORMAT, WordOrder::ORDER, true>)
