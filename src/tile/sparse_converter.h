// Loads the rows that a query's lists name, and writes them as tiles of bf16: a warpgroup's role in
// the sparse attention kernel.
#pragma once

#include "ptx/cp_async.h"
#include "tile/sparse_entries.h"
#include "tile/sparse_rows.h"
#include "tile/sparse_shared.h"

#include <cstdint>

namespace tilewright::tile {

/// What converters of all formats do: `Rows` rows of every block.
template <KvFormat Format, int Rows, int LanesOfRow>
class SparseConverterBase {
 public:
  using Entries = SparseEntries<Format, Rows, LanesOfRow>;

  __device__ SparseConverterBase(const kernels::SparseDecodeParams& params, SparseShared& shared,
                                 std::int32_t group, std::uint32_t first_row)
      : shared_(shared), first_row_(first_row), entries_(params, group, first_row) {}

 protected:
  __device__ Ring<kSparseStages> ring(int half) const {
    return Ring<kSparseStages>(shared_.k_ring[half]);
  }
  /// Of the block at hand: these rows.
  __device__ std::uint8_t* rows() const { return shared_.k[at_.stage] + first_row_ * kBoxRowBytes; }
  /// Which of them are rows; before columns from 256 on are published.
  __device__ void store_valid(std::uint32_t valid) const {
    if (threadIdx.x % 32 != 0) return;
    std::uint16_t* const to = &shared_.valid[at_.stage][first_row_ / 16];
    to[0] = static_cast<std::uint16_t>(valid);
    if (Rows == 32) to[1] = static_cast<std::uint16_t>(valid >> 16);
  }

  SparseShared& shared_;
  std::uint32_t first_row_;
  Entries entries_;
  SparseAt at_;
};

/// 8- and 4-bit rows, 32 of them, half of the columns. They are loaded to registers while the block
/// before is with the consumers, all at one point of the loop: ptxas has one scoreboard for all
/// loads that are on their way from one round to the next, so that whoever needs the oldest waits
/// for the youngest. That is why a warp has one half of the columns, not both halves of half the
/// rows. The rotated numbers of eight rows are the first half's warps' to load, so that all need as
/// many registers.
template <KvFormat Format, int Half>
class SparseHalfConverter : SparseConverterBase<Format, 32, 4> {
  using Base = SparseConverterBase<Format, 32, 4>;
  static constexpr int kShares = Base::Entries::kShares;
  static constexpr int kFirstRope = Half == 1 ? 0 : 3, kRopes = Half == 1 ? 3 : 1;

 public:
  using Base::Base;

  __device__ void run() {
    this->entries_.read();
    bool has_rows = load();
    while (has_rows) {
      bool may_be_large = false;
#pragma unroll
      for (const auto& share : shares_) may_be_large |= share.has_large();
      may_be_large = __any_sync(0xffffffffu, may_be_large);
      this->ring(1).wait_empty(this->at_);
      store_ropes();
      if (Half == 1) {
        this->store_valid(valid_);
      } else {
        publish_to_products(this->ring(1).full(this->at_));
        this->ring(0).wait_empty(this->at_);
      }
      if (may_be_large) {
        convert<true>();
      } else {
        convert<false>();
      }
      publish_to_products(this->ring(Half).full(this->at_));
      this->at_.advance();
      has_rows = load();
    }
  }

 private:
  /// Starts to load the next block's rows, and the entries of the one after it.
  __device__ bool load() {
    if (!this->entries_.find()) return false;
    valid_ = this->entries_.valid;
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      shares_[i].load(this->entries_.sources[i], lane_);
    }
#pragma unroll
    for (int i = 0; i < kRopes; ++i)
      ropes_[i].template load<Format>(this->entries_.sources[kFirstRope + i], lane_);
    this->entries_.read();
    return true;
  }

  template <bool MayBeLarge>
  __device__ void convert() const {
    std::uint8_t* const rows = this->rows() + Half * kSparseHalfBytes;
#pragma unroll
    for (int box = 0; box < 4 - Half; ++box) {
#pragma unroll
      for (int i = 0; i < kShares; ++i) {
        SparseChunks chunks;
        shares_[i].template decode<MayBeLarge>(chunks, lane_, box);
        store(rows + box * kSparseBoxBytes + i * 8 * kBoxRowBytes, lane_.plain_offset(), 16,
              chunks);
        // Keeps ptxas from mixing more chunks than there are registers for.
        if (MayBeLarge || Format == KvFormat::kNvfp4) __syncwarp();
      }
    }
  }
  __device__ void store_ropes() const {
    std::uint8_t* const rows = this->rows() + 7 * kSparseBoxBytes;
#pragma unroll
    for (int i = 0; i < kRopes; ++i)
      store(rows + (kFirstRope + i) * 8 * kBoxRowBytes, lane_.rope_offset(), 64, ropes_[i].chunks);
  }
  static __device__ void store(std::uint8_t* to, std::uint32_t offset, std::uint32_t other,
                               const SparseChunks& chunks) {
    *reinterpret_cast<uint4*>(to + offset) = chunks[0];
    *reinterpret_cast<uint4*>(to + (offset ^ other)) = chunks[1];
  }

  SparseLane lane_;
  std::uint32_t valid_ = 0;
  SparseShare<Format, Half> shares_[kShares];
  SparseRope ropes_[kRopes];
};

/// Warp `warp` of the four of a converter warpgroup.
template <KvFormat Format>
__device__ void convert_sparse_rows(const kernels::SparseDecodeParams& params, SparseShared& shared,
                                    std::int32_t group, std::uint32_t warp) {
  const std::uint32_t first_row = warp % 2 * 32;
  if (warp < 2) {
    SparseHalfConverter<Format, 0>(params, shared, group, first_row).run();
  } else {
    SparseHalfConverter<Format, 1>(params, shared, group, first_row).run();
  }
}

/// bf16 rows go straight to their places.
class SparseCopier : SparseConverterBase<KvFormat::kBf16, 16, 8> {
  static constexpr int kShares = Entries::kShares;

 public:
  using SparseConverterBase::SparseConverterBase;

  __device__ void run() {
    entries_.read();
    while (entries_.find()) {
      entries_.read();
      ring(1).wait_empty(at_);
      store_valid(entries_.valid);
      copy_half(1);
      ring(0).wait_empty(at_);
      copy_half(0);
      ptx::cp_async_wait_group<1>();
      publish_to_products(ring(1).full(at_));
      ptx::cp_async_wait_group<0>();
      publish_to_products(ring(0).full(at_));
      at_.advance();
    }
  }

 private:
  /// Starts to copy 256 columns, as a group.
  __device__ void copy_half(int half) const {
    const std::uint32_t row = threadIdx.x % 32 / 8, chunk = threadIdx.x % 8;
    const std::uint32_t to = ptx::shared_address(rows()) + half * kSparseHalfBytes;
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      const std::uint32_t line = row + i * Entries::kRowsAtOnce;
      const std::uint8_t* const from = entries_.sources[i].data + half * 512 + chunk * 16;
#pragma unroll
      for (int box = 0; box < 4; ++box) {
        ptx::cp_async_cg_shared_global_16(
            to + box * kSparseBoxBytes + line * kBoxRowBytes + ((chunk ^ line % 8) << 4),
            from + box * 128, 16);
      }
    }
    ptx::cp_async_commit_group();
  }
};

template <>
__device__ inline void convert_sparse_rows<KvFormat::kBf16>(
    const kernels::SparseDecodeParams& params, SparseShared& shared, std::int32_t group,
    std::uint32_t warp) {
  SparseCopier(params, shared, group, warp * 16).run();
}

}  // namespace tilewright::tile
