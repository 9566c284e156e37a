// Brings tiles of keys and values of e4m3 into the ring of boxes as numbers of 16 bits, exactly, by
// three warps: each reads codes and writes them where a tensor copy would. Pages may have any size:
// a row is found by itself.
//
//   a box            128 rows of 64 columns, in groups of 8 rows: groups w, w + 3, ... are warp w's
//   a lane           16 columns of a row of each group: a unit of 16 codes, two chunks of a line
//   rows of a tile   a lane looks up two of its warp's up to 48, a tile ahead
//
// Where a lane has written a unit, it asks for that of the next box: up to six of each lane are
// always on their way.
#pragma once

#include "kernels/attention/k7/paged_operands.h"
#include "kernels/attention_sm100/pages/work.h"
#include "ptx/convert_fp8.h"
#include "tile/unpack_e4m3.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kWidenWarps = 3;

/// 16 codes as numbers of 16 bits.
template <class Element>
__device__ void widen(uint4 (&out)[2], const uint4& codes) {
  unpack_e4m3<Element>(out, codes, 1.0f);
}
template <>
__device__ inline void widen<Fp16>(uint4 (&out)[2], const uint4& codes) {
  const auto pair = [](std::uint32_t word, int i) {
    return ptx::cvt_rn_f16x2_e4m3x2(static_cast<std::uint16_t>(word >> 16 * i));
  };
  out[0] = make_uint4(pair(codes.x, 0), pair(codes.x, 1), pair(codes.y, 0), pair(codes.y, 1));
  out[1] = make_uint4(pair(codes.z, 0), pair(codes.z, 1), pair(codes.w, 0), pair(codes.w, 1));
}

/// All lanes of kWidenWarps warps, of which `warp` is this one's number, from 0.
template <class Element, class Shared>
struct PageWidener {
  static constexpr int kStages = Shared::kStages, kKeyBoxes = Shared::kKeyBoxes;
  static constexpr int kStepBoxes = kKeyBoxes + Shared::kValueBoxes;
  static constexpr int kGroupRows = 8, kGroups = kKeys / kGroupRows;
  static constexpr int kUnits = (kGroups + kWidenWarps - 1) / kWidenWarps;  ///< of a lane in a box
  static constexpr int kFound = (kUnits * kGroupRows + 31) / 32;  ///< rows that a lane looks up
  static constexpr std::uint32_t kNoRow = 0xffffffff;             ///< there is none: zeros

  const kernels::AttentionPagedFp8Params& params;
  Shared& shared;
  const PagedRows& rows;
  std::uint32_t warp;
  RingPosition<kStages> at = {};
  uint4 codes[kUnits] = {};

  /// Rows of keys and of values: in units of 16 bytes from row 0 of page 0 on, of which there are
  /// fewer than 2^32.
  struct Places {
    std::uint32_t k[kFound], v[kFound];
  };
  /// A box: where the units of a lane are, of which there are none beyond head_dim.
  struct Source {
    const uint4* units;
    std::uint32_t rows[kFound];
    bool has_columns;
  };

  __device__ void load(std::int32_t begin, std::int32_t end) {
    Places places = find(begin);
    const Source first = source(0, places);
#pragma unroll
    for (int i = 0; i < kUnits; ++i) codes[i] = read(first, i);
#pragma unroll 1
    for (std::int32_t n = begin; n < end; ++n) {
      const Places next = n + 1 < end ? find(n + 1) : nowhere();
#pragma unroll kStepBoxes <= 2 ? kStepBoxes : 1  // with more there are too many addresses
      for (int box = 1; box <= kStepBoxes; ++box)
        put(box < kStepBoxes ? source(box, places) : source(0, next));
      places = next;
    }
  }

 private:
  __device__ static std::uint32_t lane() {
    return threadIdx.x % 32;
  }
  __device__ static std::uint32_t unit() {
    return lane() % 4;
  }
  __device__ static std::uint32_t lane_row() {
    return lane() / 4;
  }
  /// Of a lane's i-th unit; the last may be behind the box.
  __device__ std::uint32_t group(std::uint32_t i) const {
    return warp + kWidenWarps * i;
  }

  __device__ static Places nowhere() {
    Places places;
#pragma unroll
    for (int i = 0; i < kFound; ++i) places.k[i] = places.v[i] = kNoRow;
    return places;
  }
  __device__ Places find(std::int32_t tile) const {
    Places places = nowhere();
#pragma unroll
    for (int i = 0; i < kFound; ++i) {
      const std::uint32_t number = 32 * i + lane();
      const std::uint32_t row = group(number / kGroupRows) * kGroupRows + number % kGroupRows;
      const std::int32_t key = tile * kKeys + static_cast<std::int32_t>(row);
      if (row < kKeys && key < rows.sequence.kv_len) find_key(key, places.k[i], places.v[i]);
    }
    return places;
  }
  __device__ void find_key(std::int32_t key, std::uint32_t& k, std::uint32_t& v) const {
    const kernels::AttentionPages& pages = params.pages;
    std::int32_t page = params.cu_kv == nullptr ? rows.batch : 0;
    std::int32_t row = rows.sequence.kv_begin + key;
    if (pages.block_table != nullptr) {
      const auto index =
          static_cast<std::int32_t>(params.page_divisor.divide(static_cast<std::uint32_t>(key)));
      page = pages.block_table[rows.batch * pages.table_stride + index];
      row = key - index * pages.page_size;
      if (page < 0 || page >= pages.num_pages) return;
    }
    const auto offset = [&](const kernels::AttentionStrides& strides) {
      return static_cast<std::uint32_t>(page) * static_cast<std::uint32_t>(strides.batch / 16) +
             static_cast<std::uint32_t>(row) * static_cast<std::uint32_t>(strides.row / 16);
    };
    k = offset(params.k_strides), v = offset(params.v_strides);
  }

  __device__ Source source(int box, const Places& places) const {
    const bool is_key = box < kKeyBoxes;
    const auto first = static_cast<std::int32_t>(unit()) + 4 * (is_key ? box : box - kKeyBoxes);
    const auto& strides = is_key ? params.k_strides : params.v_strides;
    Source s = {static_cast<const uint4*>(is_key ? params.k : params.v) +
                    rows.kv_head * (strides.head / 16) + first,
                {},
                first * 16 < (is_key ? params.head_dim : params.value_dim)};
#pragma unroll
    for (int i = 0; i < kFound; ++i) s.rows[i] = is_key ? places.k[i] : places.v[i];
    return s;
  }
  /// A lane's i-th unit of a box.
  __device__ static uint4 read(const Source& from, int i) {
    constexpr int kHeld = 32 / kGroupRows;  // groups whose rows a register of all lanes has
    const std::uint32_t row =
        __shfl_sync(0xffffffffu, from.rows[i / kHeld], i % kHeld * kGroupRows + lane_row());
    if (row == kNoRow || !from.has_columns) return make_uint4(0, 0, 0, 0);
    return __ldg(from.units + row);
  }
  /// Writes the box that was read, and reads the next one.
  __device__ void put(const Source& next) {
    const Ring<kStages> ring(shared.ring);
    ring.wait_empty(at);
    std::uint8_t* const box = shared.boxes[at.stage];
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      const std::uint32_t line = group(i) * kGroupRows + lane_row();
      uint4 wide[2];
      widen<Element>(wide, codes[i]);
      codes[i] = read(next, i);
      if (line >= kKeys) continue;
      *line_chunk<uint4>(box, line, 2 * unit()) = wide[0];
      *line_chunk<uint4>(box, line, 2 * unit() + 1) = wide[1];
    }
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (lane() == 0) ptx::mbarrier_arrive(ring.full(at));
    at.advance();
  }
};

}  // namespace tilewright::tile
