// Which tile of queries a CTA of K6 over pages works on next. Tiles are in two lists:
//
//   several   of sequences that have several tiles of a head: products bind
//   single    of sequences that have one: their keys are read for it alone, and memory binds
//
// CTAs of even number begin with the first list, those of odd number with the second, and go on
// with the other one where theirs is used up: the ones' products run beside the others' copies.
// A tile behind the end of its sequence is in no list.
#pragma once

#include "kernels/attention/forward/paged_mask.h"
#include "kernels/attention/forward/pages.h"
#include "tile/dealt_tiles.h"

#include <cstdint>

namespace tilewright::tile {

/// One thread: draws tiles of `Queries` rows. Numbers that are drawn from a list only grow.
template <int Queries>
struct PagedTiles {
  const kernels::AttentionPagedParams& params;
  /// A sequence, in the second round of them for the list that the CTA goes on with; and the number
  /// of its first tile in the list. One query is a single tile.
  std::int32_t at = blockIdx.x % 2 == 0 && params.q_tiles == 1 ? params.batch : 0, first = 0;

  /// The next tile; is_last if there is none. Of a sequence, the last rows of each head first:
  /// under a causal mask they see the most keys.
  __device__ DealtTile draw() {
    for (;; first = 0) {
      const std::int32_t round = at >= params.batch ? 1 : 0;
      const std::uint32_t list = (blockIdx.x + round) % 2;
      const auto number = static_cast<std::int32_t>(atomicAdd(params.next_tile + list, 1u));
      for (; at < (round + 1) * params.batch; ++at) {
        const std::int32_t batch = at - round * params.batch;
        const AttentionSequence of = find_used_sequence(params, batch);
        const std::int32_t rows = of.q_len << params.pages.group_shift;
        const std::int32_t tiles = (rows + Queries - 1) / Queries;
        const std::int32_t count = (list == 0) == (tiles > 1) ? tiles * params.heads : 0;
        if (number - first < count) {
          const std::int32_t inside = number - first, q_tile = tiles - 1 - inside / params.heads;
          return {
              q_tile * Queries, inside % params.heads, batch, 0, of.q_begin, of.q_len, of.kv_len,
              of.kv_begin};
        }
        first += count;
      }
      if (round == 1) return {.is_last = 1};
    }
  }
};

}  // namespace tilewright::tile
