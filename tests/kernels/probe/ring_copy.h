// Contract of the ring copy: boxes of a tensor go through a ring of shared-memory stages, filled
// and drained by tensor copies, and are changed on the way.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// target = source + i, i = row-major index of the element in its box, modulo 2^16.
///
/// Both maps are of 16-bit elements with the same dimensions and swizzle 128B. Boxes lie at
/// origin + box index * box size; they may hang over any edge of the tensor. What lies outside is
/// read as 0 and not written.
struct RingCopyParams {
  alignas(64) std::uint8_t source_map[128];  ///< the driver's opaque CUtensorMap
  alignas(64) std::uint8_t target_map[128];
  std::uint32_t* checksum;    ///< [1], added to: sum of source * (i + 1) over whole boxes, mod 2^32
  std::int32_t origin[3];     ///< element of the first box, innermost first; [0] a multiple of 8
  std::int32_t num_boxes[3];  ///< boxes along each dimension; 1 along the third of a 2-D copy
};

/// Entries ring_copy_2d_s1, _s2, _s4 (stages) and ring_copy_3d_s1, _s2, _s4. Any grid: CTAs stride
/// over the boxes.
struct RingCopyBox {
  std::int32_t x, y, z;
};
inline constexpr RingCopyBox kRingCopyBox2d = {64, 32, 1};
inline constexpr RingCopyBox kRingCopyBox3d = {64, 8, 4};
inline constexpr int kRingCopyStageBytes = 64 * 32 * 2;
inline constexpr int kRingCopyConsumers = 128;
inline constexpr int kRingCopyThreads = 32 + kRingCopyConsumers;  ///< the first warp produces
inline constexpr int kRingCopyAlignment = 1024;
/// Dynamic shared memory to launch with.
constexpr int ring_copy_shared_bytes(int stages) {
  return stages * kRingCopyStageBytes + kRingCopyAlignment;
}

}  // namespace tilewright::kernels
