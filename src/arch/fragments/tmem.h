// Tensor Memory of sm_100 as layouts: what tcgen05.ld and st move, where tcgen05.mma puts D and
// looks for A.
//
// An address is lane * 65536 + column, with 128 lanes and 512 columns of 32 bits; for pairs of CTAs
// the layouts here add 2^24 for the second CTA. Layouts of narrower elements count in those
// elements, so a lane is worth 65536 * 32 / bits of them; recast() changes between the two. Source:
// PTX ISA, "tcgen05: Data Movement Shape", "Data path layout"; CuTe's TMEM atoms.
#pragma once

#include "layout/recast.h"

#include <cstdint>

namespace tilewright::arch {

inline constexpr std::int64_t kTmemLane = std::int64_t{1} << 16;  ///< one lane down, in columns
inline constexpr std::int64_t kTmemCta = std::int64_t{1} << 24;   ///< the peer CTA of a pair
inline constexpr int kTmemLanes = 128;
inline constexpr int kTmemColumns = 512;
inline constexpr int kTmemCellBits = 32;

/// Shapes of tcgen05.ld and tcgen05.st.
enum class TmemShape { k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 };

/// Registers that one repetition moves a thread.
constexpr int tmem_registers(TmemShape shape) {
  switch (shape) {
    case TmemShape::k16x128b:
      return 2;
    case TmemShape::k16x256b:
      return 4;
    default:
      return 1;
  }
}

/// tcgen05.ld / st .SHAPE.xNUM: (thread of the warp, register) -> address relative to the
/// operand's. The warp's own 32 lanes start at 32 * (warp % 4). `half_split` is the immediate of
/// .16x32bx2: how many columns further the upper 16 threads go.
constexpr Layout tmem_ld(TmemShape shape, std::int64_t num, std::int64_t half_split = 0) {
  const std::int64_t lane = kTmemLane;
  switch (shape) {
    case TmemShape::k32x32b:
      return make_layout(make_shape(32, num), make_stride(lane, 1));
    case TmemShape::k16x64b:
      return make_layout(make_shape(make_shape(2, 2, 8), num),
                         make_stride(make_stride(8 * lane, 1, lane), 2));
    case TmemShape::k16x128b:
      return make_layout(make_shape(make_shape(4, 8), make_shape(2, num)),
                         make_stride(make_stride(1, lane), make_stride(8 * lane, 4)));
    case TmemShape::k16x256b:
      return make_layout(make_shape(make_shape(4, 8), make_shape(2, 2, num)),
                         make_stride(make_stride(2, lane), make_stride(1, 8 * lane, 8)));
    case TmemShape::k16x32bx2:
      return make_layout(make_shape(make_shape(16, 2), num),
                         make_stride(make_stride(lane, half_split), 1));
  }
  return {};
}

/// How tcgen05.mma spreads the rows of D (and of A in Tensor Memory) over lanes.
enum class TmemRows {
  kM128,      ///< one CTA, M = 128: lane = row (the manual's layout D)
  kM64,       ///< one CTA, M = 64: rows 16w.. in lanes 32w.. (layout F)
  kM64Ws,     ///< M = 64, .ws: columns split in two halves of lanes (layout E)
  kM32Ws,     ///< M = 32, .ws: columns split in four quarters (layout G)
  kPairM256,  ///< two CTAs, M = 256: 128 rows each (layout A)
  kPairM128,  ///< two CTAs, M = 128: 64 rows each, columns split in halves (layout B)
};

constexpr std::int64_t tmem_m(TmemRows rows) {
  switch (rows) {
    case TmemRows::kM128:
      return 128;
    case TmemRows::kM64:
    case TmemRows::kM64Ws:
      return 64;
    case TmemRows::kM32Ws:
      return 32;
    case TmemRows::kPairM256:
      return 256;
    case TmemRows::kPairM128:
      return 128;
  }
  return 0;
}

/// D of tcgen05.mma: (row, column) -> address; one element a cell, 16-bit ones in the low half.
constexpr Layout tmem_c(TmemRows rows, std::int64_t n) {
  const std::int64_t lane = kTmemLane;
  switch (rows) {
    case TmemRows::kM128:
      return make_layout(make_shape(128, n), make_stride(lane, 1));
    case TmemRows::kM64:
      return make_layout(make_shape(make_shape(16, 4), n),
                         make_stride(make_stride(lane, 32 * lane), 1));
    case TmemRows::kM64Ws:
      return make_layout(make_shape(64, make_shape(n / 2, 2)),
                         make_stride(lane, make_stride(1, 64 * lane)));
    case TmemRows::kM32Ws:
      return make_layout(make_shape(32, make_shape(n / 4, 4)),
                         make_stride(lane, make_stride(1, 32 * lane)));
    case TmemRows::kPairM256:
      return make_layout(make_shape(make_shape(128, 2), n),
                         make_stride(make_stride(lane, kTmemCta), 1));
    case TmemRows::kPairM128:
      return make_layout(make_shape(make_shape(64, 2), make_shape(n / 2, 2)),
                         make_stride(make_stride(lane, kTmemCta), make_stride(1, 64 * lane)));
  }
  return {};
}

namespace law {
/// Throws Unsupported: the manual does not say how .ws forms with fewer than 128 rows read A.
[[noreturn]] void a_in_tmem_is_not_described_for_ws(int m);
}  // namespace law

/// A of tcgen05.mma from Tensor Memory: (row, k) -> address in elements of `element_bits`. Always
/// K-major and packed along k: 2 16-bit or 4 8-bit elements a cell, the lower k in the lower bits.
/// Two CTAs with M = 128 need the rows twice, in lanes 0-63 and 64-127: a third mode counts the
/// copies.
constexpr Layout tmem_a(TmemRows rows, std::int64_t k, int element_bits) {
  const std::int64_t per_cell = kTmemCellBits / element_bits;
  const std::int64_t lane = kTmemLane * per_cell, cta = kTmemCta * per_cell;
  switch (rows) {
    case TmemRows::kM128:
      return make_layout(make_shape(128, k), make_stride(lane, 1));
    case TmemRows::kM64:
      return make_layout(make_shape(make_shape(16, 4), k),
                         make_stride(make_stride(lane, 32 * lane), 1));
    case TmemRows::kPairM256:
      return make_layout(make_shape(make_shape(128, 2), k), make_stride(make_stride(lane, cta), 1));
    case TmemRows::kPairM128:
      return make_layout(make_shape(make_shape(64, 2), k, 2),
                         make_stride(make_stride(lane, cta), 1, 64 * lane));
    default:
      law::a_in_tmem_is_not_described_for_ws(static_cast<int>(tmem_m(rows)));
  }
}

}  // namespace tilewright::arch
