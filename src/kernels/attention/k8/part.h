// What attention_k8_* work on: parts, their places in memory, and their scales.
#pragma once

#include "kernels/attention/k7/value_columns.h"
#include "kernels/attention/k8/k8_prepare.h"
#include "ptx/convert_fp8.h"

#include <cstdint>

namespace tilewright::tile {

using kernels::AttentionStrides;
using kernels::K8Operand;
using kernels::K8PrepareParams;
using kernels::K8Scales;

/// What a CTA works on at a time.
struct PreparePart {
  std::int32_t operand;  // -1: nothing is left
  std::int32_t batch, head, first_row;
  std::int32_t begin, len;      // of the sequence
  std::int32_t first_position;  // of its first row

  __device__ void find(const K8PrepareParams& params, std::uint32_t idx) {
    operand = -1;
    if (idx >= params.num_parts) return;
    const auto first = [&](int i) { return params.operands[i].first_part; };
    operand = idx >= first(2) ? 2 : idx >= first(1) ? 1 : 0;
    const K8Operand& of = params.operands[operand];
    idx -= first(operand);
    const auto heads = static_cast<std::uint32_t>(of.heads);
    const auto tiles = static_cast<std::uint32_t>(of.tiles);
    head = static_cast<std::int32_t>(idx % heads);
    first_row = static_cast<std::int32_t>(idx / heads % tiles) * kernels::kK8TileRows;
    batch = static_cast<std::int32_t>(idx / heads / tiles);
    begin = of.cu != nullptr ? of.cu[batch] : 0;
    len = of.cu != nullptr ? of.cu[batch + 1] - begin : of.rows;
    const std::int32_t other =
        of.other_cu != nullptr ? of.other_cu[batch + 1] - of.other_cu[batch] : of.other_rows;
    first_position = other - len;
  }
};

/// What the numbers of a block have in common.
struct PrepareScale {
  float factor, descale;
  std::uint32_t kept;  // of the bits of codes

  __device__ PrepareScale(const K8Operand& operand, std::uint32_t amax_bits) {
    if (operand.is_pow2 != 0) amax_bits = (amax_bits + 0x7fffffu) & ~0x7fffffu;
    const bool is_finite = amax_bits < 0x7f800000u;
    const float amax = fmaxf(is_finite ? __uint_as_float(amax_bits) : 1.0f, kernels::kK8MinAmax);
    factor = __fdiv_rn(kernels::kK8MaxCode, amax);
    descale =
        is_finite ? __fmul_rn(amax, operand.descale_factor) : __uint_as_float(kernels::kK8NanBits);
    kept = is_finite ? ~0u : 0u;
  }
  __device__ std::uint32_t codes(float a, float b, float c, float d) const {
    return kept & ptx::cvt_rn_satfinite_e4m3x4_f32(__fmul_rn(a, factor), __fmul_rn(b, factor),
                                                   __fmul_rn(c, factor), __fmul_rn(d, factor));
  }
};

/// One part, as all functions see it.
struct PrepareWork {
  const K8PrepareParams& params;
  const PreparePart& part;

  __device__ const K8Operand& operand() const { return params.operands[part.operand]; }
  __device__ std::int64_t kv_head() const {
    return std::int64_t{part.batch} * params.kv_heads +
           part.head / (operand().heads / params.kv_heads);
  }
  __device__ std::int64_t offset(const AttentionStrides& s, std::int64_t row) const {
    return part.batch * s.batch + (part.begin + row) * s.row + part.head * s.head;
  }
  __device__ const std::uint16_t* source(std::int64_t row) const {
    return static_cast<const std::uint16_t*>(operand().in) + offset(operand().in_strides, row);
  }

  // The scale of a block of this part; its descale is written by one thread.
  __device__ PrepareScale block_scale(std::uint32_t amax, int block_of_part, bool is_writer) const {
    const K8Operand& o = operand();
    const PrepareScale scale(o, amax);
    const int block = part.first_row / o.block_rows + block_of_part;
    if (!is_writer || block >= o.blocks || o.descale == nullptr) return scale;
    o.descale[(std::int64_t{part.batch} * o.heads + part.head) * o.blocks + block] = scale.descale;
    if (o.descale_ref != nullptr) {
      atomicMax(reinterpret_cast<unsigned*>(o.descale_ref + kv_head()),
                __float_as_uint(scale.descale));
    }
    return scale;
  }
  // Index of the scale of this head or tensor.
  __device__ std::int64_t shared_idx() const {
    return params.scales == K8Scales::kTensor ? 0 : kv_head();
  }
  __device__ PrepareScale shared_scale() const {
    const K8Operand& o = operand();
    const PrepareScale scale(o, o.amax[shared_idx()]);
    const bool is_first = params.scales == K8Scales::kTensor
                              ? part.batch == 0 && part.head == 0
                              : part.head % (o.heads / params.kv_heads) == 0;
    if (threadIdx.x == 0 && part.first_row == 0 && is_first && o.descale != nullptr)
      o.descale[shared_idx()] = scale.descale;
    return scale;
  }
};

/// Where a sequence's columns begin, and how many are to be written: its keys, and zeros up to the
/// next sequence.
struct PrepareSpan {
  std::int64_t begin = 0, count;

  __device__ explicit PrepareSpan(const PrepareWork& work) {
    const PreparePart& part = work.part;
    std::int64_t end = work.operand().columns;
    if (work.operand().cu != nullptr) {
      begin = kernels::value_column(part.begin, part.batch);
      if (part.batch + 1 < work.params.batch)
        end = kernels::value_column(part.begin + part.len, part.batch + 1);
    }
    count = end - begin;
  }
};

}  // namespace tilewright::tile
