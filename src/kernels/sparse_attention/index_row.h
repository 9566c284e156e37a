// Rows of the lightning indexer in eight neighbouring lanes, 16 of 128 numbers each: the transform
// that queries and keys share, and their codes. To the last bit: formats/block_scale.h says what
// the codes are (mxfp4_ceil; fp8_1x128_ue8m0, whose scale keys store as fp32).
#pragma once

#include "formats/index_page.h"
#include "kernels/quantize/quantize_fp4.h"
#include "tile/element.h"
#include "tile/hadamard.h"

#include <cstdint>

namespace tilewright::tile {

using IndexChunk = Chunk<LoadBf16>;  ///< 16 bf16

/// Of rotated numbers, which are bf16 already: bf16(H x * 128^-0.5).
__device__ inline IndexChunk transform_index_row(const IndexChunk& rotated) {
  float x[kHadamardPerLane];
#pragma unroll
  for (int i = 0; i < kHadamardPerLane; ++i) x[i] = rotated[i];
  hadamard_128(x);
  IndexChunk chunk;
#pragma unroll
  for (int i = 0; i < IndexChunk::kWords; ++i) chunk.words[i] = Bf16::pack(x[2 * i], x[2 * i + 1]);
  return chunk;
}

/// This lane's 16 codes; the scale is that of all eight lanes. A row with a NaN or an infinity has
/// codes of zero and a scale of NaN.
struct IndexFp8Row {
  uint4 codes;
  float scale;

  __device__ explicit IndexFp8Row(const IndexChunk& chunk) {
    kernels::QuantizeParams rule = {};
    rule.is_pow2 = 1;
    rule.min_amax = kernels::kFp8MinAmax;
    std::uint32_t amax = chunk.amax_bits();
#pragma unroll
    for (int lanes = kHadamardLanes / 2; lanes > 0; lanes /= 2)
      amax = max(amax, __shfl_xor_sync(~0u, amax, lanes));
    const Fp8Scale found(rule, amax);
    codes = fp8_codes(chunk, found, false);
    scale = found.is_finite ? found.value : __uint_as_float(0x7fffffffu);
  }
};

/// This lane's 16 codes; the scale byte is that of two lanes. A block with a NaN or an infinity has
/// codes of zero and the byte 0xff.
struct IndexMxfp4Row {
  uint2 codes;
  std::uint32_t scale;

  __device__ explicit IndexMxfp4Row(const IndexChunk& chunk) {
    kernels::QuantizeParams rule = {};
    rule.min_amax = 0x6p-126f;
    std::uint32_t amax = chunk.amax_bits();
    amax = max(amax, __shfl_xor_sync(~0u, amax, 1));
    const Mxfp4Scale found(rule, amax);
    codes = found.codes(chunk);
    scale = found.stored;
  }
};

/// Quantises a transformed key and stores it at its codes and scales (IndexPageLayout). All lanes
/// of a warp take part; lanes of rows that are not to be stored pass is_stored = false.
__device__ inline void store_index_key(IndexFormat format, std::uint8_t* data, std::uint8_t* scales,
                                       const IndexChunk& chunk, bool is_stored) {
  const auto lane = static_cast<int>(threadIdx.x % kHadamardLanes);
  if (format == IndexFormat::kFp8) {
    const IndexFp8Row row(chunk);
    if (!is_stored) return;
    reinterpret_cast<uint4*>(data)[lane] = row.codes;
    if (lane == 0) *reinterpret_cast<float*>(scales) = row.scale;
  } else {
    const IndexMxfp4Row row(chunk);
    if (!is_stored) return;
    reinterpret_cast<uint2*>(data)[lane] = row.codes;
    if (lane % 2 == 0) scales[lane / 2] = static_cast<std::uint8_t>(row.scale);
  }
}

}  // namespace tilewright::tile
