// Sparse decode with warpgroup MMAs, for 64 and 128 heads: see the .cu.
#pragma once

#include "kernels/sparse_attention/decode.h"
#include "kernels/sparse_attention/sparse_merge.h"

namespace tilewright::kernels {

/// Entries sparse_decode_wgmma_fp8, _nvfp4 and _bf16. Any number of heads: a CTA does 64 of them,
/// so that a group of the contract is ceil(heads / 64) CTAs side by side (grid = groups * that);
/// one group per SM, or as many CTAs, is intended. Entries sparse_decode_wgmma_pair_*, for 65 to
/// 128 heads, require the two CTAs of a group to be a cluster. Likewise _fp8_mla and _bf16_mla, for
/// rows of 576.
struct SparseWgmmaTile {
  static constexpr int kHeads = 64;
  static constexpr int kStages = 2;  ///< blocks of 64 keys as bf16 in shared memory

  static constexpr int kThreads = 512;
  static constexpr int threads() { return kThreads; }
  /// Of a thread at the launch, and of those of each role then.
  static constexpr int kRegisters = 128, kScoreRegisters = 208, kValueRegisters = 160,
                       kConverterRegisters = 72;
  static constexpr int kConverterWarps = 8;

  /// Queries, keys, weights, rows to be decoded; then factors and barriers. Of rows of 576 the last
  /// 64 columns of keys, aligned to 1024 bytes, have one stage.
  static constexpr int shared_bytes(KvFormat format) {
    constexpr int kValues = kStages * 64 * kKvDims * 2 + 64 * 64 * 2;
    if (kv_is_mla(format))
      return kValues + 64 * kKvMlaDims * 2 + 8 * 4 * (256 + 8) + 64 * 64 * 2 + 2048;
    return kValues + 64 * kKvDims * 2 + 8 * 8 * (320 + 16) + 1024;
  }
  static constexpr int ctas_of_group(int heads) { return (heads + kHeads - 1) / kHeads; }
};

/// With counters, parts of a query are merged by the CTAs that computed them, which wait for each
/// other: all must be resident, as those of a cooperative launch are. Both null: by sparse_combine.
struct SparseWgmmaParams {
  SparseDecodeParams decode;
  const SparseMerge* merge_of_slot;  ///< [sparse_partial_slots(groups)], of the schedule
  std::uint64_t* counters;           ///< [groups, kSparseCountersOfGroup], zeros by the schedule
};

}  // namespace tilewright::kernels
