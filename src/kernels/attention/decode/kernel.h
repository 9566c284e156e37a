// The body of all decode kernels: see decode_bf16.cu.
#pragma once

#include "kernels/attention/decode/ahead.h"
#include "kernels/attention/decode/merge.h"
#include "ptx/address.h"
#include "ptx/grid_dependency.h"
#include "ptx/special_registers.h"
#include "tile/entry.h"

#include <cstddef>
#include <cstdint>

namespace tilewright::tile {

/// Reads a word of every line of the parameters into the cache; free before the grid dependency.
template <class Params>
__device__ void touch(const Params& p) {
  const auto* const words = reinterpret_cast<const std::uint32_t*>(&p);
#pragma unroll
  for (std::size_t i = 0; i < sizeof(p) / 4; i += 16) ptx::read_u32(words[i]);
}

/// What a CTA's warps share beside keys and results.
template <class Params>
struct DecodeState {
  DecodeAgenda<Params> agenda;
  bool is_last_part;
};

inline constexpr std::uint32_t kTeamBarrier = 1;  ///< + i: named, of team i; 0: of the CTA
template <kernels::DecodeShape Shape>
__device__ inline void meet_team(std::uint32_t team) {
  if constexpr (Shape.row_warps == 1) {
    __syncwarp();
  } else {
    ptx::bar_sync<32 * Shape.row_warps>(kTeamBarrier + team);
  }
}

/// All steps of the consumer's team in a segment. `stage`: of its ring, the next one.
template <kernels::DecodeShape Shape, class Consumer, class Loader>
__device__ void add_steps(Consumer& consumer, Loader& loader, const DecodeSegment& segment,
                          std::uint32_t ring, std::uint32_t& stage) {
  constexpr int kPieces = Shape.step_keys / kernels::kDecodePieceKeys;
  const auto first_piece = static_cast<std::int32_t>(consumer.team) * kPieces;
  std::int32_t piece = segment.begin + first_piece;
#pragma unroll 1
  for (; piece < segment.end; piece += Shape.teams * kPieces) {
    loader.wait(stage);
    meet_team<Shape>(consumer.team);
    loader.load(stage == 0 ? Shape.stages - 1 : stage - 1);
    const std::int32_t first_key = piece * kernels::kDecodePieceKeys;
    const std::uint32_t at = ring + stage * Shape.stage_bytes();
    if (loader.hide(segment, first_key, at)) meet_team<Shape>(consumer.team);
    consumer.add_step(segment, first_key, at);
    stage = stage + 1 == Shape.stages ? 0 : stage + 1;
  }
  // A team that had a step less meets once more: compute-sanitizer's racecheck reports hazards
  // behind barriers of the CTA if warps have been at barriers of their own unequally often.
  if (Shape.row_warps > 1 && piece - first_piece < segment.end) meet_team<Shape>(consumer.team);
}

template <kernels::DecodeKv Kv, kernels::DecodeShape Shape, class Loader>
__device__ void decode(const kernels::DecodeParamsOf<Shape>& p) {
  using State = DecodeState<kernels::DecodeParamsOf<Shape>>;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  const std::uint32_t team = warp / Shape.row_warps, row_warp = warp % Shape.row_warps;
  unsigned char* const exchange = shared_bytes + Shape.ring_bytes();
  unsigned char* const sums = exchange + Shape.exchange_bytes();
  unsigned char* const queries = sums + Shape.sum_bytes();
  unsigned char* const barriers = queries + Shape.query_bytes();
  auto& state = *reinterpret_cast<State*>(barriers + Shape.barrier_bytes());
  static_assert(sizeof(State) <= kernels::kDecodeAgendaBytes);
  auto& agenda = state.agenda;
  const std::uint32_t ring =
      ptx::shared_address(shared_bytes) + team * (Shape.stages * Shape.stage_bytes());
  touch(p);

  DecodeConsumer<Kv, Shape> consumer = {
      p, team, row_warp,
      ptx::shared_address(queries) + row_warp * (Shape.warp_tiles * Shape.head_dim * 32)};
  DecodeMerger<Kv, Shape> merger = {consumer, reinterpret_cast<float*>(exchange),
                                    reinterpret_cast<float2*>(sums), state.is_last_part};
  const DecodeGroup& group = merger.group;
  const DecodeAhead<Shape> ahead(p, reinterpret_cast<std::int32_t*>(exchange));
  bool is_guess = ahead.is_possible(), is_begun = false;
  if (is_guess) {
    ahead.copy_lengths();
    __syncthreads();
  } else {
    ptx::griddepcontrol_wait();
    ptx::griddepcontrol_launch_dependents();
  }
  Loader loader(p, agenda, ring, ptx::shared_address(barriers) + team * Shape.stages * 8, team,
                row_warp);
  while (true) {
    if (is_begun) {
      if (threadIdx.x == 0) agenda.fill(p.lengths, group.rank, group.log2_size);
    } else if (warp == 0) {
      agenda.begin(p, is_guess ? ahead.lengths() : p.lengths,
                   static_cast<std::int32_t>(blockIdx.x >> group.log2_size), group.rank,
                   group.log2_size);
    }
    is_begun = true;
    __syncthreads();
    std::int32_t looked = 0;
    if (is_guess) {
      ahead.prefetch(agenda);
      ptx::griddepcontrol_wait();
      ptx::griddepcontrol_launch_dependents();
      looked = ahead.look();
    }
    loader.start();
    std::uint32_t stage = 0;
    bool is_wrong = false;
#pragma unroll 1
    for (std::int32_t i = 0; i < agenda.count(); ++i) {
      const DecodeSegment& segment = agenda[i];
      const unsigned long long seen = merger.look(segment);
      consumer.fetch(segment);
      if (i == 0) {  // behind the queries: they would come behind all of these
#pragma unroll 1
        for (std::uint32_t k = 0; k < Shape.stages - 1; ++k) loader.load(k);
        // Queries and keys of a wrong guess are there, and of no use.
        is_wrong = is_guess && !ahead.check(looked);
        is_guess = false;
        if (is_wrong) break;
      }
      consumer.begin(segment);
      add_steps<Shape>(consumer, loader, segment, ring, stage);
      merger.store(segment, seen);
    }
    if (is_guess) is_wrong = !ahead.check(looked), is_guess = false;  // also without segments
    if (is_wrong) {
      loader.drain();
      is_begun = false;
      continue;
    }
    if (agenda.is_last()) break;
    __syncthreads();
  }
  merger.group.acquire();  // no CTA exits while another reads its shared memory
}

}  // namespace tilewright::tile

/// Entry decode_NAME, of cache KV with the tile SHAPE, whose copies LOADER makes.
#define TILEWRIGHT_DECODE_OF(NAME, KV, SHAPE, LOADER)                    \
  TILEWRIGHT_KERNEL(decode_##NAME, DecodeParamsOf<SHAPE>,                \
                    __launch_bounds__(SHAPE.threads(), SHAPE.residents), \
                    tile::decode<DecodeKv::KV, SHAPE, tile::LOADER<SHAPE>>)
#define TILEWRIGHT_DECODE(NAME, KV, DIM, ROWS)                                             \
  TILEWRIGHT_DECODE_OF(NAME##_d##DIM##_r##ROWS, KV, decode_shape(DecodeKv::KV, DIM, ROWS), \
                       DecodeGather)
#define TILEWRIGHT_DECODE_ANY(NAME, KV, DIM, ROWS)        \
  TILEWRIGHT_DECODE_OF(NAME##_d##DIM##_r##ROWS##_any, KV, \
                       decode_shape(DecodeKv::KV, DIM, ROWS, true), DecodeGather)
