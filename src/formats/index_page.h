// Bytes of a page of the keys of DeepSeek-V4's lightning indexer.
//
//   fp8      [page_size x 128][page_size x 4]    128 e4m3 | an fp32, a power of two
//   mxfp4    [page_size x 64][page_size x 4]     128 e2m1 (element 2i in the low half of byte i) |
//                                                4 ue8m0, one per 32 numbers
//
// Pages lie page_stride_bytes apart; rows are named as those of kv_page.h: one number,
// page * page_size + slot.
//
// Source   DeepGEMM's paged MQA logits; vLLM
#pragma once

#include <cstdint>

namespace tilewright {

/// In which numbers queries and keys of the indexer are.
enum class IndexFormat {
  kFp8,    ///< 128 e4m3 with one power of two: 132 bytes a key
  kMxfp4,  ///< 128 e2m1 with a power of two for each 32: 68 bytes a key
};

inline constexpr int kIndexDims = 128;
inline constexpr int kIndexRopeDims = 64;  ///< the last ones
inline constexpr int kIndexMxfp4Block = 32;
inline constexpr int kIndexScaleBytes = 4;  ///< of a key, in both formats

/// Bytes of the codes of a key.
constexpr int index_data_bytes(IndexFormat format) {
  return format == IndexFormat::kFp8 ? kIndexDims : kIndexDims / 2;
}
/// Bytes of a page, without what separates it from the next.
constexpr std::int64_t index_page_bytes(IndexFormat format, std::int64_t page_size) {
  return page_size * (index_data_bytes(format) + kIndexScaleBytes);
}
/// What page addresses and strides are a multiple of.
inline constexpr int kIndexPageAlignment = 16;

constexpr std::int64_t index_default_page_stride(IndexFormat format, std::int64_t page_size) {
  constexpr std::int64_t kStep = kIndexPageAlignment;
  return (index_page_bytes(format, page_size) + kStep - 1) / kStep * kStep;
}

/// Where things stand, in bytes from the first page.
struct IndexPageLayout {
  IndexFormat format;
  std::int32_t page_size;
  std::int64_t page_stride_bytes;  ///< a multiple of kIndexPageAlignment

  constexpr std::int64_t data_offset(std::int64_t page, std::int64_t slot) const {
    return page * page_stride_bytes + slot * index_data_bytes(format);
  }
  constexpr std::int64_t scale_offset(std::int64_t page, std::int64_t slot) const {
    return page * page_stride_bytes + std::int64_t{page_size} * index_data_bytes(format) +
           slot * kIndexScaleBytes;
  }
};

}  // namespace tilewright
