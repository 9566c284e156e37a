// Attention over values that are keys as well, with warpgroup MMAs: see the .cu.
#pragma once

#include "kernels/sparse_attention/latent/latent.h"

namespace tilewright::kernels {

/// Entries latent_TYPE_vDIMS and latent_TYPE_vDIMS_qv, TYPE bf16 or f16, DIMS 256 or 512, one CTA
/// of 64 rows each; latent_pair_..., clusters of two CTAs that share the keys;
/// latent_lists_bf16_v512_qv, over rows that lists name. Grid: groups * ctas.
struct LatentTile {
  static constexpr int kThreads = 384;
  /// Of a thread at the launch, then of the consumers and of those that load.
  static constexpr int kRegisters = 168, kConsumerRegisters = 232, kLoaderRegisters = 40;
  static constexpr int kStages = 2;  ///< blocks of 64 keys, one of each consumer

  static constexpr int threads() { return kThreads; }
  static constexpr int shared_bytes(int value_dims, bool has_qv, bool has_lists = false) {
    const int of_keys = kStages * kSparseBlockKeys * (value_dims + kLatentKeyDims) * 2;
    const int of_rows = has_qv ? kLatentTileRows * value_dims * 2 : 0;
    const int of_weights = 2 * kLatentTileRows * kSparseBlockKeys * 2;
    return of_keys + of_rows + of_weights + (has_lists ? 3072 : 2048);
  }
};

}  // namespace tilewright::kernels
