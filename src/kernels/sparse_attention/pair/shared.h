// Shared memory of a CTA of the pair, its barriers, and the columns of Tensor Memory.
#pragma once

#include "arch/tcgen05_descriptors.h"
#include "kernels/sparse_attention/pair/half_sums.h"
#include "kernels/sparse_attention/pair/sm100_decode_pair.h"
#include "ptx/cluster.h"
#include "tile/box.h"
#include "tile/element.h"
#include "tile/ring.h"
#include "tile/tensor_memory.h"

#include <cstdint>
#include <type_traits>

namespace tilewright::tile {

inline constexpr int kPairStages = kernels::SparsePairTile::kStages;
inline constexpr int kPairRowWarps = kernels::SparsePairTile::kRowWarps;
inline constexpr int kPairKeyWarps = kernels::SparsePairTile::kKeyWarps;
inline constexpr int kPairHalfDims = kKvDims / 2;  ///< of every key, in each CTA
inline constexpr int kPairBoxBytes = kernels::kSparseBlockKeys * kBoxRowBytes;
inline constexpr int kPairBoxes = kPairHalfDims / kBoxColumns;
inline constexpr int kPairTailRowBytes = (kKvMlaDims - kKvDims) / 2 * 2;  ///< of a CTA, bf16
using PairAt = RingPosition<kPairStages>;

inline constexpr int kPairColumns = 512, kPairResults = 256;  ///< of Tensor Memory

/// What rows are: 512 numbers, or 576 of which the first 512 are the value. Of the 64 behind them,
/// the tail, each CTA has half.
///
/// Columns of Tensor Memory: two tiles of scores, of which a half becomes weights, the queries,
/// results. Lanes 0 to 63 are the rows of the CTA: with sums over the first half of the dimensions,
/// and those of queries and results. Lanes 64 to 127 are the same rows with the others.
///
///   512   scores 0..63, 64..127; weights in the first halves; queries 128..255; results 256..511
///   576   scores 0..63, 48..111; weights 0..31, 80..111; queries 112..255; results 256..511
///
/// Queries of 576 numbers take 16 columns that scores of 512 had. So tiles of scores overlap: the
/// next block's are begun when this one's are in registers, and neither meets the other's weights.
///
/// Values of 256 are those of 512 whose other half is zeros: the second CTA's keys, which it does
/// not read. Without wide queries the tail alone makes scores.
template <int Dims, class ElementType = Bf16, int ValueDims = kKvDims, bool HasWideQueries = true>
struct PairForm {
  using Element = ElementType;
  static constexpr int kValueDims = ValueDims;
  static constexpr bool kHasWideQueries = HasWideQueries;
  static constexpr arch::MmaF16Type kType =
      std::is_same_v<Element, Bf16> ? arch::MmaF16Type::kBf16 : arch::MmaF16Type::kF16;
  static constexpr int kDims = Dims;
  static constexpr bool kHasTail = Dims > kKvDims;
  static constexpr int kTailDims = (Dims - kKvDims) / 2;
  static constexpr int kTailBytes = kernels::kSparseBlockKeys * kTailDims * 2;
  static constexpr int kQueries = kPairResults - (kPairHalfDims + kTailDims) / 2;
  /// From the scores of an even block to those of an odd one, and from weights to weights.
  static constexpr int kScores = kQueries - kernels::kSparseBlockKeys;
  static constexpr int kWeights = kHasTail ? kQueries - kernels::kSparseBlockKeys / 2 : kScores;
  static_assert(kHasTail ? kWeights >= kernels::kSparseBlockKeys : kScores == kWeights);
  static_assert(kValueDims == kKvDims || kValueDims == kPairHalfDims);
  static_assert(kHasTail || kHasWideQueries);
  /// Whether a half of the 512 numbers is there, or zeros.
  static __device__ constexpr bool has_half(std::uint32_t half) {
    return kValueDims == kKvDims || half == 0;
  }
};

/// Half of the columns from 512 on, of 64 keys: lines of 64 bytes.
template <class Form, bool HasTail = Form::kHasTail>
struct PairTails {
  std::uint8_t tails[kPairStages][Form::kTailBytes];
  std::uint64_t s_read;  ///< of the first CTA: all warps with rows of both have the scores

  __device__ void initialise() {
    ptx::mbarrier_init(ptx::shared_address(&s_read), 2 * kPairRowWarps);
  }
};
template <class Form>
struct PairTails<Form, false> {
  __device__ void initialise() {}
};

template <class Form>
struct SparsePairShared {
  std::uint8_t keys[kPairStages][kPairBoxes][kPairBoxBytes];  ///< lines of 64 dimensions, swizzled
  [[no_unique_address]] PairTails<Form> tail;                 ///< behind keys: aligned as they are
  /// From each warp of rows to the one with the other half: sums of the keys that are that one's
  /// (half_sums.h); weights; maxima and sums.
  PairHalfSums sums[kPairRowWarps];
  uint4 weights[kPairRowWarps][4][32];
  float numbers[kPairRowWarps][2][32];
  std::uint64_t k_full[kPairStages];  ///< of the first CTA: all warps with keys of both
  std::uint64_t k_free[kPairStages];  ///< in both, by commit: their values are in the results
  std::uint64_t s_full[2];            ///< in both, by commit
  std::uint64_t p_ready[2];           ///< of the first CTA: all warps with rows of both
  std::uint64_t q_ready;              ///< likewise
  std::uint32_t tensor_memory;

  __device__ void initialise() {
    const auto init = [](std::uint64_t& barrier, std::uint32_t count) {
      ptx::mbarrier_init(ptx::shared_address(&barrier), count);
    };
    for (int i = 0; i < kPairStages; ++i) {
      init(k_full[i], 2 * kPairKeyWarps);
      init(k_free[i], 1);
    }
    for (int i = 0; i < 2; ++i) {
      init(s_full[i], 1);
      init(p_ready[i], 2 * kPairRowWarps);
    }
    init(q_ready, 2 * kPairRowWarps);
    tail.initialise();
  }
};
static_assert(sizeof(SparsePairShared<PairForm<kKvDims>>) <=
              kernels::SparsePairTile::shared_bytes(kKvDims));
static_assert(sizeof(SparsePairShared<PairForm<kKvMlaDims>>) <=
              kernels::SparsePairTile::shared_bytes(kKvMlaDims));

/// All lanes of a warp: arrives at a barrier of the CTA that multiplies.
__device__ inline void arrive_at_leader(std::uint64_t& barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0)
    ptx::mbarrier_arrive_cluster(ptx::mapa_shared_cluster(ptx::shared_address(&barrier), 0));
}

/// The values of step `step` are in the results; waits for that.
template <class Form>
__device__ void wait_for_values(SparsePairShared<Form>& shared, std::int32_t step) {
  wait_for_pair(ptx::shared_address(&shared.k_free[step % kPairStages]), step / kPairStages & 1);
}

}  // namespace tilewright::tile
