// Rows of a step's ranks that are too few for NCCL to be quick: to all ranks, and parts of sums
// back.
#pragma once

#include "tilewright/device.h"
#include "tilewright/peer_reduce.h"

#include "comm/communicator.h"
#include "comm/peer_memory.h"
#include "comm/peers/give_up_word.h"

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace tilewright::comm {

/// What all_gather() and reduce_scatter() of a communicator do: up to 2 MiB of a rank by a kernel
/// that writes into the memory of all ranks (peer_reduce.h), more of it by the communicator. Calls
/// are enqueued, and may be captured after a first one of that size.
///
/// Sums     where the kernel makes them, in the order of the ranks
/// Errors   as the communicator's; what a failed rank leaves waiting ends when the communicator
///          knows
/// Thread   as the communicator
class RankRows {
 public:
  static constexpr std::int64_t kMostBytes = 2 << 20;

  /// `memory`: mapped by all.
  RankRows(const Device& device, std::shared_ptr<Communicator> comm,
           std::unique_ptr<PeerMemory> memory);

  /// Elements of each rank.
  void gather(const void* in, void* out, const std::vector<std::int64_t>& counts, DType dtype,
              void* stream);
  void scatter(const void* in, void* out, const std::vector<std::int64_t>& counts, DType dtype,
               void* stream);

 private:
  bool run(PeerRowsKind kind, const void* in, void* out, const std::vector<std::int64_t>& counts,
           DType dtype, void* stream);

  Device device_;
  std::shared_ptr<Communicator> comm_;
  std::unique_ptr<PeerMemory> memory_;
  std::map<std::tuple<PeerRowsKind, std::vector<std::int64_t>, DType>, PeerRows> made_;
  GiveUpWord given_up_;
};

/// Null where the memory of all ranks cannot be mapped, and where may_have_peers() is false. All
/// ranks call it together, and get one or none alike.
std::unique_ptr<RankRows> make_rank_rows(const Device& device,
                                         const std::shared_ptr<Communicator>& comm);

}  // namespace tilewright::comm
