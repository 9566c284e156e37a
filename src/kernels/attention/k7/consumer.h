// The consumers' half of an e4m3 attention kernel: what a warpgroup does with the tiles that the
// loader puts into shared memory, whatever a row of them is.
#pragma once

#include "kernels/attention/k7/config.h"
#include "kernels/attention/k7/mma.h"
#include "ptx/warp_roles.h"
#include "ptx/wgmma_sync.h"
#include "tile/row_end.h"

#include <cstdint>

namespace tilewright::tile {

template <class C>
struct Fp8AttentionConsumer {
  static constexpr int kKeys = C::kKeys, kHeadDim = C::kHeadDim, kStages = C::kStages;
  using Shared = Fp8AttentionShared<C>;
  using Tiles = typename C::Tiles;
  using Scores = float[kKeys / 2];
  using Results = float[kHeadDim / 2];
  using Weights = std::uint32_t[kKeys / 32][4];  ///< as the A operand

  const typename C::Params& params;
  Shared& shared;
  std::uint32_t index;  ///< of the warpgroup among the consumers
  RingPosition<C::kQStages> q_at;
  RingPosition<kStages> k_at, v_at;

  /// First row of the warp in the CTA's tile.
  __device__ std::int32_t warp_row() const {
    return static_cast<std::int32_t>(index * kernels::kWarpgroupRows + threadIdx.x % 128 / 32 * 16);
  }

  /// Those of all consumers: a warpgroup that began as soon as its own are there would keep its
  /// lead for the whole tile.
  __device__ void wait_queries() const {
    for (auto& ring : shared.q_ring) Ring<C::kQStages>(ring).wait_full(q_at);
  }
  __device__ void wait_k() const { Ring<kStages>(shared.k_ring).wait_full(k_at); }
  __device__ void wait_v() const { Ring<kStages>(shared.v_ring).wait_full(v_at); }

  /// s = q k^T for the keys that are next in the ring and there: issued as one group.
  __device__ void issue_scores(Scores& s) const {
    ptx::wgmma_fence_operand(s);
    ptx::wgmma_fence_sync_aligned();
    multiply_qk_e4m3<kKeys, kHeadDim, C::kBox>(
        s,
        advance_descriptor(ByteBox<64, C::kBox>::k_major(ptx::shared_address(shared.q)),
                           (q_at.stage * C::kConsumers + index) * (C::kQBytes >> 4)),
        advance_descriptor(ByteBox<kKeys, C::kBox>::k_major(ptx::shared_address(shared.k)),
                           k_at.stage * (C::kKvBytes >> 4)));
    ptx::wgmma_commit_group_sync_aligned();
  }
  /// o += p v, or o = p v, for the values that are next in the ring and there: one group. Of
  /// dimensions [First, First + N).
  template <int First = 0, int N>
  __device__ void issue_values(float (&o)[N], const Weights& p, bool accumulates) const {
    ptx::wgmma_fence_operand(o);
    ptx::wgmma_fence_sync_aligned();
    multiply_pv_e4m3<2 * N, kKeys, C::kValueBox, kHeadDim>(
        o, p,
        advance_descriptor(ByteBox<kHeadDim, C::kValueBox>::k_major(ptx::shared_address(shared.v)),
                           v_at.stage * (C::kKvBytes >> 4) + (First * C::kValueBox >> 4)),
        accumulates);
    ptx::wgmma_commit_group_sync_aligned();
  }
  /// All but the last Pending groups are done: the scores may be read, the keys be overwritten.
  template <int Pending>
  __device__ void await_scores(Scores& s) {
    ptx::wgmma_wait_group_sync_aligned<Pending>();
    ptx::wgmma_fence_operand(s);
  }
  __device__ void release_k() {
    Ring<kStages>(shared.k_ring).release(k_at);
    k_at.advance();
  }
  /// The same for the results and the values.
  template <int Pending>
  __device__ void await_values(Results& o) {
    ptx::wgmma_wait_group_sync_aligned<Pending>();
    ptx::wgmma_fence_operand(o);
    release_v();
  }
  __device__ void release_v() {
    Ring<kStages>(shared.v_ring).release(v_at);
    v_at.advance();
  }

  /// Scores of key tile n with softcap and mask. `cap_scale`: softcap_scale and the scales of the
  /// operands.
  __device__ void adjust_rows(Scores& s, const VisibleKeys (&rows)[2], std::int32_t n,
                              const float (&cap_scale)[C::kParts]) const {
    if (params.softcap_scale != 0.0f) {
#pragma unroll
      for (int i = 0; i < kKeys / 2; ++i)
        s[i] = tanh_of_half(s[i] * cap_scale[i * C::kParts / (kKeys / 2)]);
    }
    hide_keys(s, rows, n * kKeys);
  }
};

}  // namespace tilewright::tile
