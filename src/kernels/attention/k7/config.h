// What a variant of K7 means for the roles of its kernel, and the shared memory between them.
#pragma once

#include "kernels/attention/k7/k7_variant.h"
#include "kernels/attention/mask.h"
#include "tile/dealt_tiles.h"

#include <cstdint>

namespace tilewright::tile {

template <kernels::K7Variant Variant>
struct Fp8AttentionConfig {
  static constexpr kernels::K7Variant kVariant = Variant;
  static constexpr kernels::AttentionTile kTile = kVariant.tile();
  static constexpr int kHeadDim = kVariant.head_dim, kKeys = kVariant.keys;
  static constexpr int kConsumers = kVariant.consumers, kStages = kVariant.kv_stages;
  static constexpr int kQStages = kVariant.q_stages();
  static constexpr int kBox = kVariant.box_columns(), kValueBox = kVariant.value_box();
  static constexpr bool kIsRows = kVariant.values == kernels::Fp8Values::kRows;
  static constexpr bool kHasBlockScales = kVariant.has_block_scales;
  static constexpr bool kIsTwoLevel = kVariant.sums == kernels::Fp8Sums::kTwoLevel;
  static constexpr int kQBytes = 64 * kHeadDim, kKvBytes = kKeys * kHeadDim;
  static constexpr int kTransposers = 3;  ///< warps
  // All registers of an SM are dealt out at the launch, and dealt again by role.
  static constexpr bool kIsWide =
      (kHeadDim == 256 && kKeys > 96) || (kHeadDim == 128 && kIsTwoLevel);
  static constexpr int kProducerRegisters = kConsumers == 3 ? 32 : kIsWide ? 24 : 40;
  static constexpr int kConsumerRegisters = kConsumers == 3 ? 160 : kIsWide ? 240 : 232;
  static constexpr bool kHasPages = false;
  using Params = kernels::AttentionFp8Params;
  using Tiles = KeyTiles<kKeys>;

  /// Times 32 keys that a transposing warp has in registers.
  static constexpr int kTransposedAtOnce = kProducerRegisters > 24 && kKeys % 64 == 0 ? 2 : 1;
  /// Parts of a tile of keys that share scales.
  static constexpr int kParts =
      kHasBlockScales && kernels::kKeyScaleBlock % kKeys != 0 ? kKeys / 32 : 1;

  /// The tiles of keys that a tile of queries needs.
  static __device__ Tiles key_tiles(const kernels::AttentionParams& params, const DealtTile& tile) {
    return {params, tile.kv_len, tile.kv_len - tile.q_len, tile.first_query,
            min(tile.first_query + kTile.queries, tile.q_len) - 1};
  }
};

/// Scales of a tile of keys and of its values, these as logarithms of their share of the reference.
template <int Parts>
struct KeyTileScales {
  float k[Parts], v_log2[Parts];
};
/// Scales of a tile of queries: of scores per warpgroup (without those of keys, if these are per
/// block), and of results.
struct QueryTileScales {
  float scores[3], results;
};

template <class C>
struct Fp8AttentionShared {
  std::uint8_t q[C::kQStages][C::kConsumers][C::kQBytes];
  std::uint8_t k[C::kStages][C::kKvBytes];
  std::uint8_t v[C::kStages][C::kKvBytes];  ///< a key a column
  std::uint8_t rows[C::kIsRows ? C::kStages : 1][C::kIsRows ? C::kKvBytes : 16];
  RingBarriers<C::kQStages> q_ring[C::kConsumers];
  RingBarriers<C::kStages> k_ring, v_ring, rows_ring;
  TileTable table;
  QueryTileScales tile_scales[kDealtTiles];
  KeyTileScales<C::kParts> key_scales[C::kStages];  ///< of k's stages
  float zero;                                       ///< see pass_turn_here

  /// One thread. A warp of a consumer releases a stage with one arrival; others fill stages.
  __device__ void initialise(std::uint32_t key_arrivals = 1, std::uint32_t row_arrivals = 1) {
    constexpr int kWarps = 4 * C::kConsumers, kTransposers = C::kIsRows ? C::kTransposers : 0;
    for (auto& ring : q_ring) ring.initialise(4);
    k_ring.initialise(kWarps, key_arrivals);
    v_ring.initialise(kWarps, C::kIsRows ? kTransposers : 1);
    rows_ring.initialise(C::kTransposers, row_arrivals);
    table.ring.initialise(kWarps + kTransposers);
    zero = 0.0f;
  }
};

__device__ inline float find_scale(const kernels::Fp8Scales& scales, std::int32_t batch,
                                   std::int32_t head, std::int32_t block) {
  return scales.values[batch * scales.batch_stride + head * scales.head_stride +
                       static_cast<std::int64_t>(block) * scales.block_stride];
}

}  // namespace tilewright::tile
