// The schedule of the linear layers for many tokens: units of one token tile and the row tiles of a
// cluster, found from the segments of the experts on the device.
#pragma once

#include "kernels/linear/wide/sm90_wide.h"
#include "ptx/warp_roles.h"

#include <cstdint>

namespace tilewright::tile {

/// What a CTA works on.
struct WideTile {
  std::int32_t matrix;
  std::int32_t first_token;  ///< row of x and y
  std::int32_t skipped;      ///< first tokens that belong to the matrix before
  std::int32_t tokens;       ///< that are there, at least 1
  std::int32_t row_tile;     ///< may lie past the last one, where it only helps to load tokens
  /// Of x and of y: where a matrix takes columns of x of its own, and makes those of y.
  std::int32_t x_column = 0, y_column = 0;

  /// The same for all threads, and known to be: products in a divergent loop would be serialised.
  __device__ WideTile uniform() const {
    return {ptx::uniform(matrix), ptx::uniform(first_token), ptx::uniform(skipped),
            ptx::uniform(tokens), ptx::uniform(row_tile)};
  }
};

__device__ inline std::int32_t ceil_div(std::int32_t a, std::int32_t b) {
  return (a + b - 1) / b;
}

/// Units of all matrices in turn. Those of a matrix: groups of token tiles; in a group all row
/// tiles, for each the token tiles of the group, so that what the clusters read at a time is some
/// rows of w and some tokens. Token tiles of a matrix differ by at most a granule. Where they begin
/// at multiples of Align tokens, the first may hold tokens of the matrix before.
template <int Align>
struct WideSchedule {
  const kernels::WideParams& params;
  std::int32_t* first_unit;  ///< [matrices + 1], in shared memory; not used without segments
  std::int32_t cluster_rows;
  std::int32_t row_groups;  ///< of cluster_rows row tiles

  __device__ WideSchedule(const kernels::WideParams& of, std::int32_t* table,
                          std::int32_t tile_rows, std::int32_t rows_of_cluster)
      : params(of),
        first_unit(table),
        cluster_rows(rows_of_cluster),
        row_groups(ceil_div(of.n, tile_rows * rows_of_cluster)) {}

  __device__ std::int32_t begin_of(std::int32_t matrix) const {
    return params.segments == nullptr ? 0 : params.segments[matrix];
  }
  __device__ std::int32_t first_row(std::int32_t matrix) const {
    return begin_of(matrix) / Align * Align;
  }
  /// From the first row on.
  __device__ std::int32_t rows(std::int32_t matrix) const {
    if (params.segments == nullptr) return params.tokens;
    const std::int32_t end = params.segments[matrix + 1];
    return end == begin_of(matrix) ? 0 : end - first_row(matrix);
  }

  /// All threads of the CTA: fills the table, behind which a word per warp is scratch.
  __device__ void initialise() {
    if (params.segments == nullptr) return;
    const std::int32_t threads = blockDim.x, warps = threads / 32;
    const std::int32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    std::int32_t* sums = first_unit + params.matrices + 1;
    std::int32_t before = 0;
    for (std::int32_t base = 0; base < params.matrices; base += threads) {
      const std::int32_t matrix = base + thread;
      const std::int32_t own =
          matrix < params.matrices ? ceil_div(rows(matrix), params.tile_tokens) * row_groups : 0;
      std::int32_t sum = own;
      for (int step = 1; step < 32; step *= 2) {
        const std::int32_t other = __shfl_up_sync(0xffffffffu, sum, step);
        if (lane >= step) sum += other;
      }
      if (lane == 31) sums[warp] = sum;
      __syncthreads();
      std::int32_t all = 0;
      for (std::int32_t i = 0; i < warps; ++i) {
        if (i < warp) sum += sums[i];
        all += sums[i];
      }
      if (matrix < params.matrices) first_unit[matrix] = before + sum - own;
      before += all;
      __syncthreads();
    }
    if (thread == 0) first_unit[params.matrices] = before;
    __syncthreads();
  }

  __device__ std::int32_t units() const {
    if (params.segments != nullptr) return first_unit[params.matrices];
    return ceil_div(params.tokens, params.tile_tokens) * row_groups;
  }

  /// `row` is the CTA's among those of its cluster with the same part of k.
  __device__ WideTile find(std::int32_t unit, std::int32_t row) const {
    std::int32_t matrix = 0;
    if (params.segments != nullptr) {
      std::int32_t end = params.matrices;  // first_unit[matrix] <= unit < first_unit[end]
      while (end - matrix > 1) {
        const std::int32_t middle = (matrix + end) / 2;
        (first_unit[middle] <= unit ? matrix : end) = middle;
      }
      unit -= first_unit[matrix];
    }
    const std::int32_t length = rows(matrix);
    const std::int32_t tiles = ceil_div(length, params.tile_tokens);
    const std::int32_t group = unit / (params.token_group * row_groups);
    const std::int32_t width = min(params.token_group, tiles - group * params.token_group);
    const std::int32_t inside = unit - group * params.token_group * row_groups;
    const std::int32_t token_tile = group * params.token_group + inside % width;
    const std::int32_t granules = ceil_div(length, kernels::kWideGranule);
    const std::int32_t begin = token_tile * granules / tiles * kernels::kWideGranule;
    const std::int32_t end =
        min((token_tile + 1) * granules / tiles * kernels::kWideGranule, length);
    const std::int32_t first_token = first_row(matrix) + begin;
    return {matrix, first_token, Align > 1 ? max(begin_of(matrix) - first_token, 0) : 0,
            end - begin, inside / width * cluster_rows + row};
  }
};

}  // namespace tilewright::tile
