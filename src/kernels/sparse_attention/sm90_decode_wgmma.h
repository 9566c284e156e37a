// Sparse decode with warpgroup MMAs, for 64 and 128 heads: see the .cu.
#pragma once

#include "kernels/sparse_attention/decode.h"

namespace tilewright::kernels {

/// Entries sparse_decode_wgmma_NAME. Any number of heads: a CTA does 64 of them, so that a group of
/// the contract is ceil(heads / 64) CTAs side by side (grid = groups * that); one group per
/// multiprocessor, or as many CTAs, is meant.
struct SparseWgmmaTile {
  static constexpr int kHeads = 64;
  static constexpr int kStages = 2;  ///< blocks of 64 keys as bf16 in shared memory

  int converters;  ///< warpgroups that load rows and turn them into bf16: 1 or 2

  constexpr int threads() const { return (2 + converters) * 128; }
  /// Registers of a thread at the launch, and of those of each role then.
  constexpr int registers() const { return converters == 1 ? 168 : 128; }
  static constexpr int kScoreRegisters = 208, kValueRegisters = 160;
  constexpr int converter_registers() const { return converters == 1 ? 136 : 72; }
  /// Queries, keys, two tiles of weights; then factors and barriers.
  static constexpr int shared_bytes() {
    return (1 + kStages) * 64 * kKvDims * 2 + 2 * 64 * 64 * 2 + 1024;
  }
  static constexpr int ctas_of_group(int heads) { return (heads + kHeads - 1) / kHeads; }
};

struct SparseWgmmaVariant {
  const char* name;
  KvFormat format;
  SparseWgmmaTile tile;
};

inline constexpr SparseWgmmaVariant kSparseWgmmaVariants[] = {
    {"fp8", KvFormat::kFp8, {1}},
};

}  // namespace tilewright::kernels
