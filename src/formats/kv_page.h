// Bytes of a page of a DeepSeek-V4 cache, and of one of DeepSeek-V3's.
//
//   bf16    [page_size x 1024]                       448 + 64 bf16
//   fp8     [page_size x 576][page_size x 8]         448 e4m3, 64 bf16 | 7 ue8m0, a zero byte
//   nvfp4   [page_size x 352][page_size x 32]        224 B of e2m1 (element 2i in the low half of
//                                                    byte i), 64 bf16 | 28 e4m3, 4 zero bytes
//   bf16, V3  [page_size x 1152]                     512 + 64 bf16
//   fp8, V3   [page_size x 656]                      512 e4m3, 4 fp32, 64 bf16
//
// Pages lie page_stride_bytes apart; what is between them is ignored. A row of the cache is
// named by one number, page * page_size + slot; -1 and all that is not below
// num_pages * page_size name none. Byte offsets have 64 bits: pools are larger than 4 GiB.
//
// Source   FlashMLA's "MODEL1" and "V32" caches (fp8), FlashInfer's NVFP4 cache for DeepSeek-V4
#pragma once

#include "base/fast_divisor.h"

#include <cstdint>

namespace tilewright {

/// How the plain values of a row are kept; the 64 that follow, with rotary positions, are bf16 in
/// every format. Rows of DeepSeek-V4 have 448 plain values, and are key and value in one; rows of
/// DeepSeek-V3 (multi-head latent attention) have 512, which are the value, and all 576 are the
/// key. The public names are NumberFormat (tilewright/format.h) and a head_dim.
enum class KvFormat {
  kBf16,     ///< 1024 bytes a row
  kFp8,      ///< 448 e4m3 and a power of two (ue8m0) for each 64: 584 bytes a row
  kNvfp4,    ///< 448 e2m1 and an e4m3 scale for each 16: 384 bytes a row
  kBf16Mla,  ///< V3: 1152 bytes a row
  kFp8Mla,   ///< V3.2: 512 e4m3 and an fp32 scale for each 128: 656 bytes a row
};

inline constexpr int kKvDims = 512;
inline constexpr int kKvPlainDims = 448;
inline constexpr int kKvRopeDims = 64;

inline constexpr int kKvMlaDims = 576;       ///< of a key of DeepSeek-V3; the value is kKvDims
inline constexpr int kKvFp8Block = 64;       ///< plain numbers that share a scale
inline constexpr int kKvNvfp4Block = 16;     ///< likewise
inline constexpr int kKvFp8MlaBlock = 128;   ///< likewise
inline constexpr int kKvFp8MlaScales = 512;  ///< offset of the scales in a row
inline constexpr int kKvRopeBytes = kKvRopeDims * 2;

constexpr bool kv_is_mla(KvFormat format) {
  return format == KvFormat::kBf16Mla || format == KvFormat::kFp8Mla;
}
/// Numbers of a row as a key: 512, or 576.
constexpr int kv_dims(KvFormat format) {
  return kv_is_mla(format) ? kKvMlaDims : kKvDims;
}

/// Bytes of a row in front of its rotated numbers: the plain ones, of kFp8Mla with their scales.
constexpr int kv_plain_bytes(KvFormat format) {
  if (format == KvFormat::kBf16Mla) return kKvDims * 2;
  if (format == KvFormat::kFp8Mla) return kKvFp8MlaScales + kKvDims / kKvFp8MlaBlock * 4;
  return format == KvFormat::kBf16  ? kKvPlainDims * 2
         : format == KvFormat::kFp8 ? kKvPlainDims
                                    : kKvPlainDims / 2;
}
/// From the data of a slot to that of the next: 1024, 576, 352; 1152, 656.
constexpr int kv_data_bytes(KvFormat format) {
  return kv_plain_bytes(format) + kKvRopeBytes;
}
/// From the scales of a slot to those of the next, zero bytes included: 0, 8, 32. Rows of V3 have
/// theirs inside: 0.
constexpr int kv_scale_bytes(KvFormat format) {
  if (kv_is_mla(format)) return 0;
  return format == KvFormat::kBf16 ? 0 : format == KvFormat::kFp8 ? 8 : 32;
}
/// Scales of a slot that count: 0, 7, 28; 0, 4.
constexpr int kv_scales(KvFormat format) {
  if (kv_is_mla(format)) return format == KvFormat::kFp8Mla ? kKvDims / kKvFp8MlaBlock : 0;
  return format == KvFormat::kBf16  ? 0
         : format == KvFormat::kFp8 ? kKvPlainDims / kKvFp8Block
                                    : kKvPlainDims / kKvNvfp4Block;
}
/// All bytes of a row: 1024, 584, 384; 1152, 656.
constexpr int kv_row_bytes(KvFormat format) {
  return kv_data_bytes(format) + kv_scale_bytes(format);
}

}  // namespace tilewright
