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

/// 8- and 4-bit rows, 32 of them, half of the columns: copied to where the converted ones will be,
/// and converted there, 8 rows after another. Of these, which are 1024 bytes of each box, two lie
/// in each box until the warp has them all in registers.
///
/// Not by loads to registers ahead of time: they need room in the first cache, of which 200 KB of
/// shared memory leave 28, and ptxas has one scoreboard for all loads that are on their way from
/// one round of a loop to the next, so that whoever needs the oldest waits for the youngest.
template <KvFormat Format, int Half>
class SparseHalfConverter : SparseConverterBase<Format, 32, 4> {
  using Base = SparseConverterBase<Format, 32, 4>;
  using Share = SparseShare<Format, Half>;
  using Part = typename Share::Part;
  static constexpr int kShares = Base::Entries::kShares;

 public:
  using Base::Base;

  __device__ void run() {
    this->entries_.read();
    while (this->entries_.find()) {
      bool has_large = false;
#pragma unroll
      for (int i = 0; i < kShares; ++i) scales_[i] = Share::load_scales(this->entries_.sources[i]);
      this->ring(Half).wait_empty(this->at_);
      copy();
      if (Half == 1) this->store_valid(this->entries_.valid);
      this->entries_.read();
#pragma unroll
      for (int i = 0; i < kShares; ++i) has_large |= Share::has_large(scales_[i]);
      has_large = __any_sync(0xffffffffu, has_large);
      convert();
      if (has_large) enlarge();
      publish_to_products(this->ring(Half).full(this->at_));
      this->at_.advance();
    }
  }

 private:
  __device__ std::uint8_t* rows() const {
    return Base::rows() + Half * kSparseHalfBytes;
  }
  /// Where the copy of a row of a share is.
  __device__ std::uint8_t* part(std::uint32_t row, std::uint32_t share) const {
    return rows() + row / 2 * kSparseBoxBytes + share * 8 * kBoxRowBytes + row % 2 * Part::kPitch;
  }

  /// Starts to copy the parts of all rows, a group for each share: a lane every fourth chunk of its
  /// rows. (Bulk copies, a row each, take 60 cycles of the warp to issue: twice as long as the
  /// whole block may.)
  __device__ void copy() const {
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      const std::uint8_t* const from = this->entries_.sources[i].data + Part::kFirst;
      const std::uint32_t to = ptx::shared_address(part(lane_.row, i));
#pragma unroll
      for (int chunk = 0; chunk < Part::kBytes / 16; chunk += 4) {
        const std::uint32_t at = chunk * 16 + lane_.quarter * 16;
        if (Part::kBytes % 64 != 0 && at >= Part::kBytes) break;
        ptx::cp_async_cg_shared_global_16(to + at, from + at, 16);
      }
      ptx::cp_async_commit_group();
    }
  }

  __device__ void convert() const {
    Share share, next;
    SparseChunks rope, next_rope;
    ptx::cp_async_wait_group<kShares - 1>();
    __syncwarp();
    load(next, next_rope, 0);
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      share = next;
      rope[0] = next_rope[0];
      rope[1] = next_rope[1];
      wait_copies(i + 1);
      __syncwarp();  // nobody reads rows of this share any more, and those of the next are there
      if (i + 1 < kShares) load(next, next_rope, i + 1);
      std::uint8_t* const to = rows() + i * 8 * kBoxRowBytes;
#pragma unroll
      for (int box = 0; box < Part::kPlain; ++box) {
        SparseChunks chunks;
        share.decode(chunks, scales_[i], lane_, box);
        store(to + box * kSparseBoxBytes, lane_.plain_offset(), 16, chunks);
      }
      if (Half == 1) store(to + 3 * kSparseBoxBytes, lane_.rope_offset(), 64, rope);
    }
  }
  static __device__ void wait_copies(int share) {
    if (share == 1) ptx::cp_async_wait_group<2>();
    if (share == 2) ptx::cp_async_wait_group<1>();
    if (share == 3) ptx::cp_async_wait_group<0>();
  }
  __device__ void load(Share& share, SparseChunks& rope, std::uint32_t i) const {
    const std::uint8_t* const from = part(lane_.row, i);
    share.load(from, lane_);
    if (Half == 0) return;
    const std::uint32_t first = lane_.rope_chunk() * 16;
    rope[0] = *reinterpret_cast<const uint4*>(from + Part::kRope + first);
    rope[1] = *reinterpret_cast<const uint4*>(from + Part::kRope + (first ^ 64));
  }
  static __device__ void store(std::uint8_t* to, std::uint32_t offset, std::uint32_t other,
                               const SparseChunks& chunks) {
    *reinterpret_cast<uint4*>(to + offset) = chunks[0];
    *reinterpret_cast<uint4*>(to + (offset ^ other)) = chunks[1];
  }

  /// The part of large scales that decode() leaves out: rare.
  __device__ void enlarge() const {
#pragma unroll
    for (int box = 0; box < Part::kPlain; ++box) {
#pragma unroll
      for (int i = 0; i < kShares; ++i) {
        const std::uint32_t factor = Share::rest(scales_[i], box);
        std::uint8_t* const to = rows() + box * kSparseBoxBytes + i * 8 * kBoxRowBytes;
#pragma unroll
        for (int chunk = 0; chunk < 2; ++chunk) {
          uint4& words = *reinterpret_cast<uint4*>(to + (lane_.plain_offset() ^ chunk * 16));
          words = make_uint4(mul_bf16x2(words.x, factor), mul_bf16x2(words.y, factor),
                             mul_bf16x2(words.z, factor), mul_bf16x2(words.w, factor));
        }
      }
    }
  }

  SparseLane lane_;
  typename Share::Scales scales_[kShares];
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
