// The consumers' half of a warp-specialised attention kernel: what a warpgroup does with the tiles
// that the loader puts into shared memory, whatever a row of them is.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/barriers.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/rings.h"
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
  using Scores = float[kKeys / 2];
  using Results = float[kValueDim / 2];
  using Weights = std::uint32_t[kKeys / 16][4];  ///< as the A operand

  const kernels::AttentionParams& params;
  Shared& shared;
  std::uint32_t index;  ///< of the warpgroup among the consumers
  RingPosition<kQStages> q_at;
  RingPosition<kKvStages> k_at;
  RingPosition<value_stages<C>()> v_at;

  /// First row of the warp in the CTA's tile.
  __device__ std::int32_t warp_row() const {
    return static_cast<std::int32_t>(index * kernels::kWarpgroupRows + threadIdx.x % 128 / 32 * 16);
  }
  __device__ void wait_q() const { Ring<kQStages>(shared.q_ring[index]).wait_full(q_at); }
  __device__ void wait_all_q() const {
    for (auto& ring : shared.q_ring) Ring<kQStages>(ring).wait_full(q_at);
  }
  __device__ void wait_k() const { Ring<kKvStages>(shared.k_ring).wait_full(k_at); }
  __device__ void wait_v() const { Ring(shared.v_ring).wait_full(v_at); }
  __device__ void release_q() {
    Ring<kQStages>(shared.q_ring[index]).release(q_at);
    q_at.advance();
  }
  __device__ void release_k() {
    Ring<kKvStages>(shared.k_ring).release(k_at);
    k_at.advance();
  }
  __device__ void release_v() {
    Ring(shared.v_ring).release(v_at);
    v_at.advance();
  }

  /// s = q k^T for the keys, or the first of them, that are next in the ring and there: one group.
  template <int Keys = kKeys>
  __device__ void issue_scores(float (&s)[Keys / 2]) const {
    ptx::wgmma_fence_operand(s);
    ptx::wgmma_fence_sync_aligned();
    multiply_qk<Element, Keys, kHeadDim, kKeys>(
        s,
        advance_descriptor(Shared::QBox::k_major(ptx::shared_address(shared.q)),
                           (q_at.stage * kConsumers + index) * (Shared::kQBytes >> 4)),
        advance_descriptor(Shared::KBox::k_major(ptx::shared_address(shared.k)),
                           k_at.stage * (Shared::kKBytes >> 4)));
    ptx::wgmma_commit_group_sync_aligned();
  }
  /// o += p v for the values, or the first of them, that are next in the ring and there: one group.
  template <int Keys = kKeys>
  __device__ void issue_values(Results& o, const Weights& p) const {
    ptx::wgmma_fence_operand(o);
    ptx::wgmma_fence_sync_aligned();
    multiply_pv<Element, kValueDim, kKeys, Keys>(
        o, p,
        advance_descriptor(Shared::VBox::mn_major(ptx::shared_address(shared.v)),
                           v_at.stage * (Shared::kVBytes >> 4)));
    ptx::wgmma_commit_group_sync_aligned();
  }
  /// All but the last Pending groups are done: the scores may be read, the keys be overwritten.
  template <int Pending, int Count>
  __device__ void await_scores(float (&s)[Count]) {
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

  /// Scores of key tile n with softcap and mask, of a thread's two rows.
  __device__ void adjust_rows(Scores& s, const VisibleKeys (&rows)[2], std::int32_t n) const {
    if (params.softcap_scale != 0.0f) {
#pragma unroll
      for (float& x : s) x = tanh_of_half(x * params.softcap_scale);
    }
    hide_keys(s, rows, n * kKeys);
  }
  /// Of the tile that is next in the ring, from row `rows` on. All consumers together.
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
