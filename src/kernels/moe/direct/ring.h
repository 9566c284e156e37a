// Where the weights of a direct launch come from, in the order in which they are multiplied, and a
// warp's ring of them.
#pragma once

#include "kernels/moe/direct/groups.h"
#include "ptx/bulk_copy.h"
#include "ptx/cache_policy.h"
#include "ptx/fence.h"
#include "ptx/mbarrier.h"
#include "ptx/mbarrier_count.h"
#include "tile/deep_position.h"

namespace tilewright::kernels {

/// What a launch does, one after the other; those of down side by side, where warps are split.
enum DirectPhase { kSingleUp, kRoutedUp, kSingleDown, kRoutedDown, kDirectPhases };

__device__ constexpr bool is_down(int phase) {
  return phase == kRoutedDown || phase == kSingleDown;
}
__device__ inline const MoeDirectProduct& product_of(const MoeDirectParams& p, int phase) {
  const MoeDirectExperts& experts =
      phase == kSingleUp || phase == kSingleDown ? p.single : p.routed;
  return is_down(phase) ? experts.down : experts.gate_up;
}

struct DirectUnit {
  std::int32_t group, first, bricks;
};

/// The units of a CTA in a phase: a run of those of all groups, one group behind the other; of down
/// some rows of every group, so that the CTA adds up what a token's experts make.
struct DirectSpan {
  std::int32_t of_group, group, row, offset, count;  ///< the first unit is `row` of `group`

  __device__ static DirectSpan make(const MoeDirectProduct& p, std::int32_t groups, bool is_down) {
    const auto all = static_cast<std::uint32_t>(is_down ? p.row_units : p.row_units * groups);
    const std::uint32_t of_each = all / gridDim.x, more = all - of_each * gridDim.x;
    const auto begin = [&](std::uint32_t cta) {  // all * cta / gridDim.x
      return static_cast<std::int32_t>(of_each * cta + more * cta / gridDim.x);
    };
    const std::int32_t from = begin(blockIdx.x), own = begin(blockIdx.x + 1) - from;
    if (is_down) return {own, 0, 0, from, own * groups};
    const std::int32_t group = p.row_units == 0 ? 0 : from / p.row_units;
    return {p.row_units, group, from - group * p.row_units, 0, own};
  }
  __device__ DirectUnit unit(const MoeDirectProduct& p, std::int32_t in_group,
                             std::int32_t at) const {
    const std::int32_t brick = (offset + at) * p.unit_bricks;
    return {in_group, brick, min(p.unit_bricks, p.n / kBrickRows - brick)};
  }
  __device__ DirectUnit unit(const MoeDirectProduct& p, std::int32_t index) const {
    const std::int32_t at = row + index, groups = at / of_group;
    return unit(p, group + groups, at - groups * of_group);
  }
};

/// A warp's part in a phase.
struct DirectPlace {
  std::int32_t team, part;

  __device__ explicit DirectPlace(const MoeDirectProduct& p) {
    constexpr std::int32_t kNone = 1 << 30;  // behind all units
    const std::int32_t warp = static_cast<std::int32_t>(threadIdx.x / 32) - p.first_warp;
    const int shift = __ffs(p.k_warps) - 1;
    const std::int32_t own = warp >> shift;
    team = own >= 0 && own < p.teams ? own : kNone;
    part = warp - (own << shift);
  }
};

/// A place in a span, without divisions.
struct DirectCursor {
  std::int32_t index = 0, group, row;

  DirectCursor() = default;
  __device__ DirectCursor(const DirectSpan& span, std::int32_t team)
      : group(span.group), row(span.row) {
    if (team < span.count) advance(span, team);
    index = team;
  }
  __device__ void advance(const DirectSpan& span, std::int32_t units) {
    index += units;
    row += units;
#pragma unroll 1
    while (row >= span.of_group) {
      row -= span.of_group;
      ++group;
    }
  }
};

/// K blocks of the warp's units, all phases one behind the other: there, or on their way. All lanes
/// have the same numbers; one asks for copies.
class DirectRing {
 public:
  /// `routed`: a barrier whose first phase ends when groups and the spans of all phases are there;
  /// that of kSingleUp is there when the CTA's threads have met, as they do next.
  __device__ DirectRing(const MoeDirectParams& params, const MoeDirectGroups& groups,
                        const DirectSpan* spans, std::uint32_t memory, std::uint32_t routed)
      : p_(params),
        s_(groups),
        spans_(spans),
        routed_(routed),
        memory_(memory + threadIdx.x / 32 * params.stages * params.stage_bytes),
        barriers_(memory + params.barriers_at + threadIdx.x / 32 * params.stages * 8),
        policy_(ptx::createpolicy_fractional_l2_evict_first()) {
    if (threadIdx.x % 32 == 0) {
      for (std::uint32_t i = 0; i < p_.stages; ++i) ptx::mbarrier_init(barriers_ + i * 8, 1);
      ptx::fence_mbarrier_init_release_cluster();
    }
    __syncwarp();
  }

  /// Asks for as much as there is room for, of phases that are known.
  __device__ void fill() {
    if (end_ < kDirectPhases && __all_sync(kRouteLanes, ptx::mbarrier_test_wait_parity(routed_, 0)))
      end_ = kDirectPhases;
#pragma unroll 1
    while (in_flight_ < p_.stages && (left_ > 0 || find_unit())) load();
  }
  /// The same when all phases are known and one stage is free.
  __device__ void refill() {
    if (left_ > 0 || find_unit()) load();
  }
  /// Waits until all phases are known.
  __device__ void wait_routed() const {
    ptx::mbarrier_wait_parity(routed_, 0);
  }
  /// Where the oldest block is, once it is there.
  __device__ std::uint32_t wait() const {
    ptx::mbarrier_wait_parity(barriers_ + read_.stage * 8, read_.parity);
    return memory_ + read_.stage * p_.stage_bytes;
  }
  /// The whole warp has read it.
  __device__ void release() {
    __syncwarp();
    read_.advance(p_.stages);
    --in_flight_;
  }

 private:
  __device__ bool find_unit() {
#pragma unroll 1
    while (phase_ < end_) {
      const MoeDirectProduct& p = product_of(p_, phase_);
      const DirectSpan& span = spans_[phase_];
      if (!has_begun_) {
        at_ = DirectCursor(span, DirectPlace(p).team);
        has_begun_ = true;
      }
      if (at_.index < span.count) {
        aim(p, span.unit(p, at_.group, at_.row));
        at_.advance(span, p.teams);
        return true;
      }
      ++phase_;
      has_begun_ = false;
    }
    return false;
  }
  __device__ void aim(const MoeDirectProduct& p, const DirectUnit& unit) {
    const bool is_routed = phase_ == kRoutedUp || phase_ == kRoutedDown;
    const std::int32_t matrix = is_routed ? s_.group_expert[unit.group] : 0;
    const std::int32_t part = DirectPlace(p).part;
    const std::int64_t of_block = std::int64_t{p.n / kBrickRows} * p.brick_bytes;
    from_ = p.weights + matrix * p.matrix_bytes + part * of_block + unit.first * p.brick_bytes;
    step_ = p.k_warps * of_block;
    bytes_ = static_cast<std::uint32_t>(unit.bricks * p.brick_bytes);
    left_ = ((p.k + kBrickK - 1) / kBrickK - part + p.k_warps - 1) / p.k_warps;
  }
  __device__ void load() {
    if (threadIdx.x % 32 == 0) {
      const std::uint32_t barrier = barriers_ + load_stage_ * 8;
      ptx::mbarrier_arrive_expect_tx(barrier, bytes_);
      ptx::cp_async_bulk_shared_global(memory_ + load_stage_ * p_.stage_bytes, from_, bytes_,
                                       barrier, policy_);
    }
    ++in_flight_;
    load_stage_ = load_stage_ + 1 == p_.stages ? 0 : load_stage_ + 1;
    from_ += step_;
    --left_;
  }

  const MoeDirectParams& p_;
  const MoeDirectGroups& s_;
  const DirectSpan* spans_;
  std::uint32_t routed_, memory_, barriers_;
  std::uint64_t policy_;
  tile::DeepPosition read_;
  std::uint32_t load_stage_ = 0, in_flight_ = 0;
  // What is asked for next.
  int phase_ = 0, end_ = kRoutedUp;
  bool has_begun_ = false;
  DirectCursor at_;        // the unit behind
  std::int32_t left_ = 0;  // blocks of the unit
  const std::uint8_t* from_ = nullptr;
  std::int64_t step_ = 0;
  std::uint32_t bytes_ = 0;
};

}  // namespace tilewright::kernels
