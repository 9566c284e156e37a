// wgmma: which thread of a warpgroup holds which element of the accumulator and of A from
// registers. Source: PTX ISA, "wgmma.mma_async: Register Fragments"; checked against an H200, see
// tests/golden/hardware. With w = T/32, g = T%32/4, q = T%4 a row is 16w + g (+ 8).
#pragma once

#include "layout/parse.h"
#include "layout/tiled_mma.h"

namespace tilewright::arch {

inline constexpr int kWgmmaM = 64;

/// Accumulator of m64nN: value 4j + 2h + c of a thread is row 16w + g + 8h, column 8j + 2q + c.
/// 32-bit accumulators hold one value a register, 16-bit ones two.
constexpr Layout wgmma_c(std::int64_t n) {
  return make_layout(make_shape(make_shape(4, 8, 4), make_shape(2, 2, n / 8)),
                     "((128,1,16),(64,8,512))"_shape);
}

/// A from registers, 16-bit elements, k = 16.
inline constexpr Layout kWgmmaA16 = "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))"_layout;
/// A from registers, 8-bit elements, k = 32.
inline constexpr Layout kWgmmaA8 = "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))"_layout;
/// A from registers, tf32, k = 8.
inline constexpr Layout kWgmmaATf32 = "((4,8,4),(2,2)):((64,1,16),(8,256))"_layout;

/// An operand read from shared memory: every thread addresses the whole tile.
constexpr Layout wgmma_shared_operand(std::int64_t mn, std::int64_t k) {
  return make_layout(make_shape(128, make_shape(mn, k)), make_stride(0, make_stride(1, mn)));
}

/// Elements of k that one instruction reduces over: 32 bytes' worth.
constexpr std::int64_t wgmma_k(int element_bits) {
  return 256 / element_bits;
}

/// wgmma.m64nNkK with A and B from shared memory.
constexpr MmaAtom make_wgmma_ss(std::int64_t n, int element_bits) {
  const std::int64_t k = wgmma_k(element_bits);
  return {make_shape(kWgmmaM, n, k), make_layout(128), wgmma_shared_operand(kWgmmaM, k),
          wgmma_shared_operand(n, k), wgmma_c(n)};
}

/// wgmma.m64nNkK with A from registers.
constexpr MmaAtom make_wgmma_rs(std::int64_t n, int element_bits) {
  MmaAtom atom = make_wgmma_ss(n, element_bits);
  atom.a_tv = element_bits == 8 ? kWgmmaA8 : element_bits == 16 ? kWgmmaA16 : kWgmmaATf32;
  return atom;
}

}  // namespace tilewright::arch
