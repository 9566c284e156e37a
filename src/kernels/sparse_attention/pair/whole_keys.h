// The warps that bring keys of 16 bits.
#pragma once

#include "kernels/sparse_attention/pair/lines.h"
#include "ptx/cp_async.h"

#include <cstdint>

namespace tilewright::tile {

/// Rows of 16 bits go straight to their places, two blocks ahead of what is handed over. `Entries`
/// finds them: two for each lane, eight lanes a row.
template <class Form, class Entries, int Half>
class PairWholeKeys {
  static constexpr int kAhead = 2;

 public:
  template <class Params>
  __device__ PairWholeKeys(const Params& params, SparsePairShared<Form>& shared, std::int32_t group,
                           std::uint32_t warp)
      : lines_(shared, warp), entries_(params, group, warp * 8) {}

  __device__ void run() {
    entries_.read();
    PairAt done;
    int under_way = 0;
    while (entries_.find()) {
      lines_.wait_free(at_);
      copy();
      entries_.read();
      at_.advance();
      if (++under_way <= kAhead) continue;
      --under_way;
      ptx::cp_async_wait_group<kAhead>();
      lines_.publish(done);
      done.advance();
    }
    ptx::cp_async_wait_group<0>();
    for (; under_way > 0; --under_way, done.advance()) lines_.publish(done);
  }

 private:
  __device__ void copy() const {
    constexpr bool kIsThere = Form::has_half(Half);
    const std::uint32_t row = threadIdx.x % 32 / 8, chunk = threadIdx.x % 8;
    const std::uint32_t to = ptx::shared_address(lines_.of_box(at_));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t line = row + i * 4;
      // Of a half that is not there nothing is read; the address is that of what is.
      const std::uint8_t* const from =
          entries_.values(i) + (kIsThere ? Half : 0) * (kPairHalfDims * 2) + chunk * 16;
#pragma unroll
      for (int box = 0; box < kPairBoxes; ++box) {
        ptx::cp_async_cg_shared_global_16(
            to + box * kPairBoxBytes + line * kBoxRowBytes + chunk_in_line(line, chunk),
            from + box * kBoxRowBytes, kIsThere ? 16 : 0);
      }
    }
    if constexpr (Form::kHasTail) copy_tail();
    ptx::cp_async_commit_group();
  }
  /// Four lanes of a row have its tail's chunks, the other four those of the row four on.
  __device__ void copy_tail() const {
    const std::uint32_t lane = threadIdx.x % 32, chunk = lane % 4, second = lane / 4 % 2;
    const std::uint8_t* const tail = second == 0 ? entries_.tail(0) : entries_.tail(1);
    ptx::cp_async_cg_shared_global_16(
        ptx::shared_address(lines_.tail(at_, lane / 8 + second * 4, chunk)),
        tail + Half * kPairTailRowBytes + chunk * 16, 16);
  }

  PairLines<Form> lines_;
  Entries entries_;
  PairAt at_;
};

}  // namespace tilewright::tile
