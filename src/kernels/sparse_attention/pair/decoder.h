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
  /// All blocks of the group's pieces. `fetch` starts to load the warp's rows of the next block to
  /// registers and is false behind the last one; `convert` writes those of the one before to their
  /// place, which is free.
  template <class Raw, class Fetch, class Convert>
  __device__ void decode_blocks(const Fetch& fetch, const Convert& convert) {
    const auto write = [&](const Raw& raw) {
      lines_.wait_free(at_);
      convert(raw);
      lines_.publish(at_);
      at_.advance();
    };
    Raw raw[2];
    entries_.read();
    for (bool is_more = fetch(raw[0]); is_more;) {
      const bool has_second = fetch(raw[1]);
      write(raw[0]);
      if (!has_second) break;
      is_more = fetch(raw[0]);
      write(raw[1]);
    }
  }

  PairLines<Form> lines_;
  SparseEntries<Format, 8, 4> entries_;
  PairAt at_;
};

}  // namespace tilewright::tile
