// Tokens of several sequences in one call: which sequence one belongs to, where it stands in it,
// and which row of a cache the sequence's block table names.
#pragma once

#include "kernels/sparse_attention/kv_pages.h"

#include <cstdint>

namespace tilewright::tile {

/// The new tokens of a sequence: [first, first + count) of the call, at positions start ..
struct SequenceRange {
  std::int32_t first, count, start;

  __device__ SequenceRange(const kernels::SequenceTokens& sequences, std::int32_t sequence) {
    first = sequence * sequences.q_len;
    count = sequences.q_len;
    if (sequences.offsets != nullptr) {
      first = sequences.offsets[sequence];
      count = sequences.offsets[sequence + 1] - first;
    }
    start = sequences.starts[sequence];
  }
};

/// Number of the sequence a token belongs to: the last with offsets[b] <= token.
__device__ inline std::int32_t sequence_of(const kernels::SequenceTokens& sequences,
                                           std::int32_t token) {
  if (sequences.offsets == nullptr) return min(token / sequences.q_len, sequences.batch - 1);
  std::int32_t low = 0, high = sequences.batch;  // offsets[low] <= token < offsets[high]
  while (high - low > 1) {
    const std::int32_t middle = low + (high - low) / 2;
    (sequences.offsets[middle] <= token ? low : high) = middle;
  }
  return low;
}

struct TokenPlace {
  std::int32_t sequence;
  std::int32_t position;  ///< < 0: takes no part
  std::int32_t end;       ///< position behind the sequence's last token of the call

  __device__ TokenPlace(const kernels::SequenceTokens& sequences, std::int32_t token) {
    sequence = sequence_of(sequences, token);
    const SequenceRange range(sequences, sequence);
    const bool takes_part = range.start >= 0 && token < range.first + range.count;
    position = takes_part ? range.start + token - range.first : -1;
    end = range.start + range.count;
  }
};

/// Row of a cache that holds logical row `logical` of a sequence; -1 if none does.
__device__ inline std::int32_t physical_row(const kernels::BlockTable& table, std::int32_t sequence,
                                            std::int32_t logical, std::int32_t page_size,
                                            std::int32_t num_rows) {
  const std::int32_t block = logical / page_size;
  if (block >= table.blocks) return -1;
  const std::int32_t page = table.table[sequence * table.stride + block];
  if (page < 0 || page >= num_rows / page_size) return -1;
  return page * page_size + logical - block * page_size;
}

}  // namespace tilewright::tile
