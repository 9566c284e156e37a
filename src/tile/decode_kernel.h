// The body of all decode kernels: see kernels/attention/decode_bf16.cu.
#pragma once

#include "ptx/address.h"
#include "ptx/grid_dependency.h"
#include "ptx/special_registers.h"
#include "tile/decode_ahead.h"
#include "tile/decode_merge.h"

#include <cstddef>
#include <cstdint>

namespace tilewright::tile {

/// Reads a word of every line of the parameters, which are cold at first: before the wait for the
/// kernel before, this costs nothing.
__device__ inline void touch(const kernels::DecodeParams& p) {
  const auto* const words = reinterpret_cast<const std::uint32_t*>(&p);
#pragma unroll
  for (std::size_t i = 0; i < sizeof(p) / 4; i += 16) ptx::read_u32(words[i]);
}

template <kernels::DecodeKv Kv, kernels::DecodeShape Shape>
__device__ void decode(const kernels::DecodeParams& p) {
  constexpr int kPieces = Shape.step_keys / kernels::kDecodePieceKeys;
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  __shared__ alignas(DecodeAgenda) unsigned char agenda_bytes[sizeof(DecodeAgenda)];
  static_assert(sizeof(agenda_bytes) + 16 <= kernels::kDecodeStaticBytes);
  auto& agenda = reinterpret_cast<DecodeAgenda&>(agenda_bytes);
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  const std::uint32_t team = warp / Shape.row_warps, row_warp = warp % Shape.row_warps;
  unsigned char* const exchange = shared_bytes + Shape.ring_bytes();
  unsigned char* const sums = exchange + Shape.exchange_bytes();
  const std::uint32_t ring =
      ptx::shared_address(shared_bytes) + team * (Shape.stages * Shape.stage_bytes());
  touch(p);

  DecodeConsumer<Kv, Shape> consumer = {p, team, row_warp,
                                        ptx::shared_address(sums + Shape.sum_bytes()) +
                                            row_warp * (Shape.warp_tiles * Shape.head_dim * 32)};
  DecodeMerger<Kv, Shape> merger = {consumer, reinterpret_cast<float*>(exchange),
                                    reinterpret_cast<float2*>(sums)};
  const DecodeGroup& group = merger.group;
  const auto begin_agenda = [&](const std::int32_t* lengths) {
    if (warp == 0)
      agenda.begin(p, lengths, static_cast<std::int32_t>(blockIdx.x >> group.log2_size), group.rank,
                   group.log2_size);
  };
  const DecodeAhead<Shape> ahead(p, reinterpret_cast<std::int32_t*>(exchange));
#pragma unroll 1
  for (int turn = 0; turn < 2; ++turn) {  // one place in the code for both
    if (turn == 0) {
      if (!ahead.is_possible()) continue;
      ahead.copy_lengths();
      __syncthreads();
    } else {
      ptx::griddepcontrol_wait();
      ptx::griddepcontrol_launch_dependents();
      if (ahead.is_possible() && ahead.check()) break;
    }
    begin_agenda(turn == 0 ? ahead.lengths() : p.lengths);
    if (turn == 0) {
      __syncthreads();
      ahead.prefetch(agenda);
    }
  }
  while (true) {
    __syncthreads();
    DecodeLoader<Shape> loader(p, agenda, ring, team, row_warp);
    std::uint32_t stage = 0;
#pragma unroll 1
    for (std::int32_t i = 0; i < agenda.count(); ++i) {
      const DecodeSegment& segment = agenda[i];
      const unsigned long long seen = merger.look(segment);
      consumer.fetch(segment);
      if (i == 0) {  // behind the queries: they would come behind all of these
#pragma unroll 1
        for (std::uint32_t k = 0; k < Shape.stages - 1; ++k) loader.load(k);
      }
      consumer.begin(segment);
#pragma unroll 1
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
      merger.store(segment, seen);
    }
    if (agenda.is_last()) break;
    __syncthreads();
    if (threadIdx.x == 0) agenda.fill(p.lengths, group.rank, group.log2_size);
  }
  merger.group.acquire();  // nobody leaves while another reads his shared memory
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
