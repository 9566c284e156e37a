// Ranks that are threads of one process, each with a device of its own or all with one.
#pragma once

#include "tilewright/device.h"

#include "comm/communicator.h"

#include <chrono>
#include <functional>
#include <memory>

namespace tilewright::comm {

/// Data goes through host memory, in the order of each rank's stream: from the device, a call on
/// the host where the ranks meet, to the device. It is for the simulator, where nothing is faster,
/// and for tests; sums are in the order of the ranks, so results are the same in every run.
///
///     ThreadGroup group(2);
///     group.run([&](int rank) {
///       const auto comm = group.join(rank, device);
///       ...
///     });
///
/// A rank whose communicator is destroyed, or that throws, ends what the others wait for.
/// Thread   safe
class ThreadGroup {
 public:
  /// So long a rank waits for the others, which may be simulating much.
  static constexpr std::chrono::milliseconds kTimeout = std::chrono::minutes(30);

  /// Errors   InvalidArgument unless size is from 1 to 64
  explicit ThreadGroup(int size, std::chrono::milliseconds timeout = kTimeout);

  int size() const noexcept;
  /// A rank's end, once for each rank. It keeps what it needs of the group.
  /// Errors   InvalidArgument for a rank that is none or has joined before; as DriverCalls
  std::unique_ptr<Communicator> join(int rank, const Device& device);
  /// Calls body(rank) in a thread for each rank and waits for all. The first exception that is
  /// thrown is told to the other ranks, and thrown here when all have ended.
  void run(const std::function<void(int rank)>& body);

 private:
  friend class ThreadRank;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tilewright::comm
