// What the CTAs of hyper_connect have of a row, and its sum over the ranks.
#pragma once

#include "kernels/exchange/peer_word.h"
#include "kernels/model/column4.h"
#include "kernels/model/hyper_connection.h"
#include "ptx/load_store.h"

#include <cstdint>

namespace tilewright::kernels::hyper {

inline constexpr int kHyperConnectColumnWarps = kHyperConnectThreads / 32 - 1;

// What a CTA has: columns [first, first + count) of rows of `stride` columns in shared memory.
struct Columns {
  int first, count, stride;

  __device__ Columns(int hidden, int cta) : stride(hyper_connect_columns(hidden)) {
    first = cta * stride;
    count = min(stride, hidden - first);
  }
};

// This rank's f + g goes to the others, and theirs are added to it in the order of the ranks.
class RankSum {
 public:
  __device__ RankSum(const HyperPeers& peers, int hidden, int cta)
      : peers_(peers),
        words_of_token_(hidden / 4),
        own_(static_cast<uint4*>(peers.memory[peers.rank])),
        kept_(reinterpret_cast<std::uint32_t*>(own_ + hyper_peer_words(peers.ranks, hidden)) + cta),
        turn_(*kept_) {}

  // Once all threads of the CTA have one of these.
  __device__ void keep_next() const { *kept_ = static_cast<std::uint32_t>(turn_.next); }

  __device__ tile::Column4 add_up(int token, int column, const tile::Column4& f) const {
    const uint4 mine = peer::sendable({__float_as_uint(f.v[0]), __float_as_uint(f.v[1]),
                                       __float_as_uint(f.v[2]), __float_as_uint(f.v[3])});
    for (int r = 0; r < peers_.ranks; ++r)
      if (r != peers_.rank)
        ptx::st_relaxed_sys_v4_u32(
            static_cast<uint4*>(peers_.memory[r]) + place(turn_.buffer, peers_.rank, token, column),
            mine);
    tile::Column4 sum = {};
    for (int r = 0; r < peers_.ranks; ++r) {
      const uint4 word =
          r == peers_.rank
              ? mine
              : peer::wait_for(own_ + place(turn_.buffer, r, token, column), peers_.given_up);
      const float numbers[4] = {__uint_as_float(word.x), __uint_as_float(word.y),
                                __uint_as_float(word.z), __uint_as_float(word.w)};
#pragma unroll
      for (int i = 0; i < 4; ++i) sum.v[i] = r == 0 ? numbers[i] : sum.v[i] + numbers[i];
    }
    return sum;
  }

  // Where others have written in the call before, also for tokens that this call does not have.
  __device__ void preset(const Columns& columns) const {
    const int words = columns.count / 4 * kHyperConnectTokens;
    for (int i = static_cast<int>(threadIdx.x); i < words; i += kHyperConnectColumnWarps * 32)
      for (int r = 0; r < peers_.ranks; ++r)
        if (r != peers_.rank)
          ptx::st_relaxed_sys_v4_u32(own_ + place(turn_.last, r, i % kHyperConnectTokens,
                                                  columns.first + i / kHyperConnectTokens * 4),
                                     peer::empty_word());
  }

 private:
  __device__ int place(int buffer, int from, int token, int column) const {
    return ((buffer * peers_.ranks + from) * kHyperConnectTokens + token) * words_of_token_ +
           column / 4;
  }

  const HyperPeers& peers_;
  int words_of_token_;
  uint4* own_;
  std::uint32_t* kept_;
  peer::Turn turn_;
};

}  // namespace tilewright::kernels::hyper
