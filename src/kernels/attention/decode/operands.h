// A piece of 16 keys and values in shared memory as operands of mma.sync, and queries to go with
// them. Keys of 16 bits come as they are. e4m3 becomes f16, exactly: a lane's four codes of a key
// are neighbours, so queries take dimensions in that order, and results come in the order in which
// values do.
#pragma once

#include "kernels/attention/decode/ring.h"
#include "ptx/convert_fp8.h"
#include "ptx/matrix_copy.h"
#include "ptx/mma_sync.h"
#include "tile/element.h"

#include <cstdint>

namespace tilewright::tile {

template <kernels::DecodeKv Kv>
struct DecodeOperands {
  static constexpr bool kIsCodes = Kv == kernels::DecodeKv::kE4m3;
  static constexpr bool kIsF16 = Kv != kernels::DecodeKv::kBf16;
  /// What queries and weights are rounded to.
  using Element = std::conditional_t<kIsF16, Fp16, Bf16>;

  __device__ static void multiply(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    if constexpr (kIsF16) {
      ptx::mma_sync_aligned_m16n8k16_f32_f16_f16_f32(d, a, b, d);
    } else {
      ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(d, a, b, d);
    }
  }

  /// Dimensions that are multiplied at once, by 16: two of them are a row of two chunks of codes.
  static constexpr int kKeySteps = kIsCodes ? 2 : 1;

  /// Keys 0 to 7 (b[.][0]) and 8 to 15 (b[.][1]) in dimensions 16 step and up, kKeySteps of them.
  template <int RowBytes>
  __device__ static void load_keys(std::uint32_t (&b)[kKeySteps][2][2], std::uint32_t keys,
                                   std::uint32_t step) {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t key = lane / 16 * 8 + lane % 8;
    const std::uint32_t chunk = step * (kIsCodes ? 1 : 2) + lane / 8 % 2;
    std::uint32_t d[4];
    ptx::ldmatrix<4>(d, keys + decode_chunk<RowBytes>(key, chunk));
    if constexpr (kIsCodes) {
#pragma unroll
      for (int i = 0; i < 4; ++i) convert(b[i % 2][i / 2], d[i]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) b[0][i / 2][i % 2] = d[i];
    }
  }

  /// Values in two blocks of eight dimensions, of 16 from 16 `step` on: codes' even ones and odd
  /// ones, else the lower and the upper ones. kValueSteps times that.
  static constexpr int kValueSteps = kIsCodes ? 2 : 1;
  template <int RowBytes>
  __device__ static void load_values(std::uint32_t (&b)[kValueSteps][2][2], std::uint32_t values,
                                     std::uint32_t step) {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t key = lane / 8 % 2 * 8 + lane % 8;
    const std::uint32_t chunk = step * (kIsCodes ? 1 : 2) + lane / 16;
    std::uint32_t d[4];
    ptx::ldmatrix<4, true>(d, values + decode_chunk<RowBytes>(key, chunk));
    if constexpr (kIsCodes) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        std::uint32_t pairs[2];
        convert(pairs, __byte_perm(d[i], 0, 0x3120));
        b[i / 2][0][i % 2] = pairs[0], b[i / 2][1][i % 2] = pairs[1];
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) b[0][i / 2][i % 2] = d[i];
    }
  }
  /// The first of a lane's dimensions in blocks 2 pair and 2 pair + 1 of eight; codes: of four
  /// neighbours, in turn of the even block and of the odd one; else of two of the even block, and
  /// eight further of the odd one.
  __device__ static std::uint32_t dim_of(int block, int column) {
    const std::uint32_t t = threadIdx.x % 4;
    if constexpr (kIsCodes)
      return static_cast<std::uint32_t>(block / 2 * 16 + block % 2 + column * 2) + t * 4;
    return static_cast<std::uint32_t>(block * 8 + column) + t * 2;
  }

  /// Where a pair of a lane's dimensions of queries in step `step` is: the lower one, or the upper.
  __device__ static std::uint32_t query_dim(int step, int pair) {
    const std::uint32_t t = threadIdx.x % 4;
    if constexpr (kIsCodes) return static_cast<std::uint32_t>(step * 16 + pair * 2) + t * 4;
    return static_cast<std::uint32_t>(step * 16 + pair * 8) + t * 2;
  }

 private:
  __device__ static void convert(std::uint32_t (&pairs)[2], std::uint32_t codes) {
    pairs[0] = ptx::cvt_rn_f16x2_e4m3x2(static_cast<std::uint16_t>(codes));
    pairs[1] = ptx::cvt_rn_f16x2_e4m3x2(static_cast<std::uint16_t>(codes >> 16));
  }
};

}  // namespace tilewright::tile
