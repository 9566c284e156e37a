// Logits of MXFP4 keys whose block scales lie too far apart for e4m3 (keys.h), or of such
// queries: in fp32, slow, exact up to the sums over blocks and heads.
#pragma once

#include "kernels/sparse_attention/indexer/indexer_logits.h"
#include "kernels/sparse_attention/indexer/keys.h"
#include "kernels/sparse_attention/kv_row.h"

#include <cstdint>

namespace tilewright::tile {

/// sum of q . k over the 128 dims of two rows of codes with their scale bytes.
__device__ inline float dot_mxfp4(const std::uint8_t* q, std::uint32_t q_scales,
                                  const std::uint8_t* k, std::uint32_t k_scales) {
  float dot = 0;
  for (int block = 0; block < kIndexScaleBytes; ++block) {
    float sum = 0;
    for (int i = 0; i < kIndexMxfp4Block / 2; ++i) {
      const std::uint32_t a = q[block * 16 + i], b = k[block * 16 + i];
      sum += unpack_e2m1(a & 15) * unpack_e2m1(b & 15) + unpack_e2m1(a >> 4) * unpack_e2m1(b >> 4);
    }
    const float scaled = sum * unpack_e8m0(q_scales >> 8 * block & 0xff);
    dot = __fmaf_rn(scaled, unpack_e8m0(k_scales >> 8 * block & 0xff), dot);
  }
  return dot;
}

/// The logit of one key and one token; lanes share the heads.
__device__ inline float exact_logit(const kernels::IndexerLogitsParams& params, std::int32_t token,
                                    const KeyPlace& place) {
  const std::uint32_t k_scales = *reinterpret_cast<const std::uint32_t*>(place.scales);
  float sum = 0;
  for (auto head = static_cast<std::int32_t>(threadIdx.x % 32); head < params.heads; head += 32) {
    const std::int64_t at = std::int64_t{token} * params.heads + head;
    const std::uint32_t q_scales = reinterpret_cast<const std::uint32_t*>(params.q_scales)[at];
    const float dot = dot_mxfp4(params.q + at * (kIndexDims / 2), q_scales, place.data, k_scales);
    sum = __fmaf_rn(dot > 0 || isnan(dot) ? dot : 0.0f, params.weights[at], sum);
  }
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
  return sum;
}

/// Overwrites the logits of a warp's 16 keys from `first_key` on, with the lengths or ranges of the
/// unit's tokens.
template <class Params>
__device__ void write_exact_logits(const Params& params, const kernels::IndexerUnit& unit,
                                   const UnitRanges<Params>& ranges, std::int32_t first_key) {
  const std::int32_t* const table = block_table_of(params, unit);
  __syncwarp();
  for (std::int32_t key = first_key; key < first_key + 16; ++key) {
    for (std::int32_t i = 0; i < unit.count; ++i) {
      if (key >= ranges.ends[i] || ranges.is_before(i, key)) continue;
      const std::int32_t page = key_page(params, table, key, ranges.ends[i]);
      if (!has_page(params.keys, page)) continue;
      const KeyPlace place = place_of(params, page, key_slot(params, key));
      const float logit = exact_logit(params, unit.token + i, place);
      if constexpr (UnitRanges<Params>::kRanges) {
        if (threadIdx.x % 32 == 0) ranges.row(i)[key] = logit;
      } else {
        if (threadIdx.x % 32 == 0)
          params.logits[(unit.token + i) * params.logits_stride + key] = logit;
      }
    }
  }
}

}  // namespace tilewright::tile
