// What the warps of the indexer's logits on Blackwell share: memory, barriers, parts of units.
#pragma once

#include "arch/smem_descriptor.h"
#include "kernels/sparse_attention/indexer/sm100/sm100_indexer_logits.h"
#include "kernels/sparse_attention/indexer/units.h"
#include "ptx/address.h"
#include "ptx/mbarrier.h"
#include "tile/box.h"
#include "tile/deep_position.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kTensorSummingWarps = 8;
inline constexpr std::uint32_t kTensorMultiplyingWarp = 8, kTensorKeyWarp = 9,
                               kTensorQueryWarp = 11;
inline constexpr int kTensorKeyWarps = 2;
/// A warpgroup that adds up holds 128 weights; the others hand it their registers.
inline constexpr int kTensorServingRegisters = 72, kTensorSummingRegisters = 216;

/// What depends on the format: the scales of MXFP4 leave room for three accumulators.
template <IndexFormat Format>
struct TensorIndexerTraits {
  static constexpr bool kIsFp8 = Format == IndexFormat::kFp8;
  static constexpr int kRowBytes = index_data_bytes(Format);
  static constexpr int kTileBytes = kernels::tensor_indexer_tile_bytes(Format);
  static constexpr int kProducts = kRowBytes / 32;  ///< instructions over the dims
  static constexpr int kAccumulators = kIsFp8 ? 4 : 3;
  static constexpr int kColumns = 128;                        ///< of an accumulator
  static constexpr int kProductColumns = kIsFp8 ? 256 : 128;  ///< of a product: one or two
  /// Every other accumulator is the same warpgroup's, and so is every other barrier that says that
  /// one is full: nobody skips a phase.
  static constexpr int kFullBarriers = kAccumulators % 2 == 0 ? kAccumulators : 2 * kAccumulators;
  /// Behind them, MXFP4: scales of two parts' queries, and of each stage of keys.
  static constexpr std::uint32_t kQueryScales = 384, kKeyScales = 400, kScaleColumns = 4;
  static constexpr arch::SmemSwizzle kSwizzle = arch::swizzle_of_span(kRowBytes);
  using Operand = Box<128, kRowBytes, kSwizzle>;
};

/// The scale of an e4m3 key that is not there; others are >= 0 or NaN.
inline constexpr float kNoKey = -1;

/// Place of the scales of row i of 128 in an atom of scales (formats/scale_layout.h).
constexpr int scale_place(int row) {
  return row % 32 * 16 + row / 32 * 4;
}

/// Before the tiles and the queries.
struct TensorIndexerShared {
  static constexpr int kStages = kernels::kTensorIndexerMaxStages,
                       kKeys = kernels::kTensorIndexerKeys;
  static constexpr int kColumns = kernels::kTensorIndexerColumns;

  float weights[2][kColumns];                            ///< zeros where there is no head
  std::uint32_t query_scales[2][kColumns];               ///< MXFP4: two atoms each
  std::uint32_t key_scales[kStages][kKeys];              ///< of e4m3 in order, of MXFP4 an atom
  std::uint8_t is_key[kStages][kKeys];                   ///< MXFP4
  std::int32_t lengths[2][kernels::kIndexerUnitTokens];  ///< of tokens, or ends of their ranges
  RingBarriers<kStages> keys;
  RingBarriers<2> queries;
  RingBarriers<6> accumulators;
  std::uint64_t done;
  std::uint32_t tmem;
  std::int32_t begins[2][kernels::kIndexerUnitTokens];  ///< of ranges

  /// Filled: by the bytes of copies, and a warp that vouches for the rest. Free: when products are
  /// done, and the warps that add up have what they need; of an accumulator that is a warpgroup.
  __device__ void initialise() {
    keys.initialise(1 + kTensorSummingWarps);
    queries.initialise(1 + kTensorSummingWarps, 2);
    accumulators.initialise(kTensorSummingWarps / 2);
    ptx::mbarrier_init(ptx::shared_address(&done), 1);
  }
};
static_assert(sizeof(TensorIndexerShared) <= kernels::TensorIndexerMemory::kSmallBytes);

/// Tokens of a unit that are multiplied at a time.
struct TensorIndexerPart {
  kernels::IndexerUnit unit;
  std::int32_t columns;

  __device__ std::int32_t runs() const { return columns / 64; }
  /// An accumulator has all columns, so that the two warpgroups that add up take tiles in turn.
  __device__ bool is_in_turn() const { return runs() <= 2; }
};

/// Further by `step` <= stages.
__device__ inline void advance(DeepPosition& at, std::uint32_t step, std::uint32_t stages) {
  at.stage += step;
  if (at.stage >= stages) {
    at.stage -= stages;
    at.parity ^= 1;
  }
}

/// Calls work(part, begin, end) for every part of this CTA's units, with its chunks of keys. Keys
/// of a unit of several parts come again for each, from the L2 cache.
template <class Params, class Work>
__device__ void for_each_part(const Params& params, Work&& work) {
  const std::int32_t most = params.columns / params.head_slots;
  for_each_unit(
      params.logits, [&](const kernels::IndexerUnit& unit, std::int32_t begin, std::int32_t end) {
        for (std::int32_t first = 0; first < unit.count; first += most) {
          TensorIndexerPart part = {unit, 0};
          part.unit.token += first;
          part.unit.count = min(unit.count - first, most);
          part.columns = kernels::tensor_indexer_columns(part.unit.count, params.head_slots);
          work(part, begin, end);
        }
      });
}

/// Where a role stands in the rings of a CTA.
template <IndexFormat Format>
struct TensorIndexerRings {
  using Traits = TensorIndexerTraits<Format>;

  std::uint32_t tiles, codes;  ///< shared addresses
  TensorIndexerShared& shared;
  std::uint32_t stages;

  __device__ std::uint32_t tile(std::uint32_t stage) const {
    return tiles + stage * Traits::kTileBytes;
  }
  __device__ std::uint32_t queries(std::uint32_t buffer, std::int32_t columns) const {
    return codes + buffer * static_cast<std::uint32_t>(columns * Traits::kRowBytes);
  }
  __device__ std::uint32_t full(std::uint32_t stage) const {
    return ptx::shared_address(&shared.keys.full[stage]);
  }
  __device__ std::uint32_t empty(std::uint32_t stage) const {
    return ptx::shared_address(&shared.keys.empty[stage]);
  }
};

}  // namespace tilewright::tile
