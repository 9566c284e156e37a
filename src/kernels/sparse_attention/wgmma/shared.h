// Shared memory of the sparse attention kernel with warpgroup MMAs, and its barriers.
#pragma once

#include "kernels/sparse_attention/wgmma/sm90_decode_wgmma.h"
#include "ptx/address.h"
#include "ptx/bulk_copy.h"
#include "ptx/cluster.h"
#include "ptx/fence.h"
#include "ptx/mbarrier.h"
#include "tile/ring.h"
#include "tile/warpgroup_mma.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kSparseStages = kernels::SparseWgmmaTile::kStages;
inline constexpr int kSparseTileBytes = 64 * kKvDims * 2;  ///< 64 values: 8 boxes of 64 columns
inline constexpr int kSparseHalfBytes = kSparseTileBytes / 2;
inline constexpr int kSparseBoxBytes = 64 * kBoxRowBytes;

using SparseAt = RingPosition<kSparseStages>;

/// Rows as they lie in the cache, on their way to a warp that decodes them: half of 8 rows.
struct SparseRaw {
  static constexpr int kPitch =
      320;  ///< lanes of an even row and of the odd one read from all banks
  std::uint8_t rows[8][kPitch];
  std::uint8_t scales[8][16];
};
inline constexpr int kSparseConverters = kernels::SparseWgmmaTile::kConverterWarps;

/// In what kernels differ by their rows. Those of 576 (mla_tail.h) have columns behind the values.
struct SparseRows512 {
  static constexpr int kDims = kKvDims;
  static constexpr bool kHasTail = false;
  using Raw = SparseRaw;
  struct Tail {};
  struct TailReader {};
};

template <class Rows>
struct SparseShared {
  std::uint8_t q[64 * Rows::kDims * 2];
  std::uint8_t k[kSparseStages][kSparseTileBytes];
  /// Weights of 64 heads and 64 keys; behind the last block results on their way out, 1 KB of each
  /// warp of consumers: warps i of both have those lines that warp i of the scores writes.
  std::uint8_t p[kSparseBoxBytes];
  typename Rows::Raw raw[kSparseConverters];
  float factors[64];  ///< what the results of each head so far are to be multiplied with
  /// Bit i % 8 of word i / 8: key i is one. A word in 16 bytes, which is what can be copied.
  uint4 valid[kSparseStages][8];
  std::uint32_t parts[2];  ///< what SparseParts of each consumer has seen
  std::uint64_t q_full;
  /// Of the columns below and from 256: the scores need both, and each consumer releases one.
  RingBarriers<kSparseStages> k_ring[2];
  RingBarriers<1> p_ring;  ///< p and factors
  typename Rows::Tail tail;

  /// One thread, in each of the CTAs that share the decoding of keys. Half of the converters' warps
  /// have a part of each half of the keys.
  __device__ void initialise(std::uint32_t ctas) {
    parts[0] = parts[1] = 0;
    ptx::mbarrier_init(ptx::shared_address(&q_full), 4);
    for (auto& ring : k_ring) initialise_ring(ring, kSparseConverters / 2, 4 * ctas);
    initialise_ring(p_ring, 4, 4);
    if constexpr (Rows::kHasTail) initialise_ring(tail.ring, kSparseConverters / 2, 4 * ctas);
  }

 private:
  template <int Stages>
  static __device__ void initialise_ring(RingBarriers<Stages>& ring, std::uint32_t full,
                                         std::uint32_t empty) {
    for (int i = 0; i < Stages; ++i) {
      ptx::mbarrier_init(ptx::shared_address(&ring.full[i]), full);
      ptx::mbarrier_init(ptx::shared_address(&ring.empty[i]), empty);
    }
  }
};
static_assert(sizeof(SparseShared<SparseRows512>) <=
              kernels::SparseWgmmaTile::shared_bytes(KvFormat::kFp8));

/// Every lane of a warp: what it wrote to shared memory, a product may read after this.
__device__ inline void publish_to_products(std::uint32_t barrier) {
  ptx::fence_proxy_async_shared_cta();
  __syncwarp();
  if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(barrier);
}

/// Where a tile is, for a product's descriptor: in a cluster the address of shared memory has the
/// CTA's rank above, where a descriptor has its other fields.
__device__ inline std::uint32_t tile_address(const std::uint8_t* tile) {
  return ptx::shared_address(tile) & 0x3ffffu;
}

/// A consumer's warp reads a part of the keys no more: all CTAs that write it are told.
template <int Ctas, int Stages>
__device__ void release_keys(const Ring<Stages>& ring, const RingPosition<Stages>& at) {
  if constexpr (Ctas == 1) {
    ring.release(at);
  } else {
    __syncwarp();
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane < Ctas) ptx::mbarrier_arrive_remote(ptx::mapa_shared_cluster(ring.empty(at), lane));
  }
}

}  // namespace tilewright::tile
