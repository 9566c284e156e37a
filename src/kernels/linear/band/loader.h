// The producer warp of the bandwidth kernel: weights by bulk copies, one per K block, tokens by
// small copies, because they may be gathered and their edges are zeroed on the way.
#pragma once

#include "kernels/linear/band/work.h"
#include "ptx/bulk_copy.h"
#include "ptx/cache_policy.h"
#include "ptx/cp_async.h"
#include "ptx/grid_dependency.h"

namespace tilewright::tile {

template <class C>
struct BandLoader {
  static constexpr int kChunks = C::kBlocks * 8;  // of 16 bytes, of a token in a stage
  static constexpr int kRowsAtOnce = 32 / kChunks;
  static constexpr int kCopies = C::kTokens / kRowsAtOnce;  // of a lane, a stage

  const BandParams& params;
  BandShared shared;
  DeepRing ring;
  BandSteps steps;
  std::uint64_t read_once;
  DeepRing::Position at;

  __device__ BandLoader(const BandParams& p, const BandShared& s)
      : params(p),
        shared(s),
        ring{s},
        steps(p.cut),
        read_once(ptx::createpolicy_fractional_l2_evict_first()) {}

  static __device__ std::int32_t lane() { return static_cast<std::int32_t>(threadIdx.x % 32); }

  // One thread.
  __device__ void load_weights(const BandUnit& unit, std::int32_t step,
                               const DeepRing::Position& to) const {
    const std::int32_t first = step * C::kBlocks;
    const std::int32_t blocks = min(params.cut.all_blocks - first, C::kBlocks);
    const std::uint32_t bytes = static_cast<std::uint32_t>(unit.bricks) * C::kBrickBytes;
    const std::uint32_t barrier = ring.full(to);
    ptx::mbarrier_arrive_expect_tx(barrier, bytes * static_cast<std::uint32_t>(blocks));
    const std::uint32_t destination = ring.memory(to);
    const std::uint8_t* source =
        params.weights + unit.matrix * params.matrix_bytes +
        (std::int64_t{first} * params.cut.all_bricks + unit.first_brick) * C::kBrickBytes;
#pragma unroll
    for (std::int32_t block = 0; block < C::kBlocks; ++block) {
      if (block == blocks) break;
      const std::int32_t skipped = block * params.cut.tile_bricks * C::kBrickBytes;
      ptx::cp_async_bulk_shared_global(
          destination + static_cast<std::uint32_t>(skipped),
          source + std::int64_t{block} * params.cut.all_bricks * C::kBrickBytes, bytes, barrier,
          read_once);
    }
  }

  /// Where this lane's copies begin: row kRowsAtOnce * i + lane / kChunks of the unit, at its chunk
  /// of K. Rows behind the last repeat it: their sums are not read.
  struct Sources {
    const std::uint16_t* x[kCopies];
  };
  __device__ void find_sources(Sources& sources, const BandUnit& unit) const {
    std::int32_t from_k = (steps.begin * kChunks + lane() % kChunks) * 8;
    if constexpr (C::kHasColumns) from_k += unit.matrix * params.k;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if (i * kRowsAtOnce >= unit.tokens) break;
      std::int32_t row = min(i * kRowsAtOnce + lane() / kChunks, unit.tokens - 1) + unit.first_row;
      if (params.row_token != nullptr) row = params.row_token[row];
      sources.x[i] = params.x + row * params.x_stride + from_k;
    }
  }
  // All lanes. What lies behind the end of K is zeroed.
  __device__ void load_tokens(Sources& sources, const BandUnit& unit, std::int32_t step) const {
    const std::int32_t chunk = lane() % kChunks, from_k = (step * kChunks + chunk) * 8;
    const auto valid_bytes = static_cast<std::uint32_t>(max(0, min(16, (params.k - from_k) * 2)));
    const std::uint32_t destination =
        ring.memory(at) + params.cut.tokens_at +
        static_cast<std::uint32_t>(lane() / kChunks * C::kTokenBytes + chunk * 16);
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if (i * kRowsAtOnce >= unit.tokens) break;
      ptx::cp_async_cg_shared_global_16(destination + i * kRowsAtOnce * C::kTokenBytes,
                                        sources.x[i], valid_bytes);
      sources.x[i] += kChunks * 8;
    }
  }

  // The block scales of each warp's rows.
  __device__ void load_scales(const BandUnit& unit, std::int32_t step) const {
    if constexpr (C::kFormat == WeightFormat::kFp8) {
      const std::int32_t warp = lane() / 2, half = min(lane() % 2, params.scale_halves - 1);
      if (warp >= BandTile::kMaxWarps) return;
      const std::int32_t row = unit.first_brick * kernels::kBrickRows + warp * BandTile::kWarpRows;
      const std::int32_t block =
          min(row / (kernels::kFp8BlockRows * params.scale_halves), params.scale_rows - 1);
      const std::int64_t from =
          ((std::int64_t{unit.matrix} * params.cut.all_steps + step) * params.scale_halves + half) *
              params.scale_rows +
          block;
      ptx::cp_async_ca_shared_global_4(
          ring.memory(at) + params.cut.scales_at + static_cast<std::uint32_t>(lane()) * 4,
          params.block_scales + from, 4);
    }
  }

  /// Fills the ring with weights of the first unit, which do not depend on preceding kernels.
  __device__ std::int32_t load_early(const BandUnits<C>& units, std::int32_t first_unit) const {
    if (units.is_grouped() || first_unit >= units.count()) return 0;
    const BandUnit unit = units.find(first_unit);
    const std::int32_t count = min(steps.end - steps.begin, params.cut.stages);
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
  __device__ void load(const BandUnit& unit, std::int32_t& early) {
    Sources sources;
    find_sources(sources, unit);
    for (std::int32_t step = steps.begin; step < steps.end; ++step) {
      if (early > 0) {
        --early;
      } else {
        ring.wait_empty(at);
        if (lane() == 0) load_weights(unit, step, at);
        __syncwarp();
      }
      load_tokens(sources, unit, step);
      load_scales(unit, step);
      ptx::cp_async_mbarrier_arrive_noinc(ring.full(at));
      ring.advance(at);
    }
  }
};

/// Rows of tokens that are never loaded are read nonetheless: they begin as zeros. All threads but
/// the producer warp's.
template <class C>
__device__ void clear_tokens(const BandParams& params) {
  const std::uint32_t chunks =
      static_cast<std::uint32_t>(params.cut.tile_tokens) * C::kTokenBytes / 16;
  std::uint8_t* tokens = band_shared + params.cut.tokens_at;
  for (std::int32_t stage = 0; stage < params.cut.stages; ++stage) {
    for (std::uint32_t i = threadIdx.x - 32; i < chunks; i += blockDim.x - 32)
      reinterpret_cast<uint4*>(tokens)[i] = make_uint4(0, 0, 0, 0);
    tokens += params.cut.stage_bytes;
  }
}

}  // namespace tilewright::tile
