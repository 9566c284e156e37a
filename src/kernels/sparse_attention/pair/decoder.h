// A warp that decodes rows of lists: four lanes a row.
#pragma once

#include "kernels/sparse_attention/entries.h"
#include "kernels/sparse_attention/pair/lines.h"
#include "kernels/sparse_attention/pair/sm100_decode_pair.h"

#include <cstdint>

namespace tilewright::tile {

/// Of a warp that decodes.
template <KvFormat Format>
class SparsePairKeysBase {
 public:
  using Form = PairForm<kv_dims(Format)>;

  __device__ SparsePairKeysBase(const kernels::SparsePairParams& params,
                                SparsePairShared<Form>& shared, std::int32_t group,
                                std::uint32_t warp)
      : lines_(shared, warp), entries_(params.decode, group, warp * 8) {}

 protected:
  PairLines<Form> lines_;
  SparseEntries<Format, 8, 4> entries_;
};

}  // namespace tilewright::tile
