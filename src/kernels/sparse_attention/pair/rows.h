// The warps that have rows: scores become weights, and results leave.
//
// A row (a head) is two threads', 64 lanes apart. Each gets sums over its half of the dimensions,
// keeps those of its half of the keys, and sends the others away; and so with weights, of which
// both need all.
#pragma once

#include "kernels/sparse_attention/pair/shared.h"
#include "ptx/barrier_vote.h"
#include "ptx/math.h"
#include "ptx/packed_math.h"
#include "tile/element.h"
#include "tile/element_chunk.h"
#include "tile/packed_row.h"
#include "tile/row_end.h"

#include <cstdint>

#include <math.h>

namespace tilewright::tile {

/// `Task` says which rows there are (lists.h, all_keys.h).
template <class Form, class Task>
class SparsePairRows {
  using Element = typename Form::Element;
  using Params = typename Task::Params;
  using Piece = typename Task::Piece;

 public:
  __device__ SparsePairRows(const Params& params, SparsePairShared<Form>& shared,
                            std::uint32_t columns, std::uint32_t rank)
      : all_(params),
        params_(Task::numbers(params)),
        shared_(shared),
        columns_(own_lanes(columns)),
        warp_(ptx::uniform(threadIdx.x / 32)),
        lane_(threadIdx.x % 32),
        part_(warp_ / 2),
        task_(params, part_, rank) {}

  __device__ void run(std::int32_t group) {
    typename Task::Walk walk(all_, group);
    Piece piece, next;
    if (!walk.next(piece)) return;
    load_queries(piece);
    for (bool is_more = true; is_more; piece = next) {
      const std::int32_t blocks = Task::blocks(all_, piece);
      attend(piece, blocks);
      is_more = walk.next(next);
      if (is_more) load_queries(next);  // while the last values are added
      finish(piece, blocks);
    }
  }

 private:
  using Scores = float[32];
  using Weights = std::uint32_t[16];

  /// The two warps that have the same rows.
  __device__ std::uint32_t row_barrier() const { return 1 + warp_ % 2; }
  __device__ void sync_rows() const { ptx::bar_sync<64>(row_barrier()); }
  __device__ std::uint32_t other() const { return warp_ ^ 2; }
  __device__ float base() const {
    return reference_ == -INFINITY ? 0.0f : reference_ * params_.scale_log2;
  }
  __device__ std::uint32_t scores() const { return columns_ + step_ % 2 * Form::kScores; }
  __device__ std::uint32_t weights() const { return columns_ + step_ % 2 * Form::kWeights; }

  /// Half of the row of a query, two numbers a cell; zeros where there is no head.
  __device__ void load_queries(const Piece& piece) const {
    if (Task::blocks(all_, piece) == 0) return;
    const std::int32_t own = task_.row(piece);
    if constexpr (Form::kHasWideQueries) load_wide(task_.query(piece, own), own >= 0);
    if constexpr (Form::kHasTail)
      load_tail(task_.query_tail(piece, own) + part_ * Form::kTailDims, own >= 0);
    hand_over(shared_.q_ready);
  }
  __device__ void load_wide(const std::uint16_t* query, bool has) const {
    const auto* const from = reinterpret_cast<const uint4*>(query + part_ * kPairHalfDims);
#pragma unroll 2
    for (int i = 0; i < kPairBoxes; ++i) {
      std::uint32_t cells[32] = {};
      if (has && Form::has_half(part_)) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const uint4 words = from[i * 8 + j];
          cells[4 * j] = words.x, cells[4 * j + 1] = words.y;
          cells[4 * j + 2] = words.z, cells[4 * j + 3] = words.w;
        }
      }
      __syncwarp();
      ptx::tcgen05_st_32x32b(columns_ + Form::kQueries + i * 32, cells);
    }
  }
  __device__ void load_tail(const std::uint16_t* from, bool has) const {
    std::uint32_t cells[Form::kTailDims / 2] = {};
    if (has) {
#pragma unroll
      for (int j = 0; j < Form::kTailDims / 8; ++j) {
        const uint4 words = reinterpret_cast<const uint4*>(from)[j];
        cells[4 * j] = words.x, cells[4 * j + 1] = words.y;
        cells[4 * j + 2] = words.z, cells[4 * j + 3] = words.w;
      }
    }
    __syncwarp();
    ptx::tcgen05_st_32x32b(columns_ + Form::kQueries + kPairHalfDims / 2, cells);
  }
  __device__ void hand_over(std::uint64_t& barrier) const {
    ptx::tcgen05_wait_st_sync_aligned();
    ptx::tcgen05_fence_before_thread_sync();
    arrive_at_leader(barrier);
  }

  __device__ void attend(const Piece& piece, std::int32_t blocks) {
    row_ = task_.row(piece);
    has_rows_ = __any_sync(0xffffffffu, row_ >= 0);
    task_.begin(piece, row_);
    reference_ = top_ = -INFINITY;
    sum_ = 0.0f;
    std::uint32_t ahead = task_.seen_by(piece, 0, blocks);
    for (std::int32_t n = 0; n < blocks; ++n, ++step_) {
      const std::uint32_t valid = task_.own_keys(ahead);
      ahead = task_.seen_by(piece, n + 1, blocks);
      wait_for_pair(ptx::shared_address(&shared_.s_full[step_ % 2]), step_ / 2 & 1);
      Weights weights = {};
      if (has_rows_) {
        weigh(weights, n == 0, valid);
      } else {
        release_scores();
      }
      store_weights(weights);
      hand_over(shared_.p_ready[step_ % 2]);
    }
  }
  /// The thread's half of the keys of a block.
  __device__ void load_scores(Scores& x, std::uint32_t valid) const {
    Scores away;
    ptx::tcgen05_ld_32x32b(away, scores() + (part_ ^ 1) * 32);
    ptx::tcgen05_ld_32x32b(x, scores() + part_ * 32);
    ptx::tcgen05_wait_ld_sync_aligned();
    ptx::tcgen05_fence_operand(away);
    ptx::tcgen05_fence_operand(x);
    release_scores();
    shared_.sums[warp_].send(away, params_.scale_log2);
    sync_rows();
    shared_.sums[other()].add_to(x);
    if (__all_sync(0xffffffffu, valid == 0xffffffffu)) return;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      if ((valid >> i & 1) == 0) x[i] = -INFINITY;
    }
  }

  /// Their columns may be those of the next block's scores.
  __device__ void release_scores() const {
    if constexpr (Form::kHasTail) {
      ptx::tcgen05_fence_before_thread_sync();
      arrive_at_leader(shared_.tail.s_read);
    }
  }

  /// Scores become weights relative to the reference, which stays while no score of the warps' rows
  /// is more than 2^8 above it. Where one is, weights are made a second time.
  __device__ void weigh(Weights& weights, bool is_first, std::uint32_t valid) {
    Scores x;
    load_scores(x, valid);
    const float largest = largest_of(x, -INFINITY);
    top_ = fmaxf(top_, largest);
    if (!is_first) {
      // A difference of two infinities is no growth: NaN compares false.
      const bool grows = (largest - reference_) * params_.scale_log2 > kRescaleAbove;
      const float sum = exponentiate(weights, x);
      send(weights);
      if (!ptx::bar_red_or<64>(row_barrier(), grows)) {
        sum_ += sum;
        return;
      }
    }
    raise_reference(largest, is_first);
    sum_ += exponentiate(weights, x);
    send(weights);
    sync_rows();
  }
  /// Returns the sum of the weights before they are rounded.
  __device__ float exponentiate(Weights& weights, const Scores& x) const {
    const float2 scale = ptx::both(params_.scale_log2), minus_base = ptx::both(-base());
    float2 part[2] = {};
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float2 power =
          ptx::fma_rn_f32x2(make_float2(x[2 * i], x[2 * i + 1]), scale, minus_base);
      const float2 weight = ptx::ex2_approx_ftz_f32(power);
      part[i % 2] = ptx::add_rn_f32x2(part[i % 2], weight);
      weights[i] = Element::pack(weight.x, weight.y);
    }
    return (part[0].x + part[0].y) + (part[1].x + part[1].y);
  }
  /// Weights to the row's other thread; a barrier shows them.
  __device__ void send(const Weights& weights) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      shared_.weights[warp_][i][lane_] =
          make_uint4(weights[4 * i], weights[4 * i + 1], weights[4 * i + 2], weights[4 * i + 3]);
    }
  }
  __device__ void raise_reference(float largest, bool is_first) {
    shared_.numbers[warp_][0][lane_] = largest;
    sync_rows();
    const float before = reference_ * params_.scale_log2;
    reference_ = fmaxf(reference_, fmaxf(largest, shared_.numbers[other()][0][lane_]));
    if (is_first) return;
    const float factor = ptx::ex2_approx_ftz_f32(before - base());
    sum_ *= factor;
    wait_for_values(shared_, step_ - 1);
    scale_row<kPairHalfDims>(columns_ + kPairResults, factor);
  }
  /// All weights of the row as an operand, where the block's scores were.
  __device__ void store_weights(const Weights& weights) const {
    Weights rest = {};
    if (has_rows_) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint4 words = shared_.weights[other()][i][lane_];
        rest[4 * i] = words.x, rest[4 * i + 1] = words.y;
        rest[4 * i + 2] = words.z, rest[4 * i + 3] = words.w;
      }
    }
    ptx::tcgen05_st_32x32b(this->weights() + part_ * 16, weights);
    ptx::tcgen05_st_32x32b(this->weights() + (part_ ^ 1) * 16, rest);
  }

  /// Results of a piece, divided by their sums.
  __device__ void finish(const Piece& piece, std::int32_t blocks) {
    if (blocks > 0) wait_for_values(shared_, step_ - 1);
    if (!has_rows_) return;
    if (blocks > 0) {
      shared_.numbers[warp_][0][lane_] = sum_;
      shared_.numbers[warp_][1][lane_] = top_;
      sync_rows();
      sum_ += shared_.numbers[other()][0][lane_];
      top_ = fmaxf(top_, shared_.numbers[other()][1][lane_]);
    }
    const float* const sink = params_.sink == nullptr || piece.partial >= 0 || row_ < 0
                                  ? nullptr
                                  : task_.sink(piece, row_);
    const RowEnd end(reference_, params_.scale_log2, sum_, sink);
    if (part_ == 0 && row_ >= 0) store_numbers(piece, end);
#pragma unroll 1
    for (int column = 0; column < kPairHalfDims; column += 32) {
      float o[1][32] = {};
      if (blocks > 0) load_row(o, columns_ + kPairResults + column);
      if (row_ >= 0 && Form::has_half(part_)) store(piece, column, o[0], end.factor);
      __syncwarp();
    }
  }
  /// 32 results of the thread's row.
  __device__ void store(const Piece& piece, int column, const float* o, float factor) const {
    const std::int64_t dim = part_ * kPairHalfDims + column;
    if (piece.partial < 0) {
      auto* const to = reinterpret_cast<uint4*>(task_.out(piece, row_) + dim);
#pragma unroll
      for (int i = 0; i < 4; ++i) to[i] = pack_chunk<Element>(o + 8 * i, factor);
      return;
    }
    auto* const to = reinterpret_cast<float4*>(
        params_.partial_out + task_.partial_row(piece, row_) * Form::kValueDims + dim);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      to[i] = make_float4(o[4 * i] * factor, o[4 * i + 1] * factor, o[4 * i + 2] * factor,
                          o[4 * i + 3] * factor);
    }
  }
  __device__ void store_numbers(const Piece& piece, const RowEnd& end) const {
    const bool is_empty = reference_ == -INFINITY;
    if (piece.partial >= 0) {
      params_.partial_lse[task_.partial_row(piece, row_)] =
          is_empty ? -INFINITY : base() + log2f(sum_);
      return;
    }
    const std::int64_t at = task_.lse_offset(piece, row_);
    if (params_.lse != nullptr) params_.lse[at] = is_empty ? params_.empty_lse : end.lse;
    if constexpr (Task::kHasMaxima) {
      if (params_.max_logits != nullptr)
        params_.max_logits[at] = top_ * (params_.scale_log2 * kLn2);
    }
  }

  const Params& all_;
  const typename Task::Numbers& params_;
  SparsePairShared<Form>& shared_;
  std::uint32_t columns_;  ///< of Tensor Memory, in the warp's lanes
  std::uint32_t warp_, lane_, part_;
  Task task_;
  std::int32_t row_ = -1;                                       ///< of the piece at hand; < 0: none
  bool has_rows_ = false;                                       ///< the warp
  std::int32_t step_ = 0;                                       ///< blocks of all pieces so far
  float reference_ = -INFINITY, top_ = -INFINITY, sum_ = 0.0f;  ///< of scores without scale
};

}  // namespace tilewright::tile
