// The producer warp of the bandwidth kernel: weights by bulk copies, one per K block, tokens by
// small copies, because they may be gathered and their edges are zeroed on the way.
#pragma once

#include "ptx/bulk_copy.h"
#include "ptx/cache_policy.h"
#include "ptx/cp_async.h"
#include "ptx/grid_dependency.h"
#include "tile/band_work.h"

namespace tilewright::tile {

template <class C>
struct BandLoader {
  static constexpr int kChunks = C::kBlocks * 8;  // of 16 bytes, of a token in a stage
  static constexpr int kRowsAtOnce = 32 / kChunks;

  const BandParams& params;
  const BandShared<C>& shared;
  DeepRing ring;
  BandSteps steps;
  std::int32_t all_bricks;
  std::uint64_t read_once;
  DeepRing::Position at;

  __device__ BandLoader(const BandParams& p, const BandShared<C>& s)
      : params(p),
        shared(s),
        ring(s.ring(p)),
        steps(BandSteps::of<C>(p)),
        all_bricks((p.n + kernels::kBrickRows - 1) / kernels::kBrickRows),
        read_once(ptx::createpolicy_fractional_l2_evict_first()) {}

  static __device__ std::uint32_t lane() { return threadIdx.x % 32; }

  // One thread.
  __device__ void load_weights(const BandUnit& unit, std::int32_t step,
                               const DeepRing::Position& to) const {
    const std::int32_t first = step * C::kBlocks,
                       blocks = min(steps.all_blocks - first, C::kBlocks);
    const std::uint32_t bytes = static_cast<std::uint32_t>(unit.bricks) * C::kBrickBytes;
    const std::uint32_t barrier = ring.full(to);
    ptx::mbarrier_arrive_expect_tx(barrier, bytes * static_cast<std::uint32_t>(blocks));
    const std::uint32_t destination = ptx::shared_address(shared.stage(to.stage));
    const std::uint8_t* source =
        params.weights + unit.matrix * params.matrix_bytes +
        (std::int64_t{first} * all_bricks + unit.first_brick) * C::kBrickBytes;
    for (std::int32_t block = 0; block < blocks; ++block) {
      const std::int32_t skipped = block * params.tile_bricks * C::kBrickBytes;
      ptx::cp_async_bulk_shared_global(destination + static_cast<std::uint32_t>(skipped),
                                       source + std::int64_t{block} * all_bricks * C::kBrickBytes,
                                       bytes, barrier, read_once);
    }
  }

  // All lanes. `tokens` holds this lane's rows of x, -1 for none: row lane() + 32 i of the unit.
  __device__ void load_tokens(const std::int32_t (&tokens)[(C::kTokens + 31) / 32],
                              std::int32_t rows, std::int32_t step) const {
    const std::int32_t chunk = static_cast<std::int32_t>(lane()) % kChunks;
    const std::int32_t from_k = (step * kChunks + chunk) * 8;
    const std::int32_t bytes_left = max(0, min(16, (params.k - from_k) * 2));
    const std::uint32_t destination = ptx::shared_address(shared.stage(at.stage)) +
                                      shared.tokens_at + static_cast<std::uint32_t>(chunk) * 16;
    for (std::int32_t first = 0; first < rows; first += kRowsAtOnce) {
      const std::int32_t row = first + static_cast<std::int32_t>(lane()) / kChunks;
      std::int32_t token = __shfl_sync(0xffffffffu, tokens[0], row);
      if constexpr (C::kTokens > 32) {
        const std::int32_t later = __shfl_sync(0xffffffffu, tokens[1], row);
        if (row >= 32) token = later;
      }
      const bool is_read = token >= 0 && bytes_left > 0;
      const std::uint16_t* source = params.x;
      if (is_read) source += token * params.x_stride + from_k;
      ptx::cp_async_cg_shared_global_16(
          destination + static_cast<std::uint32_t>(row) * C::kTokenBytes, source,
          is_read ? static_cast<std::uint32_t>(bytes_left) : 0u);
    }
  }

  // The block scales of each warp's rows.
  __device__ void load_scales(const BandUnit& unit, std::int32_t step) const {
    if constexpr (C::kFormat == WeightFormat::kFp8) {
      const std::int32_t pair = static_cast<std::int32_t>(lane());
      const std::int32_t warp = pair / 2, half = min(pair % 2, params.scale_halves - 1);
      if (warp >= BandTile::kMaxWarps) return;
      const std::int32_t row = unit.first_brick * kernels::kBrickRows + warp * BandTile::kWarpRows;
      const std::int32_t block =
          min(row / (kernels::kFp8BlockRows * params.scale_halves), params.scale_rows - 1);
      const std::int32_t all_k = (params.k + kernels::kFp8BlockK - 1) / kernels::kFp8BlockK;
      const std::int64_t from =
          ((std::int64_t{unit.matrix} * all_k + step) * params.scale_halves + half) *
              params.scale_rows +
          block;
      ptx::cp_async_ca_shared_global_4(ptx::shared_address(shared.stage(at.stage)) +
                                           shared.scales_at + static_cast<std::uint32_t>(pair) * 4,
                                       params.block_scales + from, 4);
    }
  }

  /// Fills the ring with weights of the first unit, which do not depend on the kernel before.
  __device__ std::int32_t load_early(const BandUnits<C>& units, std::int32_t first_unit) const {
    if (units.is_grouped() || first_unit >= units.count()) return 0;
    const BandUnit unit = units.find(first_unit);
    const std::int32_t count = min(steps.end - steps.begin, params.stages);
    DeepRing::Position to;
    if (lane() == 0) {
      for (std::int32_t i = 0; i < count; ++i) {
        load_weights(unit, steps.begin + i, to);
        ring.advance(to);
      }
    }
    __syncwarp();
    return count;
  }

  /// `early` stages have their weights.
  __device__ void load(const BandUnit& unit, std::int32_t rows, std::int32_t& early) {
    std::int32_t tokens[(C::kTokens + 31) / 32];
#pragma unroll
    for (int i = 0; i < (C::kTokens + 31) / 32; ++i) {
      const std::int32_t row = i * 32 + static_cast<std::int32_t>(lane());
      tokens[i] = -1;
      if (row < unit.tokens) {
        tokens[i] = unit.first_row + row;
        if (params.row_token != nullptr) tokens[i] = params.row_token[tokens[i]];
      }
    }
    for (std::int32_t step = steps.begin; step < steps.end; ++step) {
      if (early > 0) {
        --early;
      } else {
        ring.wait_empty(at);
        if (lane() == 0) load_weights(unit, step, at);
        __syncwarp();
      }
      load_tokens(tokens, rows, step);
      load_scales(unit, step);
      ptx::cp_async_mbarrier_arrive_noinc(ring.full(at));
      ring.advance(at);
    }
  }
};

}  // namespace tilewright::tile
