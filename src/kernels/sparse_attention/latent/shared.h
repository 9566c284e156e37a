// Shared memory of attention over values that are keys as well, and its barriers.
#pragma once

#include "kernels/sparse_attention/latent/sm90_latent.h"
#include "kernels/sparse_attention/wgmma/shared.h"

#include <cstdint>

namespace tilewright::tile {

template <class E, int ValueDims, bool HasQv, int Ctas>
struct LatentForm {
  using Element = E;
  static constexpr int kValueDims = ValueDims, kHalfDims = ValueDims / 2, kCtas = Ctas;
  static constexpr bool kHasQv = HasQv;
  static constexpr int kHalfBoxes = kHalfDims / kBoxColumns;
  static constexpr int kHalfBytes = kHalfBoxes * kSparseBoxBytes;
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
  RingBarriers<1> k_ring[2], v_ring[2][2], p_ring[2], q_ring;

  /// One thread, in each CTA of the cluster.
  __device__ void initialise() {
    for (int i = 0; i < 2; ++i) {
      k_ring[i].initialise(4 * Form::kCtas);
      for (auto& ring : v_ring[i]) ring.initialise(4 * Form::kCtas);
      p_ring[i].initialise(4, 4);
    }
    q_ring.initialise(8, kQueryWarps);
  }
  static constexpr int kQueryWarps = 3;
};
static_assert(sizeof(LatentShared<LatentForm<Bf16, 512, true, 2>>) <=
              kernels::LatentTile::shared_bytes(512, true));
static_assert(sizeof(LatentShared<LatentForm<Bf16, 512, false, 2>>) <=
              kernels::LatentTile::shared_bytes(512, false));
static_assert(sizeof(LatentShared<LatentForm<Bf16, 256, true, 2>>) <=
              kernels::LatentTile::shared_bytes(256, true));

}  // namespace tilewright::tile
