// Which tiles of queries there are where only the device knows the lengths of sequences: in the
// order of all that there is room for.
#pragma once

#include "kernels/attention/forward/paged_mask.h"
#include "kernels/attention/schedule.h"
#include "tile/dealt_tiles.h"

#include <cstdint>

namespace tilewright::tile {

/// One thread: tiles of `Queries` rows that fall to this CTA, but those behind the ends of their
/// sequences. DealtTile::unused is the first row of keys.
template <int Queries>
struct UsedTiles {
  const kernels::AttentionPagedParams& params;
  TileNumbers numbers;

  /// The next one, or the end.
  __device__ DealtTile draw() {
    while (numbers.draw()) {
      const AttentionWork work(params, numbers.index);
      numbers.advance();
      const AttentionSequence sequence = find_used_sequence(params, work.batch);
      DealtTile tile = make_tile(work, sequence, Queries);
      tile.kv_begin = sequence.kv_begin;
      if (tile.first_query >> params.pages.group_shift < tile.q_len) return tile;
    }
    return {.is_last = 1};
  }
};

}  // namespace tilewright::tile
