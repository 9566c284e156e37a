// What the converters of the sparse attention kernel have in common: a warp's rows of every block,
// and how they are handed to the products.
#pragma once

#include "kernels/sparse_attention/wgmma/shared.h"
#include "kernels/sparse_attention/wgmma/warp_rows.h"
#include "ptx/cp_async.h"
#include "ptx/warp_roles.h"
#include "tile/box.h"

#include <cstdint>

namespace tilewright::tile {

/// What converters of all formats do: a warp has half of the columns of 16 rows of every block, or
/// of 8 if two CTAs share the block. Then each CTA decodes half of the rows, and copies what it
/// wrote to the other. Warps of both halves run the same code: what all roles run for a block is
/// then within the 32 KB of instructions that an SM has at hand. More come at half the speed.
template <class CacheRows, KvFormat Format, int Ctas, int LanesOfRow>
class SparseConverterBase {
 public:
  static constexpr int kRows = 16 / Ctas;
  /// A share: the rows that a warp copies at once, LanesOfRow lanes each.
  static constexpr int kRowsAtOnce = 32 / LanesOfRow, kShares = kRows / kRowsAtOnce;
  using Shared = SparseShared<CacheRows>;

  __device__ SparseConverterBase(const kernels::SparseDecodeParams& params, Shared& shared,
                                 std::int32_t group, std::uint32_t first_row, int half)
      : shared_(shared), first_row_(first_row), entries_(params, group, first_row), half_(half) {}

 protected:
  __device__ Ring<kSparseStages> ring() const { return Ring<kSparseStages>(shared_.k_ring[half_]); }
  /// Of the block at hand: this warp's part, in four boxes.
  __device__ std::uint8_t* rows() const {
    return shared_.k[at_.stage] + half_ * kSparseHalfBytes + first_row_ * kBoxRowBytes;
  }
  /// Which of them are rows; before columns from 256 on are published.
  __device__ void store_valid(std::uint32_t valid) const {
    const std::uint32_t lane = threadIdx.x % 32;
    if (half_ == 1 && lane < kRows / 8)
      shared_.valid[at_.stage][first_row_ / 8 + lane].x = valid >> 8 * lane & 0xff;
  }
  /// The part is written.
  __device__ void publish() {
    const std::uint32_t full = ring().full(at_);
    if constexpr (Ctas == 1) {
      publish_to_products(full);
    } else {
      copy_to_peer(full);
    }
    at_.advance();
  }

  /// Behind the last block: nobody reads or arrives here any more, and the CTA may end before the
  /// other of its cluster. (A barrier of the cluster would wait for results on their way, too.)
  __device__ void drain() {
    if constexpr (Ctas > 1) {
#pragma unroll
      for (int i = 0; i < kSparseStages; ++i, at_.advance()) ring().wait_empty(at_);
    }
  }

  Shared& shared_;
  std::uint32_t first_row_;
  SparseWarpRows<Format, kRows> entries_;
  int half_;  ///< of the columns
  SparseAt at_;

 private:
  /// Each warp of the other CTA copies as many bytes to here as this one copies to there.
  __device__ void copy_to_peer(std::uint32_t full) const {
    constexpr std::uint32_t kBoxes = 4, kBytes = kRows * kBoxRowBytes;
    const std::uint32_t valid_bytes = half_ == 1 ? sizeof(uint4) : 0;
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    // One lane copies: copies of several lanes leave one by one, by a loop over lanes that takes
    // three round trips to uniform registers for each.
    if (!ptx::elect_sync()) return;
    ptx::mbarrier_arrive_expect_tx(full, kBoxes * kBytes + valid_bytes);
    const std::uint32_t peer = ptx::cluster_ctarank() ^ 1;
    const std::uint32_t peer_full = ptx::mapa_shared_cluster(full, peer);
    const std::uint32_t from = ptx::shared_address(rows());
    const std::uint32_t to = ptx::mapa_shared_cluster(from, peer);
#pragma unroll
    for (std::uint32_t box = 0; box < kBoxes; ++box)
      ptx::cp_async_bulk_shared_cluster_shared_cta(to + box * kSparseBoxBytes,
                                                   from + box * kSparseBoxBytes, kBytes, peer_full);
    if (valid_bytes > 0) {
      const std::uint32_t valid = ptx::shared_address(&shared_.valid[at_.stage][first_row_ / 8]);
      ptx::cp_async_bulk_shared_cluster_shared_cta(ptx::mapa_shared_cluster(valid, peer), valid,
                                                   valid_bytes, peer_full);
    }
  }
};

/// A warp's role: run() goes through the blocks of a group.
template <KvFormat Format, int Ctas>
class SparseConverter;

/// Warp `warp` of the converters.
template <KvFormat Format, int Ctas, class Shared>
__device__ void convert_sparse_rows(const kernels::SparseDecodeParams& params, Shared& shared,
                                    std::int32_t group, std::uint32_t warp) {
  constexpr std::uint32_t kWarps = kSparseConverters / 2;
  std::uint32_t first_row = warp % kWarps * (64 / kWarps / Ctas);
  if (Ctas == 2) first_row += ptx::cluster_ctarank() * 32;
  SparseConverter<Format, Ctas>(params, shared, group, first_row, warp < kWarps ? 0 : 1).run();
}

}  // namespace tilewright::tile
