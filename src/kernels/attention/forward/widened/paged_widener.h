// The producer's half of K6 over caches of e4m3: four warps read codes and write them as numbers of
// 16 bits, exactly, into the layout that a tensor copy would write. Pages may have any size: a row
// is found by itself.
//
//   rows of a tile   a quarter of them for each warp; a lane looks up one, a step ahead
//   read at once     32 units of 16 codes, of 4 or 8 neighbouring rows
//   written          a unit makes two chunks of a line of 128 bytes. Units of neighbouring boxes
//                    write theirs in opposite order: then eight lanes write to different banks
//   ahead            a unit is read into the registers of one that has just been written, for the
//                    same tile or the next that is copied; the rows of the step behind that are on
//                    their way to the L2 cache
//
// A unit that is not there is read from zeros elsewhere: ptxas gives a read that a predicate guards
// registers of its own, and waits for it where they move to the others.
#pragma once

#include "kernels/attention/forward/paged_consumer.h"
#include "kernels/attention/forward/paged_producer.h"
#include "kernels/attention/forward/widened/operands.h"
#include "ptx/prefetch.h"
#include "ptx/special_registers.h"
#include "tile/box.h"
#include "tile/ring.h"
#include "tile/unpack_e4m3.h"

#include <cstdint>

namespace tilewright::tile {

/// What is read where there is no unit.
static __device__ const uint4 kZeroUnit = {};

template <class C>
struct WidenedShared : AttentionShared<C> {
  float k_scale[C::kKvStages];  ///< of the keys of each stage
};

/// That of a sequence and a head of keys.
__device__ inline float scale_of(const kernels::CacheScales& scales, std::int32_t batch,
                                 std::int32_t head) {
  return scales.values[batch * scales.batch_stride + head * scales.head_stride];
}

/// All threads of kernels::kPageWarps warps together. Thread 0 also loads the queries.
template <class C>
struct PagedWidener : PagedProducer<C, PagedWidener<C>> {
  using Base = PagedProducer<C, PagedWidener<C>>;
  using Base::k_at;
  using Base::v_at;
  using Shared = WidenedShared<C>;
  static constexpr int kStages = C::kKvStages;
  static constexpr int kRows = C::kKeys / kernels::kPageWarps;  ///< of a warp
  static_assert(C::kKeys % kernels::kPageWarps == 0 && kRows <= 32, "a lane looks up one row");
  static constexpr std::uint32_t kNoRow = 0xffffffff;  ///< there is none: zeros
  /// What the lanes of a warp read at once: units of neighbouring rows.
  static constexpr int kUnitsAtOnce = kRows % 8 == 0 ? 4 : 8, kRowsAtOnce = 32 / kUnitsAtOnce;
  static_assert(kRows % kRowsAtOnce == 0);
  using KBox = typename Shared::KBox;
  using VBox = typename Shared::VBox;

  /// Of a lane, in a row and in a tile.
  template <class TileBox>
  static constexpr int kSteps = TileBox::kBytes / (32 * C::kKeys) / kUnitsAtOnce;
  template <class TileBox>
  static constexpr int kUnits = kRows / kRowsAtOnce* kSteps<TileBox>;

  /// Units of a lane that have been read and not been written: all of a tile, which are then read
  /// while the tile before is written, or as many as there are registers.
  static constexpr int kAhead = C::kUnitsAhead;
  static constexpr bool kReadsOn = kAhead == kUnits<KBox> && kAhead == kUnits<VBox>;
  static_assert(kUnits<KBox> % kAhead == 0 && kUnits<VBox> % kAhead == 0);
  using Codes = uint4[kAhead];

  const kernels::AttentionWidenedParams& params;
  Shared& shared;

  __device__ PagedWidener(const kernels::AttentionWidenedParams& all, Shared& memory)
      : Base{all, memory}, params(all), shared(memory) {}

  /// A row of keys and of values: in units of 16 bytes from row 0 of page 0 on, of which there are
  /// fewer than 2^32.
  struct Places {
    std::uint32_t k, v;
  };

  /// Rows of a tile of keys or of values: those of a warp are at `offset` of lane i, its i-th, from
  /// a lane's unit of row 0 of page 0 on. Columns from `columns` on, counted as those, are zeros.
  struct Source {
    const uint4* rows;
    std::uint32_t offset;
    std::int32_t columns;
  };

  /// As PagedProducer::load.
  __device__ void load(const DealtTile& tile, std::int32_t begin, std::int32_t end) {
    const std::int32_t head = tile.head / (params.heads / params.kv_heads);
    const float k_scale = threadIdx.x == 0 ? scale_of(params.k_scales, tile.batch, head) : 0.0f;
    // Kept where codes are read on, which is where there are registers, and else computed again.
    const uint4* const k_rows = rows_of(params.k, params.k_strides, head);
    const uint4* const v_rows = rows_of(params.v, params.v_strides, head);
    const auto keys = [&](const Places& at) -> Source {
      return {kReadsOn ? k_rows : rows_of(params.k, params.k_strides, head), at.k,
              params.head_dim - unit() * 16};
    };
    const auto values = [&](const Places& at) -> Source {
      return {kReadsOn ? v_rows : rows_of(params.v, params.v_strides, head), at.v,
              params.value_dim - unit() * 16};
    };
    DealtTile of_keys = tile;
    of_keys.kv_begin = params.cu_kv == nullptr ? 0 : params.cu_kv[tile.batch];
    const std::int32_t key = (end - 1) * C::kKeys + warp_row() + lane();
    PageCursor cursor(params, of_keys, key);
    Places at = find(cursor, key < tile.kv_len), before = at;
    Codes codes;
    if constexpr (kReadsOn) read_first<KBox>(codes, keys(at));
    // Keys of tile n, and behind them the values of the tile before.
    bool is_first = true;
    for (std::int32_t n = end - 1;; --n) {
      cursor.retreat();
      const Places next = find(cursor, n > begin);
      prefetch<C::kHeadDim>(keys(next));
      prefetch<C::kValueDim>(values(next));
      if (n >= begin)
        load_k(codes, keys(at), is_first && n > begin ? keys(next) : values(before), k_scale);
      if (is_first) {
        this->load_queries(tile, threadIdx.x == 0);
        __syncwarp();
      } else {
        load_v(codes, values(before), n > begin ? keys(next) : values(at));
      }
      if (n < begin) return;
      is_first = false;
      before = at;
      at = next;
    }
  }

 private:
  /// Where registers are few nothing is kept of it.
  __device__ static std::uint32_t thread() {
    if constexpr (kReadsOn) return threadIdx.x;
    return static_cast<std::uint32_t>(ptx::mov_tid_x());
  }
  __device__ static std::int32_t lane() { return static_cast<std::int32_t>(thread() % 32); }
  __device__ static std::int32_t warp_row() {
    return static_cast<std::int32_t>(thread() / 32) * kRows;
  }

  __device__ Places find(const PageCursor& at, bool is_key) const {
    const std::int32_t page = at.page(at.index);
    if (!is_key || page < 0) return {kNoRow, kNoRow};
    if (params.pages.block_table != nullptr && page >= params.pages.num_pages)
      return {kNoRow, kNoRow};
    const auto offset = [&](const kernels::AttentionStrides& strides) {
      return static_cast<std::uint32_t>(page) * static_cast<std::uint32_t>(strides.batch / 16) +
             static_cast<std::uint32_t>(at.row) * static_cast<std::uint32_t>(strides.row / 16);
    };
    return {offset(params.k_strides), offset(params.v_strides)};
  }

  /// A lane's unit of row 0 of page 0.
  __device__ static const uint4* rows_of(const void* first,
                                         const kernels::AttentionStrides& strides,
                                         std::int32_t head) {
    return static_cast<const uint4*>(first) + head * (strides.head / 16) + unit();
  }
  /// The row that a lane looked up.
  template <int Bytes>
  __device__ static void prefetch(const Source& of) {
    if (of.offset == kNoRow || lane() >= kRows) return;
#pragma unroll
    for (int line = 0; line < (Bytes + 127) / 128; ++line)
      ptx::prefetch_global_L2(of.rows - unit() + std::uint64_t{of.offset} + line * 8);
  }

  /// Keys, and values, that are read already as far as `codes` goes; what is read behind them.
  __device__ void load_k(Codes& codes, const Source& from, const Source& next, float scale) {
    const std::uint32_t stage = k_at.stage;
    copy<KBox>(codes, from, next, shared.k_ring, k_at, shared.k,
               [&] { shared.k_scale[stage] = scale; });
  }
  __device__ void load_v(Codes& codes, const Source& from, const Source& next) {
    copy<VBox>(codes, from, next, shared.v_ring, v_at, shared.v, [] {});
  }

  /// The i-th unit of a lane.
  template <class TileBox>
  __device__ static uint4 read(const Source& from, int i) {
    const int row = i / kSteps<TileBox> * kRowsAtOnce, behind = i % kSteps<TileBox> * kUnitsAtOnce;
    const std::uint32_t start = __shfl_sync(0xffffffffu, from.offset, row + lane_row());
    const bool is_there = start != kNoRow && behind * 16 < from.columns;
    return ptx::ld_global_nc_v4_u32(is_there ? from.rows + std::uint64_t{start} + behind
                                             : &kZeroUnit);
  }
  template <class TileBox>
  __device__ static void read_first(Codes& codes, const Source& from) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) codes[i] = read<TileBox>(from, i);
  }

  /// `show`: what thread 0 writes beside them.
  template <class TileBox, class Show>
  __device__ void copy(Codes& codes, const Source& from, const Source& next,
                       RingBarriers<kStages>& barriers, RingPosition<kStages>& at,
                       std::uint8_t (&stages)[kStages][TileBox::kBytes], const Show& show) {
    const Ring<kStages> ring(barriers);
    const std::uint32_t to = ptx::shared_address(stages[at.stage]) + lane_place();
    if constexpr (!kReadsOn) read_first<TileBox>(codes, from);
    ring.wait_empty(at);
#pragma unroll
    for (int i = 0; i < kUnits<TileBox>; ++i) {
      const int row = i / kSteps<TileBox> * kRowsAtOnce;
      const int box = i % kSteps<TileBox> * kUnitsAtOnce / 4;
      const std::uint32_t flip = row % 8 * 16;  // chunks of a line are exchanged by its number
      write_unit((to ^ flip) + (box * C::kKeys + row) * kBoxRowBytes, codes[i % kAhead]);
      if constexpr (kReadsOn) {
        codes[i] = read<TileBox>(next, i);
      } else if (i + kAhead < kUnits<TileBox>) {
        codes[i % kAhead] = read<TileBox>(from, i + kAhead);
      }
    }
    if (threadIdx.x == 0) show();
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (lane() == 0) ptx::mbarrier_arrive(ring.full(at));
    at.advance();
  }

  __device__ static std::int32_t unit() {
    return lane() % kUnitsAtOnce;
  }
  __device__ static std::int32_t lane_row() {
    return lane() / kUnitsAtOnce;
  }
  __device__ static bool is_in_odd_box() {
    return unit() >= 4;
  }
  /// Where the first chunk goes that a lane writes of the first row.
  __device__ static std::uint32_t lane_place() {
    const auto row = static_cast<std::uint32_t>(warp_row() + lane_row());
    const auto chunk = static_cast<std::uint32_t>(unit() % 4 * 2 + (is_in_odd_box() ? 1 : 0));
    return (unit() / 4 * C::kKeys + row) * kBoxRowBytes + chunk_in_line(row % 8, chunk);
  }
  __device__ static void write_unit(std::uint32_t at, const uint4& codes) {
    uint4 wide[2];
    unpack_e4m3<typename C::Element>(wide, codes, 1.0f);
    const bool is_odd = is_in_odd_box();
    *static_cast<uint4*>(__cvta_shared_to_generic(at)) = is_odd ? wide[1] : wide[0];
    *static_cast<uint4*>(__cvta_shared_to_generic(at ^ 16)) = is_odd ? wide[0] : wide[1];
  }
};

/// As PagedConsumer, of keys and values that have scales.
template <class C>
struct WidenedConsumer : PagedConsumer<C> {
  using Base = PagedConsumer<C>;
  using typename Base::Results;
  using typename Base::Scores;

  template <int Pending>
  __device__ void await_scores(Scores& s) {
    const float scale =
        static_cast<const WidenedShared<C>&>(this->shared).k_scale[this->k_at.stage];
    Base::template await_scores<Pending>(s);
#pragma unroll
    for (float& x : s) x *= scale;
  }
  /// There are zeros already.
  __device__ void clear_values_behind(std::int32_t, std::int32_t) const {}

  __device__ void finish(const Results& o, const OnlineSoftmax& softmax,
                         const DealtTile& tile) const {
    const auto& all = static_cast<const kernels::AttentionWidenedParams&>(this->params);
    const float scale = tile.kv_len == 0 ? 0.0f
                                         : scale_of(all.v_scales, tile.batch,
                                                    tile.head / (all.heads / all.kv_heads));
    Results scaled;
#pragma unroll
    for (int i = 0; i < C::kValueDim / 2; ++i) scaled[i] = o[i] * scale;
    Base::finish(scaled, softmax, tile);
  }
};

}  // namespace tilewright::tile
