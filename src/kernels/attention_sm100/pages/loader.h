// Brings tiles of keys and values from pages into the ring of boxes, by one warp. A box of 128 rows
// comes in parts, a lane a part: as many rows of a page as divide both, from 4 on; pages of fewer
// rows are gathered, four rows a copy wherever they lie (tile::gather4).
//
//   pages of       128+   64   32   16   8    4    fewer
//   lanes          1      2    4    8    16   32   32, each four rows
//   copies a box   1      2    4    8    16   32   32
#pragma once

#include "kernels/attention/forward/pages.h"
#include "kernels/attention_sm100/tensor_attention.h"
#include "ptx/bulk_tensor_copy_pair.h"
#include "ptx/tensor_gather.h"

#include <cstdint>

namespace tilewright::tile {

/// Where a lane's first row of a tile of keys lies, tile by tile.
struct PageWalk {
  const kernels::AttentionPages& pages;
  const std::int32_t* table;
  std::int32_t limit;       ///< how many pages there are; without a table, which one
  std::int32_t index, row;  ///< row of page `index` of the sequence

  __device__ PageWalk(const kernels::AttentionPagedParams& params, const GroupRows& rows,
                      std::int32_t key)
      : pages(params.pages),
        table(pages.block_table),
        limit(params.cu_kv == nullptr ? rows.batch : 0),
        index(0),
        row(rows.sequence.kv_begin + key) {
    if (table == nullptr) return;
    table += rows.batch * pages.table_stride;
    limit = (rows.sequence.kv_len + pages.page_size - 1) / pages.page_size;
    index = key / pages.page_size;
    row = key - index * pages.page_size;
  }
  __device__ void advance() {
    index += pages.tile_pages;
    row += pages.tile_rows;
    if (row < pages.page_size) return;
    row -= pages.page_size;
    ++index;
  }
  /// Behind the last page none is looked up: no page has the number -1, of which copies make zeros.
  __device__ std::int32_t page(std::int32_t i) const {
    if (table == nullptr) return limit;
    return i < limit ? table[i] : -1;
  }
};

/// A lane of the loading warp: its parts of a tile of keys, or its four rows, in boxes whose rows
/// have RowBytes.
template <std::uint32_t RowBytes>
struct PageLane {
  static constexpr int kLaneRows = kKeys / 32;  ///< at least; what a copy gathers

  const kernels::AttentionPagedParams& params;
  std::int32_t head;

  /// Pages and rows of a lane's parts of a tile, or of its four rows.
  struct Places {
    std::int32_t page[kLaneRows], row[kLaneRows];
  };

  __device__ static std::int32_t lane() { return static_cast<std::int32_t>(threadIdx.x % 32); }
  __device__ bool gathers() const { return params.pages.copies == kernels::PageCopies::kRows; }
  __device__ std::int32_t part_rows() const { return gathers() ? 1 : params.pages.page_box; }
  /// First row of a lane in a tile; lanes beyond the tile have none.
  __device__ std::int32_t first_row() const { return lane() * max(part_rows(), kLaneRows); }

  __device__ Places find(const PageWalk& walk) const {
    Places places = {};
    std::int32_t index = walk.index, row = walk.row;
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      if (i > 0 && i * part_rows() >= kLaneRows) break;
      places.page[i] = walk.page(index);
      places.row[i] = row;
      row += part_rows();
      if (row == params.pages.page_size) row = 0, ++index;
    }
    return places;
  }

 protected:
  /// Where rows are gathered: their numbers in the map, of which strides count rows.
  __device__ void find_rows(std::int32_t (&rows)[kLaneRows], const Places& places,
                            const kernels::AttentionStrides& strides) const {
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      const std::int32_t page = places.page[i];
      const bool is_there = page >= 0 && page < params.pages.num_pages;
      rows[i] = is_there ? page * static_cast<std::int32_t>(strides.batch) +
                               places.row[i] * static_cast<std::int32_t>(strides.row) +
                               head * static_cast<std::int32_t>(strides.head)
                         : -1;
    }
  }
  /// The lane's rows of a box, to where the first of them lies. Ctas: that `barrier` may be in.
  template <int Ctas = 1>
  __device__ void copy(std::uint32_t to, const void* map, std::int32_t column, const Places& places,
                       const std::int32_t (&rows)[kLaneRows], std::uint32_t barrier) const {
    if (gathers()) {
      ptx::cp_async_bulk_tensor_2d_gather4_cta_group<Ctas>(to, map, column, rows, barrier);
    } else if (first_row() < kKeys) {
      copy_parts<Ctas>(to, map, column, places, barrier);
    }
  }

 private:
  template <int Ctas>
  __device__ void copy_parts(std::uint32_t to, const void* map, std::int32_t column,
                             const Places& places, std::uint32_t barrier) const {
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      if (i > 0 && i * part_rows() >= kLaneRows) break;
      ptx::cp_async_bulk_tensor_4d_cta_group<Ctas>(
          to + static_cast<std::uint32_t>(i * part_rows()) * RowBytes, map, column, places.row[i],
          head, places.page[i], barrier);
    }
  }
};

/// All lanes of the loading warp together. A stage of Shared's ring has kItemBoxes boxes, each with
/// kBoxElems columns in rows of kBoxRowBytes.
template <class Shared>
struct PageLoader : PageLane<Shared::kBoxRowBytes> {
  static constexpr int kItemBoxes = Shared::kItemBoxes;
  static constexpr std::uint32_t kRowBytes = Shared::kBoxRowBytes;
  using Base = PageLane<kRowBytes>;
  using Base::first_row, Base::gathers, Base::kLaneRows, Base::lane, Base::params;
  using typename Base::Places;

  Shared& shared;
  RingPosition<Shared::kStages> at;

  template <int Boxes>
  __device__ void load_keys(const Places& places) {
    load<Boxes>(places, params.k_map, params.k_strides);
  }
  template <int Boxes>
  __device__ void load_values(const Places& places) {
    load<Boxes>(places, params.v_map, params.v_strides);
  }

 private:
  /// Boxes of one tile. Where rows are gathered, strides count rows of the map.
  template <int Boxes>
  __device__ void load(const Places& places, const void* map,
                       const kernels::AttentionStrides& strides) {
    const Ring<Shared::kStages> ring(shared.ring);
    std::int32_t rows[kLaneRows];
    if (gathers()) this->find_rows(rows, places, strides);
#pragma unroll 1
    for (int box = 0; box < Boxes; ++box) {
      const int of_item = box % kItemBoxes;
      if (of_item == 0) {
        ring.wait_empty(at);
        if (lane() == 0)
          ptx::mbarrier_arrive_expect_tx(ring.full(at), kItemBoxes * kKeys * kRowBytes);
        __syncwarp();
      }
      const std::uint32_t to =
          ptx::shared_address(shared.boxes[at.stage]) +
          static_cast<std::uint32_t>(of_item * kKeys + first_row()) * kRowBytes;
      this->copy(to, map, box * Shared::kBoxElems, places, rows, ring.full(at));
      if (of_item == kItemBoxes - 1) at.advance();
    }
  }
};

}  // namespace tilewright::tile
