// Words that ranks write into each other's memory: preset to what no sender sends, so that a word
// tells by itself whether it is there. See peer_reduce.cu.
#pragma once

#include "kernels/exchange/peer_reduce.h"
#include "ptx/system_memory.h"

#include <cstdint>

namespace tilewright::kernels::peer {

__device__ inline uint4 empty_word() {
  return {kPeerEmpty, kPeerEmpty, kPeerEmpty, kPeerEmpty};
}

__device__ inline bool is_complete(const uint4& word) {
  return word.x != kPeerEmpty && word.y != kPeerEmpty && word.z != kPeerEmpty &&
         word.w != kPeerEmpty;
}

// The same numbers, and no word that is taken for none: other NaNs.
__device__ inline uint4 sendable(uint4 word) {
  constexpr std::uint32_t kOtherNan = 0x7fff7fff;
  if (word.x == kPeerEmpty) word.x = kOtherNan;
  if (word.y == kPeerEmpty) word.y = kOtherNan;
  if (word.z == kPeerEmpty) word.z = kOtherNan;
  if (word.w == kPeerEmpty) word.w = kOtherNan;
  return word;
}

// Waits, but not for ever: now and then it looks whether the host has given up.
__device__ inline uint4 wait_for(const uint4* at, const std::uint32_t* given_up) {
  constexpr int kPolls = 4096;
  while (true) {
    for (int i = 0; i < kPolls; ++i) {
      const uint4 word = ptx::ld_relaxed_sys_v4_u32(at);
      if (is_complete(word)) return word;
    }
    if (given_up != nullptr && ptx::ld_relaxed_sys_u32(given_up) != 0) return {};
  }
}

// What is kept in *turn: the buffer of this call, of kPeerBuffers; the next call has the one behind
// it, and the one of the call before is preset by this one.
struct Turn {
  int buffer, next, last;

  __device__ explicit Turn(std::uint32_t kept) {
    buffer = kept == kPeerEmpty ? 0 : static_cast<int>(kept);
    next = (buffer + 1) % kPeerBuffers;
    last = (buffer + 2) % kPeerBuffers;
  }
};

}  // namespace tilewright::kernels::peer
