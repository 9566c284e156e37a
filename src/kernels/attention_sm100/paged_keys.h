// Keys that are values as well (one vector for both), in pages of 8-bit numbers with scales: where
// they lie, and how they become a tile of bf16 or fp16.
#pragma once

#include "kernels/attention_sm100/stage_d_paged_fp8.h"
#include "kernels/attention_sm100/tensor_mma.h"
#include "ptx/address.h"
#include "ptx/fence.h"
#include "ptx/tensor_gather.h"
#include "tile/element_chunk.h"
#include "tile/ring.h"
#include "tile/unpack_e4m3.h"

#include <cstdint>
#include <type_traits>

namespace tilewright::tile {

/// DeepSeek-V4's page: of each token 448 e4m3 and 64 bf16 (rotated), 576 bytes; behind all tokens 7
/// e8m0 each, one per 64 numbers, and a byte of padding.
struct DeepSeekRows {
  static constexpr int kHeadDim = 512, kFp8Boxes = 7, kRowBytes = 576;

  static __device__ float scale(const std::uint8_t* page, std::int32_t page_tokens,
                                std::int32_t token, int box) {
    return unpack_e8m0(page[std::int64_t{page_tokens} * kRowBytes + token * 8 + box]);
  }
};

/// Of each token HeadDim e4m3; behind all tokens an f32 each.
template <int HeadDim>
struct TokenScaledRows {
  static constexpr int kHeadDim = HeadDim, kFp8Boxes = HeadDim / kBoxElems, kRowBytes = HeadDim;

  static __device__ float scale(const std::uint8_t* page, std::int32_t page_tokens,
                                std::int32_t token, int /*box*/) {
    return reinterpret_cast<const float*>(page + std::int64_t{page_tokens} * kRowBytes)[token];
  }
};

/// Where tokens lie: slot s is token s % page_tokens of page s / page_tokens.
struct PagedCache {
  const std::uint8_t* pages;
  std::int64_t page_bytes;
  std::int32_t page_tokens, num_slots;

  __device__ bool has(std::int32_t slot) const { return slot >= 0 && slot < num_slots; }
  /// Row of the tensor map, whose rows are RowBytes bytes; -1 if there is no such slot.
  template <int RowBytes>
  __device__ std::int32_t row(std::int32_t slot) const {
    const auto rows = static_cast<std::int32_t>(page_bytes / RowBytes);
    return has(slot) ? slot / page_tokens * rows + slot % page_tokens : -1;
  }
  /// Scale of 64 numbers of a slot; 0 if there is no such slot.
  template <class Rows>
  __device__ float scale(std::int32_t slot, int box) const {
    if (!has(slot)) return 0.0f;
    return Rows::scale(pages + slot / page_tokens * page_bytes, page_tokens, slot % page_tokens,
                       box);
  }
};

/// Eight bf16 as Element.
template <class Element>
__device__ uint4 convert_bf16(const uint4& chunk) {
  if constexpr (std::is_same_v<Element, Bf16>) return chunk;
  float x[8];
  unpack_chunk<Bf16>(x, chunk);
  return pack_chunk<Element>(x, 1.0f);
}

/// A lane's part of 8 raw rows: 16 numbers of one key, lane = 4 key + quarter of a box. Two keys
/// side by side write to all banks: the swizzle sends the pairs of chunks of an odd line where
/// those of an even one are not.
struct KeyQuarter {
  std::uint32_t key = threadIdx.x % 32 / 4, quarter = threadIdx.x % 4;

  __device__ void store(std::uint8_t* box, std::uint32_t line, const uint4 (&chunks)[2]) const {
    *line_chunk<uint4>(box, line, 2 * quarter) = chunks[0];
    *line_chunk<uint4>(box, line, 2 * quarter + 1) = chunks[1];
  }
};

/// The slots that a query sees, in the order of its list.
struct TokenList {
  PagedCache cache;
  const std::int32_t* slots;
  std::int32_t count;

  __device__ TokenList(const kernels::StageDParams& params, std::int32_t batch, std::int32_t query)
      : cache{params.cache, params.page_bytes, params.page_tokens, params.num_slots} {
    const std::int64_t at = std::int64_t{batch} * params.attention.q_len + query;
    slots = params.indices + at * params.topk;
    count = params.key_counts == nullptr ? params.topk : params.key_counts[at];
  }
  /// -1 behind the end of the list.
  __device__ std::int32_t slot(std::int32_t i) const { return i < count ? slots[i] : -1; }
};

/// Raw rows of 16 tokens a stage, between the thread that gathers and four warps that convert.
template <class Format, int Stages>
struct RawRows {
  static constexpr int kKeys = 16, kWarps = 4;
  static constexpr int kBoxes = Format::kHeadDim / kBoxElems, kBoxesOfWarp = (kBoxes + 3) / 4;

  std::uint8_t rows[Stages][kKeys * Format::kRowBytes];
  RingBarriers<Stages> barriers;

  __device__ void initialise() { barriers.initialise(kWarps); }

  /// The gathering thread: 16 tokens of the list, from number `first` on.
  __device__ void gather(const void* map, const TokenList& list, std::int32_t first,
                         RingPosition<Stages>& at) {
    const Ring<Stages> ring(barriers);
    ring.start_filling(at, kKeys * Format::kRowBytes);
    for (int i = 0; i < kKeys; i += 4) {
      std::int32_t numbers[4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        numbers[j] = list.cache.template row<Format::kRowBytes>(list.slot(first + i + j));
      ptx::cp_async_bulk_tensor_2d_gather4(
          ptx::shared_address(rows[at.stage] + i * Format::kRowBytes), map, 0, numbers,
          ring.full(at));
    }
    at.advance();
  }

  /// Warp `warp` of four: every fourth box of a stage. Calls store(lane, box, row of the 16,
  /// chunks); scales are on their way while the rows are.
  template <class Element, class Store>
  __device__ void convert(const TokenList& list, std::int32_t first, std::uint32_t warp,
                          RingPosition<Stages>& at, Store&& store) {
    const Ring<Stages> ring(barriers);
    const KeyQuarter lane;
    float scales[kKeys / 8][kBoxesOfWarp];
#pragma unroll
    for (int half = 0; half < kKeys / 8; ++half) {
      const std::int32_t slot = list.slot(first + half * 8 + static_cast<std::int32_t>(lane.key));
#pragma unroll
      for (int i = 0; i < kBoxesOfWarp; ++i) {
        const int box = static_cast<int>(warp) + 4 * i;
        scales[half][i] =
            box < Format::kFp8Boxes ? list.cache.template scale<Format>(slot, box) : 0.0f;
      }
    }
    ring.wait_full(at);
#pragma unroll
    for (int half = 0; half < kKeys / 8; ++half) {
      const std::uint32_t row = half * 8 + lane.key;
#pragma unroll
      for (int i = 0; i < kBoxesOfWarp; ++i) {
        const std::uint32_t box = warp + 4 * i;
        if (box >= kBoxes) continue;
        const std::uint8_t* const raw = rows[at.stage] + row * Format::kRowBytes + box * kBoxElems;
        uint4 chunks[2];
        if (box < Format::kFp8Boxes) {
          unpack_e4m3<Element>(chunks, *reinterpret_cast<const uint4*>(raw + lane.quarter * 16),
                               scales[half][i]);
        } else {
          const auto* const pairs = reinterpret_cast<const uint4*>(raw + lane.quarter * 32);
          chunks[0] = convert_bf16<Element>(pairs[0]);
          chunks[1] = convert_bf16<Element>(pairs[1]);
        }
        store(lane, box, row, chunks);
      }
    }
    ring.release(at);
    at.advance();
  }
};

/// Scores of slots that do not exist become -inf: 32 tokens of the list, the lanes of a warp look
/// at one each.
__device__ inline void hide_missing(float (&s)[32], const TokenList& list, std::int32_t first) {
  const std::int32_t slot = list.slot(first + static_cast<std::int32_t>(threadIdx.x % 32));
  const std::uint32_t exists = __ballot_sync(0xffffffffu, list.cache.has(slot));
  if (exists == 0xffffffffu) return;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    if ((exists >> i & 1) == 0) s[i] = -INFINITY;
  }
}

}  // namespace tilewright::tile
