// Shared memory of attention over values that are keys as well, and its barriers.
#pragma once

#include "kernels/sparse_attention/latent/sm90_latent.h"
#include "kernels/sparse_attention/wgmma/shared.h"

#include <cstdint>

namespace tilewright::tile {

template <class E, int ValueDims, bool HasQv, int Ctas, bool HasLists = false>
struct LatentForm {
  using Element = E;
  static constexpr int kValueDims = ValueDims, kHalfDims = ValueDims / 2, kCtas = Ctas;
  static constexpr bool kHasQv = HasQv, kHasLists = HasLists;
  /// Arrivals that fill a part of a stage: of a tensor copy's bytes, or of the threads that copy.
  static constexpr int kArrivals = HasLists ? 128 : 1;
  static constexpr int kHalfBoxes = kHalfDims / kBoxColumns;
  static constexpr int kHalfBytes = kHalfBoxes * kSparseBoxBytes;
  /// Boxes that are full together. Of copies by threads each part costs a fence: 4454 instead of
  /// 3871 us for a prefill of 4096 queries, in halves of one.
  static constexpr int kPartBoxes = HasLists ? kHalfBoxes : 2, kHalfParts = kHalfBoxes / kPartBoxes;
};

/// Barriers of one half of a stage's values: each part is full on its own, since scores go through
/// them one after the other; all are empty at once.
template <int Parts>
struct LatentHalfBarriers {
  std::uint64_t full[Parts], empty;
};

template <class Form>
struct LatentShared {
  std::uint8_t v[2][2][Form::kHalfBytes];  ///< of both stages and halves: boxes of 64 columns
  std::uint8_t k[2][kSparseBoxBytes];
  /// Weights of each consumer's block, which the other reads as well; behind the last block results
  /// on their way out, 2 KB of each warp of its consumer.
  std::uint8_t p[2][kSparseBoxBytes];
  std::uint8_t qv[Form::kHasQv ? 2 * Form::kHalfBytes : 16];
  float references[2][64];  ///< what a block's weights are relative to
  float sums[2][2][64];     ///< of every other piece, of a consumer: of its blocks' weights
  /// Likewise the largest scores, and which keys of a stage's block are rows.
  float tops[Form::kHasLists ? 2 : 1][2][Form::kHasLists ? 64 : 1];
  std::uint32_t valid[2][2];
  RingBarriers<1> k_ring[2], p_ring[2], q_ring;
  LatentHalfBarriers<Form::kHalfParts> v_ring[2][2];

  /// One thread, in each CTA of the cluster.
  __device__ void initialise() {
    for (int i = 0; i < 2; ++i) {
      k_ring[i].initialise(4 * Form::kCtas, Form::kArrivals + (Form::kHasLists ? 4 : 0));
      for (auto& ring : v_ring[i]) {
        for (auto& part : ring.full)
          ptx::mbarrier_init(ptx::shared_address(&part), Form::kArrivals);
        ptx::mbarrier_init(ptx::shared_address(&ring.empty), 4 * Form::kCtas);
      }
      p_ring[i].initialise(4, 4);
    }
    q_ring.initialise(8, Form::kHasLists ? 128 : kQueryWarps);
  }
  static constexpr int kQueryWarps = 3;
};

/// A consumer's warp reads a half of a stage no more: all CTAs that write it are told.
template <int Ctas>
__device__ void release_half(std::uint64_t& empty) {
  const std::uint32_t barrier = ptx::shared_address(&empty);
  __syncwarp();
  const std::uint32_t lane = threadIdx.x % 32;
  if constexpr (Ctas == 1) {
    if (lane == 0) ptx::mbarrier_arrive(barrier);
  } else {
    if (lane < Ctas) ptx::mbarrier_arrive_remote(ptx::mapa_shared_cluster(barrier, lane));
  }
}

static_assert(sizeof(LatentShared<LatentForm<Bf16, 512, true, 2>>) <=
              kernels::LatentTile::shared_bytes(512, true));
static_assert(sizeof(LatentShared<LatentForm<Bf16, 512, false, 2>>) <=
              kernels::LatentTile::shared_bytes(512, false));
static_assert(sizeof(LatentShared<LatentForm<Bf16, 512, true, 1, true>>) <=
              kernels::LatentTile::shared_bytes(512, true, true));
static_assert(sizeof(LatentShared<LatentForm<Bf16, 256, true, 2>>) <=
              kernels::LatentTile::shared_bytes(256, true));

}  // namespace tilewright::tile
