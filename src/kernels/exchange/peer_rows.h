// Contract of the exchange of rows between ranks that write to each other's memory.
#pragma once

#include "kernels/exchange/peer_reduce.h"

#include <cstdint>

namespace tilewright::kernels {

inline constexpr std::int64_t kPeerRowsMostBytes = 4 << 20;  ///< of one rank's rows

/// Memory that each rank has and all write to: words [kPeerBuffers][ranks][room] of 16 bytes, then
/// for every CTA the number of its buffer, 4 bytes; all preset to kPeerEmpty. `room`: the most
/// words that a rank sends to another, a multiple of kPeerThreads.
constexpr std::int64_t peer_rows_bytes(int ranks, std::int64_t room) {
  return 16 * kPeerBuffers * ranks * room + 4 * (room / kPeerThreads);
}

/// gather:  out = in_0, in_1, ... one behind the other, words[r] of rank r, on all ranks
/// scatter: out = the part of this rank, words[rank] behind those of the ranks before it, of
///          in_0 + in_1 + ... in fp32 from left to right, rounded once where bf16
///
/// blockIdx.y is the part: one on a GPU, all of them where one launch plays all ranks.
struct PeerRowsParams {
  PeerReducePart parts[kPeerRanks];
  void* memory[kPeerRanks];  ///< of every rank, as this device reaches it
  /// As in PeerReduceParams.
  const std::uint32_t* given_up;
  std::int32_t words[kPeerRanks];  ///< of 16 bytes, of the rows of each rank; to room
  std::int32_t first_rank;         ///< of part 0
  std::int32_t ranks;
  std::int32_t room;
  bool is_scatter, is_bf16;
};

/// Entry peer_rows: grid (ceil(most words of a rank / kPeerThreads), parts).

}  // namespace tilewright::kernels
