// Contract of Hopper's linear layer for some tens of bf16 tokens: the products of sm90_wide_bf16.h,
// with k divided over CTAs of the whole grid instead of those of a cluster.
#pragma once

#include "kernels/linear/wide/sm90_wide_bf16.h"

#include <cstdint>

namespace tilewright::kernels {

/// Entries linear_wide_spread_NAME, NAME = fp8, bf16, and fp8_w5 of five warpgroups: y as
/// WideParams say, with WideBf16Params, of which segments is null and cluster_rows 1 (fp8_w5: no
/// SwiGLU). With `matrices` above 1 each has columns of its own: matrix e takes those of x from e *
/// k on (then k is a multiple of 64, and x_map has all columns), and makes those of y from e * n
/// on; n and k are of one matrix.
///
/// Grid: without `splits` (1) any number of CTAs; each takes units, of WideSpreadTile::rows rows by
/// tile_tokens tokens, in turn. With `splits` there are so many CTAs for each unit, in a
/// cooperative launch: each does a part of k, all write sums to `parts`, and when all have, the
/// first of a unit, which share its tokens by eights, add these up in the order of the parts: the
/// same bits every time. Launched as a programmatic dependent it waits before it reads anything but
/// weights and their scales.
struct WideSpreadTile {
  static constexpr int kMaxSplits = 32, kTokens = 64;

  WeightFormat format;
  int warpgroups = 4;  ///< that multiply, 64 rows each

  constexpr int rows() const { return warpgroups * 64; }
  constexpr int threads() const { return warpgroups * 128 + 32; }
  constexpr WideBf16Layout layout() const { return {brick_bytes(format), kTokens, 1, rows()}; }
  /// Sums of all parts of all units.
  constexpr std::int64_t sum_bytes(std::int64_t units, int splits) const {
    return splits == 1 ? 0 : units * splits * rows() * kTokens * 4;
  }
  /// Units of groups [m, k] by [n, k].
  constexpr std::int64_t units(std::int64_t m, std::int64_t n, std::int64_t groups) const {
    return groups * ((n + rows() - 1) / rows()) * ((m + kTokens - 1) / kTokens);
  }
};

}  // namespace tilewright::kernels
