// The consumers' half of a warp-specialised attention kernel: what a warpgroup does with the tiles
// that the loader puts into shared memory.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/barriers.h"
#include "kernels/attention/loader.h"
#include "kernels/attention/mask.h"
#include "ptx/address.h"
#include "ptx/fence.h"
#include "ptx/warp_roles.h"
#include "tile/online_softmax.h"
#include "tile/ring.h"
#include "tile/row_end.h"
#include "tile/warpgroup_mma.h"

#include <cstdint>

namespace tilewright::tile {

template <class C>
struct AttentionConsumer {
  using Element = typename C::Element;
  static constexpr int kHeadDim = C::kHeadDim, kValueDim = C::kValueDim;
  static constexpr int kKeys = C::kKeys, kConsumers = C::kConsumers;
  static constexpr int kQStages = C::kQStages, kKvStages = C::kKvStages;
  using Shared = AttentionShared<C>;
  using Tiles = KeyTiles<kKeys>;
  using Scores = float[kKeys / 2];
  using Results = float[kValueDim / 2];
  using Weights = std::uint32_t[kKeys / 16][4];  ///< as the A operand

  const kernels::AttentionParams& params;
  Shared& shared;
  std::uint32_t index;  ///< of the warpgroup among the consumers
  RingPosition<kQStages> q_at;
  RingPosition<kKvStages> k_at, v_at;

  /// Of a thread: the position of its first row among the keys of the sequence; the other is 8
  /// further.
  struct Rows {
    std::int32_t position, kv_len;
  };

  /// First row of the warp in the CTA's tile.
  __device__ std::int32_t warp_row() const {
    return static_cast<std::int32_t>(index * kernels::kWarpgroupRows + threadIdx.x % 128 / 32 * 16);
  }
  /// Of a tile whose first row is `first_query`, row i standing at position i + shift.
  __device__ Rows rows_of(std::int32_t first_query, std::int32_t shift, std::int32_t kv_len) const {
    return {first_query + warp_row() + static_cast<std::int32_t>(threadIdx.x % 32 / 4) + shift,
            kv_len};
  }
  /// The key tiles that this warpgroup sees; without plain ones if every score must be adjusted.
  __device__ Tiles own_tiles(std::int32_t first_query, std::int32_t shift,
                             std::int32_t kv_len) const {
    const std::int32_t first =
        first_query + static_cast<std::int32_t>(index) * kernels::kWarpgroupRows;
    Tiles own(params, kv_len, shift, first, first + kernels::kWarpgroupRows - 1);
    if (params.softcap_scale != 0.0f) own.plain_end = own.plain_begin;
    return own;
  }

  __device__ void wait_q() const { Ring<kQStages>(shared.q_ring[index]).wait_full(q_at); }
  __device__ void wait_all_q() const {
    for (auto& ring : shared.q_ring) Ring<kQStages>(ring).wait_full(q_at);
  }
  __device__ void wait_k() const { Ring<kKvStages>(shared.k_ring).wait_full(k_at); }
  __device__ void wait_v() const { Ring<kKvStages>(shared.v_ring).wait_full(v_at); }
  __device__ void release_q() {
    Ring<kQStages>(shared.q_ring[index]).release(q_at);
    q_at.advance();
  }
  __device__ void release_k() {
    Ring<kKvStages>(shared.k_ring).release(k_at);
    k_at.advance();
  }
  __device__ void release_v() {
    Ring<kKvStages>(shared.v_ring).release(v_at);
    v_at.advance();
  }

  /// s = q k^T for the keys that are next in the ring and there: issued as one group.
  __device__ void issue_scores(Scores& s) const {
    ptx::wgmma_fence_operand(s);
    ptx::wgmma_fence_sync_aligned();
    multiply_qk<Element, kKeys, kHeadDim>(
        s,
        advance_descriptor(Shared::QBox::k_major(ptx::shared_address(shared.q)),
                           (q_at.stage * kConsumers + index) * (Shared::kQBytes >> 4)),
        advance_descriptor(Shared::KBox::k_major(ptx::shared_address(shared.k)),
                           k_at.stage * (Shared::kKBytes >> 4)));
    ptx::wgmma_commit_group_sync_aligned();
  }
  /// o += p v for the values that are next in the ring and there: issued as one group.
  __device__ void issue_values(Results& o, const Weights& p) const {
    ptx::wgmma_fence_operand(o);
    ptx::wgmma_fence_sync_aligned();
    multiply_pv<Element, kValueDim, kKeys>(
        o, p,
        advance_descriptor(Shared::VBox::mn_major(ptx::shared_address(shared.v)),
                           v_at.stage * (Shared::kVBytes >> 4)));
    ptx::wgmma_commit_group_sync_aligned();
  }
  /// All but the last Pending groups are done: the scores may be read, the keys be overwritten.
  template <int Pending>
  __device__ void await_scores(Scores& s) {
    ptx::wgmma_wait_group_sync_aligned<Pending>();
    ptx::wgmma_fence_operand(s);
    release_k();
  }
  /// The same for the results and the values.
  template <int Pending>
  __device__ void await_values(Results& o) {
    ptx::wgmma_wait_group_sync_aligned<Pending>();
    ptx::wgmma_fence_operand(o);
    release_v();
  }

  /// Scores of key tile n with softcap and mask. IsPlain: every row sees every key of it, and there
  /// is no softcap.
  template <bool IsPlain>
  __device__ void adjust(Scores& s, const Rows& of, std::int32_t n) const {
    if constexpr (IsPlain) return;
    adjust_rows(s, {{params, of.position, of.kv_len}, {params, of.position + 8, of.kv_len}}, n);
  }
  /// Of a thread's two rows.
  __device__ void adjust_rows(Scores& s, const VisibleKeys (&rows)[2], std::int32_t n) const {
    if (params.softcap_scale != 0.0f) {
#pragma unroll
      for (float& x : s) x = tanh_of_half(x * params.softcap_scale);
    }
    hide_keys(s, rows, n * kKeys);
  }
  /// Scores of key tile n to weights.
  template <bool IsPlain>
  __device__ void weigh(Scores& s, OnlineSoftmax& softmax, float (&correction)[2], const Rows& of,
                        std::int32_t n) const {
    adjust<IsPlain>(s, of, n);
    softmax.template update<!IsPlain>(s, params.scale_log2, correction);
  }

  /// Behind the last key of a packed sequence lie the values of the next one. Their weights are 0,
  /// but 0 times an infinity is not: in the last tile, which is next in the ring, they are cleared.
  /// All consumers together.
  __device__ void clear_values_behind(std::int32_t kv_len, std::int32_t tiles_end) const {
    const std::int32_t rows = kv_len - (tiles_end - 1) * kKeys;
    if (params.cu_kv == nullptr || rows >= kKeys) return;
    clear_values(rows);
  }
  /// Those of the tile that is next in the ring, from row `rows` on.
  __device__ void clear_values(std::int32_t rows) const {
    wait_v();
    const std::int32_t thread = static_cast<std::int32_t>(index * 128 + threadIdx.x % 128);
    for (std::int32_t row = rows + thread / 8; row < kKeys; row += kConsumers * 16) {
#pragma unroll
      for (int box = 0; box < Shared::VBox::kBoxes; ++box) {
        auto* at = shared.v[v_at.stage] + (box * kKeys + row) * kBoxRowBytes + thread % 8 * 16;
        *reinterpret_cast<uint4*>(at) = make_uint4(0, 0, 0, 0);
      }
    }
    ptx::fence_proxy_async_shared_cta();
    ptx::bar_sync<kConsumersBarrier, kConsumers * 128>();
  }
};

}  // namespace tilewright::tile
