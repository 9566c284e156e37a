// Columns 512 to 575 of rows of 576: scores alone read them. They have one stage, empty again when
// the scores of its block are there; the next block's have a softmax and the values' time to come.
#pragma once

#include "kernels/sparse_attention/wgmma/converter_base.h"
#include "ptx/cp_async.h"

#include <cstdint>

namespace tilewright::tile {

struct SparseTail {
  alignas(1024) std::uint8_t keys[kSparseBoxBytes];
  RingBarriers<1> ring;
};

/// The consumer of scores' place in it.
class SparseTailReader {
 public:
  /// s += q k^T of these columns, which come last.
  __device__ void multiply(float (&s)[32], std::uint64_t q, SparseTail& tail) const {
    const std::uint64_t k = Box<64, kBoxRowBytes>::k_major(tile_address(tail.keys));
    Ring<1>(tail.ring).wait_full(at_);
    ptx::wgmma_fence_sync_aligned();
#pragma unroll
    for (int i = 0; i < 4; ++i)
      multiply_k16<Bf16, 64, arch::Major::kK>(
          s, advance_descriptor(q, (kSparseTileBytes + i * 32) / 16), advance_descriptor(k, i * 2),
          true);
  }
  template <int Ctas>
  __device__ void release(SparseTail& tail) {
    release_keys<Ctas>(Ring<1>(tail.ring), at_);
    at_.advance();
  }

 private:
  RingPosition<1> at_;
};

struct SparseRows576 {
  static constexpr int kDims = kKvMlaDims;
  static constexpr bool kHasTail = true;
  /// Of FP8 records on their way to a warp that decodes them: half of 4 rows, and their scales.
  struct Raw {
    std::uint8_t rows[4][256];
    float scales[4][2];
  };
  using Tail = SparseTail;
  using TailReader = SparseTailReader;

  /// Starts to copy these columns of a query's heads: 16 rows of a warp, four at a time.
  static __device__ void load_q(const kernels::SparseDecodeParams& params, std::uint8_t* tile,
                                std::int32_t query, std::int32_t first_head, std::uint32_t warp) {
    const std::uint32_t chunk = threadIdx.x % 8;
    const std::uint32_t to = ptx::shared_address(tile) + kSparseTileBytes;
    const std::uint16_t* const from =
        params.q + sparse_offset(params, params.q_strides, query, first_head) + kKvDims + chunk * 8;
#pragma unroll 1
    for (int n = 0; n < 4; ++n) {
      const std::uint32_t i = warp * 16 + threadIdx.x % 32 / 8 + n * 4;
      const bool has = first_head + static_cast<std::int32_t>(i) < params.heads;
      const std::uint16_t* const row =
          has ? from + static_cast<std::int64_t>(i) * params.q_strides.head : params.q;
      ptx::cp_async_cg_shared_global_16(to + i * kBoxRowBytes + chunk_in_line(i % 8, chunk), row,
                                        has ? 16 : 0);
    }
  }
};
static_assert(sizeof(SparseShared<SparseRows576>) <=
              kernels::SparseWgmmaTile::shared_bytes(KvFormat::kFp8Mla));

/// Columns from 512 on come with those from 256 on, in eight lanes a row.
template <KvFormat Format, int Ctas>
class SparseTailConverter : public SparseConverterBase<SparseRows576, Format, Ctas, 8> {
  using Base = SparseConverterBase<SparseRows576, Format, Ctas, 8>;

 public:
  using Base::Base;

 protected:
  /// Starts to copy columns from 512 on of the rows that were found, when there is room: eight
  /// lanes a row.
  __device__ void copy_tail() const {
    Ring<1>(this->shared_.tail.ring).wait_empty(tail_at_);
    const std::uint32_t row = threadIdx.x % 32 / 8, chunk = threadIdx.x % 8;
    const std::uint32_t to = ptx::shared_address(tail_rows());
#pragma unroll
    for (int i = 0; i < Base::kShares; ++i) {
      const std::uint32_t line = row + i * Base::kRowsAtOnce;
      ptx::cp_async_cg_shared_global_16(
          to + line * kBoxRowBytes + chunk_in_line(line % 8, chunk),
          this->entries_.data(line) + kv_plain_bytes(Format) + chunk * 16, 16);
    }
  }
  __device__ void drain() {
    Base::drain();
    if (Ctas > 1 && this->half_ == 1) Ring<1>(this->shared_.tail.ring).wait_empty(tail_at_);
  }
  /// The tail is there.
  __device__ void publish_tail() {
    const std::uint32_t full = Ring<1>(this->shared_.tail.ring).full(tail_at_);
    if constexpr (Ctas == 1) {
      publish_to_products(full);
    } else {
      ptx::fence_proxy_async_shared_cta();
      __syncwarp();
      constexpr std::uint32_t kBytes = Base::kRows * kBoxRowBytes;
      if (ptx::elect_sync()) {
        ptx::mbarrier_arrive_expect_tx(full, kBytes);
        const std::uint32_t peer = ptx::cluster_ctarank() ^ 1;
        const std::uint32_t from = ptx::shared_address(tail_rows());
        ptx::cp_async_bulk_shared_cluster_shared_cta(ptx::mapa_shared_cluster(from, peer), from,
                                                     kBytes, ptx::mapa_shared_cluster(full, peer));
      }
    }
    tail_at_.advance();
  }

 private:
  __device__ std::uint8_t* tail_rows() const {
    return this->shared_.tail.keys + this->first_row_ * kBoxRowBytes;
  }

  RingPosition<1> tail_at_;
};

}  // namespace tilewright::tile
