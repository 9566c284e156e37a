// The producer's half of K6 over caches of e4m3: four warps read codes and write them as numbers of
// 16 bits, exactly, into the layout that a tensor copy would write. Pages may have any size: a row
// is found by itself.
//
//   rows of a tile   a quarter of them for each warp; a lane looks up one, a step ahead
//   read at once     32 units of 16 codes, of 4 or 8 neighbouring rows
//   written          a unit makes two chunks of a line of 128 bytes. Units of neighbouring boxes
//                    write theirs in opposite order: then eight lanes write to different banks
//
// Codes of a tile are read before its stage is free, so that their way here passes while the
// warps wait.
#pragma once

#include "kernels/attention/forward/paged_consumer.h"
#include "kernels/attention/forward/paged_producer.h"
#include "kernels/attention/k7/paged_operands.h"
#include "tile/box.h"
#include "tile/ring.h"
#include "tile/unpack_e4m3.h"

#include <cstdint>

namespace tilewright::tile {

template <class C>
struct WidenedShared : AttentionShared<C> {
  float k_scale[C::kKvStages];  ///< of the keys of each stage
};

/// That of a sequence and a head of keys.
__device__ inline float scale_of(const kernels::Fp8Scales& scales, std::int32_t batch,
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

  const kernels::AttentionPagedFp8Params& params;
  Shared& shared;

  __device__ PagedWidener(const kernels::AttentionPagedFp8Params& all, Shared& memory)
      : Base{all, memory}, params(all), shared(memory) {}

  /// A row of keys and of values: in units of 16 bytes from row 0 of page 0 on, of which there are
  /// fewer than 2^32.
  struct Places {
    std::uint32_t k, v;
  };

  /// As PagedProducer::load.
  __device__ void load(const DealtTile& tile, std::int32_t begin, std::int32_t end) {
    const std::int32_t head = tile.head / (params.heads / params.kv_heads);
    const float k_scale = threadIdx.x == 0 ? scale_of(params.k_scales, tile.batch, head) : 0.0f;
    DealtTile of_keys = tile;
    of_keys.kv_begin = params.cu_kv == nullptr ? 0 : params.cu_kv[tile.batch];
    std::int32_t key = (end - 1) * C::kKeys + warp_row() + lane();
    PageCursor cursor(params, of_keys, key);
    Places at = find(cursor, key, tile.kv_len);
    load_k(at, head, k_scale);
    cursor.retreat();
    Places next = find(cursor, key -= C::kKeys, tile.kv_len);
    this->load_queries(tile, threadIdx.x == 0);
    __syncwarp();
    for (std::int32_t n = end - 1;; --n) {
      if (n > begin) load_k(next, head, k_scale);
      load_v(at, head);
      if (n == begin) return;
      at = next;
      cursor.retreat();
      next = find(cursor, key -= C::kKeys, tile.kv_len);
    }
  }

 private:
  __device__ static std::int32_t lane() { return static_cast<std::int32_t>(threadIdx.x % 32); }
  __device__ static std::int32_t warp_row() {
    return static_cast<std::int32_t>(threadIdx.x / 32) * kRows;
  }

  __device__ Places find(const PageCursor& at, std::int32_t key, std::int32_t kv_len) const {
    const std::int32_t page = at.page(at.index);
    if (key < 0 || key >= kv_len || page < 0) return {kNoRow, kNoRow};
    if (params.pages.block_table != nullptr && page >= params.pages.num_pages)
      return {kNoRow, kNoRow};
    const auto offset = [&](const kernels::AttentionStrides& strides) {
      return static_cast<std::uint32_t>(page) * static_cast<std::uint32_t>(strides.batch / 16) +
             static_cast<std::uint32_t>(at.row) * static_cast<std::uint32_t>(strides.row / 16);
    };
    return {offset(params.k_strides), offset(params.v_strides)};
  }

  __device__ void load_k(const Places& at, std::int32_t head, float scale) {
    const auto* rows = static_cast<const uint4*>(params.k) + head * (params.k_strides.head / 16);
    const std::uint32_t stage = k_at.stage;
    copy<typename Shared::KBox>(rows, at.k, params.head_dim, shared.k_ring, k_at, shared.k,
                                [&] { shared.k_scale[stage] = scale; });
  }
  __device__ void load_v(const Places& at, std::int32_t head) {
    const auto* rows = static_cast<const uint4*>(params.v) + head * (params.v_strides.head / 16);
    copy<typename Shared::VBox>(rows, at.v, params.value_dim, shared.v_ring, v_at, shared.v, [] {});
  }

  /// The rows of a warp, those at `offset` of lane i being its i-th. Columns from `columns` on are
  /// zeros. `show`: what thread 0 writes beside them.
  template <class TileBox, class Show>
  __device__ void copy(const uint4* rows, std::uint32_t offset, std::int32_t columns,
                       RingBarriers<kStages>& barriers, RingPosition<kStages>& at,
                       std::uint8_t (&stages)[kStages][TileBox::kBytes], const Show& show) {
    constexpr int kUnits = TileBox::kBytes / (32 * C::kKeys);  // of a row
    constexpr int kSteps = kUnits / kUnitsAtOnce;              // of a row
    static_assert(kUnits % kUnitsAtOnce == 0);
    constexpr int kAll = kRows / kRowsAtOnce * kSteps, kAtOnce = kAll <= 6 ? kAll : 4;
    const Ring<kStages> ring(barriers);
    const std::uint32_t to = ptx::shared_address(stages[at.stage]) + lane_place();
    rows += unit();
    columns -= unit() * 16;
#pragma unroll
    for (int first = 0; first < kAll; first += kAtOnce) {
      uint4 codes[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int row = (first + i) / kSteps * kRowsAtOnce;
        const int behind = (first + i) % kSteps * kUnitsAtOnce;
        codes[i] = make_uint4(0, 0, 0, 0);
        if (first + i >= kAll) break;
        const std::uint32_t start = __shfl_sync(0xffffffffu, offset, row + lane_row());
        if (start != kNoRow && behind * 16 < columns)
          codes[i] = __ldg(rows + std::uint64_t{start} + behind);
      }
      if (first == 0) ring.wait_empty(at);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int row = (first + i) / kSteps * kRowsAtOnce;
        const int box = (first + i) % kSteps * kUnitsAtOnce / 4;
        if (first + i >= kAll) break;
        const std::uint32_t flip = row % 8 * 16;  // chunks of a line are exchanged by its number
        write_unit((to ^ flip) + (box * C::kKeys + row) * kBoxRowBytes, codes[i]);
      }
    }
    if (threadIdx.x == 0) show();
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (lane() == 0) ptx::mbarrier_arrive(ring.full(at));
    at.advance();
  }

  /// What the lanes of a warp read at once: units of neighbouring rows.
  static constexpr int kUnitsAtOnce = kRows % 8 == 0 ? 4 : 8, kRowsAtOnce = 32 / kUnitsAtOnce;
  static_assert(kRows % kRowsAtOnce == 0);
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
  static constexpr bool kMayIdle = false;  // not measured: those that widen are the bound

  __device__ const kernels::AttentionPagedFp8Params& fp8_params() const {
    return static_cast<const kernels::AttentionPagedFp8Params&>(this->params);
  }
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
    const kernels::AttentionPagedFp8Params& all = fp8_params();
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
