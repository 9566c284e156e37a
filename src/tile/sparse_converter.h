// Loads the rows that a query's lists name, and writes them as tiles of bf16: a warpgroup's role in
// the sparse attention kernel.
#pragma once

#include "ptx/cp_async.h"
#include "tile/sparse_entries.h"
#include "tile/sparse_rows.h"
#include "tile/sparse_shared.h"

#include <cstdint>

namespace tilewright::tile {

/// What converters of all formats do: a warp has half of the columns of 32 rows of every block, or
/// of 16 if two CTAs share the block. Then each CTA decodes half of the rows, and copies what it
/// wrote to the other.
template <KvFormat Format, int Half, int Ctas, int LanesOfRow>
class SparseConverterBase {
 public:
  static constexpr int kRows = 32 / Ctas;
  using Entries = SparseEntries<Format, kRows, LanesOfRow>;

  __device__ SparseConverterBase(const kernels::SparseDecodeParams& params, SparseShared& shared,
                                 std::int32_t group, std::uint32_t first_row)
      : shared_(shared), first_row_(first_row), entries_(params, group, first_row) {}

 protected:
  __device__ Ring<kSparseStages> ring() const {
    return Ring<kSparseStages>(shared_.k_ring[Half]);
  }
  /// Of the block at hand: this warp's part, in four boxes.
  __device__ std::uint8_t* rows() const {
    return shared_.k[at_.stage] + Half * kSparseHalfBytes + first_row_ * kBoxRowBytes;
  }
  /// Which of them are rows; before columns from 256 on are published.
  __device__ void store_valid(std::uint32_t valid) const {
    const std::uint32_t lane = threadIdx.x % 32;
    if (Half == 1 && lane < kRows / 16)
      shared_.valid[at_.stage][first_row_ / 16 + lane].x = valid >> 16 * lane & 0xffff;
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

  SparseShared& shared_;
  std::uint32_t first_row_;
  Entries entries_;
  SparseAt at_;

 private:
  /// Each warp of the other CTA copies as many bytes to here as this one copies to there.
  __device__ void copy_to_peer(std::uint32_t full) const {
    constexpr std::uint32_t kBoxes = 4, kBytes = kRows * kBoxRowBytes;
    constexpr std::uint32_t kValidBytes = Half == 1 ? sizeof(uint4) : 0;
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane == 0) ptx::mbarrier_arrive_expect_tx(full, kBoxes * kBytes + kValidBytes);
    if (lane > kBoxes || (lane == kBoxes && kValidBytes == 0)) return;
    const std::uint32_t peer = ptx::cluster_ctarank() ^ 1;
    const std::uint32_t from =
        lane < kBoxes ? ptx::shared_address(rows()) + lane * kSparseBoxBytes
                      : ptx::shared_address(&shared_.valid[at_.stage][first_row_ / 16]);
    ptx::cp_async_bulk_shared_cluster_shared_cta(ptx::mapa_shared_cluster(from, peer), from,
                                                 lane < kBoxes ? kBytes : kValidBytes,
                                                 ptx::mapa_shared_cluster(full, peer));
  }
};

/// 8- and 4-bit rows, 8 of them (a share of the warp's) at a time: copied to the warp's own ring of raw rows, read from there to registers and decoded to where the
/// products read them. While a share is decoded the next is in registers and two more are on their
/// way, those of the next block included: what the products still read delays decoding, not copies.
///
/// Not by loads to registers ahead of time: they need room in the first cache, of which 227 KB of
/// shared memory leave 28, and ptxas has one scoreboard for all loads that are on their way from
/// one round of a loop to the next, so that whoever needs the oldest waits for the youngest.
template <KvFormat Format, int Half, int Ctas>
class SparseConverter : SparseConverterBase<Format, Half, Ctas, 4> {
  using Base = SparseConverterBase<Format, Half, Ctas, 4>;
  using Share = SparseShare<Format, Half>;
  using Part = typename Share::Part;
  static constexpr int kShares = Base::Entries::kShares;
  static_assert(kShares % kSparseRaws == 0 && kSparseRaws == 2);

 public:
  using Base::Base;

  __device__ void run() {
    this->entries_.read();
    copy(0, 0);
    copy(1, 1);
    take(0);
    copy(2, 0);
    while (at_hand().is_block) convert();
    ptx::cp_async_wait_group<0>();
  }

 private:
  __device__ SparseRaw& raw(std::uint32_t slot) const {
    return this->shared_.raw[threadIdx.x % 128 / 32][slot];
  }
  struct Found {
    bool is_block;
    std::uint32_t valid;
  };
  /// Copies are three shares ahead.
  __device__ const Found& at_hand() const { return kShares < 3 ? found_[0] : found_[1]; }
  __device__ void find() {
    found_[0] = found_[1];
    found_[1].is_block = this->entries_.find();
    found_[1].valid = this->entries_.valid;
    this->entries_.read();
  }

  /// Starts to copy the parts of the rows of share `number`, counted through all blocks, as a
  /// group: a lane every fourth chunk of its row.
  /// (Bulk copies, a row each, take 60 cycles of the warp to issue: twice as long as the whole
  /// block may.)
  __device__ void copy(int number, std::uint32_t slot) {
    if (number % kShares == 0) find();
    const SparseSource& source = this->entries_.sources[number % kShares];
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
  __device__ void convert() {
    const std::uint32_t valid = at_hand().valid;
    typename Share::Scales scales[kShares];
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      const Share share = next_;
      const SparseChunks rope = {next_rope_[0], next_rope_[1]};
      scales[i] = next_scales_;
      const std::uint32_t slot = (i + 1) % kSparseRaws;
      take(slot);
      copy(i + 3, slot);
      if (i == 0) {
        this->ring().wait_empty(this->at_);
        this->store_valid(valid);
      }
      std::uint8_t* const to = this->rows() + i * 8 * kBoxRowBytes;
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
    this->publish();
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
        std::uint8_t* const to = this->rows() + box * kSparseBoxBytes + i * 8 * kBoxRowBytes;
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
  Found found_[2] = {};
};

/// bf16 rows go straight to their places.
template <int Half, int Ctas>
class SparseConverter<KvFormat::kBf16, Half, Ctas>
    : SparseConverterBase<KvFormat::kBf16, Half, Ctas, 8> {
  using Base = SparseConverterBase<KvFormat::kBf16, Half, Ctas, 8>;

 public:
  using Base::Base;

  __device__ void run() {
    this->entries_.read();
    while (this->entries_.find()) {
      this->entries_.read();
      this->ring().wait_empty(this->at_);
      this->store_valid(this->entries_.valid);
      copy();
      ptx::cp_async_wait_group<0>();
      this->publish();
    }
  }

 private:
  __device__ void copy() const {
    const std::uint32_t row = threadIdx.x % 32 / 8, chunk = threadIdx.x % 8;
    const std::uint32_t to = ptx::shared_address(this->rows());
#pragma unroll
    for (int i = 0; i < Base::Entries::kShares; ++i) {
      const std::uint32_t line = row + i * Base::Entries::kRowsAtOnce;
      const std::uint8_t* const from = this->entries_.sources[i].data + Half * 512 + chunk * 16;
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

/// Warp `warp` of the four of a converter warpgroup.
template <KvFormat Format, int Ctas>
__device__ void convert_sparse_rows(const kernels::SparseDecodeParams& params, SparseShared& shared,
                                    std::int32_t group, std::uint32_t warp) {
  std::uint32_t first_row = warp % 2 * (32 / Ctas);
  if (Ctas == 2) first_row += ptx::cluster_ctarank() * 32;
  if (warp < 2) {
    SparseConverter<Format, 0, Ctas>(params, shared, group, first_row).run();
  } else {
    SparseConverter<Format, 1, Ctas>(params, shared, group, first_row).run();
  }
}

}  // namespace tilewright::tile
