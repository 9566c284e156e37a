// The segments of a CTA, a few at a time in shared memory, from where all its warps take them.
#pragma once

#include "kernels/attention/decode/schedule.h"
#include "ptx/math.h"

#include <cstdint>

namespace tilewright::tile {

/// Equal parts of every tile, one for a group, if they fit and no group could do with less in the
/// balanced way. By all lanes of a warp, each for the sequence of its number; numbers of parts are
/// rounded somehow, but the same way in all groups.
template <class Params>
class DecodeAligned {
 public:
  __device__ DecodeAligned(const Params& p, const std::int32_t* lengths) : p_(p) {
    tiles_ = p.kv_heads * p.m_tiles;
    if (p.deal != kernels::DecodeDeal::kAuto || p.batch > 32 || p.batch * tiles_ > p.groups) return;
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    if (lane < p.batch) keys_ = DecodeKeys(p, lengths, lane);
    choose(static_cast<float>(keys_.pieces));
  }

  /// False if that is not the way; else the segment of a group, with `exists` whether it has one.
  __device__ bool find(std::int32_t group, DecodeSegment& segment, bool& exists) const {
    if (!is_chosen_) return false;
    std::int32_t through = parts_;
#pragma unroll 1
    for (std::int32_t step = 1; step < p_.batch; step *= 2) {
      const std::int32_t other = __shfl_up_sync(kAllLanes, through, step);
      if (static_cast<std::int32_t>(threadIdx.x % 32) >= step) through += other;
    }
    const std::uint32_t found = __ballot_sync(kAllLanes, group < through * tiles_);
    exists = found != 0;
    if (!exists) return true;
    const int owner = __ffs(static_cast<int>(found)) - 1;
    const auto of_owner = [&](std::int32_t x) { return __shfl_sync(kAllLanes, x, owner); };
    const std::int32_t parts = of_owner(parts_);
    const std::int32_t at = group - (of_owner(through) - parts) * tiles_;
    const std::int32_t tile = at / parts, part = at - tile * parts;
    const std::int32_t pieces = of_owner(keys_.pieces), first = of_owner(keys_.first_piece);
    const std::int32_t each = (pieces + parts - 1) / parts;
    const std::int32_t begin = min(part * each, pieces), end = min(begin + each, pieces);
    const std::int32_t kv_head = p_.m_tiles == 1 ? tile : tile / p_.m_tiles;
    segment = {owner,
               kv_head,
               tile - kv_head * p_.m_tiles,
               first + begin,
               first + end,
               of_owner(keys_.begin),
               min((first + end) * kernels::kDecodePieceKeys, of_owner(keys_.length)),
               of_owner(keys_.length),
               parts > 1 ? group : -1,
               {parts, group - part, group - part + 1, 1}};
    return true;
  }

 private:
  static constexpr unsigned kAllLanes = 0xffffffffu;

  __device__ static float parts_of(float pieces, float inverse) {
    return ceilf(fmaf(pieces, inverse, -0x1p-10f));
  }

  /// Parts should be as large as what a group has of all if nothing else counted, and as what
  /// makes merging pay: a tile of x pieces in parts of y takes y + merge_cost x / y beyond what
  /// memory allows. They may be as large as a balanced share. A lane tries one size of these.
  __device__ void choose(float pieces) {
    float all = pieces;
#pragma unroll 1
    for (std::int32_t step = 1; step < p_.batch; step *= 2)
      all += __shfl_xor_sync(kAllLanes, all, step);
    all = __shfl_sync(kAllLanes, all, 0);
    const auto groups = static_cast<float>(p_.groups), tiles = static_cast<float>(tiles_);
    const float whole = all * tiles * __frcp_rn(groups);
    const float mean = __fdividef(all, static_cast<float>(p_.batch));
    const float cheap = mean * p_.merge_cost * rsqrtf(fmaxf(mean * p_.merge_cost, 1.0f));
    const float least = fmaxf(whole, fmaxf(static_cast<float>(p_.least_share), cheap));
    const float balanced = __fdividef(static_cast<float>(p_.batch * tiles_ * p_.tile_cost), groups);
    const float most = fmaxf(whole + balanced, static_cast<float>(p_.least_share + p_.tile_cost));
    const float mine =
        least + (fmaxf(most, least) - least) * static_cast<float>(threadIdx.x % 32) / 31;
    const float inverse = __fdividef(1.0f, mine);
    float sum = 0.0f;
#pragma unroll 1
    for (std::int32_t b = 0; b < p_.batch; ++b)
      sum += fmaxf(parts_of(__shfl_sync(kAllLanes, pieces, b), inverse), 1.0f);
    const std::uint32_t fitting = __ballot_sync(kAllLanes, sum * tiles <= groups);
    if (fitting == 0) return;
    const float chosen = __shfl_sync(kAllLanes, inverse, __ffs(static_cast<int>(fitting)) - 1);
    is_chosen_ = true;
    if (keys_.pieces > 0) parts_ = max(static_cast<std::int32_t>(parts_of(pieces, chosen)), 1);
  }

  const Params& p_;
  DecodeKeys keys_;  ///< of this lane's sequence
  std::int32_t tiles_, parts_ = 0;
  bool is_chosen_ = false;
};

template <class Params>
class DecodeAgenda {
  using Walk = DecodeWalk<Params>;

 public:
  /// By the first warp: the first segments of CTA `rank` of the 2^log2_size ones of a group. All
  /// may read them behind a barrier.
  __device__ void begin(const Params& p, const std::int32_t* lengths, std::int32_t group,
                        std::uint32_t rank, std::uint32_t log2_size) {
    const DecodeAligned<Params> aligned(p, lengths);
    DecodeSegment only;
    bool exists;
    if (aligned.find(group, only, exists)) {
      if (threadIdx.x > 0) return;
      count_ = exists ? 1 : 0;
      if (exists) segments_[0] = only, cut(segments_[0], rank, log2_size);
    } else {
      const Walk walk(p, lengths, DecodePlan<Params>(p, lengths), group);
      if (threadIdx.x > 0) return;
      new (walk_) Walk(walk);
      fill(lengths, rank, log2_size);
    }
  }
  /// By the first thread: the next ones. Called in two places, and long.
  __device__ __noinline__ void fill(const std::int32_t* lengths, std::uint32_t rank,
                                    std::uint32_t log2_size) {
    Walk& walk = *reinterpret_cast<Walk*>(walk_);
    Walk at = walk;
    count_ = 0;
    while (count_ < kernels::kDecodeAgenda && at.next(lengths, segments_[count_]))
      cut(segments_[count_++], rank, log2_size);
    walk.~Walk();
    new (walk_) Walk(at);
  }
  __device__ std::int32_t count() const { return count_; }
  __device__ const DecodeSegment& operator[](std::int32_t i) const { return segments_[i]; }
  /// Are there no more behind these?
  __device__ bool is_last() const { return count_ < kernels::kDecodeAgenda; }

 private:
  /// A group's segment becomes the share of one of its CTAs.
  __device__ static void cut(DecodeSegment& s, std::uint32_t rank, std::uint32_t log2_size) {
    const std::int32_t begin = s.begin, pieces = s.end - s.begin;
    const auto first = static_cast<std::int32_t>(rank);
    s.begin = begin + (pieces * first >> log2_size);
    s.end = begin + (pieces * (first + 1) >> log2_size);
    s.key_end = min(s.key_end, s.end * kernels::kDecodePieceKeys);
  }

  DecodeSegment segments_[kernels::kDecodeAgenda];
  std::int32_t count_;
  alignas(Walk) unsigned char walk_[sizeof(Walk)];
};

}  // namespace tilewright::tile
