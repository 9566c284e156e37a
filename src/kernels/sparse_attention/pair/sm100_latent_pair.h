// Attention over all keys by pairs of CTAs on Blackwell, see the .cu.
#pragma once

#include "kernels/sparse_attention/latent/latent.h"
#include "kernels/sparse_attention/pair/sm100_decode_pair.h"

namespace tilewright::kernels {

/// Entries latent_tensor_pair_TYPE_vDIMS_qv, of bf16 or f16 and values of 512 or 256 that make
/// scores beside keys of 64, and latent_tensor_pair_TYPE_vDIMS, whose keys alone do. LatentParams,
/// of which ctas is 2 and the maps and box_rows are not read. A group is a cluster of two CTAs with
/// half of the rows of a tile each; grid: 2 * groups.
struct LatentPairTile {
  static constexpr int kCtas = 2;  ///< of a tile
  static constexpr int kThreads = SparsePairTile::kThreads;

  static constexpr int shared_bytes() { return SparsePairTile::shared_bytes(kKvMlaDims); }
};

}  // namespace tilewright::kernels
