// Keys and queries on their way to shared memory: two warps that fetch every other tile of keys,
// and one that fetches queries.
//
// Codes come by tensor copies. Scales, which lie four bytes a row where a page has them, come by
// cp.async to their places in an atom; the tensor core reads those, so that a warp waits for its
// copies, some tiles later, and fences before it hands a tile over. So do codes of MXFP4 where
// pages have odd sizes: a box of one row of 64 bytes cannot begin where every other row does.
#pragma once

#include "kernels/sparse_attention/indexer/places.h"
#include "kernels/sparse_attention/indexer/sm100/shared.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/cp_async.h"
#include "ptx/fence.h"
#include "ptx/load_store.h"
#include "ptx/mbarrier_count.h"

#include <cstdint>

namespace tilewright::tile {

/// All copies of this warp by threads, but for the newest groups, are there: says so at a barrier.
template <int Pending>
__device__ void hand_over_copies(std::uint32_t barrier) {
  ptx::cp_async_wait_group<Pending>();
  ptx::fence_proxy_async_shared_cta();
  __syncwarp();
  if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(barrier);
}

/// Where keys lie that neighbours of a lane have: four in one page, or each in its own.
template <int Neighbours>
struct TensorKeyPlaces {
  static constexpr int kCount = 4 / Neighbours;
  std::int32_t pages[kCount], slots[kCount];  ///< page -1: none
};

/// One of the warps that fetch keys: lane l has keys 4 l to 4 l + 3 of a tile.
template <IndexFormat Format, class Params>
struct TensorKeyLoader {
  using Traits = TensorIndexerTraits<Format>;
  static constexpr int kTilesOfChunk = kernels::kIndexerChunk / kernels::kTensorIndexerKeys;
  static constexpr int kUnderWay = 3;  ///< own tiles, one after another
  static_assert(kTilesOfChunk == kTensorKeyWarps && kernels::kTensorIndexerKeys == 4 * 32);
  static_assert(kTensorKeyWarps * kUnderWay <= kernels::kTensorIndexerMinStages);

  static constexpr bool kRanges = kernels::kHasRanges<Params>;

  const Params& params;
  const TensorIndexerRings<Format>& rings;
  std::int32_t first_row;  ///< of this lane
  std::int32_t box_rows;
  std::uint32_t num_pages;
  std::int32_t parity;  ///< of own tiles
  DeepPosition at, oldest;
  int under_way = 0;

  __device__ TensorKeyLoader(const Params& of_logits, const TensorIndexerRings<Format>& of_cta,
                             std::int32_t number)
      : params(of_logits),
        rings(of_cta),
        first_row(static_cast<std::int32_t>(threadIdx.x % 32 * 4)),
        box_rows(of_logits.box_rows),
        num_pages(kRanges ? 1
                          : of_logits.keys.page_divisor.divide(
                                static_cast<std::uint32_t>(of_logits.keys.num_rows))),
        parity(number) {
    if (number != 0) at.advance(rings.stages), oldest.advance(rings.stages);
  }

  __device__ bool has_boxes() const { return Traits::kIsFp8 || box_rows > 1; }

  /// The codes of a row, without a tensor copy.
  __device__ void copy_row(std::int32_t row, const std::uint8_t* from) const {
    const auto to = static_cast<std::uint32_t>(row * Traits::kRowBytes);
#pragma unroll
    for (std::uint32_t chunk = 0; chunk < Traits::kRowBytes; chunk += 16) {
      ptx::cp_async_cg_shared_global_16(
          rings.tile(at.stage) + arch::swizzle_address(Traits::kSwizzle, to + chunk), from + chunk);
    }
  }

  /// Scales of neighbours, the first of which is `row`. e4m3: that of no key is kNoKey.
  template <int Neighbours>
  __device__ void copy_scales(std::int32_t row, const std::uint8_t* from, bool are_there) const {
    const std::uint32_t scales = ptx::shared_address(rings.shared.key_scales[at.stage]);
    if constexpr (Traits::kIsFp8) {
      const std::uint32_t to = scales + static_cast<std::uint32_t>(4 * row);
      if (are_there && Neighbours == 4) {
        ptx::cp_async_cg_shared_global_16(to, from);
      } else if (are_there) {
        ptx::cp_async_ca_shared_global_4(to, from, 4);
      } else {
#pragma unroll
        for (std::uint32_t i = 0; i < Neighbours; ++i)
          ptx::st_shared_u32(to + 4 * i, __float_as_uint(kNoKey));
      }
    } else {
      // Four neighbours are in the same of the atom's four columns.
      const std::uint32_t to = scales + static_cast<std::uint32_t>(scale_place(row));
#pragma unroll
      for (std::uint32_t i = 0; i < Neighbours; ++i)
        ptx::cp_async_ca_shared_global_4(to + 16 * i, from + 4 * i, are_there ? 4 : 0);
    }
  }

  __device__ const std::uint8_t* scales_of(const IndexPageLayout& layout, std::int32_t page,
                                           std::int32_t slot) const {
    if constexpr (kRanges) {
      return params.key_scales + std::int64_t{slot} * kIndexScaleBytes;
    } else {
      return params.keys.pages + layout.scale_offset(page, slot);
    }
  }

  /// Starts to fetch a tile.
  template <int Neighbours>
  __device__ void fetch(const TensorKeyPlaces<Neighbours>& places) {
    const kernels::IndexPages& keys = params.keys;
    const IndexPageLayout layout = {keys.format, keys.page_size, keys.page_stride};
    const std::uint32_t full = rings.full(at.stage);
    ptx::mbarrier_wait_parity(rings.empty(at.stage), at.parity ^ 1);
    std::uint32_t is_key = 0;  // a byte each
#pragma unroll
    for (int i = 0; i < places.kCount; ++i) {
      const std::int32_t row = first_row + i * Neighbours;
      const bool are_there = static_cast<std::uint32_t>(places.pages[i]) < num_pages;
      const std::int32_t page = are_there ? places.pages[i] : 0, slot = places.slots[i];
      if (are_there && has_boxes() && (row & (box_rows - 1)) == 0) {
        ptx::mbarrier_expect_tx(full, static_cast<std::uint32_t>(box_rows * Traits::kRowBytes));
        ptx::cp_async_bulk_tensor_3d_shared_global(
            rings.tile(at.stage) + static_cast<std::uint32_t>(row * Traits::kRowBytes),
            params.key_map, 0, slot, page, full);
      }
      if (are_there && !has_boxes()) copy_row(row, keys.pages + layout.data_offset(page, slot));
      copy_scales<Neighbours>(row, scales_of(layout, page, slot), are_there);
      is_key |= are_there ? (Neighbours == 4 ? 0x01010101u : 1u << 8 * i) : 0;
    }
    if constexpr (!Traits::kIsFp8)
      ptx::st_shared_u32(ptx::shared_address(&rings.shared.is_key[at.stage][first_row]), is_key);
    ptx::cp_async_commit_group();
    advance(at, kTensorKeyWarps, rings.stages);
    if (++under_way == kUnderWay) hand_over<kUnderWay - 1>();
  }
  template <int Pending>
  __device__ void hand_over() {
    hand_over_copies<Pending>(rings.full(oldest.stage));
    advance(oldest, kTensorKeyWarps, rings.stages);
    --under_way;
  }

  /// Page and slot of this lane's keys of the tile whose first key is given; keys from `bound` on
  /// have none.
  template <int Neighbours>
  __device__ TensorKeyPlaces<Neighbours> find(const std::int32_t* table, std::int32_t first_key,
                                              std::int32_t bound) const {
    TensorKeyPlaces<Neighbours> places;
#pragma unroll
    for (int i = 0; i < places.kCount; ++i) {
      const std::int32_t key = first_key + first_row + i * Neighbours;
      if constexpr (kRanges) {
        places.slots[i] = key;
        places.pages[i] = key < bound ? 0 : -1;
      } else {
        const auto block = static_cast<std::int32_t>(
            params.keys.page_divisor.divide(static_cast<std::uint32_t>(key)));
        places.slots[i] = key - block * params.keys.page_size;
        places.pages[i] = -1;
        if (key < bound)
          places.pages[i] = static_cast<std::int32_t>(ptx::ld_global_nc_u32(table + block));
      }
    }
    return places;
  }

  /// Of so many keys, those that the table has.
  __device__ std::int32_t bound_of(std::int32_t num_keys) const {
    if constexpr (kRanges) {
      return num_keys;
    } else {
      const std::int64_t keys_of_table = std::int64_t{params.num_blocks} * params.keys.page_size;
      return static_cast<std::int32_t>(keys_of_table < num_keys ? keys_of_table : num_keys);
    }
  }
  /// A lane's keys are all in one page, where boxes of four rows or more begin where they do;
  /// without pages it is their scales that say so.
  __device__ bool has_quads() const {
    if constexpr (kRanges) {
      return params.has_scale_quads != 0;
    } else {
      return box_rows >= 4;
    }
  }

  template <int Neighbours>
  __device__ void fetch_all(const TensorIndexerPart& part, std::int32_t begin, std::int32_t end) {
    const std::int32_t* const table = block_table_of(params, part.unit);
    const std::int32_t end_key = end * kernels::kIndexerChunk;
    const std::int32_t bound = bound_of(min(part.unit.num_keys, end_key));
    std::int32_t key = begin * kernels::kIndexerChunk + parity * kernels::kTensorIndexerKeys;
    TensorKeyPlaces<Neighbours> next = find<Neighbours>(table, key, bound);
    for (; key < end_key; key += kernels::kIndexerChunk) {
      const TensorKeyPlaces<Neighbours> places = next;
      next = find<Neighbours>(table, key + kernels::kIndexerChunk, bound);
      fetch(places);
    }
  }
  __device__ void run(const TensorIndexerPart& part, std::int32_t begin, std::int32_t end) {
    if (has_quads()) {
      fetch_all<4>(part, begin, end);
    } else {
      fetch_all<1>(part, begin, end);
    }
  }
  __device__ void finish() {
    while (under_way > 0) hand_over<0>();
  }
};

/// The warp that fetches codes, weights, scales and lengths of a part, while the part before is
/// multiplied.
template <IndexFormat Format, class Params>
struct TensorQueryLoader {
  using Traits = TensorIndexerTraits<Format>;

  const Params& params;
  const TensorIndexerRings<Format>& rings;
  RingPosition<2> at;

  /// Boxes beyond the last token, and rows beyond the last head, come as zeros.
  __device__ void copy_codes(const TensorIndexerPart& part, std::uint32_t full) const {
    const std::int32_t tokens = part.columns / params.head_slots;
    const auto bytes = static_cast<std::uint32_t>(params.head_slots * Traits::kRowBytes);
    ptx::mbarrier_arrive_expect_tx(full, static_cast<std::uint32_t>(tokens) * bytes);
    std::uint32_t to = rings.queries(at.stage, params.columns);
    for (std::int32_t i = 0; i < tokens; ++i, to += bytes)
      ptx::cp_async_bulk_tensor_3d_shared_global(to, params.q_map, 0, 0, part.unit.token + i, full);
  }

  /// What a token of the part sees.
  __device__ void load_range(const TensorIndexerPart& part, std::int32_t i) const {
    TensorIndexerShared& shared = rings.shared;
    if constexpr (kernels::kHasRanges<decltype(params.logits)>) {
      kernels::IndexerRange range = {};
      if (i < part.unit.count) range = params.logits.ranges.of(part.unit.token + i);
      shared.lengths[at.stage][i] = range.end;
      shared.begins[at.stage][i] = range.begin;
    } else {
      shared.lengths[at.stage][i] =
          i < part.unit.count ? params.logits.lengths.of(part.unit.token + i) : 0;
    }
  }

  __device__ void run(const TensorIndexerPart& part) {
    const auto& logits = params.logits;
    TensorIndexerShared& shared = rings.shared;
    const Ring<2> ring(shared.queries);
    ring.wait_empty(at);
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    if (lane == 0) copy_codes(part, ring.full(at));
    __syncwarp();
    if (lane < kernels::kIndexerUnitTokens) load_range(part, lane);
    for (std::int32_t column = lane; column < part.columns; column += 32) {
      const std::int32_t token = column / params.head_slots, head = column % params.head_slots;
      const bool is_there = token < part.unit.count && head < logits.heads;
      const std::int64_t from =
          is_there ? std::int64_t{part.unit.token + token} * logits.heads + head : 0;
      ptx::cp_async_ca_shared_global_4(ptx::shared_address(&shared.weights[at.stage][column]),
                                       logits.weights + from, is_there ? 4 : 0);
      if constexpr (!Traits::kIsFp8) {
        const std::uint32_t atom =
            ptx::shared_address(&shared.query_scales[at.stage][column / 128 * 128]);
        ptx::cp_async_ca_shared_global_4(
            atom + static_cast<std::uint32_t>(scale_place(column % 128)),
            logits.q_scales + 4 * from, is_there ? 4 : 0);
      }
    }
    ptx::cp_async_commit_group();
    hand_over_copies<0>(ring.full(at));
    at.advance();
  }
};

}  // namespace tilewright::tile
