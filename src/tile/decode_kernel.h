// The body of all decode kernels: see kernels/attention/decode_bf16.cu.
#pragma once

#include "ptx/address.h"
#include "ptx/grid_dependency.h"
#include "tile/decode_merge.h"

#include <cstdint>
#include <new>

namespace tilewright::tile {

template <kernels::DecodeShape Shape>
__device__ auto park_walk(const DecodeWalk& walk) {
  if constexpr (Shape.parks_walk()) {
    __shared__ alignas(DecodeWalk) unsigned char walks[Shape.warps() * sizeof(DecodeWalk)];
    static_assert(sizeof(walks) <= kernels::kDecodeParkedBytes);
    return DecodeParkedWalk(walk, reinterpret_cast<DecodeWalk*>(walks));
  } else {
    return walk;
  }
}

template <kernels::DecodeKv Kv, kernels::DecodeShape Shape>
__device__ void decode(const kernels::DecodeParams& p) {
  constexpr int kPieces = Shape.step_keys / kernels::kDecodePieceKeys;
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  const std::uint32_t team = warp / Shape.row_warps, row_warp = warp % Shape.row_warps;
  unsigned char* const exchange = shared_bytes + Shape.ring_bytes();
  unsigned char* const sums = exchange + Shape.exchange_bytes();
  const std::uint32_t ring =
      ptx::shared_address(shared_bytes) + team * (Shape.stages * Shape.stage_bytes());
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();

  const DecodePlan plan(p);
  const DecodeWalk start(p, plan, static_cast<std::int32_t>(blockIdx.x));
  DecodeLoader<Shape> loader(p, start, ring, team, row_warp);
#pragma unroll
  for (int i = 0; i < Shape.stages - 1; ++i) loader.load(static_cast<std::uint32_t>(i));

  DecodeConsumer<Kv, Shape> consumer = {p, team, row_warp,
                                        ptx::shared_address(sums + Shape.sum_bytes()) +
                                            row_warp * (Shape.warp_tiles * Shape.head_dim * 32)};
  DecodeMerger<Kv, Shape> merger = {consumer, reinterpret_cast<float*>(exchange),
                                    reinterpret_cast<float2*>(sums)};
  auto walk = park_walk<Shape>(start);
  std::uint32_t stage = 0;
  for (DecodeSegment segment; walk.next(segment);) {
    unsigned long long seen = 0;
    if (segment.slot >= 0 && threadIdx.x == 0)
      seen = DecodeCounter(p, walk.merge().first_slot).look();
    consumer.begin(segment);
    for (std::int32_t piece = segment.begin + static_cast<std::int32_t>(team) * kPieces;
         piece < segment.end; piece += Shape.teams * kPieces) {
      ptx::cp_async_wait_group<Shape.stages - 2>();
      if constexpr (Shape.row_warps == 1) {
        __syncwarp();
      } else {
        ptx::bar_sync<32 * Shape.row_warps>(1 + team);
      }
      loader.load(stage == 0 ? Shape.stages - 1 : stage - 1);
      consumer.add_step(segment, piece * kernels::kDecodePieceKeys,
                        ring + stage * Shape.stage_bytes());
      stage = stage + 1 == Shape.stages ? 0 : stage + 1;
    }
    merger.store(segment);
    if (segment.slot >= 0) merger.finish_part(segment, walk.merge(), seen);
  }
}

}  // namespace tilewright::tile

#define TILEWRIGHT_DECODE_ENTRY(NAME, KV, DIM, ROWS)                                             \
  extern "C" __global__ void __launch_bounds__(                                                  \
      tilewright::kernels::decode_shape(tilewright::kernels::DecodeKv::KV, DIM, ROWS).threads(), \
      tilewright::kernels::decode_shape(tilewright::kernels::DecodeKv::KV, DIM, ROWS).residents) \
      decode_##NAME##_d##DIM##_r##ROWS(                                                          \
          const __grid_constant__ tilewright::kernels::DecodeParams params) {                    \
    using namespace tilewright::kernels;                                                         \
    tilewright::tile::decode<DecodeKv::KV, decode_shape(DecodeKv::KV, DIM, ROWS)>(params);       \
  }
