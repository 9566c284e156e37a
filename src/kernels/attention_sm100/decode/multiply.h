// The multiplying thread of a tensor-core decode kernel:
//
//   S^T [128 keys, rows] = K Q^T           K and Q K-major, as they came
//   O^T [head_dim, rows] += V^T P^T        V read with its dimensions as M, P with rows contiguous
//
// Keys are the 128 lanes of Tensor Memory, so that 16 rows cost what 16 columns do. Operands of
// codes are codes: a row of queries or weights is then three columns, parts of the same number.
#pragma once

#include "arch/tcgen05_descriptors.h"
#include "kernels/attention_sm100/decode/state.h"
#include "ptx/tcgen05_mma.h"
#include "tile/tensor_memory.h"

#include <cstdint>

namespace tilewright::tile {

template <class Decode>
struct DecodeMultiplier {
  static constexpr std::uint32_t kSpanKeys = kernels::kTensorDecodeKeys;
  static constexpr std::uint32_t kKeysAtOnce = Decode::kIsCodes ? 32 : 16;

  const Decode& d;
  DeepPosition k_at, v_at;  ///< the next items
  std::uint32_t scored = 0, added = 0, segments = 0;

  __device__ explicit DecodeMultiplier(const Decode& decode) : d(decode) { v_at.advance(d.stages); }

  /// All segments of the agenda as it is.
  __device__ void run() {
#pragma unroll 1
    for (std::int32_t i = 0; i < d.state.agenda.count(); ++i) {
      const DecodeSegment& segment = d.state.agenda[i];
      const std::int32_t steps = Decode::steps(segment);
      if (steps == 0) continue;
      const std::uint32_t n = static_cast<std::uint32_t>(16 * Decode::kParts * d.chunks(segment));
      wait_for_tensor_memory(ptx::shared_address(&d.state.q_ready), segments++ & 1);
      score(n);
#pragma unroll 1
      for (std::int32_t step = 0; step < steps; ++step) {
        if (step + 1 < steps) score(n);
        add_values(n, step > 0);
      }
    }
  }

 private:
  __device__ std::uint32_t instruction(std::uint32_t m, std::uint32_t n, bool is_values) const {
    const auto type = static_cast<std::uint32_t>(
        Decode::kIsCodes       ? static_cast<std::uint32_t>(arch::MmaF8Type::kE4m3)
        : d.params.is_f16 != 0 ? static_cast<std::uint32_t>(arch::MmaF16Type::kF16)
                               : static_cast<std::uint32_t>(arch::MmaF16Type::kBf16));
    const arch::Major major = is_values ? arch::Major::kMN : arch::Major::kK;
    return arch::encode_mma_instruction(arch::MmaInstruction{
        .a_type = type, .b_type = type, .a_major = major, .b_major = major, .m = m, .n = n});
  }
  __device__ static void multiply(std::uint32_t to, std::uint64_t a, std::uint64_t b,
                                  std::uint32_t how, bool accumulate) {
    if constexpr (Decode::kIsCodes) {
      ptx::tcgen05_mma_f8f6f4(to, a, b, how, accumulate);
    } else {
      ptx::tcgen05_mma_f16(to, a, b, how, accumulate);
    }
  }
  __device__ std::uint64_t describe(std::uint32_t address, std::uint32_t leading,
                                    std::uint32_t stride, arch::SmemSwizzle swizzle) const {
    return arch::encode_tcgen05_descriptor({.start_address = address,
                                            .leading_bytes = leading,
                                            .stride_bytes = stride,
                                            .swizzle = swizzle});
  }
  __device__ void next(DeepPosition& at) const {
    at.advance(d.stages), at.advance(d.stages);
  }

  __device__ void score(std::uint32_t n) {
    const std::uint32_t span = d.span(), how = instruction(kSpanKeys, n, false);
    const std::uint32_t to = d.columns + (scored & 1) * Decode::kColumns;
    ptx::mbarrier_wait_parity(d.full(k_at), k_at.parity);
    const std::uint64_t a = describe(d.item(k_at), 16, 8 * span, d.swizzle());
    const std::uint64_t b = describe(d.queries, 16, 8 * span, d.swizzle());
#pragma unroll 1
    for (std::uint32_t at = 0; at < d.row_bytes(); at += 32) {  // an instruction's k: 32 bytes
      const std::uint32_t box = at / span, within = at % span;
      multiply(to, a + ((box * (kSpanKeys * span) + within) >> 4),
               b + ((box * (n * span) + within) >> 4), how, at > 0);
    }
    ptx::tcgen05_commit(d.empty(k_at));
    ptx::tcgen05_commit(ptx::shared_address(&d.state.s_full[scored & 1]));
    ++scored, next(k_at);
  }

  __device__ void add_values(std::uint32_t n, bool accumulate) {
    const std::uint32_t span = d.span(), dims = d.dims(), m = dims < 128 ? dims : 128;
    const std::uint32_t how = instruction(m, n, true);
    ptx::mbarrier_wait_parity(d.full(v_at), v_at.parity);
    wait_for_tensor_memory(ptx::shared_address(&d.state.p_ready), added++ & 1);
    // Rows of 16 bytes of weights: of 8 keys one behind another, as are groups of 8 keys.
    const std::uint64_t b = describe(d.weights, 128, kSpanKeys * 16, arch::SmemSwizzle::kNone);
    const std::uint64_t a = describe(d.item(v_at), kSpanKeys * span, 8 * span, d.swizzle());
    const std::uint32_t m_bytes = kSpanKeys * (Decode::kIsCodes ? m : 2 * m);
#pragma unroll 1
    for (std::uint32_t tile = 0; tile * m < dims; ++tile) {
      const std::uint32_t to = d.columns + Decode::kResults + tile * Decode::kColumns;
#pragma unroll 1
      for (std::uint32_t key = 0; key < kSpanKeys; key += kKeysAtOnce)
        multiply(to, a + ((tile * m_bytes + key * span) >> 4), b + (key * 16 >> 4), how,
                 accumulate || key > 0);
    }
    ptx::tcgen05_commit(d.empty(v_at));
    ptx::tcgen05_commit(ptx::shared_address(&d.state.o_done));
    next(v_at);
  }
};

}  // namespace tilewright::tile
