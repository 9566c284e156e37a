// Which CTA attends to which keys: the first warp of a CTA computes it from the lengths on the
// device, so that no launch depends on them, and passes a few segments at a time to all warps
// (DecodeAgenda). Only one place in the code finds the next segment: copies of it in every place
// were a third of 120 KB of instructions, and fetching those cost microseconds.
//
// Tiles, in the order (sequence, KV head, rows), are scheduled in one of three ways:
//   aligned    every tile in equal splits, one per group of CTAs, as many as there are groups:
//              DecodeAligned. For up to 32 sequences, one per lane; no key is loaded before it ends
//   balanced   the weight of a tile is its pieces + tile_cost; group c has units [c S, (c + 1) S)
//              of the sum of weights: all groups end together, but most have splits of two tiles
//   fixed      the same, but a weight is the requested number of splits
#pragma once

#include "kernels/attention/decode/decode.h"
#include "ptx/warp_roles.h"

#include <cstdint>
#include <new>
#include <type_traits>

#include <math.h>

namespace tilewright::tile {

template <class Params>
inline constexpr bool kDecodeHasChunks = std::is_same_v<Params, kernels::DecodeAnyParams>;

/// The first key of the chunk of a position; 0 before all keys.
__device__ inline std::int32_t decode_chunk_begin(const kernels::DecodeAnyParams& p,
                                                  std::int32_t position) {
  const auto at = static_cast<std::uint32_t>(max(position, 0));
  return static_cast<std::int32_t>(p.chunk_divisor.divide(at)) * p.chunk;
}

/// The keys of a sequence, and the pieces of them that any of its queries sees.
struct DecodeKeys {
  std::int32_t length = 0, begin = 0;        ///< keys [begin, length) are seen
  std::int32_t first_piece = 0, pieces = 0;  ///< at least one of a sequence

  DecodeKeys() = default;
  template <class Params>
  __device__ DecodeKeys(const Params& p, const std::int32_t* lengths, std::int32_t batch_idx) {
    constexpr std::int32_t kKeys = kernels::kDecodePieceKeys;
    const std::int32_t before = min(max(lengths[batch_idx], 0), p.cache.capacity);
    length = before + min(p.added, p.cache.capacity - before);
    begin = min(max(length - p.q_len - p.window_left, 0), length);
    if constexpr (kDecodeHasChunks<Params>)
      begin = max(begin, decode_chunk_begin(p, length - p.q_len));
    first_piece = begin / kKeys;
    pieces = max((length + kKeys - 1) / kKeys - first_piece, 1);
  }
};

/// The quotient: in 32 bits whenever that is enough.
__device__ __noinline__ inline std::int64_t decode_quotient(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

/// The parts of a tile.
struct DecodeMerge {
  std::int32_t parts, first_slot, second_slot, step;

  __device__ std::int32_t slot(std::int32_t part) const {
    return part == 0 ? first_slot : second_slot + (part - 1) * step;
  }
};

/// A part of a tile for one CTA.
struct DecodeSegment {
  std::int32_t batch_idx, kv_head, m_tile;
  std::int32_t begin, end;          ///< pieces, counted from key 0
  std::int32_t key_begin, key_end;  ///< keys of them that some row sees
  std::int32_t length;              ///< of the sequence
  std::int32_t slot;                ///< of partial results; -1: the whole tile
  DecodeMerge merge;                ///< if it is not
};

/// The sum of all weights, and the share of a group. By all lanes of a warp.
template <class Params>
class DecodePlan {
 public:
  __device__ DecodePlan(const Params& p, const std::int32_t* lengths) : p_(p), lengths_(lengths) {
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    const std::int32_t chunk = (p.batch + 31) / 32;
    first_ = min(lane * chunk, p.batch), last_ = min(first_ + chunk, p.batch);
    if (p.deal == kernels::DecodeDeal::kFixed) {
      is_parts_ = true;
      const std::int64_t units = std::int64_t{p.batch} * tiles() * p.splits;
      share_ = decode_quotient(units + p.groups - 1, p.groups);
      return;
    }
    std::int64_t pieces = 0;
    std::int32_t most = 0;
#pragma unroll 1
    for (std::int32_t b = first_; b < last_; ++b) {
      const std::int32_t of_sequence = DecodeKeys(p, lengths, b).pieces;
      pieces += of_sequence, most = max(most, of_sequence);
    }
    most = __reduce_max_sync(kAllLanes, most);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) pieces += __shfl_xor_sync(kAllLanes, pieces, step);
    const std::int64_t all_tiles = std::int64_t{p.batch} * tiles();
    share_ =
        max(decode_quotient(pieces * tiles() + all_tiles * p.tile_cost + p.groups - 1, p.groups),
            std::int64_t{p.tile_cost} + p.least_share);
    if (most * std::int64_t{p.batch} == pieces) share_ = whole_tiles(most + p.tile_cost);
  }

  /// Tiles of a sequence.
  __device__ std::int32_t tiles() const {
    return p_.kv_heads * p_.m_tiles;
  }
  __device__ bool is_parts() const {
    return is_parts_;
  }
  __device__ std::int64_t share() const {
    return share_;
  }
  /// Weight of each tile of a sequence.
  __device__ std::int32_t weight(const DecodeKeys& keys) const {
    return is_parts_ ? p_.splits : keys.pieces + p_.tile_cost;
  }

  /// The sequence that unit `at` of all belongs to, and what is left of `at` within it; false if
  /// there are not so many.
  __device__ bool find(std::int64_t& at, std::int32_t& batch_idx) const {
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    std::int64_t mine = 0;
#pragma unroll 1
    for (std::int32_t b = first_; b < last_; ++b) mine += weight(DecodeKeys(p_, lengths_, b));
    mine *= tiles();
    std::int64_t through = mine;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const std::int64_t other = __shfl_up_sync(kAllLanes, through, step);
      if (lane >= step) through += other;
    }
    const std::uint32_t found = __ballot_sync(kAllLanes, at < through);
    if (found == 0) return false;
    const int owner = __ffs(static_cast<int>(found)) - 1;
    at -= __shfl_sync(kAllLanes, through - mine, owner);
    batch_idx = __shfl_sync(kAllLanes, first_, owner);
    while (true) {
      const std::int64_t here = std::int64_t{weight(DecodeKeys(p_, lengths_, batch_idx))} * tiles();
      if (at < here) return true;
      at -= here, ++batch_idx;
    }
  }

 private:
  static constexpr unsigned kAllLanes = 0xffffffffu;

  /// Tiles of equal weight are not split if that takes little longer: then nothing is merged.
  __device__ std::int64_t whole_tiles(std::int32_t weight) const {
    const std::int64_t whole = decode_quotient(share_ + weight - 1, weight) * weight;
    return whole - share_ <= p_.tile_cost / 2 ? whole : share_;
  }

  const Params& p_;
  const std::int32_t* lengths_;
  std::int32_t first_, last_;  ///< sequences of this lane
  bool is_parts_ = false;
  std::int64_t share_ = 0;
};

/// The segments of a CTA, one after another.
template <class Params>
class DecodeWalk {
 public:
  __device__ DecodeWalk(const Params& p, const std::int32_t* lengths,
                        const DecodePlan<Params>& plan, std::int32_t group)
      : p_(p),
        group_(group),
        share_(plan.share()),
        tiles_(plan.tiles()),
        is_parts_(plan.is_parts()),
        unit_(plan.share() * group) {
    std::int64_t at = unit_;
    if (!plan.find(at, batch_idx_)) return;
    left_ = share_;
    enter(lengths);
    tile_ = static_cast<std::int32_t>(decode_quotient(at, weight_));
    offset_ = static_cast<std::int32_t>(at - std::int64_t{tile_} * weight_);
  }

  /// False at the end.
  __device__ bool next(const std::int32_t* lengths, DecodeSegment& segment) {
    while (left_ > 0 && batch_idx_ < p_.batch) {
      const std::int32_t take =
          is_parts_ ? 1 : static_cast<std::int32_t>(min(std::int64_t{weight_ - offset_}, left_));
      std::int32_t begin, end, slot;
      if (is_parts_) {
        const std::int32_t each = (keys_.pieces + weight_ - 1) / weight_;
        begin = min(offset_ * each, keys_.pieces), end = min(begin + each, keys_.pieces);
        slot = weight_ > 1 ? static_cast<std::int32_t>(unit_) : -1;
      } else {
        begin = max(offset_ - p_.tile_cost, 0), end = max(offset_ + take - p_.tile_cost, 0);
        slot = begin == 0 && end == keys_.pieces ? -1 : 2 * group_ + (begin == 0 ? 1 : 0);
      }
      const bool is_any = is_parts_ || end > begin;
      if (is_any) segment = make(begin, end, slot);
      step(lengths, take);
      if (is_any) return true;
    }
    return false;
  }

 private:
  /// Of the tile that the walk is in.
  __device__ DecodeMerge merge() const {
    const std::int64_t begin = unit_ - offset_;
    if (is_parts_) {
      const auto start = static_cast<std::int32_t>(begin);
      return {weight_, start, start + 1, 1};
    }
    const auto first = static_cast<std::int32_t>(decode_quotient(begin + p_.tile_cost, share_));
    const auto last = static_cast<std::int32_t>(decode_quotient(begin + weight_ - 1, share_));
    return {last - first + 1, 2 * first + 1, 2 * (first + 1), 2};
  }
  __device__ DecodeSegment make(std::int32_t begin, std::int32_t end, std::int32_t slot) {
    constexpr std::int32_t kKeys = kernels::kDecodePieceKeys;
    const std::int32_t kv_head = p_.m_tiles == 1 ? tile_ : tile_ / p_.m_tiles;
    begin += keys_.first_piece, end += keys_.first_piece;
    return {batch_idx_,
            kv_head,
            tile_ - kv_head * p_.m_tiles,
            begin,
            end,
            keys_.begin,
            min(end * kKeys, keys_.length),
            keys_.length,
            slot,
            slot >= 0 ? merge() : DecodeMerge{}};
  }
  __device__ void step(const std::int32_t* lengths, std::int32_t take) {
    offset_ += take, left_ -= take, unit_ += take;
    if (offset_ < weight_) return;
    offset_ = 0;
    if (++tile_ < tiles_) return;
    tile_ = 0;
    if (++batch_idx_ < p_.batch) enter(lengths);
  }
  __device__ void enter(const std::int32_t* lengths) {
    keys_ = DecodeKeys(p_, lengths, batch_idx_);
    weight_ = is_parts_ ? p_.splits : keys_.pieces + p_.tile_cost;
  }

  const Params& p_;
  std::int32_t group_;
  std::int64_t share_;
  std::int32_t tiles_;
  bool is_parts_;
  std::int64_t unit_, left_ = 0;  ///< where the CTA is among all units, and how many it still has
  std::int32_t batch_idx_ = 0, tile_ = 0, offset_ = 0, weight_ = 1;
  DecodeKeys keys_;
};

}  // namespace tilewright::tile
