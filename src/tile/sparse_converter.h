// Loads the rows that a query's lists name, and writes them as tiles of bf16: the first of the two
// roles of the sparse attention kernel with warpgroup MMAs.
#pragma once

#include "tile/sparse_pieces.h"
#include "tile/sparse_rows.h"
#include "tile/sparse_shared.h"

#include <cstdint>

namespace tilewright::tile {

/// The blocks of a group's pieces, one after another.
class SparseStream {
 public:
  __device__ SparseStream(const kernels::SparseDecodeParams& params, std::int32_t group)
      : pieces_(params, group) {}

  /// False at the end.
  __device__ bool next(SparseBlock& block, std::int32_t& query) {
    while (at_ >= piece_.end) {
      if (!pieces_.take(piece_)) return false;
      at_ = piece_.begin;
    }
    block = piece_.block(at_++);
    query = piece_.query;
    return true;
  }

 private:
  SparsePieces pieces_;
  SparsePiece piece_ = {};
  std::int32_t at_ = 0;
};

/// Warps 0 to 4 Warpgroups - 1 together; every warp has the same rows of every block. A block's
/// entries are read two blocks ahead, its rows one.
template <KvFormat Format, int Warpgroups>
class SparseConverter {
  static constexpr int kRows = 16 / Warpgroups, kShares = kRows / 8;
  using Share = SparseRowShare<Format>;

 public:
  __device__ SparseConverter(const kernels::SparseDecodeParams& params, SparseShared& shared,
                             std::int32_t group, std::uint32_t warp)
      : params_(params), shared_(shared), stream_(params, group), first_row_(warp * kRows) {}

  __device__ void run() {
    read_entries();
    find_sources();
    if (!has_sources_) return;
    read_entries();
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      shares_[i].load_scales(sources_[i]);
#pragma unroll
      for (int box = 0; box < kPlainBoxes; ++box) shares_[i].load_plain(sources_[i], box);
      load_rope(i);
    }
    do {
      std::uint32_t valid[kShares];
#pragma unroll
      for (int i = 0; i < kShares; ++i) {
        valid[i] = valid_[i];
        shares_[i].begin();
      }
      find_sources();
      read_entries();
      // Columns from 256 on first: the consumer that lets go of them is the first to do so.
      shared_ring(1).wait_empty(at_);
      if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int i = 0; i < kShares; ++i)
          shared_.valid[at_.stage][first_row_ / 8 + i] = static_cast<std::uint8_t>(valid[i]);
      }
      convert_half<1>();
      shared_ring(0).wait_empty(at_);
      convert_half<0>();
      at_.advance();
    } while (has_sources_);
  }

 private:
  __device__ Ring<kSparseStages> shared_ring(int half) const {
    return Ring<kSparseStages>(shared_.k_ring[half]);
  }

  /// Starts to read the entries of the stream's next block.
  __device__ void read_entries() {
    SparseBlock block;
    std::int32_t query;
    has_entries_ = stream_.next(block, query);
    if (!has_entries_) return;
    list_ = block.list;
    const kernels::SparseKeys& keys = params_.keys[block.list];
    const std::int32_t* entries = keys.indices + query * keys.index_stride + block.first;
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      const auto row = static_cast<std::int32_t>(first_row_ + lane_.row) + 8 * i;
      entries_[i] = row < block.count ? entries[row] : -1;
    }
  }

  /// Where the rows lie whose entries were read last.
  __device__ void find_sources() {
    has_sources_ = has_entries_;
    const kernels::SparseKeys& keys = params_.keys[list_];
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      const bool is_valid = has_entries_ && static_cast<std::uint32_t>(entries_[i]) <
                                                static_cast<std::uint32_t>(keys.num_rows);
      const SparseRow row(keys, is_valid ? entries_[i] : 0);
      const auto* none = reinterpret_cast<const std::uint8_t*>(kSparseNoRow);
      sources_[i] = {
          (is_valid ? row.template data<Format>() : none) + lane_.quarter * Share::kShareBytes,
          is_valid ? row.template scales<Format>(keys) : none};
      // A bit of each of the 8 rows, of every fourth lane.
      std::uint32_t bits = __ballot_sync(0xffffffffu, is_valid) & 0x11111111u;
      bits = (bits | bits >> 3) & 0x03030303u;
      bits = (bits | bits >> 6) & 0x000f000fu;
      valid_[i] = bits | bits >> 12;
    }
  }

  __device__ void load_rope(int share) {
    const std::uint8_t* data =
        sources_[share].data - lane_.quarter * Share::kShareBytes + kv_plain_bytes(Format);
    shares_[share].rope[0] = ptx::ld_global_nc_no_allocate_v4_u32(data + lane_.rope_chunk() * 16);
    shares_[share].rope[1] =
        ptx::ld_global_nc_no_allocate_v4_u32(data + (lane_.rope_chunk() ^ 4) * 16);
  }

  /// Four boxes of the block at hand, each of which makes room for the next block's.
  template <int Half>
  __device__ void convert_half() {
    std::uint8_t* const tile = shared_.k[at_.stage] + first_row_ * kBoxRowBytes;
#pragma unroll
    for (int box = 4 * Half; box < 4 * Half + 4; ++box) {
#pragma unroll
      for (int i = 0; i < kShares; ++i) {
        Share& share = shares_[i];
        std::uint8_t* const to = tile + box * kSparseBoxBytes + i * 8 * kBoxRowBytes;
        if (box == kPlainBoxes) {
          store(to, lane_.rope_offset(), 64, share.rope);
          load_rope(i);
        } else {
          SparseChunks chunks;
          share.decode(chunks, box);
          if (box == 4) share.load_scales(sources_[i]);
          share.load_plain(sources_[i], box);
          store(to, lane_.plain_offset(), 16, chunks);
        }
      }
    }
    publish_to_products(shared_ring(Half).full(at_));
  }
  static __device__ void store(std::uint8_t* to, std::uint32_t offset, std::uint32_t other,
                               const SparseChunks& chunks) {
    *reinterpret_cast<uint4*>(to + offset) = chunks[0];
    *reinterpret_cast<uint4*>(to + (offset ^ other)) = chunks[1];
  }

  const kernels::SparseDecodeParams& params_;
  SparseShared& shared_;
  SparseStream stream_;
  SparseLane lane_;
  std::uint32_t first_row_;
  SparseAt at_;
  std::int32_t list_ = 0;
  std::int32_t entries_[kShares];
  SparseSource sources_[kShares];
  std::uint32_t valid_[kShares];
  Share shares_[kShares];
  bool has_entries_ = false, has_sources_ = false;
};

}  // namespace tilewright::tile
