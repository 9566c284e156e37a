// Contract of the multicast copy: every CTA of a cluster loads a part of a tile for all of them,
// and shows what it got.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

struct MulticastCopyParams {
  /// 16-bit elements, no swizzle, boxes of kMulticastCopyCols x (kMulticastCopyRows / cluster
  /// size).
  alignas(64) std::uint8_t source_map[128];
  std::uint32_t*
      tiles_out;  ///< [num_tiles, cluster size, tile words]: the tile, as each CTA has it
  /// [clusters, cluster size, tile words]: the last tile of the cluster, as it lies in the shared
  /// memory of the next CTA; not written by clusters without a tile.
  std::uint32_t* from_next_cta;
  std::uint32_t* arrivals;  ///< [clusters]: sum of rank + 1 over all consumer threads
  std::int32_t tiles_x, tiles_y;
};

/// Tiles may hang over the end of the tensor; what lies outside is 0. Cluster sizes 1, 2, 4 and 8;
/// any number of clusters along x, which stride over the tiles.
inline constexpr int kMulticastCopyCols = 64;
inline constexpr int kMulticastCopyRows = 32;
inline constexpr int kMulticastCopyTileWords = kMulticastCopyCols * kMulticastCopyRows / 2;
inline constexpr int kMulticastCopyConsumers = 128;
inline constexpr int kMulticastCopyThreads = 32 + kMulticastCopyConsumers;

}  // namespace tilewright::kernels
