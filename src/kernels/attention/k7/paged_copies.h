// How one warp copies a tile of e4m3 keys or values out of its pages: in parts, none of which
// crosses a page, a tensor copy a lane; or, where pages are short, row by row.
//
//   parts   part i is lane i's: up to 32 of them
//   rows    lane i looks up rows i, i + 32, ...; then 512 bytes at once, 16 a lane, into the layout
//           that a tensor copy writes
#pragma once

#include "arch/smem_descriptor.h"
#include "kernels/attention/k7/paged_operands.h"
#include "ptx/address.h"
#include "ptx/cp_async.h"
#include "ptx/mbarrier.h"
#include "tile/box.h"
#include "tile/dealt_tiles.h"

#include <cstdint>

namespace tilewright::tile {

/// Where keys or values are in memory, and of which head.
struct PagedOperand {
  const void* map;
  const void* rows;  ///< what the map is of
  kernels::AttentionStrides strides;
  std::int32_t head;
};

__device__ inline std::int32_t lane_of_warp() {
  return static_cast<std::int32_t>(threadIdx.x % 32);
}

/// The pages of a sequence. Behind the last one and before the first none is looked up: no page has
/// the number -1, of which a copy makes zeros.
struct SequencePages {
  const kernels::AttentionPagedFp8Params& params;
  const std::int32_t* table;
  std::int32_t limit;     ///< how many there are; without a table, which one
  std::int32_t kv_begin;  ///< without a table

  __device__ SequencePages(const kernels::AttentionPagedFp8Params& all, const DealtTile& tile)
      : params(all),
        table(all.pages.block_table),
        limit(all.cu_kv == nullptr ? tile.batch : 0),
        kv_begin(tile.kv_begin) {
    if (table == nullptr) return;
    table += tile.batch * all.pages.table_stride;
    limit = index_of(max(tile.kv_len - 1, 0)) + 1;
  }
  __device__ std::int32_t page_of(std::int32_t key) const {
    if (table == nullptr) return limit;
    return key < 0 || index_of(key) >= limit ? -1 : table[index_of(key)];
  }
  /// Of its page.
  __device__ std::int32_t row_of(std::int32_t key) const {
    return table == nullptr ? kv_begin + key : key - index_of(key) * params.pages.page_size;
  }

 private:
  __device__ std::int32_t index_of(std::int32_t key) const {
    return static_cast<std::int32_t>(params.page_divisor.divide(static_cast<std::uint32_t>(key)));
  }
};

/// By tensor copies. A lane's part of a tile.
template <class C>
struct CopiedParts {
  static constexpr bool kHasValues = true;  ///< the warp that copies keys copies values, too
  using Tile = Box<C::kKeys, C::kHeadDim, arch::swizzle_of_span(C::kBox)>;
  struct Places {
    std::int32_t page;
  };

  SequencePages sequence;

  /// Of the tile that begins with that key.
  __device__ Places find(std::int32_t key) const { return {sequence.page_of(own_key(key))}; }

  /// All lanes; the stage is free. Lane 0 says how many bytes will come: some may come before.
  __device__ void copy(std::uint8_t* to, const PagedOperand& from, std::int32_t key,
                       const Places& at, std::uint32_t barrier) const {
    const kernels::AttentionPages& pages = sequence.params.pages;
    if (lane_of_warp() == 0) ptx::mbarrier_arrive_expect_tx(barrier, C::kKvBytes);
    if (lane_of_warp() < pages.tile_parts)
      Tile::template load<1>(to + lane_of_warp() * pages.page_box * C::kBox, from.map,
                             sequence.row_of(own_key(key)), from.head, at.page, barrier);
  }

 private:
  __device__ std::int32_t own_key(std::int32_t key) const {
    return key + lane_of_warp() * sequence.params.pages.page_box;
  }
};

/// By cp.async. A warp's rows of a tile, and a lane's of them: warp w of Warps has every Warps-th
/// group of the rows that are copied at once, from group w on.
template <class C, int Warps = 1>
struct GatheredRows {
  static constexpr bool kHasValues = false;
  static constexpr int kChunks = C::kBox / 16;        ///< of a row in a box
  static constexpr int kAtOnce = 32 / kChunks;        ///< rows
  static constexpr int kGroups = C::kKeys / kAtOnce;  ///< of all warps
  static constexpr int kOwnGroups = (kGroups + Warps - 1) / Warps;
  static constexpr int kGroupsFound = 32 / kAtOnce;  ///< by one look-up of all lanes
  static constexpr int kShared = 4;                  ///< rows' offsets in registers, in groups
  static constexpr int kLookedUp = (kOwnGroups + kGroupsFound - 1) / kGroupsFound;
  static constexpr std::uint32_t kNoRow = 0xffffffff;  ///< of no page: zeros
  static_assert(C::kKeys % 32 == 0 && 32 % kAtOnce == 0 && kGroupsFound % kShared == 0);

  struct Places {
    std::int32_t page[kLookedUp];
  };

  SequencePages sequence;
  std::int32_t warp = 0;

  /// As those of CopiedParts.
  __device__ Places find(std::int32_t key) const {
    Places places;
#pragma unroll
    for (int i = 0; i < kLookedUp; ++i) places.page[i] = sequence.page_of(key + own_row(i));
    return places;
  }

  /// Each lane's arrival comes when its copies have landed.
  __device__ void copy(std::uint8_t* to, const PagedOperand& from, std::int32_t key,
                       const Places& at, std::uint32_t barrier) const {
    constexpr auto kSwizzle = arch::swizzle_of_span(C::kBox);
    const auto lane = static_cast<std::uint32_t>(lane_of_warp());
    const std::uint32_t row = lane / kChunks, column = lane % kChunks * 16;
    const auto* const source =
        static_cast<const std::uint8_t*>(from.rows) + from.head * from.strides.head + column;
    // The swizzle depends on bits 7 to 9 of an address: of the lane's, and of a group's 512 bytes.
    const std::uint32_t start = ptx::shared_address(to),
                        place = arch::swizzle_address(kSwizzle, row * C::kBox + column);
    const std::int32_t columns = sequence.params.head_dim - static_cast<std::int32_t>(column);
#pragma unroll
    for (int i = 0; i < kLookedUp; ++i) {
      const std::uint32_t own = offset_of(at.page[i], key + own_row(i), from.strides);
#pragma unroll
      for (int first = 0; first < kGroupsFound; first += kShared) {
        // Shuffles come before the first of their copies: one behind a copy waits until that has
        // read its address, and then 25 cycles.
        std::uint32_t offsets[kShared];
#pragma unroll
        for (int n = 0; n < kShared; ++n)
          offsets[n] = __shfl_sync(0xffffffffu, own, (first + n) * kAtOnce + static_cast<int>(row));
#pragma unroll
        for (int n = 0; n < kShared; ++n) {
          const int turn = (i * kGroupsFound + first + n) * Warps;
          const std::int32_t group = turn + warp;
          if (turn + Warps > kGroups && group >= kGroups) continue;
          const auto step = static_cast<std::uint32_t>(group * kAtOnce * C::kBox);
          const std::uint32_t line =
              start + step + (place ^ step ^ arch::swizzle_address(kSwizzle, step));
#pragma unroll
          for (int box = 0; box < C::kHeadDim; box += C::kBox) {
            const bool is_there = offsets[n] != kNoRow && box < columns;
            ptx::cp_async_cg_shared_global_16(line + box * C::kKeys,
                                              source + std::uint64_t{offsets[n]} * 16 + box,
                                              is_there ? 16 : 0);
          }
        }
      }
    }
    ptx::cp_async_mbarrier_arrive_noinc(barrier);
  }

 private:
  /// Of a tile: the lane's row in its warp's groups that look-up i finds.
  __device__ std::int32_t own_row(int i) const {
    const std::int32_t group = (i * kGroupsFound + lane_of_warp() / kAtOnce) * Warps + warp;
    return group * kAtOnce + lane_of_warp() % kAtOnce;
  }
  /// In units of 16 bytes from row 0 of page 0 on, of which there are fewer than 2^32.
  __device__ std::uint32_t offset_of(std::int32_t page, std::int32_t key,
                                     const kernels::AttentionStrides& strides) const {
    const auto number = static_cast<std::uint32_t>(page);
    if (number >= static_cast<std::uint32_t>(sequence.params.pages.num_pages)) return kNoRow;
    return number * static_cast<std::uint32_t>(strides.batch / 16) +
           static_cast<std::uint32_t>(sequence.row_of(key)) *
               static_cast<std::uint32_t>(strides.row / 16);
  }
};

}  // namespace tilewright::tile
