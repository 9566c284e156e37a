// A warpgroup's role where rows are bf16: they go straight to their places in the tiles.
#pragma once

#include "kernels/sparse_attention/wgmma/mla_tail.h"

#include <cstdint>

namespace tilewright::tile {

template <class Base>
class SparseBoxConverter : public Base {
 public:
  using Base::Base;

 protected:
  /// Starts to copy bf16 rows to their places, eight lanes a row.
  __device__ void copy_boxes() const {
    const std::uint32_t row = threadIdx.x % 32 / 8, chunk = threadIdx.x % 8;
    const std::uint32_t to = ptx::shared_address(this->rows());
#pragma unroll
    for (int i = 0; i < Base::kShares; ++i) {
      const std::uint32_t line = row + i * Base::kRowsAtOnce;
      const std::uint8_t* const from = this->entries_.data(line) + this->half_ * 512 + chunk * 16;
#pragma unroll
      for (int box = 0; box < 4; ++box) {
        ptx::cp_async_cg_shared_global_16(
            to + box * kSparseBoxBytes + line * kBoxRowBytes + chunk_in_line(line % 8, chunk),
            from + box * 128, 16);
      }
    }
    ptx::cp_async_commit_group();
  }
};

/// Rows of 512.
template <int Ctas>
class SparseConverter<KvFormat::kBf16, Ctas>
    : SparseBoxConverter<SparseConverterBase<SparseRows512, KvFormat::kBf16, Ctas, 8>> {
  using Base = SparseBoxConverter<SparseConverterBase<SparseRows512, KvFormat::kBf16, Ctas, 8>>;

 public:
  using Base::Base;

  __device__ void run() {
    this->entries_.read();
    while (this->entries_.find()) {
      this->entries_.read();
      this->ring().wait_empty(this->at_);
      this->store_valid(this->entries_.valid);
      this->copy_boxes();
      ptx::cp_async_wait_group<0>();
      this->publish();
    }
    this->drain();
  }
};

/// Rows of 576.
template <int Ctas>
class SparseConverter<KvFormat::kBf16Mla, Ctas>
    : SparseBoxConverter<SparseTailConverter<KvFormat::kBf16Mla, Ctas>> {
  using Base = SparseBoxConverter<SparseTailConverter<KvFormat::kBf16Mla, Ctas>>;

 public:
  using Base::Base;

  __device__ void run() {
    this->entries_.read();
    while (this->entries_.find()) {
      this->entries_.prefetch(this->half_ * 512, 512 + this->half_ * 128);
      this->entries_.read();
      this->ring().wait_empty(this->at_);
      this->store_valid(this->entries_.valid);
      this->copy_boxes();
      if (this->half_ == 1) {
        this->copy_tail();
        ptx::cp_async_commit_group();
        ptx::cp_async_wait_group<1>();
      } else {
        ptx::cp_async_wait_group<0>();
      }
      this->publish();
      if (this->half_ == 1) {
        ptx::cp_async_wait_group<0>();
        this->publish_tail();
      }
    }
    this->drain();
  }
};

}  // namespace tilewright::tile
