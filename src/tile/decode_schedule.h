// Who attends to which keys: every warp works it out for itself from the lengths on the device, so
// that no launch depends on them.
//
// Tiles in the order (sequence, KV head, rows) have weights, and CTA c has units [c S, (c + 1) S)
// of their sum:
//   balanced   a weight is the tile's pieces and tile_cost, S the sum shared out evenly. A tile may
//              begin and end anywhere: all CTAs end together, but most have parts of two tiles.
//   parts      a weight is the number of equal parts that a tile is cut into, S how many parts a
//              CTA has, each on its own. Aligned: as many as there are CTAs for, S = 1. Fixed: as
//              many as asked for.
#pragma once

#include "kernels/attention/decode.h"
#include "ptx/warp_roles.h"

#include <cstdint>

namespace tilewright::tile {

/// The keys of a sequence, and the pieces of them that any of its queries sees.
struct DecodeKeys {
  std::int32_t length, begin;          ///< keys [begin, length) are seen
  std::int32_t first_piece, pieces;  ///< at least one

  __device__ DecodeKeys(const kernels::DecodeParams& p, std::int32_t batch_idx)
      : DecodeKeys(p, p, p.lengths[batch_idx]) {}
  __device__ static DecodeKeys of_length(const kernels::DecodeParams& p, std::int32_t raw) {
    return DecodeKeys(p, p, raw);
  }

 private:
  __device__ DecodeKeys(const kernels::DecodeParams& p, const kernels::DecodeParams&,
                        std::int32_t raw) {
    constexpr std::int32_t kKeys = kernels::kDecodePieceKeys;
    length = min(max(raw, 0) + p.added, p.cache.capacity);
    begin = min(max(length - p.q_len - p.window_left, 0), length);
    first_piece = begin / kKeys;
    pieces = max((length + kKeys - 1) / kKeys - first_piece, 1);
  }
};

/// A part of a tile for one CTA.
struct DecodeSegment {
  std::int32_t batch_idx, kv_head, m_tile;
  std::int32_t begin, end;   ///< pieces, counted from key 0
  std::int32_t key_begin, length;
  std::int32_t slot;  ///< of partial results; -1: the whole tile
};

/// A tile whose partial results are to be merged: slots first, then second and every `step`-th.
struct DecodeMerge {
  std::int32_t batch_idx, kv_head, m_tile;
  std::int32_t parts;  ///< below 2: none begins here
  std::int32_t first_slot, second_slot, step;

  __device__ std::int32_t slot(std::int32_t part) const {
    return part == 0 ? first_slot : second_slot + (part - 1) * step;
  }
};

/// The sum of all weights, and how it is shared out.
class DecodePlan {
 public:
  __device__ explicit DecodePlan(const kernels::DecodeParams& p) : p_(p) {
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    chunk_ = (p.batch + 31) / 32;
    first_ = min(lane * chunk_, p.batch), last_ = min(first_ + chunk_, p.batch);
    if (p.deal == kernels::DecodeDeal::kFixed) {
      is_parts_ = true, splits_ = p.splits;
      const std::int64_t units = std::int64_t{p.batch} * tiles() * p.splits;
      share_ = (units + p.groups - 1) / p.groups;
      return;
    }
    std::int64_t pieces = 0;
    for (std::int32_t b = first_; b < last_; ++b) pieces += DecodeKeys(p, b).pieces;
    const std::int64_t all = sum(pieces);
    choose(all * tiles());
  }

  /// Tiles of a sequence.
  __device__ std::int32_t tiles() const { return p_.kv_heads * p_.m_tiles; }
  __device__ bool is_parts() const { return is_parts_; }
  __device__ std::int64_t share() const { return share_; }
  __device__ std::int32_t part_pieces() const { return part_pieces_; }
  /// Weight of each tile of a sequence.
  __device__ std::int32_t weight(const DecodeKeys& keys) const {
    if (!is_parts_) return keys.pieces + p_.tile_cost;
    if (splits_ > 0) return splits_;
    return parts_of(keys.pieces, part_pieces_);
  }
  /// Pieces of each part of a tile but the last ones.
  __device__ std::int32_t pieces_of_part(const DecodeKeys& keys, std::int32_t weight) const {
    return (keys.pieces + weight - 1) / weight;
  }

  /// The sequence that unit `at` of all belongs to, and what is left of `at` within it; false if
  /// there are not so many.
  __device__ bool find(std::int64_t& at, std::int32_t& batch_idx) const {
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    std::int64_t mine = 0;
    for (std::int32_t b = first_; b < last_; ++b) mine += weight(DecodeKeys(p_, b));
    mine *= tiles();
    std::int64_t through = mine;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const std::int64_t other = __shfl_up_sync(0xffffffffu, through, step);
      if (lane >= step) through += other;
    }
    const std::uint32_t found = __ballot_sync(0xffffffffu, at < through);
    if (found == 0) return false;
    const int owner = __ffs(static_cast<int>(found)) - 1;
    at -= __shfl_sync(0xffffffffu, through - mine, owner);
    batch_idx = __shfl_sync(0xffffffffu, first_, owner);
    while (true) {
      const std::int64_t here =
          std::int64_t{weight(DecodeKeys(p_, batch_idx))} * tiles();
      if (at < here) return true;
      at -= here, ++batch_idx;
    }
  }

  /// What CTA `cta` of the combination merges: the tile whose first part is the last segment of the
  /// attending CTA of that number; if the deal is fixed, tile `cta`.
  __device__ DecodeMerge merge(std::int32_t cta) const {
    DecodeMerge m = {};
    const std::int64_t last = share_ * (cta + 1) - 1;
    std::int64_t at = splits_ > 0 ? std::int64_t{cta} * splits_ : is_parts_ ? cta : last;
    if (!find(at, m.batch_idx)) return m;  // all that it has ends in it
    const DecodeKeys keys(p_, m.batch_idx);
    const std::int32_t of_tile = weight(keys);
    const auto tile = static_cast<std::int32_t>(at / of_tile);
    const auto offset = static_cast<std::int32_t>(at - std::int64_t{tile} * of_tile);
    m.kv_head = tile / p_.m_tiles, m.m_tile = tile % p_.m_tiles;
    if (is_parts_) {
      if (offset != 0) return m;
      m.parts = of_tile;
      m.first_slot = splits_ > 0 ? cta * splits_ : cta, m.second_slot = m.first_slot + 1, m.step = 1;
      return m;
    }
    const std::int64_t start = last - offset;
    if (start + p_.tile_cost < share_ * cta || start + p_.tile_cost > last) return m;
    m.parts = static_cast<std::int32_t>((start + of_tile - 1) / share_) - cta + 1;
    m.first_slot = 2 * cta + 1, m.second_slot = 2 * (cta + 1), m.step = 2;
    return m;
  }

 private:
  __device__ static std::int64_t sum(std::int64_t x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
  }
  __device__ static std::int32_t parts_of(std::int32_t pieces, std::int32_t share) {
    return (pieces + share - 1) / share;
  }

  /// Parts of `share` pieces: are there CTAs for all?
  __device__ bool fits(std::int32_t share) const {
    std::int64_t parts = 0;
    for (std::int32_t b = first_; b < last_; ++b)
      parts += parts_of(DecodeKeys(p_, b).pieces, share);
    return sum(parts) * tiles() <= p_.groups;
  }

  __device__ void choose(std::int64_t pieces) {
    const std::int64_t all_tiles = std::int64_t{p_.batch} * tiles();
    const std::int64_t weights = pieces + all_tiles * p_.tile_cost;
    share_ = max((weights + p_.groups - 1) / p_.groups,
                 std::int64_t{p_.tile_cost} + p_.least_share);
    if (all_tiles > p_.groups) return;
    // Aligned parts of that many pieces fit if there is one CTA for each tile beside those that the
    // pieces fill; smaller ones may: eight attempts between the two bounds.
    const auto spare = static_cast<std::uint32_t>(p_.groups - all_tiles + 1);
    const auto all = static_cast<std::uint32_t>(min(pieces, std::int64_t{0x7fffffff}));
    const std::uint32_t least = max((all + p_.groups - 1) / p_.groups,
                                    static_cast<std::uint32_t>(p_.least_share));
    std::uint32_t high = max((all + spare - 1) / spare, least), low = least;
    for (int i = 0; i < 8 && low < high; ++i) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (fits(static_cast<std::int32_t>(middle))) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    // Balanced, a CTA has parts of two tiles.
    if (high + p_.tile_cost > share_ + p_.tile_cost) return;
    is_parts_ = true, part_pieces_ = static_cast<std::int32_t>(high), share_ = 1;
  }

  const kernels::DecodeParams& p_;
  std::int32_t chunk_, first_, last_;  ///< sequences of this lane
  bool is_parts_ = false;
  std::int32_t splits_ = 0, part_pieces_ = 0;
  std::int64_t share_ = 0;
};

/// The segments of a CTA, one after another; the same for all lanes of a warp.
class DecodeWalk {
 public:
  __device__ DecodeWalk(const kernels::DecodeParams& p, const DecodePlan& plan, std::int32_t cta)
      : p_(p), tiles_(plan.tiles()), is_parts_(plan.is_parts()), splits_(0), cta_(cta) {
    const std::int64_t begin = plan.share() * cta;
    std::int64_t at = begin;
    unit_ = static_cast<std::int32_t>(begin);
    left_ = 0;
    part_pieces_ = plan.part_pieces();
    if (p.deal == kernels::DecodeDeal::kFixed) splits_ = p.splits;
    if (!plan.find(at, batch_idx_)) return;
    left_ = static_cast<std::int32_t>(min(plan.share(), std::int64_t{0x7fffffff}));
    enter();
    tile_ = static_cast<std::int32_t>(at / weight_);
    offset_ = static_cast<std::int32_t>(at - std::int64_t{tile_} * weight_);
  }

  /// False at the end.
  __device__ bool next(DecodeSegment& segment) {
    while (left_ > 0 && batch_idx_ < p_.batch) {
      const std::int32_t take = is_parts_ ? 1 : min(weight_ - offset_, left_);
      std::int32_t begin, end, slot;
      if (is_parts_) {
        const std::int32_t each = (pieces_ + weight_ - 1) / weight_;
        begin = min(offset_ * each, pieces_), end = min(begin + each, pieces_);
        slot = weight_ > 1 ? unit_ : -1;
      } else {
        begin = max(offset_ - p_.tile_cost, 0), end = max(offset_ + take - p_.tile_cost, 0);
        slot = begin == 0 && end == pieces_ ? -1 : 2 * cta_ + (begin == 0 ? 1 : 0);
      }
      const bool is_any = is_parts_ || end > begin;
      segment = {batch_idx_,          tile_ / p_.m_tiles, tile_ % p_.m_tiles, first_piece_ + begin,
                 first_piece_ + end, key_begin_,         length_,            slot};
      offset_ += take, left_ -= take, ++unit_;
      if (offset_ == weight_) {
        offset_ = 0;
        if (++tile_ == tiles_) {
          tile_ = 0;
          if (++batch_idx_ < p_.batch) enter();
        }
      }
      if (is_any) return true;
    }
    return false;
  }

 private:
  __device__ void enter() {
    const DecodeKeys keys(p_, batch_idx_);
    length_ = keys.length, key_begin_ = keys.begin;
    first_piece_ = keys.first_piece, pieces_ = keys.pieces;
    weight_ = !is_parts_    ? pieces_ + p_.tile_cost
              : splits_ > 0 ? splits_
                            : (pieces_ + part_pieces_ - 1) / part_pieces_;
  }

  const kernels::DecodeParams& p_;
  std::int32_t tiles_;
  bool is_parts_;
  std::int32_t splits_, part_pieces_, cta_;
  std::int32_t unit_, left_;  ///< left_: units of this CTA
  std::int32_t batch_idx_, tile_, offset_;
  std::int32_t length_, key_begin_, first_piece_, pieces_, weight_;
};

}  // namespace tilewright::tile
