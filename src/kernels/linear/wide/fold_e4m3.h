// The table that folds block scales of FP4 weights into e4m3 operands, in shared memory.
#pragma once

#include "formats/packed_weight.h"
#include "tile/unpack_fp4.h"

#include <cstdint>

namespace tilewright::tile {

/// The table: for each scale byte the e4m3 codes of the eight magnitudes, 16 times side by side, so
/// that the lanes of a half warp read 8 bytes each from banks of their own whatever their scales
/// are. Bytes up to kFoldFirst stand for scales under which all magnitudes round to zero.
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

/// Codes of a scale byte for this lane, whose copy of the table `lane_table` is.
__device__ inline uint2 look_up_fold(std::uint32_t lane_table, std::uint32_t scale) {
  return load_shared_u2(lane_table +
                        (max(scale, std::uint32_t{kFoldFirst}) - kFoldFirst) * kFoldEntryBytes);
}

}  // namespace tilewright::tile
