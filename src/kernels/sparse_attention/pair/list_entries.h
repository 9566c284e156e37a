// The rows of lists of 16 bits, for whole_keys.h.
#pragma once

#include "kernels/sparse_attention/entries.h"
#include "kernels/sparse_attention/pair/sm100_decode_pair.h"

#include <cstdint>

namespace tilewright::tile {

/// The rows of lists of bf16.
template <KvFormat Format>
class SparsePairEntries : public SparseEntries<Format, 8, 8> {
 public:
  __device__ SparsePairEntries(const kernels::SparsePairParams& params, std::int32_t group,
                               std::uint32_t first_row)
      : SparseEntries<Format, 8, 8>(params.decode, group, first_row) {}

  /// Of share `i`: the numbers that are the value, and those behind them.
  __device__ const std::uint8_t* values(int i) const { return this->sources[i].data; }
  __device__ const std::uint8_t* tail(int i) const { return values(i) + kKvDims * 2; }
};

}  // namespace tilewright::tile
