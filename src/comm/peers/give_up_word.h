// Kernels that wait for other ranks by themselves, and how they learn that these will not come.
#pragma once

#include "tilewright/device.h"

#include "comm/communicator.h"
#include "comm/driver_calls.h"

#include <cstdint>
#include <memory>

namespace tilewright::comm {

/// A word of page-locked memory that is not 0 once the communicator has failed. When it ends, all
/// ranks meet, unless one has failed: others may still have to write into memory here. To be
/// declared behind the memory that those kernels use.
class GiveUpWord {
 public:
  GiveUpWord(const Device& device, std::shared_ptr<Communicator> comm);
  ~GiveUpWord();
  GiveUpWord(const GiveUpWord&) = delete;
  GiveUpWord& operator=(const GiveUpWord&) = delete;

  const std::uint32_t* get() const noexcept { return word_; }

 private:
  Device device_;
  std::shared_ptr<Communicator> comm_;
  DriverCalls calls_;
  std::uint32_t* word_;
};

/// Whether ranks of this communicator may write into each other's memory at all: not on simulated
/// devices, not more of them than kernels take, and not if TILEWRIGHT_PEER_REDUCE is "off".
bool may_have_peers(const Device& device, const Communicator& comm);

}  // namespace tilewright::comm
