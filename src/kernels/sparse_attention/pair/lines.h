// Where keys go: lines of the stages of a CTA of the pair.
#pragma once

#include "kernels/sparse_attention/pair/shared.h"

#include <cstdint>

namespace tilewright::tile {

/// Where the 8 keys go that a warp has of every block, and their barriers.
template <class Form>
class PairLines {
 public:
  __device__ PairLines(SparsePairShared<Form>& shared, std::uint32_t warp)
      : shared_(shared), first_(warp * 8) {}

  __device__ void wait_free(const PairAt& at) const {
    ptx::mbarrier_wait_parity_cluster(ptx::shared_address(&shared_.k_free[at.stage]),
                                      at.parity ^ 1);
  }
  /// The warp's lines of the first box.
  __device__ std::uint8_t* of_box(const PairAt& at) const {
    return shared_.keys[at.stage][0] + first_ * kBoxRowBytes;
  }
  /// Where chunk `chunk` of the tail of a line of the warp's is.
  __device__ std::uint8_t* tail(const PairAt& at, std::uint32_t line, std::uint32_t chunk) const {
    return shared_.tail.tails[at.stage] + (first_ + line) * kPairTailRowBytes +
           ((chunk ^ (line / 2 & 3)) << 4);
  }
  __device__ void publish(const PairAt& at) const {
    ptx::fence_proxy_async_shared_cta();
    arrive_at_leader(shared_.k_full[at.stage]);
  }

 private:
  SparsePairShared<Form>& shared_;
  std::uint32_t first_;
};

}  // namespace tilewright::tile
