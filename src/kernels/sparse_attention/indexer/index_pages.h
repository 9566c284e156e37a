// The paged keys of the lightning indexer as kernels get them (formats/index_page.h).
#pragma once

#include "formats/index_page.h"
#include "formats/kv_page.h"

#include <cstdint>

namespace tilewright::kernels {

/// Row `page * page_size + slot` of keys of 128 numbers.
struct IndexPages {
  std::uint8_t* pages;       ///< 16-byte aligned
  std::int64_t page_stride;  ///< bytes; a multiple of 16
  FastDivisor page_divisor;  ///< of page_size
  std::int32_t page_size;
  std::int32_t num_rows;  ///< num_pages * page_size; a row outside [0, num_rows) is none
  IndexFormat format;
};

}  // namespace tilewright::kernels
