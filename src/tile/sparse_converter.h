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

/// 8- and 4-bit rows, 32 of them, half of the columns, 8 rows (a share of the warp's) at a time:
/// copied to the warp's own ring of raw rows, read from there to registers and decoded to where the
/// products read them. While a share is decoded the next is in registers and two more are on their
/// way, those of the next block included: what the products still read delays decoding, not copies.
///
/// Not by loads to registers ahead of time: they need room in the first cache, of which 227 KB of
/// shared memory leave 28, and ptxas has one scoreboard for all loads that are on their way from
/// one round of a loop to the next, so that whoever needs the oldest waits for the youngest.
template <KvFormat Format, int Half>
class SparseHalfConverter : SparseConverterBase<Format, 32, 4> {
  using Base = SparseConverterBase<Format, 32, 4>;
  using Share = SparseShare<Format, Half>;
  using Part = typename Share::Part;
  static constexpr int kShares = Base::Entries::kShares;
  static_assert(kShares % kSparseRaws == 0 && kSparseRaws == 2);

 public:
  using Base::Base;

  __device__ void run() {
    this->entries_.read();
    bool has_block = find();
    copy(0, 0);
    copy(1, 1);
    take(0);
    copy(2, 0);
    while (has_block) has_block = convert();
    ptx::cp_async_wait_group<0>();
  }

 private:
  __device__ SparseRaw& raw(std::uint32_t slot) const {
    return this->shared_.raw[threadIdx.x % 128 / 32][slot];
  }
  __device__ bool find() {
    const bool has_block = this->entries_.find();
    this->entries_.read();
    return has_block;
  }

  /// Starts to copy the parts of a share's rows, as a group: a lane every fourth chunk of its row.
  /// (Bulk copies, a row each, take 60 cycles of the warp to issue: twice as long as the whole
  /// block may.)
  __device__ void copy(int share, std::uint32_t slot) const {
    const SparseSource& source = this->entries_.sources[share];
    const std::uint8_t* const from = source.data + Part::kFirst;
    const std::uint32_t to = ptx::shared_address(raw(slot).rows[lane_.row]);
#pragma unroll
    for (int chunk = 0; chunk < Part::kBytes / 16; chunk += 4) {
      const std::uint32_t at = chunk * 16 + lane_.quarter * 16;
      if (Part::kBytes % 64 != 0 && at >= Part::kBytes) break;
      ptx::cp_async_cg_shared_global_16(to + at, from + at, 16);
    }
    if (lane_.quarter == 0) {
      const std::uint32_t to_scales = ptx::shared_address(raw(slot).scales[lane_.row]);
      if constexpr (Part::kScaleBytes == 4) {
        ptx::cp_async_ca_shared_global_4(to_scales, source.scales + Part::kFirstScale, 4);
      } else {
        ptx::cp_async_cg_shared_global_16(to_scales, source.scales + Part::kFirstScale, 16);
      }
    }
    ptx::cp_async_commit_group();
  }
  /// The share of a slot to registers, when its rows are there: all but the last group are. Then
  /// nobody reads the slot any more.
  __device__ void take(std::uint32_t slot) {
    ptx::cp_async_wait_group<1>();
    __syncwarp();
    const SparseRaw& from = raw(slot);
    const std::uint8_t* const row = from.rows[lane_.row];
    next_.load(row, lane_);
    next_scales_ =
        *reinterpret_cast<const typename Share::Scales*>(from.scales[lane_.row]);
    if (Half == 1) {
      const std::uint32_t first = lane_.rope_chunk() * 16;
      next_rope_[0] = *reinterpret_cast<const uint4*>(row + Part::kRope + first);
      next_rope_[1] = *reinterpret_cast<const uint4*>(row + Part::kRope + (first ^ 64));
    }
    __syncwarp();
  }

  /// The block at hand, of which the first share is in registers and two more are on their way.
  /// True if another block follows.
  __device__ bool convert() {
    const std::uint32_t valid = this->entries_.valid;
    bool has_block = false;
    typename Share::Scales scales[kShares];
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      const Share share = next_;
      const SparseChunks rope = {next_rope_[0], next_rope_[1]};
      scales[i] = next_scales_;
      const std::uint32_t slot = (i + 1) % kSparseRaws;
      take(slot);
      copy((i + 3) % kShares, slot);
      if (i == 0) {  // all that follows are rows of the next block
        has_block = find();
        this->ring(Half).wait_empty(this->at_);
        if (Half == 1) this->store_valid(valid);
      }
      std::uint8_t* const to = rows() + i * 8 * kBoxRowBytes;
#pragma unroll
      for (int box = 0; box < Part::kPlain; ++box) {
        SparseChunks chunks;
        share.decode(chunks, scales[i], lane_, box);
        store(to + box * kSparseBoxBytes, lane_.plain_offset(), 16, chunks);
      }
      if (Half == 1) store(to + 3 * kSparseBoxBytes, lane_.rope_offset(), 64, rope);
    }
    bool has_large = false;
#pragma unroll
    for (int i = 0; i < kShares; ++i) has_large |= Share::has_large(scales[i]);
    if (__any_sync(0xffffffffu, has_large)) enlarge(scales);
    publish_to_products(this->ring(Half).full(this->at_));
    this->at_.advance();
    return has_block;
  }
  __device__ std::uint8_t* rows() const {
    return Base::rows() + Half * kSparseHalfBytes;
  }
  static __device__ void store(std::uint8_t* to, std::uint32_t offset, std::uint32_t other,
                               const SparseChunks& chunks) {
    *reinterpret_cast<uint4*>(to + offset) = chunks[0];
    *reinterpret_cast<uint4*>(to + (offset ^ other)) = chunks[1];
  }

  /// The part of large scales that decode() leaves out: rare.
  __device__ void enlarge(const typename Share::Scales (&scales)[kShares]) const {
#pragma unroll
    for (int box = 0; box < Part::kPlain; ++box) {
#pragma unroll
      for (int i = 0; i < kShares; ++i) {
        const std::uint32_t factor = Share::rest(scales[i], box);
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
  Share next_;
  typename Share::Scales next_scales_;
  SparseChunks next_rope_;
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
