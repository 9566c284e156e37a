// Which tile of queries a CTA of K6 over pages works on next. Tiles are in two lists:
//
//   several   of sequences that have several tiles of a head: products bind
//   single    of sequences that have one: their keys are read for it alone, and memory binds
//
// CTAs of even number begin with the first list, others with the second, and go on with the other
// one at its end: products run beside copies. A tile behind the end of its sequence is in no list.
#pragma once

#include "kernels/attention/forward/paged_mask.h"
#include "kernels/attention/forward/pages.h"
#include "tile/dealt_tiles.h"

#include <cstdint>

namespace tilewright::tile {

/// One thread: draws tiles of `Queries` rows. Numbers drawn from a list only grow.
template <int Queries>
struct PagedTiles {
  const kernels::AttentionPagedParams& params;
  /// A sequence, in the second round of them for the list that the CTA goes on with; and the number
  /// of its first tile in the list.
  std::int32_t at = 0, first = 0;

  /// The next tile; is_last if there is none. Of a sequence, the last rows of each head first: they
  /// see the most keys. A return in the loop would be a loop over lanes around each tensor copy.
  __device__ DealtTile draw() {
    DealtTile found = {.is_last = 1};
    std::int32_t number = draw_number();
    while (found.is_last != 0 && at < kernels::kTileLists * params.batch) {
      const std::int32_t batch = at < params.batch ? at : at - params.batch;
      const AttentionSequence of = find_used_sequence(params, batch);
      const std::int32_t rows = of.q_len << params.pages.group_shift;
      const std::int32_t tiles = (rows + Queries - 1) / Queries;
      const std::int32_t count = (list() == 0) == (tiles > 1) ? tiles * params.heads : 0;
      const std::int32_t inside = number - first, q_tile = tiles - 1 - inside / params.heads;
      if (inside < count) {
        found = {q_tile * Queries, inside % params.heads, batch, 0, of.q_begin, of.q_len, of.kv_len,
                 of.kv_begin};
      } else {
        first += count;
        if (++at == params.batch || is_single()) first = 0, number = draw_number();
      }
    }
    return found;
  }
  /// All sequences have one tile of a head, or none: their place tells whose a number is.
  __device__ bool is_single() const { return params.q_tiles == 1; }
  __device__ std::uint32_t list() const {
    return is_single() ? 1 : (blockIdx.x + (at < params.batch ? 0 : 1)) % kernels::kTileLists;
  }
  __device__ std::int32_t draw_number() {
    const auto number = static_cast<std::int32_t>(atomicAdd(params.next_tile + list(), 1u));
    if (is_single()) {
      at = params.batch + number / params.heads;
      first = number - number % params.heads;
    }
    return number;
  }
};

}  // namespace tilewright::tile
