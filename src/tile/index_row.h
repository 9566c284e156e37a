// A key of the lightning indexer in eight lanes, 16 neighbours each: how it gets into its page.
#pragma once

#include "formats/index_page.h"
#include "kernels/sparse_attention/kv_pages.h"
#include "tile/hadamard.h"
#include "tile/kv_row.h"

#include <cstdint>

namespace tilewright::tile {

/// Codes of a key, and the scale this lane stores: fp8 the bits of an fp32, mxfp4 a byte for every
/// two lanes. All lanes of a warp together: four keys.
struct EncodedKey {
  IndexFormat format;
  uint4 codes;
  std::uint32_t scale;

  __device__ EncodedKey(IndexFormat key_format, const RowChunk& chunk) : format(key_format) {
    kernels::QuantizeParams rule = {};
    rule.is_pow2 = 1;
    std::uint32_t amax = chunk.amax_bits();
    amax = max(amax, __shfl_xor_sync(~0u, amax, 1));
    if (format == IndexFormat::kMxfp4) {
      rule.min_amax = 0x6p-126f;
      const Mxfp4Scale block(rule, amax);
      const uint2 packed = block.codes(chunk);
      codes = make_uint4(packed.x, packed.y, 0, 0);
      scale = block.stored;
      return;
    }
    amax = max(amax, __shfl_xor_sync(~0u, amax, 2));
    amax = max(amax, __shfl_xor_sync(~0u, amax, 4));
    rule.min_amax = kernels::kFp8MinAmax;
    const Fp8Scale block(rule, amax);
    codes = fp8_codes(chunk, block, false);
    scale = block.is_finite ? __float_as_uint(block.value) : 0x7fc00000u;
  }

  /// To a row that the cache has; `lane` of eight.
  __device__ void store(const kernels::KvPages& cache, std::int32_t row, int lane) const {
    const auto page = static_cast<std::int32_t>(
        cache.page_divisor.divide(static_cast<std::uint32_t>(row)));
    const std::int32_t slot = row - page * cache.page_size;
    const IndexPageLayout layout = {format, cache.page_size, cache.page_stride};
    std::uint8_t* const data = cache.pages + layout.data_offset(page, slot);
    std::uint8_t* const scales = cache.pages + layout.scale_offset(page, slot);
    if (format == IndexFormat::kMxfp4) {
      reinterpret_cast<uint2*>(data)[lane] = make_uint2(codes.x, codes.y);
      if (lane % 2 == 0) scales[lane / 2] = static_cast<std::uint8_t>(scale);
    } else {
      reinterpret_cast<uint4*>(data)[lane] = codes;
      if (lane == 0) *reinterpret_cast<std::uint32_t*>(scales) = scale;
    }
  }
};

}  // namespace tilewright::tile
