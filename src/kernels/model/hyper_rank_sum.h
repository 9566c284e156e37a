// What the CTAs of hyper_connect have of a row, and its sum over the ranks.
#pragma once

#include "kernels/exchange/peer_word.h"
#include "kernels/model/hyper_connection.h"

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

// This rank's f + g goes to the others, and theirs are added to it in the order of the ranks. A
// lane has two neighbours of a row, and two lanes a word of 16 bytes, which one of them sends and
// waits for. All lanes of a warp together; those without columns have is_there false.
class RankSum {
 public:
  // Reads the turn of this CTA: where the latency of that counts, make one early.
  __device__ RankSum(const HyperPeers& peers, int hidden, int cta)
      : peers_(peers),
        hidden_(hidden),
        own_(static_cast<float*>(peers.memory[peers.rank])),
        kept_(reinterpret_cast<std::uint32_t*>(own_ + 4 * hyper_peer_words(peers.ranks, hidden)) +
              cta),
        turn_(*kept_) {}

  // Once all threads of the CTA have one of these.
  __device__ void keep_next() const { *kept_ = static_cast<std::uint32_t>(turn_.next); }

  __device__ void send(int token, int column, const float (&f)[2], bool is_there) const {
    const uint4 mine = word_of_lanes(f);
    if (!is_there || !has_word()) return;
    for (int r = 0; r < peers_.ranks; ++r)
      if (r != peers_.rank)
        ptx::st_relaxed_sys_v4_u32(
            static_cast<float*>(peers_.memory[r]) + place(turn_.buffer, peers_.rank, token, column),
            mine);
  }

  // f becomes the sum, once the others have sent theirs.
  __device__ void add_up(int token, int column, float (&f)[2], bool is_there) const {
    const uint4 mine = word_of_lanes(f);
    for (int r = 0; r < peers_.ranks; ++r) {
      uint4 word = mine;
      if (r != peers_.rank && is_there && has_word())
        word = peer::wait_for(
            reinterpret_cast<const uint4*>(own_ + place(turn_.buffer, r, token, column)),
            peers_.given_up);
      __syncwarp();
      const std::uint32_t upper[2] = {__shfl_xor_sync(~0u, word.z, 1),
                                      __shfl_xor_sync(~0u, word.w, 1)};
      const float numbers[2] = {__uint_as_float(has_word() ? word.x : upper[0]),
                                __uint_as_float(has_word() ? word.y : upper[1])};
      f[0] = r == 0 ? numbers[0] : f[0] + numbers[0];
      f[1] = r == 0 ? numbers[1] : f[1] + numbers[1];
    }
  }

  // Where others have written in the call before, also for tokens that this call does not have:
  // by `threads` threads, of which this is number `thread`.
  __device__ void preset(const Columns& columns, int thread, int threads) const {
    const int words = columns.count / 4 * kHyperConnectTokens;
    for (int i = thread; i < words; i += threads)
      for (int r = 0; r < peers_.ranks; ++r)
        if (r != peers_.rank)
          ptx::st_relaxed_sys_v4_u32(own_ + place(turn_.last, r, i % kHyperConnectTokens,
                                                  columns.first + i / kHyperConnectTokens * 4),
                                     peer::empty_word());
  }

 private:
  static __device__ bool has_word() { return threadIdx.x % 2 == 0; }
  // Four numbers of this lane and the next, in the first of the two.
  static __device__ uint4 word_of_lanes(const float (&f)[2]) {
    const std::uint32_t x = __float_as_uint(f[0]), y = __float_as_uint(f[1]);
    const std::uint32_t z = __shfl_xor_sync(~0u, x, 1), w = __shfl_xor_sync(~0u, y, 1);
    return peer::sendable(has_word() ? uint4{x, y, z, w} : uint4{z, w, x, y});
  }
  __device__ int place(int buffer, int from, int token, int column) const {
    return ((buffer * peers_.ranks + from) * kHyperConnectTokens + token) * hidden_ + column;
  }

  const HyperPeers& peers_;
  int hidden_;
  float* own_;
  std::uint32_t* kept_;
  peer::Turn turn_;
};

}  // namespace tilewright::kernels::hyper
