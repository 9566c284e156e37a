// How a decode kernel on Hopper cuts its tile, and its shared memory.
#pragma once

#include "kernels/attention/decode/decode.h"

#include <type_traits>

namespace tilewright::kernels {

/// Bytes of a row in a ring: a power of two, for decode_chunk().
constexpr int decode_ring_row_bytes(DecodeKv kv, int head_dim) {
  int bytes = 64;
  while (bytes < decode_kv_bytes(kv) * head_dim) bytes *= 2;
  return bytes;
}

/// Elements that entries ..._any multiply of rows of head_dim.
constexpr int decode_width(int head_dim) {
  for (const int width : {64, 96, 128, 192})
    if (head_dim <= width) return width;
  return 256;
}

/// How a kernel cuts its tile. Entries decode_KV_dDIM_rROWS, KV bf16, f16, e4m3; with _tma behind
/// it, keys come as boxes of 16, which one page must hold, else each on its own; with _any, rows
/// may be narrower (DecodeAnyParams).
struct DecodeShape {
  int head_dim;       ///< elements of a row that are multiplied
  int row_bytes;      ///< of a row in the ring
  int warp_tiles;     ///< tiles of 16 rows of a warp
  int row_warps;      ///< warps that share keys, each with rows of its own: a team
  int teams;          ///< each with keys of its own
  int step_keys;      ///< keys that a team takes at a time: one or two pieces
  int stages;         ///< steps of a team on their way or in use
  int residents = 1;  ///< CTAs of an SM: one has work while the other begins or ends a tile
  bool is_any = false;

  constexpr int rows() const { return 16 * warp_tiles * row_warps; }
  constexpr int warps() const { return row_warps * teams; }
  constexpr int threads() const { return 32 * warps(); }
  constexpr int stage_bytes() const { return 2 * step_keys * row_bytes; }
  constexpr int ring_bytes() const { return teams * stages * stage_bytes(); }
  /// A warp's results are merged with others' in so many portions.
  constexpr int portions() const {
    return warp_tiles * head_dim > 128 ? warp_tiles * head_dim / 128 : 1;
  }
  /// Half of a portion of every warp's results, to be added to another's.
  constexpr int exchange_bytes() const {
    return warps() * warp_tiles * 16 * head_dim * 2 / portions();
  }
  constexpr int sum_bytes() const { return teams * rows() * 8; }
  constexpr int query_bytes() const { return keeps_query() ? 0 : rows() * head_dim * 2; }
  constexpr bool keeps_query() const { return warp_tiles * head_dim <= 128; }
  constexpr int barrier_bytes() const { return teams * stages * 8; }
  constexpr int shared_bytes() const {
    return ring_bytes() + exchange_bytes() + sum_bytes() + query_bytes() + kDecodeAgendaBytes +
           barrier_bytes();
  }
};

constexpr DecodeShape decode_shape(DecodeKv kv, int head_dim, int rows, bool is_any = false) {
  const int row_bytes = decode_ring_row_bytes(kv, head_dim);
  const int warp_tiles = rows > 16 && head_dim <= 128 ? 2 : 1, row_warps = rows / (16 * warp_tiles);
  DecodeShape s = {head_dim, row_bytes, warp_tiles, row_warps, 8 / row_warps, 16, 1};
  s.is_any = is_any;
  if (rows == 16 && head_dim <= 128) s.teams = 4, s.residents = 2;
  if (rows == 16 && row_bytes == 512) s.teams = 4;
  if (row_bytes <= 128 && warp_tiles == 1) s.step_keys = 32;
  for (DecodeShape next = s;
       next.shared_bytes() <= decode_max_shared(s.residents) && next.stages <= 6; ++next.stages)
    s = next;
  return s;
}

template <DecodeShape Shape>
using DecodeParamsOf = std::conditional_t<Shape.is_any, DecodeAnyParams, DecodeParams>;

}  // namespace tilewright::kernels
