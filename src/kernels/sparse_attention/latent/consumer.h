// The two warpgroups that multiply: each has the scores of every other block, and one half of the
// results' columns.
#pragma once

#include "kernels/sparse_attention/latent/pieces.h"
#include "kernels/sparse_attention/latent/shared.h"
#include "ptx/matrix_copy.h"
#include "ptx/warp_roles.h"
#include "tile/online_softmax.h"
#include "tile/row_end.h"
#include "tile/warp.h"

#include <cstdint>

namespace tilewright::tile {

/// Half 0: blocks 0, 2, ... of a piece, in stage 0, and the columns of the first half.
template <class Form, int Half>
class LatentConsumer {
  using Element = typename Form::Element;
  using Results = float[Form::kHalfDims / 2];
  using Scores = float[32];
  using Weights = std::uint32_t[4][4];
  static constexpr int kOther = 1 - Half;
  static constexpr int kPartSteps = Form::kPartBoxes * kBoxColumns / 16;  ///< products of a part

 public:
  __device__ LatentConsumer(const kernels::LatentParams& params, LatentShared<Form>& shared)
      : params_(params), shared_(shared) {}

  __device__ void run(LatentPieces pieces) {
    for (LatentPiece piece; pieces.take(piece);) {
      for (int h = 0; h < 2; ++h)
        limits_[h] = pieces.visible(piece, piece.first_row + static_cast<std::int32_t>(row(h)));
      load_q(piece);
      if constexpr (Form::kHasQv) {
        q_ring().wait_full(q_at_);
        after_copies();
      }
      attend(piece);
      piece_parity_ ^= 1;
    }
  }

 private:
  /// What threads copied is seen by products from here on; what tensor copies did is anyway.
  static __device__ void after_copies() {
    if constexpr (Form::kHasLists) ptx::fence_proxy_async_shared_cta();
  }
  /// A thread's rows of the tile.
  static __device__ std::uint32_t row(int h) {
    return arch::accumulator_first_row(threadIdx.x % 128) + 8 * h;
  }
  __device__ Ring<1> q_ring() const { return Ring<1>(shared_.q_ring); }
  /// Waits for a part of a half of a stage's values, or for all of them.
  __device__ void await_part(int stage, int half, int part) const {
    ptx::mbarrier_wait_parity(ptx::shared_address(&shared_.v_ring[stage][half].full[part]),
                              at_[stage].parity);
    after_copies();
  }
  __device__ void await_half(int stage, int half) const {
#pragma unroll
    for (int part = 0; part < Form::kHalfParts; ++part) await_part(stage, half, part);
  }
  __device__ Ring<1> p_ring(int of) const {
    return Ring<1>(shared_.p_ring[of]);
  }

  /// q, as fragments of the first operand.
  __device__ void load_q(const LatentPiece& piece) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const LatentRow at(params_, piece, row(h));
      const std::uint16_t* const from =
          params_.q + (at.is_there ? at.offset(params_.q_strides) + threadIdx.x % 4 * 2 : 0);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        q_[i / 2][i % 2 * 2 + h] =
            at.is_there ? *reinterpret_cast<const std::uint32_t*>(from + i * 8) : 0;
    }
  }

  __device__ void attend(const LatentPiece& piece) {
    Results o = {};
    softmax_ = {};
    tops_[0] = tops_[1] = -INFINITY;
    for (std::int32_t n = piece.begin; n < piece.end; n += 2) {
      const bool has_both = n + 1 < piece.end, is_last = n + 2 >= piece.end;
      if constexpr (Half == 0) {
        step_first(piece, n, has_both, is_last, o);
      } else {
        step_second(piece, n + 1, has_both, is_last, o);
      }
    }
    if (Form::kHasQv && piece.is_empty()) release_q();
    float factors[2];
    finish(factors, piece);
    store(o, piece, factors);
  }
  /// Blocks n, of this consumer, and n + 1.
  __device__ void step_first(const LatentPiece& piece, std::int32_t n, bool has_both, bool is_last,
                             Results& o) {
    Weights p;
    float correction[2];
    const bool has_moved = weigh_block(piece, n, is_last, p, correction);
    if (has_moved) scale_rows(o, correction);
    add_own(o, p);
    await_values(o);
    v_release(Half);
    if (!has_both) return;
    follow_other(o);
    add_others(o);
    await_values(o);
    p_release();
    v_release(kOther);
  }
  /// Blocks n - 1 and n, which is this consumer's.
  __device__ void step_second(const LatentPiece& piece, std::int32_t n, bool has_both, bool is_last,
                              Results& o) {
    Scores s;
    if (has_both) multiply_scores(s);
    if (is_last && Form::kHasQv) release_q();
    follow_other(o);
    add_others(o);
    Weights p;
    float correction[2];
    bool has_moved = false;
    if (has_both) has_moved = weigh(piece, n, s, p, correction);  // under the product
    await_values(o);
    p_release();
    v_release(kOther);
    if (!has_both) return;
    if (has_moved) scale_rows(o, correction);
    add_own(o, p);
    await_values(o);
    v_release(Half);
  }
  __device__ bool weigh_block(const LatentPiece& piece, std::int32_t n, bool is_last, Weights& p,
                              float (&correction)[2]) {
    Scores s;
    multiply_scores(s);
    if (is_last && Form::kHasQv) release_q();
    return weigh(piece, n, s, p, correction);
  }
  __device__ void release_q() {
    q_ring().release(q_at_);
    q_at_.advance();
  }

  /// Scores of the block in this consumer's stage.
  __device__ void multiply_scores(Scores& s) {
    const Ring<1> keys(shared_.k_ring[Half]);
    const std::uint64_t k = Box<64, kBoxRowBytes>::k_major(tile_address(shared_.k[Half]));
    ptx::wgmma_fence_operand(s);
    keys.wait_full(at_[Half]);
    if constexpr (Form::kHasLists) {
      after_copies();
      for (int i = 0; i < 2; ++i) valid_[i] = shared_.valid[Half][i];
    }
    ptx::wgmma_fence_sync_aligned();
#pragma unroll
    for (int i = 0; i < 4; ++i)
      multiply_k16<Element, 64, arch::Major::kK>(s, q_[i], advance_descriptor(k, i * 2), i > 0);
    if constexpr (Form::kHasQv) {
      const std::uint64_t qv = Box<64, 2 * Form::kValueDims>::k_major(tile_address(shared_.qv));
      const std::uint64_t v =
          Box<64, 2 * Form::kValueDims>::k_major(tile_address(shared_.v[Half][0]));
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const int half = Half ^ part;  // in the order in which they come
#pragma unroll
        for (int i = 0; i < Form::kHalfDims / 16; ++i) {
          if (i % kPartSteps == 0) await_part(Half, half, i / kPartSteps);
          const int units = (half * Form::kHalfBytes + i / 4 * kSparseBoxBytes + i % 4 * 32) / 16;
          multiply_k16<Element, 64, arch::Major::kK>(s, advance_descriptor(qv, units),
                                                     advance_descriptor(v, units), true);
        }
      }
    }
    ptx::wgmma_commit_group_sync_aligned();
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(s);
    release_keys<Form::kCtas>(keys, at_[Half]);
  }

  /// Scores become weights, for both consumers. True if results so far are to be corrected.
  __device__ bool weigh(const LatentPiece& piece, std::int32_t n, Scores& s, Weights& p,
                        float (&correction)[2]) {
    if constexpr (Form::kHasLists) {
      hide_missing(s);
      if (params_.max_logits != nullptr) {
        for (int h = 0; h < 2; ++h) tops_[h] = fmaxf(tops_[h], row_maximum(s, h));
      }
    } else {
      const std::int32_t first = n * kernels::kSparseBlockKeys;
      if (first + kernels::kSparseBlockKeys > piece.length) clear_values(piece.length - first);
      hide(s, first);
    }
    float base[2];
    const bool has_moved = softmax_.raise_reference<true>(s, params_.scale_log2, base, correction);
    softmax_.exponentiate(s, params_.scale_log2, base, correction);
    pack_operand<Element, 64>(p, s);
    hand_on(p);
    return has_moved;
  }
  /// Scores of keys that a row does not see become -inf.
  __device__ void hide(Scores& s, std::int32_t first) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const std::int32_t seen =
          limits_[h] - first -
          static_cast<std::int32_t>(arch::accumulator_first_column(threadIdx.x % 128));
      if (seen >= kernels::kSparseBlockKeys) continue;
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (arch::accumulator_row(i) == h && arch::accumulator_column(i) >= seen) s[i] = -INFINITY;
    }
  }
  /// Scores of entries that name no row become -inf.
  __device__ void hide_missing(Scores& s) const {
    if ((valid_[0] & valid_[1]) == 0xffffffffu) return;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const std::uint32_t bits = valid_[arch::accumulator_column(i) / 32] >>
                                 arch::accumulator_first_column(threadIdx.x % 128);
      if ((bits >> arch::accumulator_column(i) % 32 & 1) == 0) s[i] = -INFINITY;
    }
  }
  /// Values from key `from` of this consumer's block on, which are of no key and may be anything.
  __device__ void clear_values(std::int32_t from) const {
    if constexpr (!Form::kHasQv) {
      for (int half = 0; half < 2; ++half) await_half(Half, half);
    }
    constexpr std::int32_t kChunks = 2 * Form::kHalfBoxes * kBoxRowBytes / 16;  // of a row
    const std::int32_t count = (kernels::kSparseBlockKeys - from) * kChunks;
#pragma unroll 1
    for (auto i = static_cast<std::int32_t>(threadIdx.x % 128); i < count; i += 128) {
      const std::int32_t line = from + i / kChunks, chunk = i % kChunks;
      *reinterpret_cast<uint4*>(shared_.v[Half][0] + chunk / 8 * kSparseBoxBytes +
                                line * kBoxRowBytes + chunk % 8 * 16) = make_uint4(0, 0, 0, 0);
    }
    ptx::fence_proxy_async_shared_cta();
    ptx::bar_sync<1 + Half, 128>();
  }

  /// Weights and what they are relative to, to the other consumer, when their place is free.
  __device__ void hand_on(const Weights& p) {
    p_ring(Half).wait_empty(p_at_[Half]);
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t line = ptx::shared_address(shared_.p[Half]) +
                               (threadIdx.x % 128 / 32 * 16 + lane % 16) * kBoxRowBytes;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      ptx::stmatrix<4>(
          arch::swizzle_address(arch::SmemSwizzle::k128B, line + i * 32 + lane / 16 * 16), p[i]);
    if (threadIdx.x % 4 == 0) {
#pragma unroll
      for (int h = 0; h < 2; ++h) shared_.references[Half][row(h)] = softmax_.max[h];
    }
    publish_to_products(p_ring(Half).full(p_at_[Half]));
    p_at_[Half].advance();
  }
  /// The other consumer's weights are there: results become relative to what they are.
  __device__ void follow_other(Results& o) {
    p_ring(kOther).wait_full(p_at_[kOther]);
    after_copies();
    float correction[2];
    bool has_moved = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float reference = shared_.references[kOther][row(h)];
      const float growth = (reference - softmax_.max[h]) * params_.scale_log2;
      correction[h] = growth > 0 ? ptx::ex2_approx_ftz_f32(-growth) : 1.0f;
      has_moved = has_moved || growth > 0;
      softmax_.max[h] = reference;
      softmax_.sum[h] *= correction[h];
    }
    if (__any_sync(0xffffffffu, has_moved)) scale_rows(o, correction);
  }
  __device__ void p_release() {
    p_ring(kOther).release(p_at_[kOther]);
    p_at_[kOther].advance();
  }

  __device__ std::uint64_t values(int stage) const {
    // Scores waited for all values of the block, here or before the weights were handed on.
    if constexpr (!Form::kHasQv) await_half(stage, Half);
    return Box<64, 2 * Form::kHalfDims>::mn_major(tile_address(shared_.v[stage][Half]));
  }
  __device__ void add_own(Results& o, const Weights& p) const {
    const std::uint64_t v = values(Half);
    ptx::wgmma_fence_operand(o);
    ptx::wgmma_fence_sync_aligned();
    multiply_pv<Element, Form::kHalfDims, 64>(o, p, v);
    ptx::wgmma_commit_group_sync_aligned();
  }
  __device__ void add_others(Results& o) const {
    const std::uint64_t v = values(kOther);
    const std::uint64_t p = Box<64, kBoxRowBytes>::k_major(tile_address(shared_.p[kOther]));
    ptx::wgmma_fence_operand(o);
    ptx::wgmma_fence_sync_aligned();
#pragma unroll
    for (int i = 0; i < 4; ++i)
      multiply_k16<Element, Form::kHalfDims, arch::Major::kMN>(
          o, advance_descriptor(p, i * 2), advance_descriptor(v, i * 16 * kBoxRowBytes / 16), true);
    ptx::wgmma_commit_group_sync_aligned();
  }
  static __device__ void await_values(Results& o) {
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(o);
  }
  /// This consumer reads its half of a stage's values no more.
  __device__ void v_release(int stage) {
    release_half<Form::kCtas>(shared_.v_ring[stage][Half].empty);
    at_[stage].advance();
  }

  /// What results are multiplied with at the end. Both consumers' references are the same now.
  __device__ void finish(float (&factors)[2], const LatentPiece& piece) {
    float sums[2];
    for (int h = 0; h < 2; ++h) {
      sums[h] = quad_sum(softmax_.sum[h]);
      if (threadIdx.x % 4 == 0) shared_.sums[piece_parity_][Half][row(h)] = sums[h];
      if constexpr (Form::kHasLists) {
        tops_[h] = quad_max(tops_[h]);
        if (threadIdx.x % 4 == 0) shared_.tops[piece_parity_][Half][row(h)] = tops_[h];
      }
    }
    ptx::bar_sync<3, 256>();
#pragma unroll
    for (int h = 0; h < 2; ++h)
      factors[h] = finish_row(sums[h] + shared_.sums[piece_parity_][kOther][row(h)], piece, h);
  }
  __device__ float finish_row(float sum, const LatentPiece& piece, int h) const {
    const LatentRow at(params_, piece, row(h));
    const bool has_sink = params_.sink != nullptr && piece.partial < 0 && at.is_there;
    const float max = softmax_.max[h];
    const RowEnd end(max, params_.scale_log2, sum, has_sink ? params_.sink + at.head : nullptr);
    const bool is_empty = max == -INFINITY;
    if (Half == 0 && threadIdx.x % 4 == 0) {
      if (piece.partial >= 0) {
        params_.partial_lse[partial_row(piece) + row(h)] =
            is_empty ? -INFINITY : max * params_.scale_log2 + log2f(sum);
      } else if (params_.lse != nullptr && at.is_there) {
        params_.lse[at.offset(params_.lse_strides)] = is_empty ? params_.empty_lse : end.lse;
      }
      if constexpr (Form::kHasLists) {
        const float top = fmaxf(tops_[h], shared_.tops[piece_parity_][kOther][row(h)]);
        if (params_.max_logits != nullptr && at.is_there)
          params_.max_logits[at.offset(params_.lse_strides)] = top * (params_.scale_log2 * kLn2);
      }
    }
    return end.factor;
  }
  /// Of partial results, the first of this CTA's.
  __device__ std::int64_t partial_row(const LatentPiece& piece) const {
    const std::int32_t rows = params_.ctas * kernels::kLatentTileRows;
    return std::int64_t{piece.partial} * rows + piece.first_row % rows;
  }

  /// Results go through a warp's own memory, that of the weights, 64 columns of bf16 or 32 of fp32
  /// at a time, so that each instruction writes whole lines.
  __device__ void store(const Results& o, const LatentPiece& piece, const float (&factors)[2]) {
    p_ring(Half).wait_empty(p_at_[Half]);
    if (piece.partial < 0) {
      store_final(o, piece, factors);
    } else {
      store_partial(o, piece, factors);
    }
  }
  __device__ std::uint8_t* staging() const {
    return shared_.p[Half] + threadIdx.x % 128 / 32 * 2048;
  }
  /// Row of the tile that a lane copies in turn i of 4.
  static __device__ std::uint32_t copied_row(int i) {
    return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 8 + 4 * i;
  }
  __device__ uint4 staged(int i) const {
    const std::uint32_t line = threadIdx.x % 32 / 8 + 4 * i, chunk = threadIdx.x % 8;
    return *reinterpret_cast<const uint4*>(staging() + line * kBoxRowBytes +
                                           chunk_in_line(line % 8, chunk));
  }
  __device__ void store_final(const Results& o, const LatentPiece& piece,
                              const float (&factors)[2]) const {
    std::uint16_t* rows[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const LatentRow at(params_, piece, copied_row(i));
      rows[i] = at.is_there ? params_.out + at.offset(params_.out_strides) +
                                  Half * Form::kHalfDims + threadIdx.x % 8 * 8
                            : nullptr;
    }
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t line =
        ptx::shared_address(staging()) + lane % 16 * kBoxRowBytes + lane / 16 * 16;
#pragma unroll
    for (int column = 0; column < Form::kHalfDims; column += 64) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        std::uint32_t words[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int source = column / 2 + arch::operand_source_16bit(i, j);
          const float factor = factors[j % 2];
          words[j] = Element::pack(o[source] * factor, o[source + 1] * factor);
        }
        ptx::stmatrix<4>(arch::swizzle_address(arch::SmemSwizzle::k128B, line + i * 32), words);
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (rows[i] != nullptr) *reinterpret_cast<uint4*>(rows[i] + column) = staged(i);
      __syncwarp();
    }
  }
  __device__ void store_partial(const Results& o, const LatentPiece& piece,
                                const float (&factors)[2]) const {
    const std::uint32_t first = threadIdx.x % 32 / 4, pair_in_quad = threadIdx.x % 4;
    float* const to = params_.partial_out +
                      (partial_row(piece) + copied_row(0)) * Form::kValueDims +
                      Half * Form::kHalfDims + threadIdx.x % 8 * 4;
#pragma unroll
    for (int column = 0; column < Form::kHalfDims; column += 32) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float* pair = &o[arch::accumulator_of(h, column / 4 + 2 * j)];
          const std::uint32_t chunk = 2 * j + pair_in_quad / 2;
          *reinterpret_cast<float2*>(staging() + (first + 8 * h) * kBoxRowBytes +
                                     chunk_in_line(first, chunk) + pair_in_quad % 2 * 8) =
              make_float2(pair[0] * factors[h], pair[1] * factors[h]);
        }
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; ++i)
        *reinterpret_cast<uint4*>(to + 4 * i * Form::kValueDims + column) = staged(i);
      __syncwarp();
    }
  }

  const kernels::LatentParams& params_;
  LatentShared<Form>& shared_;
  std::uint32_t q_[4][4];
  std::int32_t limits_[2];
  std::uint32_t valid_[2];  // of lists
  float tops_[2];           // likewise: the thread's largest scores
  OnlineSoftmax softmax_;
  RingPosition<1> at_[2], p_at_[2], q_at_;
  std::uint32_t piece_parity_ = 0;
};

}  // namespace tilewright::tile
