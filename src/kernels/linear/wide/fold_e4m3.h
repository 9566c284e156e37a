// The table that folds block scales of FP4 weights into e4m3 operands, in shared memory, and the
// weights out of their words by it: correctly rounded, 12 instructions for eight and 8 bytes of the
// table for every 16.
#pragma once

#include "formats/e4m3_magnitudes.h"
#include "formats/packed_weight.h"
#include "ptx/byte_permute.h"

#include <cstdint>

namespace tilewright::tile {

/// Magnitudes of e2m1 as e4m3 under every scale byte.
template <kernels::WeightFormat Format>
struct E4m3Table {
  std::uint64_t magnitudes[256];

  constexpr E4m3Table() : magnitudes() {
    for (std::uint32_t byte = 0; byte < 256; ++byte)
      magnitudes[byte] = kernels::e4m3_magnitudes(Format, byte);
  }
};
template <kernels::WeightFormat Format>
static __device__ const E4m3Table<Format> kE4m3Table;

/// The table in shared memory: for each scale byte the e4m3 codes of the eight magnitudes, 16 times
/// side by side, so that the lanes of a half warp read 8 bytes each from banks of their own
/// whatever their scales are. Bytes up to kFoldFirst stand for scales under which all magnitudes
/// round to zero.
inline constexpr int kFoldFirst = 103, kFoldEntries = 256 - kFoldFirst, kFoldEntryBytes = 128;
inline constexpr int kFoldTableBytes = kFoldEntries * kFoldEntryBytes;

__device__ inline uint2 load_shared_u2(std::uint32_t address) {
  return *static_cast<const uint2*>(__cvta_shared_to_generic(address));
}
__device__ inline uint4 load_shared_u4(std::uint32_t address) {
  return *static_cast<const uint4*>(__cvta_shared_to_generic(address));
}
__device__ inline std::uint32_t load_shared_u8(std::uint32_t address) {
  return *static_cast<const std::uint8_t*>(__cvta_shared_to_generic(address));
}

/// All threads of the CTA; a barrier must follow.
__device__ inline void fill_fold_table(std::uint32_t table, kernels::WeightFormat format) {
  auto* entries = static_cast<std::uint64_t*>(__cvta_shared_to_generic(table));
  const std::uint64_t* magnitudes = format == kernels::WeightFormat::kNvfp4
                                        ? kE4m3Table<kernels::WeightFormat::kNvfp4>.magnitudes
                                        : kE4m3Table<kernels::WeightFormat::kMxfp4>.magnitudes;
  constexpr int kCopies = kFoldEntryBytes / 8;
  for (std::uint32_t i = threadIdx.x; i < kFoldEntries * kCopies; i += blockDim.x)
    entries[i] = magnitudes[kFoldFirst + i / kCopies];
}

/// Eight braided codes as e4m3: four of row g, four of row g + 8 (element_of_word order).
/// `magnitudes` are the table's entries of the two rows' scale bytes.
__device__ inline void decode_fp4_e4m3(std::uint32_t (&a)[2], std::uint32_t word,
                                       const uint2 (&magnitudes)[2]) {
  const std::uint32_t upper = word << 2;
  const std::uint32_t selectors =
      (word & 0x43434343u) | (word >> 2 & 0x04040404u) | (upper & 0x30303030u);
  // Signs of a row's codes: in turn those that are bit 5 of a byte, and those that are bit 7.
  a[0] = ptx::prmt_b32(magnitudes[0].x, magnitudes[0].y, selectors) |
         (ptx::prmt_b32(word, upper, 0x1504) & 0x80808080u);
  a[1] = ptx::prmt_b32(magnitudes[1].x, magnitudes[1].y, selectors >> 16) |
         (ptx::prmt_b32(word, upper, 0x3726) & 0x80808080u);
}

/// Codes of a scale byte for this lane, whose copy of the table `lane_table` is.
__device__ inline uint2 look_up_fold(std::uint32_t lane_table, std::uint32_t scale) {
  return load_shared_u2(lane_table +
                        (max(scale, std::uint32_t{kFoldFirst}) - kFoldFirst) * kFoldEntryBytes);
}

}  // namespace tilewright::tile
