// Contract of the sum over ranks that write to each other's memory.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

inline constexpr int kPeerRanks = 8;      ///< at most
inline constexpr int kPeerThreads = 256;  ///< of a CTA: a word of 16 bytes each
inline constexpr int kPeerCtas = 16;      ///< at most, so 64 KB
inline constexpr int kPeerWords = kPeerThreads * kPeerCtas;
inline constexpr int kPeerBuffers = 3;

/// Every 4 bytes of memory that nobody has written yet. As a number it is a NaN, which senders give
/// as another NaN.
inline constexpr std::uint32_t kPeerEmpty = 0xffffffff;

/// Memory that each rank has and all write to: words [kPeerBuffers][ranks][kPeerWords] of 16 bytes,
/// then for every CTA the number of its buffer, 4 bytes; all preset to kPeerEmpty.
constexpr std::int64_t peer_words(int ranks) {
  return std::int64_t{kPeerBuffers} * ranks * kPeerWords;
}
constexpr std::int64_t peer_bytes(int ranks) {
  return 16 * peer_words(ranks) + 4 * kPeerCtas;
}

/// Sums and results of one rank.
struct PeerReducePart {
  const void* in;
  void* out;
};

/// out = in_0 + in_1 + ... in fp32 from left to right, rounded once where bf16. blockIdx.y is the
/// part: one on a GPU, where the other ranks are elsewhere; all of them where one launch plays all.
struct PeerReduceParams {
  PeerReducePart parts[kPeerRanks];
  void* memory[kPeerRanks];  ///< of every rank, as this device reaches it
  /// Host or device memory; what is not 0 there ends the wait for ranks that do not come. Or null.
  const std::uint32_t* given_up;
  std::int32_t first_rank;  ///< of part 0
  std::int32_t ranks;
  std::int32_t words;  ///< of 16 bytes, to kPeerWords
  bool is_bf16;
};

/// Entry peer_reduce: grid (ceil(words / kPeerThreads), parts).

}  // namespace tilewright::kernels
