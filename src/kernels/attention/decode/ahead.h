// The speculative prologue of a decode kernel, before the preceding kernels on the stream end: it
// assumes that they leave lengths and block table unchanged, computes the CTA's segments and
// prefetches its queries and first keys to L2. After the wait, keys are read from memory as it is
// then, and segments are used only if all lengths are unchanged.
#pragma once

#include "kernels/attention/decode/agenda.h"
#include "kernels/attention/decode/place.h"
#include "kernels/attention/decode/rows.h"
#include "kernels/attention/decode/shape.h"
#include "ptx/load_store.h"
#include "ptx/prefetch.h"

#include <cstdint>

namespace tilewright::tile {

template <kernels::DecodeShape Shape>
class DecodeAhead {
  using Params = kernels::DecodeParamsOf<Shape>;
  static constexpr std::int32_t kLine = 128, kMostLengths = Shape.exchange_bytes() / 4;
  static constexpr std::int32_t lines(int bytes) { return bytes < kLine ? 1 : bytes / kLine; }

 public:
  /// `copies`: kMostLengths words in shared memory that are free until check().
  __device__ DecodeAhead(const Params& p, std::int32_t* copies) : p_(p), copies_(copies) {}

  __device__ bool is_possible() const { return p_.ahead_keys > 0 && p_.batch <= kMostLengths; }
  /// The guess as it is now. All threads; behind a barrier, lengths() are what was read.
  __device__ void copy_lengths() const {
#pragma unroll 1
    for (auto b = first(); b < p_.batch; b += Shape.threads())
      copies_[b] = ptx::ld_relaxed_gpu_s32(p_.guess + b);
  }
  __device__ const std::int32_t* lengths() const {
    return copies_;
  }

  /// By all threads.
  __device__ void prefetch(const DecodeAgenda<Params>& agenda) const {
    std::int32_t left = p_.ahead_keys;
#pragma unroll 1
    for (std::int32_t i = 0; i < agenda.count(); ++i) {
      const DecodeSegment& segment = agenda[i];
      prefetch_operands(segment);
      const std::int32_t begin = max(segment.begin * kernels::kDecodePieceKeys, segment.key_begin);
      const std::int32_t count = min(max(segment.key_end - begin, 0), left);
      prefetch_keys(segment, begin, count);
      left -= count;
    }
  }

  /// After the wait: this thread's first length as it is, for check(); loaded early.
  __device__ std::int32_t look() const {
    return is_possible() && first() < p_.batch ? ptx::ld_relaxed_gpu_s32(p_.lengths + first()) : 0;
  }
  /// All threads: are lengths what the agenda was made from?
  __device__ bool check(std::int32_t looked) const {
    if (!is_possible()) return false;
    bool is_same = first() >= p_.batch || copies_[first()] == looked;
#pragma unroll 1
    for (auto b = first() + Shape.threads(); b < p_.batch; b += Shape.threads())
      is_same = is_same && copies_[b] == ptx::ld_relaxed_gpu_s32(p_.lengths + b);
    return __syncthreads_and(is_same ? 1 : 0) != 0;
  }

 private:
  __device__ static std::int32_t first() {
    return static_cast<std::int32_t>(threadIdx.x);
  }

  /// Of a row of queries, and of one of a cache.
  __device__ std::int32_t query_lines() const {
    if constexpr (Shape.is_any) return lines(2 * p_.head_dim + kLine - 1);
    return lines(2 * Shape.head_dim);
  }
  __device__ std::int32_t key_lines() const {
    if constexpr (Shape.is_any) return lines(p_.row_bytes + kLine - 1);
    return lines(Shape.row_bytes);
  }

  /// Before the keys: prefetches complete in order.
  __device__ void prefetch_operands(const DecodeSegment& segment) const {
    if (first() == 0 && p_.descale.k != nullptr) {
      const std::int64_t at =
          segment.batch_idx * p_.descale.batch + segment.kv_head * p_.descale.head;
      ptx::prefetch_global_L2(p_.descale.k + at);
      ptx::prefetch_global_L2(p_.descale.v + at);
    }
    const std::int32_t count = query_lines();
#pragma unroll 1
    for (auto i = first(); i < Shape.rows() * count; i += Shape.threads()) {
      const DecodeRow row(p_, segment.kv_head, segment.m_tile * Shape.rows() + i / count);
      if (row.exists)
        ptx::prefetch_global_L2(static_cast<const std::uint8_t*>(p_.q) +
                                2 * row.offset(p_.q_strides, segment.batch_idx) +
                                i % count * kLine);
    }
  }
  __device__ void prefetch_keys(const DecodeSegment& segment, std::int32_t begin,
                                std::int32_t count) const {
    const std::int32_t each = key_lines();
    const kernels::DecodeCache& cache = p_.cache;
#pragma unroll 1
    for (auto i = first(); i < count * each; i += Shape.threads()) {
      const std::int32_t key = begin + i / each;
      const DecodePlace place(cache, key);
      const std::int32_t page = place.page(cache, segment.batch_idx, ptx::ld_relaxed_gpu_s32);
      if (!DecodePlace::is_page(cache, page)) continue;
      const std::int64_t at = place.offset(cache, page, segment.kv_head) + i % each * kLine;
      ptx::prefetch_global_L2(cache.k + at);
      ptx::prefetch_global_L2(cache.v + at);
    }
  }

  const Params& p_;
  std::int32_t* copies_;
};

}  // namespace tilewright::tile
