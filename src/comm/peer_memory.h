// Memory that the ranks of one host reach directly: a rank's kernels read and write what others
// have allocated.
#pragma once

#include "tilewright/buffer.h"

#include "comm/communicator.h"
#include "comm/driver_calls.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::comm {

/// A buffer of each rank, mapped by all others; between processes by CUDA's IPC, between devices of
/// one process by peer access. All ranks make one together, with buffers of one size, whole pages
/// of 2 MiB. It is to die before the communicator, when no kernel uses it any more; the buffers of
/// other ranks live until all have come to the end.
///
/// Thread   as the communicator
class PeerMemory {
 public:
  /// Errors   as the communicator's. That memory cannot be mapped is none: see is_mapped()
  PeerMemory(const Device& device, Communicator& comm, Buffer own);
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  /// Whether all ranks have mapped the memory of all, alike on all of them.
  bool is_mapped() const noexcept { return obstacle_.empty(); }
  /// Why not; "" if it is.
  const std::string& obstacle() const noexcept { return obstacle_; }
  /// Of a rank, as this device reaches it; null if it is not mapped.
  void* of(int rank) const { return addresses_.at(rank_idx(rank)); }

 private:
  void map_all(Communicator& comm);

  DriverCalls calls_;
  Buffer own_;
  std::vector<void*> addresses_;
  std::vector<void*> opened_;  // by IPC, to be closed
  std::string obstacle_;
};

}  // namespace tilewright::comm
