// What the two consumer warpgroups of the sparse attention kernel have in common: a half of the
// results, 64 heads by 256 columns, and how it is finished.
#pragma once

#include "kernels/sparse_attention/wgmma/parts.h"
#include "ptx/cp_async.h"
#include "ptx/matrix_copy.h"
#include "ptx/warp_roles.h"
#include "tile/online_softmax.h"
#include "tile/row_end.h"
#include "tile/warp.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kSparseColumns = 256;  ///< of a consumer

/// Of `Ctas` CTAs that share the decoding of keys.
template <class Rows, int Half, int Ctas>
class SparseConsumer {
 public:
  using Shared = SparseShared<Rows>;
  using Results = float[2][kSparseColumns / 4];  ///< two products of 128 columns

  __device__ SparseConsumer(const kernels::SparseDecodeParams& params, Shared& shared,
                            std::int32_t first_head)
      : params_(params), shared_(shared), first_head_(first_head) {}

 protected:
  static constexpr int kHalf = Half;

  __device__ Ring<kSparseStages> k_ring(int half) const {
    return Ring<kSparseStages>(shared_.k_ring[half]);
  }
  __device__ Ring<1> p_ring() const { return Ring<1>(shared_.p_ring); }

  /// First of a thread's two rows in the tile of heads; the other is 8 further.
  static __device__ std::uint32_t row() { return arch::accumulator_first_row(threadIdx.x % 128); }
  __device__ std::int32_t head(int h) const {
    return first_head_ + static_cast<std::int32_t>(row()) + 8 * h;
  }
  __device__ bool has_head(int h) const { return head(h) < params_.heads; }

  /// Of this half of the keys at k_at_, as values: 128 columns of them.
  __device__ std::uint64_t values(int part) const {
    return Box<64, kSparseColumns>::mn_major(tile_address(shared_.k[k_at_.stage]) +
                                             Half * kSparseHalfBytes +
                                             part * (kSparseHalfBytes / 2));
  }
  /// This consumer reads its half of the keys no more.
  __device__ void release_values() {
    release_keys<Ctas>(k_ring(Half), k_at_);
    k_at_.advance();
  }

  static __device__ void fence(Results& o) {
    for (auto& part : o) ptx::wgmma_fence_operand(part);
  }
  static __device__ void scale(Results& o, const float (&factors)[2]) {
    for (auto& part : o) scale_rows(part, factors);
  }

  /// This half of the rows of a thread, times the heads' factors, to where the piece says.
  __device__ void store(const Results& o, const SparsePiece& piece,
                        const float (&factors)[2]) const {
    // In this form no address is computed ahead of time, and kept in registers that results need.
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32 % 4);
    if (piece.partial < 0) {
      store_final(o, piece, factors, warp);
    } else {
      store_partial(o, piece, factors, warp);
    }
  }

  const kernels::SparseDecodeParams& params_;
  Shared& shared_;
  std::int32_t first_head_;
  SparseAt k_at_;
  RingPosition<1> p_at_;

 private:
  /// Rows of a warp go through its own memory, 8 lines of 128 bytes at a time, so that each
  /// instruction writes four whole lines: straight from the fragments it would touch eight of them,
  /// a cycle each, for half as many bytes. The memory is that of the probabilities, which are
  /// not read any more when the last scales are there.
  __device__ std::uint8_t* staging(std::uint32_t warp) const {
    return shared_.p + warp * 2048 + Half * 1024;
  }
  /// The lines to rows 8 h to 8 h + 7 of the warp; `to` is row 0 of the tile.
  template <class T>
  __device__ void copy_lines(T* to, std::int64_t stride, std::uint32_t warp, int h) const {
    const std::uint32_t lane = threadIdx.x % 32, chunk = lane % 8;
    std::int32_t row = static_cast<std::int32_t>(warp * 16 + lane / 8) + 8 * h;
    to += row * stride + chunk * (16 / sizeof(T));
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; ++i, row += 4, to += 4 * stride) {
      const std::uint32_t line = lane / 8 + 4 * i;
      const uint4 words =
          *reinterpret_cast<const uint4*>(staging(warp) + line * 128 + chunk_in_line(line, chunk));
      if (first_head_ + row < params_.heads) *reinterpret_cast<uint4*>(to) = words;
    }
    __syncwarp();
  }
  __device__ void store_final(const Results& o, const SparsePiece& piece, const float (&factors)[2],
                              std::uint32_t warp) const {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t line = ptx::shared_address(staging(warp)) + lane % 8 * 128 + lane / 8 * 16;
    std::uint16_t* const to =
        params_.out + sparse_offset(params_, params_.out_strides, piece.query, first_head_) +
        Half * kSparseColumns;
#pragma unroll
    for (int column = 0; column < kSparseColumns; column += 64) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          std::uint32_t words[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int first = column % 128 / 4 + 8 * j + 2 * i;  // of the thread's columns
            const float* pair = &o[column / 128][arch::accumulator_of(h, first)];
            words[i] = Bf16::pack(pair[0] * factors[h], pair[1] * factors[h]);
          }
          ptx::stmatrix<4>(arch::swizzle_address(arch::SmemSwizzle::k128B, line + j * 64), words);
        }
        copy_lines(to + column, params_.out_strides.head, warp, h);
      }
    }
  }
  __device__ void store_partial(const Results& o, const SparsePiece& piece,
                                const float (&factors)[2], std::uint32_t warp) const {
    const std::uint32_t row = threadIdx.x % 32 / 4, pair_in_quad = threadIdx.x % 4;
    float* const to = params_.partial_out +
                      (std::int64_t{piece.partial} * params_.heads + first_head_) * kKvDims +
                      Half * kSparseColumns;
#pragma unroll
    for (int column = 0; column < kSparseColumns; column += 32) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float* pair = &o[column / 128][arch::accumulator_of(h, column % 128 / 4 + 2 * j)];
          const std::uint32_t chunk = 2 * j + pair_in_quad / 2;
          *reinterpret_cast<float2*>(staging(warp) + row * 128 + chunk_in_line(row, chunk) +
                                     pair_in_quad % 2 * 8) =
              make_float2(pair[0] * factors[h], pair[1] * factors[h]);
        }
        copy_lines(to + column, kKvDims, warp, h);
      }
    }
  }
};

/// Consumer 0: all scores, the softmax, and columns below 256 of the results.
template <class Rows, int Ctas>
class SparseScoreConsumer : SparseConsumer<Rows, 0, Ctas> {
  using Base = SparseConsumer<Rows, 0, Ctas>;
  using Base::k_ring, Base::p_ring, Base::row, Base::head, Base::has_head;
  using Base::params_, Base::shared_, Base::first_head_, Base::k_at_, Base::p_at_;
  using Base::values, Base::release_values, Base::store, Base::fence, Base::scale;
  using typename Base::Results;

 public:
  using Base::Base;

  __device__ void run(std::int32_t group, SparseParts& parts) {
    SparsePieces pieces(params_, group);
    SparsePiece piece;
    while (pieces.take(piece)) {
      ptx::mbarrier_wait_parity(ptx::shared_address(&shared_.q_full), q_parity_);
      q_parity_ ^= 1;
      attend(piece);
      parts.count(piece);
    }
  }

 private:
  using Scores = float[32];
  using Weights = std::uint32_t[4][4];

  __device__ void attend(const SparsePiece& piece) {
    Results o = {};
    OnlineSoftmax softmax;
    float top[2] = {-INFINITY, -INFINITY}, factors[2];
    for (std::int32_t n = piece.begin; n < piece.end; ++n) step(o, softmax, top);
    finish(factors, piece, softmax, top);
    store(o, piece, factors);
  }

  /// A block's scores, then its values. Not the next block's scores before the values, which would
  /// keep the tensor cores busy under the softmax: the values of a block would then wait for the
  /// keys of the next, and its stage, the only other one, could not be filled meanwhile (twice the
  /// time). The code is there once: a group of few blocks waits for instructions that come from
  /// memory, and a first block apart would be as many again.
  __device__ void step(Results& o, OnlineSoftmax& softmax, float (&top)[2]) {
    Scores s;
    Weights p;
    float correction[2];
    issue_scores(s, k_at_);
    await_scores();
    const bool has_moved = weigh(s, softmax, top, correction, k_at_);
    hand_on(s, correction);
    pack_operand<Bf16, 64>(p, s);
    if (has_moved) scale(o, correction);
    issue_values(o, p);
    await_values(o);
  }

  __device__ void issue_scores(Scores& s, const SparseAt& at) const {
    ptx::wgmma_fence_operand(s);
    const std::uint64_t q = Box<64, 2 * Rows::kDims>::k_major(tile_address(shared_.q));
    const std::uint64_t k = Box<64, 2 * kKvDims>::k_major(tile_address(shared_.k[at.stage]));
#pragma unroll
    for (int half = 1; half >= 0; --half) {  // in the order in which they come
      k_ring(half).wait_full(at);
      ptx::wgmma_fence_sync_aligned();
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int units = (half * kSparseHalfBytes + i / 4 * kSparseBoxBytes + i % 4 * 32) / 16;
        multiply_k16<Bf16, 64, arch::Major::kK>(s, advance_descriptor(q, units),
                                                advance_descriptor(k, units), half == 0 || i > 0);
      }
    }
    if constexpr (Rows::kHasTail) tail_.multiply(s, q, shared_.tail);
    ptx::wgmma_commit_group_sync_aligned();
  }
  __device__ void await_scores() {
    ptx::wgmma_wait_group_sync_aligned<0>();
    if constexpr (Rows::kHasTail) tail_.template release<Ctas>(shared_.tail);
  }
  __device__ void issue_values(Results& o, const Weights& p) const {
    fence(o);
    ptx::wgmma_fence_sync_aligned();
#pragma unroll
    for (int part = 0; part < 2; ++part)
      multiply_pv<Bf16, kSparseColumns / 2, 64>(o[part], p, values(part));
    ptx::wgmma_commit_group_sync_aligned();
  }
  __device__ void await_values(Results& o) {
    ptx::wgmma_wait_group_sync_aligned<0>();
    fence(o);
    release_values();
  }

  /// Scores become weights. True if results so far are to be corrected.
  __device__ bool weigh(Scores& s, OnlineSoftmax& softmax, float (&top)[2], float (&correction)[2],
                        const SparseAt& at) const {
    ptx::wgmma_fence_operand(s);
    hide_missing(s, at);
    if (params_.max_logits != nullptr) {
#pragma unroll
      for (int h = 0; h < 2; ++h) top[h] = fmaxf(top[h], row_maximum(s, h));
    }
    float base[2];
    const bool has_moved = softmax.raise_reference<true>(s, params_.scale_log2, base, correction);
    softmax.exponentiate(s, params_.scale_log2, base, correction);
    return has_moved;
  }
  /// Scores of entries that name no row become -inf.
  __device__ void hide_missing(Scores& s, const SparseAt& at) const {
    const uint4* const words = shared_.valid[at.stage];
    if (__all_sync(0xffffffffu, words[threadIdx.x % 8].x == 0xff)) return;
    uint2 valid = {0, 0};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      valid.x |= words[i].x << 8 * i;
      valid.y |= words[4 + i].x << 8 * i;
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const std::uint32_t word = arch::accumulator_column(i) < 32 ? valid.x : valid.y;
      const std::uint32_t bits = word >> arch::accumulator_first_column(threadIdx.x);
      if ((bits >> arch::accumulator_column(i) % 32 & 1) == 0) s[i] = -INFINITY;
    }
  }

  /// Weights and factors to the other consumer, when their place is free.
  __device__ void hand_on(const Scores& s, const float (&factors)[2]) {
    p_ring().wait_empty(p_at_);
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t line =
        ptx::shared_address(shared_.p) + (threadIdx.x % 128 / 32 * 16 + lane % 16) * kBoxRowBytes;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      std::uint32_t words[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float* pair = &s[arch::operand_source_16bit(i, j)];
        words[j] = Bf16::pack(pair[0], pair[1]);
      }
      ptx::stmatrix<4>(
          arch::swizzle_address(arch::SmemSwizzle::k128B, line + i * 32 + lane / 16 * 16), words);
    }
    hand_on(factors);
  }
  __device__ void hand_on(const float (&factors)[2]) {
    if (threadIdx.x % 4 == 0) {
#pragma unroll
      for (int h = 0; h < 2; ++h) shared_.factors[row() + 8 * h] = factors[h];
    }
    publish_to_products(p_ring().full(p_at_));
    p_at_.advance();
  }

  /// What results are multiplied with at the end; also to the other consumer.
  __device__ void finish(float (&factors)[2], const SparsePiece& piece,
                         const OnlineSoftmax& softmax, const float (&top)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float* sink = params_.sink == nullptr || piece.partial >= 0 || !has_head(h)
                              ? nullptr
                              : params_.sink + head(h);
      factors[h] = finish_row(softmax.max[h], quad_sum(softmax.sum[h]), sink, piece, top[h], h);
    }
    p_ring().wait_empty(p_at_);
    hand_on(factors);
  }
  /// Factor of a row's results; writes lse and maximum.
  __device__ float finish_row(float max, float sum, const float* sink, const SparsePiece& piece,
                              float top, int h) const {
    const bool is_empty = max == -INFINITY;
    const float base = max * params_.scale_log2;
    const RowEnd end(max, params_.scale_log2, sum, sink);
    const float largest = quad_max(top);
    if (threadIdx.x % 4 == 0 && has_head(h)) {
      if (piece.partial >= 0) {
        params_.partial_lse[std::int64_t{piece.partial} * params_.heads + head(h)] =
            is_empty ? -INFINITY : base + log2f(sum);
      } else {
        const std::int64_t at = sparse_offset(params_, params_.lse_strides, piece.query, head(h));
        if (params_.lse != nullptr) params_.lse[at] = is_empty ? params_.empty_lse : end.lse;
        if (params_.max_logits != nullptr)
          params_.max_logits[at] = largest * (params_.scale_log2 * kLn2);
      }
    }
    return end.factor;
  }

  std::uint32_t q_parity_ = 0;
  typename Rows::TailReader tail_;
};

/// Consumer 1: columns from 256 on; and it loads the queries.
template <class Rows, int Ctas>
class SparseValueConsumer : SparseConsumer<Rows, 1, Ctas> {
  using Base = SparseConsumer<Rows, 1, Ctas>;
  using Base::k_ring, Base::p_ring, Base::row, Base::head, Base::has_head;
  using Base::params_, Base::shared_, Base::first_head_, Base::k_at_, Base::p_at_;
  using Base::values, Base::release_values, Base::store, Base::fence, Base::scale;
  using typename Base::Results;

 public:
  using Base::Base;

  __device__ void run(std::int32_t group, SparseParts& parts) {
    SparsePieces pieces(params_, group);
    SparsePiece piece;
    if (pieces.has_next()) {
      load_q(pieces.next_query());
      publish_q();
    }
    while (pieces.take(piece)) {
      attend(piece, pieces);
      parts.count(piece);
    }
  }

 private:
  __device__ void attend(const SparsePiece& piece, const SparsePieces& pieces) {
    Results o = {};
    float factors[2];
    bool asks = pieces.has_next();
    for (std::int32_t n = piece.begin;; ++n) {
      take(factors);
      // All scores of the queries are there with the last weights.
      if (asks && n >= piece.end - 1) {
        load_q(pieces.next_query());
        asks = false;
      }
      if (n >= piece.end) break;  // these are the results' factors
      if (__any_sync(0xffffffffu, factors[0] != 1.0f || factors[1] != 1.0f)) scale(o, factors);
      multiply(o);
    }
    store(o, piece, factors);
    p_ring().release(p_at_);  // the weights' memory, through which the results went
    p_at_.advance();
    if (pieces.has_next()) publish_q();
  }

  __device__ void take(float (&factors)[2]) const {
    p_ring().wait_full(p_at_);
#pragma unroll
    for (int h = 0; h < 2; ++h) factors[h] = shared_.factors[row() + 8 * h];
  }
  __device__ void multiply(Results& o) {
    const std::uint64_t p = Box<64, 128>::k_major(tile_address(shared_.p));
    fence(o);
    ptx::wgmma_fence_sync_aligned();
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const std::uint64_t v = values(part);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        multiply_k16<Bf16, kSparseColumns / 2, arch::Major::kMN>(
            o[part], advance_descriptor(p, i * 2),
            advance_descriptor(v, i * 16 * kBoxRowBytes / 16), true);
      }
    }
    ptx::wgmma_commit_group_sync_aligned();
    ptx::wgmma_wait_group_sync_aligned<0>();
    fence(o);
    release_values();
    p_ring().release(p_at_);
    p_at_.advance();
  }

  /// Starts to load a query's 64 rows, of which a warp has every fourth; those of heads that there
  /// are not become zeros.
  __device__ void load_q(std::int32_t query) const {
    const std::uint32_t lane = threadIdx.x % 32, warp = ptx::uniform(threadIdx.x / 32 % 4);
    const std::uint32_t to = ptx::shared_address(shared_.q) + lane / 8 * kSparseBoxBytes;
    const std::uint16_t* const from =
        params_.q + sparse_offset(params_, params_.q_strides, query, first_head_) + lane * 8;
#pragma unroll 1
    for (std::uint32_t i = warp; i < 64; i += 4) {
      const bool has = first_head_ + static_cast<std::int32_t>(i) < params_.heads;
      const std::uint16_t* const row =
          has ? from + static_cast<std::int64_t>(i) * params_.q_strides.head : params_.q;
      const std::uint32_t chunk = to + i * kBoxRowBytes + chunk_in_line(i % 8, lane % 8);
      ptx::cp_async_cg_shared_global_16(chunk, row, has ? 16 : 0);
      ptx::cp_async_cg_shared_global_16(chunk + kSparseHalfBytes, row + (has ? 256 : 0),
                                        has ? 16 : 0);
    }
    if constexpr (Rows::kHasTail) Rows::load_q(params_, shared_.q, query, first_head_, warp);
    ptx::cp_async_commit_group();
  }
  __device__ void publish_q() const {
    ptx::cp_async_wait_group<0>();
    publish_to_products(ptx::shared_address(&shared_.q_full));
  }
};

}  // namespace tilewright::tile
