// The warps that bring rows of paged caches into a ring of pieces of 16 keys, for kernels of few
// heads: warp w the piece w of every block of 64. Indices are read a block ahead. A row is copied
// by four lanes, 64 bytes of it at a time; of a key that is none, zeros.
#pragma once

#include "kernels/sparse_attention/few_heads/decode_few_heads.h"
#include "kernels/sparse_attention/walk.h"
#include "ptx/cp_async.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

/// A warp's sixteen rows of block after block of a group's work: lane l has those of keys
/// few_heads_key(l / 4) and that and 8.
class SparseRowFeed {
 public:
  __device__ SparseRowFeed(const kernels::SparseDecodeParams& params, std::int32_t group,
                           std::uint32_t warp)
      : params_(params),
        walk_(params, group),
        query_(params, 0),
        first_(
            static_cast<std::int32_t>(warp * kernels::kFewHeadsPieceKeys + threadIdx.x % 32 / 4)) {}

  struct Piece {
    std::int32_t list;
    std::int32_t rows[2];  ///< -1: none
  };

  /// False at the end.
  __device__ bool next(Piece& piece) {
    while (at_ >= end_) {
      kernels::SparseWork work;
      if (!walk_.next(work)) return false;
      query_ = SparseQuery(params_, work.query);
      at_ = work.begin_block;
      end_ = min(work.end_block, query_.num_blocks());
    }
    const SparseBlock entries = query_.block(at_++);
    piece.list = entries.list;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::int32_t entry = first_ + 8 * i;
      piece.rows[i] = entry < entries.count ? sparse_row(params_.keys[entries.list], query_.index,
                                                         entries.first + entry)
                                            : -1;
    }
    return true;
  }

 private:
  const kernels::SparseDecodeParams& params_;
  SparseWalk walk_;
  SparseQuery query_;
  std::int32_t first_;
  std::int32_t at_ = 0, end_ = 0;
};

/// The position `by` stages further, less than a round.
template <int Stages>
__device__ RingPosition<Stages> ahead(RingPosition<Stages> at, std::uint32_t by) {
  at.stage += by;
  if (at.stage >= Stages) {
    at.stage -= Stages;
    at.parity ^= 1;
  }
  return at;
}

template <KvFormat Format, int Stages>
struct FewHeadsLoader {
  static constexpr int kDataBytes = kv_data_bytes(Format), kScaleBytes = kv_scale_bytes(Format);
  static constexpr int kPitch = kernels::few_heads_row_pitch(Format);

  Ring<Stages> ring;
  std::uint32_t rows;  ///< shared address of the ring's rows
  uint2* valid;        ///< of its stages
  RingPosition<Stages> at = {};
  std::uint32_t lane = threadIdx.x % 32;

  /// A row's data by the four lanes of its quad.
  __device__ void copy_data(std::uint32_t to, const std::uint8_t* from, bool exists) const {
    const std::uint32_t part = lane % 4 * 16, bytes = exists ? 16 : 0;
#pragma unroll
    for (int i = 0; i < (kDataBytes + 63) / 64; ++i) {
      if (i * 64 + 64 <= kDataBytes || i * 64 + part < kDataBytes)
        ptx::cp_async_cg_shared_global_16(to + i * 64 + part, from + i * 64 + part, bytes);
    }
  }
  /// Scales of two rows by their quad.
  __device__ void copy_scales(const std::uint32_t (&to)[2], const std::uint8_t* const (&from)[2],
                              const bool (&exists)[2]) const {
    const std::uint32_t t = lane % 4;
    if constexpr (Format == KvFormat::kFp8) {
      const std::uint32_t row = t % 2;
      if (t < 2)
        ptx::cp_async_ca_shared_global_8((row == 0 ? to[0] : to[1]) + kDataBytes,
                                         row == 0 ? from[0] : from[1],
                                         (row == 0 ? exists[0] : exists[1]) ? 8 : 0);
    } else if constexpr (Format == KvFormat::kNvfp4) {
      const std::uint32_t row = t / 2, part = t % 2 * 16;
      ptx::cp_async_cg_shared_global_16((row == 0 ? to[0] : to[1]) + kDataBytes + part,
                                        (row == 0 ? from[0] : from[1]) + part,
                                        (row == 0 ? exists[0] : exists[1]) ? 16 : 0);
    }
  }

  /// The next piece of this warp.
  __device__ void fill(const kernels::SparseKeys& keys, const SparseRowFeed::Piece& piece) {
    std::uint32_t to[2], masks[2];
    const std::uint8_t *data[2], *scales[2];
    bool exists[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      exists[i] = piece.rows[i] >= 0;
      masks[i] = __ballot_sync(0xffffffffu, exists[i]);
      const SparseRow source(keys, max(piece.rows[i], 0));
      data[i] = source.data<Format>(), scales[i] = source.scales<Format>(keys);
      const std::uint32_t key =
          kernels::few_heads_key(lane / 4) + 8 * static_cast<std::uint32_t>(i);
      to[i] = rows + (at.stage * kernels::kFewHeadsPieceKeys + key) * kPitch;
    }
    ring.wait_empty(at);
    copy_data(to[0], data[0], exists[0]);
    copy_data(to[1], data[1], exists[1]);
    copy_scales(to, scales, exists);
    if (lane == 0) {
      valid[at.stage] = make_uint2(masks[0], masks[1]);
      ptx::mbarrier_arrive(ring.full(at));
    }
    ptx::cp_async_mbarrier_arrive_noinc(ring.full(at));
    at = ahead(at, kernels::kFewHeadsPieces);
  }

  /// Warp `warp` of as many as a block has pieces.
  __device__ void run(const kernels::SparseDecodeParams& params, std::uint32_t warp) {
    at = ahead(at, warp);
    SparseRowFeed feed(params, static_cast<std::int32_t>(blockIdx.x), warp);
    SparseRowFeed::Piece piece;
    for (bool is_more = feed.next(piece); is_more;) {
      const SparseRowFeed::Piece now = piece;
      is_more = feed.next(piece);
      fill(params.keys[now.list], now);
    }
  }
};

}  // namespace tilewright::tile
