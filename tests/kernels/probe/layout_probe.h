// Contract of the layout probe: offsets and coordinates of constant layouts, as a kernel computes
// them.
#pragma once

#include "arch/fragments/mma_sync.h"
#include "arch/fragments/smem_tiles.h"
#include "arch/fragments/wgmma.h"
#include "layout/fragment_views.h"

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

/// Who holds what: a warpgroup's accumulators of 64 x 256, by element of a row-major tile and by
/// (row, column); and the A operand of two times two warps, shared along n, by (m, k).
inline constexpr TiledMma kLayoutProbeMma = {.atom = arch::make_wgmma_rs(256, 16)};
inline constexpr IntTuple kLayoutProbeScores = make_shape(64, 256);
inline constexpr Layout kLayoutProbeScatter =
    partition_C(kLayoutProbeMma, make_row_major(kLayoutProbeScores));
inline constexpr Layout kLayoutProbePlaces =
    partition_C(kLayoutProbeMma, make_identity_layout(kLayoutProbeScores));
inline constexpr TiledMma kLayoutProbeWarps = {.atom = arch::kMmaM16N8K16,
                                               .atom_layout = make_layout(make_shape(2, 2, 1))};
inline constexpr Layout kLayoutProbeOperand =
    partition_A(kLayoutProbeWarps, make_identity_layout(make_shape(64, 128)));

/// Registers by the rows and columns of a thread, and as the A operand of the next product.
inline constexpr Layout kLayoutProbeRegisters =
    make_fragment(kLayoutProbeMma, Operand::kC, kLayoutProbeScores);
inline constexpr Layout kLayoutProbeRowsColumns =
    layout_acc_mn(kLayoutProbeMma, kLayoutProbeRegisters);
inline constexpr Layout kLayoutProbeHandOff =
    convert_c_layout_to_a_layout(kLayoutProbeRegisters, make_shape(2, 2, 2));

inline constexpr int kLayoutProbeCases = 10;

}  // namespace tilewright::kernels
