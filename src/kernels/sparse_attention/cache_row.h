// A row of 512 numbers in a warp, lane l holding 16l to 16l + 15: norm, rotation, and how it gets
// into a cache page and back.
#pragma once

#include "kernels/quantize/quantize_fp4.h"
#include "kernels/sparse_attention/kv_pages.h"
#include "kernels/sparse_attention/kv_row.h"
#include "tile/element.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kRowElems = 16;                        ///< of a lane
inline constexpr int kRopeLane = kKvPlainDims / kRowElems;  ///< the first lane with rotated numbers
using RowChunk = Chunk<LoadBf16>;

/// Of a row that Lanes neighbouring lanes hold, N numbers each; the same bits in all of them. All
/// lanes of the warp.
template <int Lanes, int N>
__device__ float sum_of_squares(const float (&x)[N]) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) sum = __fmaf_rn(x[i], x[i], sum);
#pragma unroll
  for (int lanes = Lanes / 2; lanes > 0; lanes /= 2)
    sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, lanes));
  return sum;
}

/// 1 / sqrt(mean + eps), each step rounded as IEEE says: the same on every device.
__device__ inline float inverse_rms(float sum, int elems, float eps) {
  return __frcp_rn(__fsqrt_rn(__fadd_rn(__fmul_rn(sum, 1.0f / static_cast<float>(elems)), eps)));
}

/// x *= factor
template <int N>
__device__ void scale_row(float (&x)[N], float factor) {
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = __fmul_rn(x[i], factor);
}

/// x *= weight, N bf16 of which are this lane's
template <int N>
__device__ void scale_row(float (&x)[N], const std::uint16_t* weight) {
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    const uint2 words = *reinterpret_cast<const uint2*>(weight + i);
    const float2 low = Bf16::unpack(words.x), high = Bf16::unpack(words.y);
    x[i] = __fmul_rn(x[i], low.x);
    x[i + 1] = __fmul_rn(x[i + 1], low.y);
    x[i + 2] = __fmul_rn(x[i + 2], high.x);
    x[i + 3] = __fmul_rn(x[i + 3], high.y);
  }
}

/// Rotates pairs (2i, 2i+1) by the angles of a row of the table, of which `pair` is the first of
/// this lane's; backwards with sign = -1.
template <int N>
__device__ void rotate_pairs(float (&x)[N], const float* table_row, int pair, float sign = 1) {
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const float c = table_row[pair + i];
    const float s = __fmul_rn(sign, table_row[kKvRopeDims / 2 + pair + i]);
    const float real = x[2 * i], imaginary = x[2 * i + 1];
    x[2 * i] = __fmaf_rn(-imaginary, s, __fmul_rn(real, c));
    x[2 * i + 1] = __fmaf_rn(imaginary, c, __fmul_rn(real, s));
  }
}

/// x rounded to bf16.
__device__ inline RowChunk to_bf16(const float (&x)[kRowElems]) {
  RowChunk chunk;
#pragma unroll
  for (int i = 0; i < RowChunk::kWords; ++i) chunk.words[i] = Bf16::pack(x[2 * i], x[2 * i + 1]);
  return chunk;
}
__device__ inline void to_f32(float (&x)[kRowElems], const RowChunk& chunk) {
#pragma unroll
  for (int i = 0; i < kRowElems; ++i) x[i] = chunk[i];
}

__device__ inline RowChunk to_chunk(const uint4 (&x)[2]) {
  return {{x[0].x, x[0].y, x[0].z, x[0].w, x[1].x, x[1].y, x[1].z, x[1].w}};
}
/// 32 bytes, at a multiple of 16.
__device__ inline RowChunk load_row_chunk(const void* from) {
  return to_chunk({static_cast<const uint4*>(from)[0], static_cast<const uint4*>(from)[1]});
}
__device__ inline void store_row_chunk(void* to, const RowChunk& c) {
  static_cast<uint4*>(to)[0] = make_uint4(c.words[0], c.words[1], c.words[2], c.words[3]);
  static_cast<uint4*>(to)[1] = make_uint4(c.words[4], c.words[5], c.words[6], c.words[7]);
}

__device__ inline bool has_row(const kernels::KvPages& cache, std::int32_t row) {
  return row >= 0 && row < cache.num_rows;
}

/// kv_plain_bytes() and kv_scale_bytes() of a format of rows of 512, which alone are here.
__device__ constexpr int row_plain_bytes(KvFormat format) {
  return format == KvFormat::kBf16  ? kv_plain_bytes(KvFormat::kBf16)
         : format == KvFormat::kFp8 ? kv_plain_bytes(KvFormat::kFp8)
                                    : kv_plain_bytes(KvFormat::kNvfp4);
}
__device__ constexpr int row_scale_bytes(KvFormat format) {
  return format == KvFormat::kBf16  ? kv_scale_bytes(KvFormat::kBf16)
         : format == KvFormat::kFp8 ? kv_scale_bytes(KvFormat::kFp8)
                                    : kv_scale_bytes(KvFormat::kNvfp4);
}

/// Where a row of the cache lies.
struct KvAddress {
  std::uint8_t* data;
  std::uint8_t* scales;

  __device__ KvAddress(const kernels::KvPages& cache, std::int32_t page, std::int32_t slot) {
    const int row = row_plain_bytes(cache.format) + kKvRopeBytes;
    const std::int64_t first = page * cache.page_stride, at = slot;
    data = cache.pages + (first + at * row);
    scales = cache.pages +
             (first + std::int64_t{cache.page_size} * row + at * row_scale_bytes(cache.format));
  }
  __device__ KvAddress(const kernels::KvPages& cache, std::int32_t row)
      : KvAddress(cache, page_of(cache, row), row - page_of(cache, row) * cache.page_size) {}

 private:
  static __device__ std::int32_t page_of(const kernels::KvPages& cache, std::int32_t row) {
    return static_cast<std::int32_t>(cache.page_divisor.divide(static_cast<std::uint32_t>(row)));
  }
};

/// Sixteen numbers as a format keeps them: codes (nvfp4: in x and y) and the code of their scale.
struct KvCodes {
  uint4 codes;
  std::uint32_t scale;
};

/// e4m3 with a power of two for each 64, which four lanes find together.
__device__ inline KvCodes encode_fp8_chunk(const RowChunk& chunk) {
  kernels::QuantizeParams rule = {};
  rule.is_pow2 = 1;
  rule.min_amax = kernels::kFp8MinAmax;
  std::uint32_t amax = chunk.amax_bits();
  amax = max(amax, __shfl_xor_sync(~0u, amax, 2));
  amax = max(amax, __shfl_xor_sync(~0u, amax, 1));
  const Fp8Scale scale(rule, amax);
  if (!scale.is_finite) return {make_uint4(0, 0, 0, 0), scale.stored};
  const float factor = __frcp_rn(scale.value);  // a power of two as well: products are exact
  const auto word = [&](int i) {
    return ptx::cvt_rn_satfinite_e4m3x4_f32(
        __fmul_rn(chunk[i], factor), __fmul_rn(chunk[i + 1], factor),
        __fmul_rn(chunk[i + 2], factor), __fmul_rn(chunk[i + 3], factor));
  };
  return {make_uint4(word(0), word(4), word(8), word(12)), scale.stored};
}
/// e2m1 with an e4m3 scale.
__device__ inline KvCodes encode_nvfp4_chunk(const RowChunk& chunk) {
  const Fp4Block block = nvfp4_block<false>(chunk, Nvfp4Tensor(1, ScaleChoice::kNearest));
  return {make_uint4(block.codes.x, block.codes.y, 0, 0), block.scale};
}

/// A row as its page keeps it. All lanes together; those of the rotated part keep bf16.
struct EncodedRow {
  KvFormat format;
  RowChunk chunk;  ///< as it came
  KvCodes plain;

  __device__ EncodedRow(KvFormat row_format, const RowChunk& row) : format(row_format), chunk(row) {
    if (format == KvFormat::kFp8) plain = encode_fp8_chunk(row);
    if (format == KvFormat::kNvfp4) plain = encode_nvfp4_chunk(row);
  }

  __device__ void store(const KvAddress& to, int lane) const {
    if (format == KvFormat::kBf16) return store_row_chunk(to.data + lane * 32, chunk);
    const bool is_plain = lane < kRopeLane;
    if (!is_plain) {
      const int at = row_plain_bytes(format) + (lane - kRopeLane) * 32;
      store_row_chunk(to.data + at, chunk);
    } else if (format == KvFormat::kFp8) {
      reinterpret_cast<uint4*>(to.data)[lane] = plain.codes;
    } else {
      reinterpret_cast<uint2*>(to.data)[lane] = make_uint2(plain.codes.x, plain.codes.y);
    }
    // Behind the scales are zero bytes, as many as the last lanes would have scales.
    const auto scale = static_cast<std::uint8_t>(is_plain ? plain.scale : 0);
    if (format == KvFormat::kNvfp4) to.scales[lane] = scale;
    if (format == KvFormat::kFp8 && lane % 4 == 0) to.scales[lane / 4] = scale;
  }

  /// What load_kv_row() would give.
  __device__ RowChunk decoded(int lane) const {
    if (format == KvFormat::kBf16 || lane >= kRopeLane) return chunk;
    uint4 out[2];
    if (format == KvFormat::kFp8) {
      unpack_e4m3<Bf16>(out, plain.codes, unpack_e8m0(plain.scale));
    } else {
      unpack_e2m1(out, make_uint2(plain.codes.x, plain.codes.y), unpack_e4m3(plain.scale));
    }
    return to_chunk(out);
  }
};

/// Reads a row. All lanes.
__device__ inline RowChunk load_kv_row(KvFormat format, const KvAddress& from, int lane) {
  const auto at = static_cast<std::uint32_t>(lane);
  uint4 out[2];
  if (format == KvFormat::kBf16) load_kv<KvFormat::kBf16>(out, from.data, from.scales, at);
  if (format == KvFormat::kFp8) load_kv<KvFormat::kFp8>(out, from.data, from.scales, at);
  if (format == KvFormat::kNvfp4) load_kv<KvFormat::kNvfp4>(out, from.data, from.scales, at);
  return to_chunk(out);
}

}  // namespace tilewright::tile
