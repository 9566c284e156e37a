// Where the paged keys of the lightning indexer lie.
#pragma once

#include "kernels/sparse_attention/indexer/indexer_logits.h"
#include "ptx/load_store.h"

#include <cstdint>

namespace tilewright::tile {

/// Where a key lies.
struct KeyPlace {
  const std::uint8_t* data;
  const std::uint8_t* scales;

  __device__ KeyPlace(const kernels::IndexPages& keys, std::int32_t page, std::int32_t slot) {
    const IndexPageLayout layout = {keys.format, keys.page_size, keys.page_stride};
    data = keys.pages + layout.data_offset(page, slot);
    scales = keys.pages + layout.scale_offset(page, slot);
  }
};

/// Where the key of a slot lies, of pages or without.
template <class Params>
__device__ KeyPlace place_of(const Params& params, std::int32_t page, std::int32_t slot) {
  KeyPlace place(params.keys, page, slot);
  if constexpr (kernels::kHasRanges<Params>) {
    place.scales = params.key_scales + std::int64_t{slot} * kIndexScaleBytes;
  }
  return place;
}

/// Page of a key of a sequence whose block table is given; -1 if there is none. Keys without pages
/// are one page.
template <class Params>
__device__ std::int32_t key_page(const Params& params, const std::int32_t* table, std::int32_t key,
                                 std::int32_t num_keys) {
  if constexpr (kernels::kHasRanges<Params>) {
    return key < num_keys ? 0 : -1;
  } else {
    const auto block =
        static_cast<std::int32_t>(params.keys.page_divisor.divide(static_cast<std::uint32_t>(key)));
    if (key >= num_keys || block >= params.num_blocks) return -1;
    return static_cast<std::int32_t>(ptx::ld_global_nc_u32(table + block));
  }
}
/// Number of a key in its page.
template <class Params>
__device__ std::int32_t key_slot(const Params& params, std::int32_t key) {
  return kernels::kHasRanges<Params> ? key : key % params.keys.page_size;
}
/// The block table of a unit's sequence; of keys without pages there is none.
template <class Params>
__device__ const std::int32_t* block_table_of(const Params& params,
                                              const kernels::IndexerUnit& unit) {
  if constexpr (kernels::kHasRanges<Params>) {
    return nullptr;
  } else {
    return params.block_table + unit.sequence * params.block_table_stride;
  }
}
/// Which keys the tokens of a unit see, in shared memory: ends, and with ranges behind them where
/// they begin, and the address of the logit of key 0 of each, in two halves. An address takes fewer
/// registers than what it is made of.
template <class Params>
struct UnitRanges {
  static constexpr bool kRanges = kernels::kHasRanges<Params>;
  static constexpr int kBegins = 16, kLow = 24, kHigh = 32;  ///< words from the ends

  std::int32_t* ends;

  __device__ bool is_before(std::int32_t token, std::int32_t key) const {
    if constexpr (kRanges) return key < ends[token + kBegins];
    return false;
  }
  /// With ranges, by a thread a token.
  __device__ void set(std::int32_t token, const kernels::IndexerRange& range, float* row) const {
    const auto address = reinterpret_cast<std::uint64_t>(row);
    ends[token] = range.end;
    ends[token + kBegins] = range.begin;
    ends[token + kLow] = static_cast<std::int32_t>(address);
    ends[token + kHigh] = static_cast<std::int32_t>(address >> 32);
  }
  __device__ float* row(std::int32_t token) const {
    const auto low = static_cast<std::uint32_t>(ends[token + kLow]),
               high = static_cast<std::uint32_t>(ends[token + kHigh]);
    return reinterpret_cast<float*>(std::uint64_t{high} << 32 | low);
  }
};
__device__ inline bool has_page(const kernels::IndexPages& keys, std::int32_t page) {
  const std::uint32_t rows = static_cast<std::uint32_t>(keys.num_rows);
  return static_cast<std::uint32_t>(page) < keys.page_divisor.divide(rows);
}

}  // namespace tilewright::tile
