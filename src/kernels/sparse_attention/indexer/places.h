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

/// Page of a key of a sequence whose block table is given; -1 if there is none.
__device__ inline std::int32_t key_page(const kernels::IndexerLogitsParams& params,
                                        const std::int32_t* table, std::int32_t key,
                                        std::int32_t num_keys) {
  const auto block =
      static_cast<std::int32_t>(params.keys.page_divisor.divide(static_cast<std::uint32_t>(key)));
  if (key >= num_keys || block >= params.num_blocks) return -1;
  return static_cast<std::int32_t>(ptx::ld_global_nc_u32(table + block));
}
__device__ inline bool has_page(const kernels::IndexPages& keys, std::int32_t page) {
  const std::uint32_t rows = static_cast<std::uint32_t>(keys.num_rows);
  return static_cast<std::uint32_t>(page) < keys.page_divisor.divide(rows);
}

}  // namespace tilewright::tile
