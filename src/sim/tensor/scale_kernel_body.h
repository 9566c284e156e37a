// Accumulators divided by block scales and products multiplied by them. Included only by
// tile_kernel_*.cpp (tile_vectors.h). Columns lie in the lanes of vectors.
#pragma once

#include "sim/tensor/scaled_kernel.h"
#include "sim/tensor/tile_vectors.h"

namespace tilewright::sim {
namespace {

/// fp32 codes times 2^shift; `is_plain`: zeros, and normal numbers that stay normal.
struct Rescaled {
  Words codes;
  Ints is_plain;
};

inline Rescaled rescale(const Words& codes, const Ints& shift) {
  const Ints field = ints_of(codes >> 23 & 255);
  const Ints scaled = field + shift;
  const Ints is_zero = (codes << 1) == 0;
  const Ints is_normal = (field > 0) & (field < 255) & (scaled > 0) & (scaled < 255);
  return {(codes + (words_of(shift) << 23)) & words_of(is_normal & ~is_zero), is_normal | is_zero};
}

/// A vector of a row's columns.
struct Columns {
  int left;
  std::ptrdiff_t at;  ///< in the tile
  Ints shift;         ///< of the products

  Columns(const ScaleKernelCall& call, int row, int col)
      : left(call.n - col < kLanes ? call.n - col : kLanes),
        at(static_cast<std::ptrdiff_t>(row) * call.n + col),
        shift(load_some<Ints>(call.b_exponents + col, left) + call.a_exponents[row]) {}
};

void run_divide(const ScaleKernelCall& call) {
  for (int row = 0; row < call.m; ++row) {
    for (int col = 0; col < call.n; col += kLanes) {
      const Columns columns(call, row, col);
      const auto c = load_some<Words>(call.c + columns.at, columns.left);
      const Words divided = rescale(c, -columns.shift).codes;
      store_some(call.products + columns.at, divided, columns.left);
    }
  }
}

void run_multiply(const ScaleKernelCall& call) {
  for (int row = 0; row < call.m; ++row) {
    for (int col = 0; col < call.n; col += kLanes) {
      const Columns columns(call, row, col);
      const Words c =
          call.c == nullptr ? Words{} : load_some<Words>(call.c + columns.at, columns.left);
      const auto products = load_some<Words>(call.products + columns.at, columns.left);
      Rescaled result = rescale(products, columns.shift);
      const Ints is_far = (columns.shift > kMostShift) | (columns.shift < -kMostShift);
      const Ints specials = ~(rescale(c, -columns.shift).is_plain & result.is_plain) | is_far;
      if (any_of(specials) != 0) {
        for (int i = 0; i < columns.left; ++i) {
          if (specials[i] != 0) result.codes[i] = call.element(call.context, row, col + i, c[i]);
        }
      }
      store_some(call.d + columns.at, result.codes, columns.left);
    }
  }
}

}  // namespace
}  // namespace tilewright::sim
