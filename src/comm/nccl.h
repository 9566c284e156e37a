// Ranks that are processes with a GPU each, through NCCL.
#pragma once

#include "tilewright/device.h"

#include "comm/communicator.h"
#include "comm/nccl_library.h"
#include "comm/rendezvous.h"

#include <chrono>
#include <memory>

namespace tilewright::comm {

/// A communicator of all ranks of the rendezvous, which it keeps: connections that end tell of
/// ranks that died. Uneven parts go as a group of broadcasts or reductions, one for each rank.
///
/// `timeout`  so long synchronize() waits for work in which nobody is known to have failed: calls
///            that do not fit each other are found by nothing else
/// Errors     DeviceError with NCCL's words, as on a simulated device, which NCCL does not know;
///            those of Rendezvous
std::unique_ptr<Communicator> make_nccl_communicator(
    const Device& device, std::unique_ptr<Rendezvous> rendezvous,
    std::shared_ptr<const NcclLibrary> library = NcclLibrary::open(),
    std::chrono::milliseconds timeout = std::chrono::minutes(2));

}  // namespace tilewright::comm
