// Sums over the ranks of a step that are too small for NCCL to be quick.
#pragma once

#include "tilewright/device.h"
#include "tilewright/hyper_connection.h"
#include "tilewright/peer_reduce.h"

#include "comm/communicator.h"
#include "comm/peer_memory.h"
#include "comm/peers/give_up_word.h"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace tilewright::comm {

/// out = sum over the ranks of in: up to 64 KiB by a kernel that writes into the memory of all
/// ranks (peer_reduce.h), more of it by the communicator. Calls are enqueued, and may be captured
/// after a first one of that size.
///
/// Errors   as the communicator's; what a failed rank leaves waiting ends when the communicator
///          knows
/// Thread   as the communicator
class RankSum {
 public:
  /// `memory`, and that of hyper-connections: mapped by all.
  RankSum(const Device& device, std::shared_ptr<Communicator> comm,
          std::unique_ptr<PeerMemory> memory, std::unique_ptr<PeerMemory> connection_memory);

  /// `in` may be `out`.
  void run(const void* in, void* out, std::int64_t count, DType dtype, void* stream);

  /// What hyper-connections take to add results up as they merge them, so that this is no launch of
  /// its own. All ranks load their kernels before one of them launches one: loading may wait for
  /// devices that map this one's memory.
  HyperConnectionRanks connection_ranks() const;

 private:
  Device device_;
  std::shared_ptr<Communicator> comm_;
  std::unique_ptr<PeerMemory> memory_, connection_memory_;
  std::map<std::pair<std::int64_t, DType>, PeerReduce> sums_;  // by count and type
  GiveUpWord given_up_;
};

/// Null where the memory of all ranks cannot be mapped, and where may_have_peers() is false. All
/// ranks call it together, and get one or none alike. `hidden`: of connection_ranks(); 0: they are
/// not asked for.
std::unique_ptr<RankSum> make_rank_sum(const Device& device,
                                       const std::shared_ptr<Communicator>& comm,
                                       std::int64_t hidden = 0);

}  // namespace tilewright::comm
