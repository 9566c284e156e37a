// Contract of the layout probe: offsets of constant layouts, as a kernel computes them.
#pragma once

#include "arch/fragments/smem_tiles.h"
#include "arch/fragments/wgmma.h"

#include <cstdint>

namespace tilewright::kernels {

struct LayoutProbeParams {
  std::uint32_t* offsets;  ///< [kLayoutProbeCases][count] out
  std::uint32_t count;     ///< linear indices 0..count-1
};

inline constexpr int kLayoutProbeThreads = 128;
/// The layouts probed, as constants: a swizzled tile, a fragment, and extents that are no powers of
/// two.
inline constexpr ComposedLayout kLayoutProbeTile =
    arch::make_smem_tile(arch::Major::kK, arch::SmemSwizzle::k128B, 16, 128, 128);
inline constexpr Layout kLayoutProbeFragment = arch::wgmma_c(128);
inline constexpr Layout kLayoutProbeOdd =
    make_layout(make_shape(make_shape(3, 5), 7), make_stride(make_stride(70, 2), 10));
inline constexpr int kLayoutProbeCases = 3;

}  // namespace tilewright::kernels
