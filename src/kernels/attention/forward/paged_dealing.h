// Which tiles of queries there are where only the device knows the lengths of sequences.
#pragma once

#include "kernels/attention/forward/k6_paged.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/schedule.h"

#include <cstdint>

namespace tilewright::tile {

/// Lengths that only the device knows, as far as there is room for them.
__device__ inline AttentionSequence used_sequence(const kernels::AttentionPagedParams& params,
                                                  std::int32_t batch) {
  AttentionSequence s = find_sequence(params, batch);
  const auto shorten = [&](std::int32_t& room, const std::int32_t* lengths) {
    if (lengths != nullptr) room = min(room, max(lengths[batch], 0));
  };
  shorten(s.q_len, params.pages.q_lengths);
  shorten(s.kv_len, params.pages.kv_lengths);
  return s;
}

/// One thread: tiles of `Queries` rows that fall to this CTA, but those behind the ends of their
/// sequences. DealtTile::unused is the first row of keys.
template <int Queries>
struct UsedTiles {
  const kernels::AttentionPagedParams& params;
  TileNumbers numbers;

  /// The next one, or the end.
  __device__ DealtTile next() {
    while (numbers.draw()) {
      const AttentionWork work(params, numbers.index);
      numbers.advance();
      const AttentionSequence sequence = used_sequence(params, work.batch);
      DealtTile tile = make_tile(work, sequence, Queries);
      tile.unused = sequence.kv_begin;
      if (tile.first_query >> params.pages.group_shift < tile.q_len) return tile;
    }
    return {.is_last = 1};
  }
};

}  // namespace tilewright::tile
