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

/// One of the warps that fetch keys.
template <IndexFormat Format>
struct TensorKeyLoader {
  using Traits = TensorIndexerTraits<Format>;
  static constexpr int kKeysPerLane = kernels::kTensorIndexerKeys / 32;
  static constexpr int kTilesOfChunk = kernels::kIndexerChunk / kernels::kTensorIndexerKeys;
  static constexpr int kUnderWay = 3;  ///< own tiles, one after another
  static_assert(kTilesOfChunk == kTensorKeyWarps);
  static_assert(kTensorKeyWarps * kUnderWay <= kernels::kTensorIndexerMinStages);

  const kernels::IndexerLogitsParams& params;
  const TensorIndexerRings<Format>& rings;
  std::int32_t parity;  ///< of own tiles
  DeepPosition at, oldest;
  int under_way = 0;

  __device__ TensorKeyLoader(const kernels::IndexerLogitsParams& of_logits,
                             const TensorIndexerRings<Format>& of_cta, std::int32_t number)
      : params(of_logits), rings(of_cta), parity(number) {
    if (number != 0) at.advance(rings.stages), oldest.advance(rings.stages);
  }

  __device__ static std::int32_t lane() { return static_cast<std::int32_t>(threadIdx.x % 32); }
  __device__ void advance(DeepPosition& position) const {
    for (int i = 0; i < kTensorKeyWarps; ++i) position.advance(rings.stages);
  }

  __device__ bool has_boxes() const { return Traits::kIsFp8 || params.box_rows > 1; }

  /// A box begins with this row.
  __device__ bool is_box(std::int32_t page, std::int32_t row) const {
    return has_boxes() && has_page(params.keys, page) && row % params.box_rows == 0;
  }

  /// The codes of a row, without a tensor copy.
  __device__ void copy_row(std::int32_t row, const std::uint8_t* from) const {
    const auto to = static_cast<std::uint32_t>(row * Traits::kRowBytes);
#pragma unroll
    for (std::uint32_t chunk = 0; chunk < Traits::kRowBytes; chunk += 16) {
      ptx::cp_async_cg_shared_global_16(
          rings.tile(at.stage) + arch::swizzle_address(Traits::kSwizzle, to + chunk), from + chunk);
    }
  }

  /// Lane l has keys l, l + 32, .. of the tile, of which the pages are given; those that begin a
  /// box copy it.
  __device__ void fetch(const std::int32_t (&pages)[kKeysPerLane], std::int32_t first_key) {
    const kernels::IndexPages& keys = params.keys;
    std::int32_t slots[kKeysPerLane];
    std::uint32_t there[kKeysPerLane], boxes = 0;
#pragma unroll
    for (int i = 0; i < kKeysPerLane; ++i) {
      const std::int32_t row = lane() + 32 * i, key = first_key + row;
      const auto block =
          static_cast<std::int32_t>(keys.page_divisor.divide(static_cast<std::uint32_t>(key)));
      slots[i] = key - block * keys.page_size;
      there[i] = __ballot_sync(~0u, has_page(keys, pages[i]));
      boxes += static_cast<std::uint32_t>(__popc(__ballot_sync(~0u, is_box(pages[i], row))));
    }
    const std::uint32_t full = rings.full(at.stage);
    ptx::mbarrier_wait_parity(rings.empty(at.stage), at.parity ^ 1);
    const auto bytes = static_cast<std::uint32_t>(params.box_rows * Traits::kRowBytes);
    if (lane() == 0) {
      ptx::mbarrier_arrive_expect_tx(full, boxes * bytes);
      *reinterpret_cast<uint4*>(rings.shared.is_key[at.stage]) =
          make_uint4(there[0], there[1], there[2], there[3]);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kKeysPerLane; ++i) {
      const std::int32_t row = lane() + 32 * i;
      const bool is_there = has_page(keys, pages[i]);
      if (is_box(pages[i], row)) {
        ptx::cp_async_bulk_tensor_3d_shared_global(
            rings.tile(at.stage) + static_cast<std::uint32_t>(row * Traits::kRowBytes),
            params.key_map, 0, slots[i], pages[i], full);
      }
      const int place = Traits::kIsFp8 ? 4 * row : scale_place(row);
      const KeyPlace from(keys, is_there ? pages[i] : 0, is_there ? slots[i] : 0);
      if (is_there && !has_boxes()) copy_row(row, from.data);
      ptx::cp_async_ca_shared_global_4(ptx::shared_address(rings.shared.key_scales[at.stage]) +
                                           static_cast<std::uint32_t>(place),
                                       from.scales, is_there ? 4 : 0);
    }
    ptx::cp_async_commit_group();
    advance(at);
    if (++under_way == kUnderWay) hand_over<kUnderWay - 1>();
  }
  template <int Pending>
  __device__ void hand_over() {
    hand_over_copies<Pending>(rings.full(oldest.stage));
    advance(oldest);
    --under_way;
  }

  __device__ void run(const TensorIndexerPart& part, std::int32_t begin, std::int32_t end) {
    const std::int32_t* const table =
        params.block_table + part.unit.sequence * params.block_table_stride;
    const auto first_key = [&](std::int32_t chunk) {
      return chunk * kernels::kIndexerChunk + parity * kernels::kTensorIndexerKeys;
    };
    const auto find = [&](std::int32_t(&pages)[kKeysPerLane], std::int32_t chunk) {
#pragma unroll
      for (int i = 0; i < kKeysPerLane; ++i)
        pages[i] = key_page(params, table, first_key(chunk) + lane() + 32 * i,
                            chunk < end ? part.unit.num_keys : 0);
    };
    std::int32_t next[kKeysPerLane];
    find(next, begin);
    for (std::int32_t chunk = begin; chunk < end; ++chunk) {
      std::int32_t pages[kKeysPerLane];
#pragma unroll
      for (int i = 0; i < kKeysPerLane; ++i) pages[i] = next[i];
      find(next, chunk + 1);
      fetch(pages, first_key(chunk));
    }
  }
  __device__ void finish() {
    while (under_way > 0) hand_over<0>();
  }
};

/// The warp that fetches codes, weights, scales and lengths of a part, while the part before is
/// multiplied.
template <IndexFormat Format>
struct TensorQueryLoader {
  using Traits = TensorIndexerTraits<Format>;

  const kernels::TensorIndexerParams& params;
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

  __device__ void run(const TensorIndexerPart& part) {
    const kernels::IndexerLogitsParams& logits = params.logits;
    TensorIndexerShared& shared = rings.shared;
    const Ring<2> ring(shared.queries);
    ring.wait_empty(at);
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    if (lane == 0) copy_codes(part, ring.full(at));
    __syncwarp();
    if (lane < kernels::kIndexerUnitTokens) {
      shared.lengths[at.stage][lane] =
          lane < part.unit.count ? logits.lengths.of(part.unit.token + lane) : 0;
    }
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
