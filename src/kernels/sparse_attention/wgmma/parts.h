// Parts of a query, merged by the CTAs that computed them, not by another launch: a warpgroup
// counts a part when its columns are written, and merges those columns of its share of the heads
// when all are counted. It waits behind its last piece, so whom it waits for does not wait.
#pragma once

#include "kernels/sparse_attention/pieces.h"
#include "kernels/sparse_attention/wgmma/shared.h"
#include "ptx/atomic.h"
#include "ptx/load_store.h"
#include "ptx/warp_roles.h"
#include "tile/element.h"
#include "tile/row_end.h"

#include <cstdint>

namespace tilewright::tile {

class SparseParts {
 public:
  __device__ SparseParts(const kernels::SparseWgmmaParams& params, std::int32_t group,
                         std::int32_t first_head, std::uint32_t half, std::uint32_t* seen)
      : params_(params),
        group_(group),
        first_head_(first_head),
        half_(static_cast<std::int32_t>(half)),
        seen_(seen) {}

  /// The warpgroup has written its columns of a piece.
  __device__ void count(const SparsePiece& piece) {
    if (piece.partial < 0 || params_.counters == nullptr) return;
    const kernels::SparseMerge of = params_.merge_of_slot[piece.partial];
    ptx::bar_sync<128>(static_cast<std::uint32_t>(1 + half_));
    if (threadIdx.x % 128 != 0) return;
    const std::uint64_t one =
        piece.partial == of.first_slot ? kFlip - static_cast<std::uint32_t>(of.parts - 1) : 1;
    const std::uint64_t before = ptx::atom_add_acq_rel_gpu_u64(counter(of), one);
    *seen_ |= (kIsPart | static_cast<std::uint32_t>(before >> 63)) << 2 * (piece.partial % 2);
  }
  /// Behind all pieces of the group, of which two may be parts.
  __device__ void merge() const {
    if (params_.counters == nullptr) return;
    ptx::bar_sync<128>(static_cast<std::uint32_t>(1 + half_));
#pragma unroll 1
    for (std::int32_t i = 0; i < 2; ++i) {
      const std::uint32_t seen = *seen_ >> 2 * i;
      if ((seen & kIsPart) == 0) continue;
      const kernels::SparseMerge of = params_.merge_of_slot[2 * group_ + i];
      if (threadIdx.x % 128 == 0) {
        while (ptx::ld_acquire_gpu_u64(counter(of)) >> 63 == (seen & 1)) {
        }
      }
      ptx::bar_sync<128>(static_cast<std::uint32_t>(1 + half_));
      const std::int32_t part = group_ - of.first_slot / 2, end = 64 * (part + 1) / of.parts;
      std::int32_t row = 64 * part / of.parts + static_cast<std::int32_t>(threadIdx.x / 32 % 4);
#pragma unroll 1
      for (; row < end && first_head_ + row < params_.decode.heads; row += 4)
        merge(of, first_head_ + row);
    }
  }

 private:
  static constexpr std::uint64_t kFlip = std::uint64_t{1} << 63;
  static constexpr std::uint32_t kIsPart = 2;
  static constexpr int kAtOnce = 8;  // parts on their way

  __device__ std::uint64_t* counter(const kernels::SparseMerge& of) const {
    return params_.counters + kernels::kSparseCountersOfGroup * (of.first_slot / 2) +
           first_head_ / 32 + half_;
  }
  // As combine() has it in two passes; here in one, which is less code that comes from memory.
  __device__ void merge(const kernels::SparseMerge& of, std::int32_t head) const {
    const kernels::SparseDecodeParams& p = params_.decode;
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    const std::int32_t column = half_ * 256 + lane * 4;
    float top = -INFINITY, sum = 0, o[8] = {};
#pragma unroll 1
    for (std::int32_t first = 0; first < of.parts; first += kAtOnce) {
      float lse[kAtOnce], larger = top;
      float x[kAtOnce][8] = {};
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const std::int32_t part = first + i;
        const std::int32_t slot = kernels::sparse_part_slot(of.first_slot, part);
        const std::int64_t at = std::int64_t{slot} * p.heads + head;
        lse[i] = -INFINITY;
        if (part >= of.parts) continue;
        const float* const from = p.partial_out + at * kKvDims + column;
        lse[i] = p.partial_lse[at];
#pragma unroll
        for (int j = 0; j < 8; j += 4)
          *reinterpret_cast<float4*>(&x[i][j]) = *reinterpret_cast<const float4*>(from + 32 * j);
      }
#pragma unroll
      for (const float of_part : lse) larger = fmaxf(larger, of_part);
      const float base = larger == -INFINITY ? 0.0f : larger;
      const float correction = ptx::ex2_approx_ftz_f32(top - base);
      top = larger;
      sum *= correction;
#pragma unroll
      for (float& element : o) element *= correction;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const float weight = ptx::ex2_approx_ftz_f32(lse[i] - base);
        sum += weight;
#pragma unroll
        for (int j = 0; j < 8; ++j) o[j] = fmaf(weight, x[i][j], o[j]);
      }
    }
    const RowEnd end(top, NoScale(), sum, p.sink == nullptr ? nullptr : p.sink + head);
    std::uint16_t* const to = p.out + sparse_offset(p, p.out_strides, of.query, head) + column;
#pragma unroll
    for (int j = 0; j < 8; j += 4) {
      *reinterpret_cast<uint2*>(to + 32 * j) =
          make_uint2(Bf16::pack(o[j] * end.factor, o[j + 1] * end.factor),
                     Bf16::pack(o[j + 2] * end.factor, o[j + 3] * end.factor));
    }
    if (column != 0 || p.lse == nullptr) return;
    p.lse[sparse_offset(p, p.lse_strides, of.query, head)] =
        top == -INFINITY ? p.empty_lse : end.lse;
  }

  const kernels::SparseWgmmaParams& params_;
  std::int32_t group_, first_head_, half_;
  /// Of the group's two slots, zero at first: bit 63 of the counter before, and kIsPart.
  std::uint32_t* seen_;
};

}  // namespace tilewright::tile
