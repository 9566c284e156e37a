// The asynchronous tensor pipe of a CTA: tcgen05.mma, cp and shift take effect in the order in
// which they were issued, at once or later, and a commit arrives at its mbarrier when everything
// before it has.
#pragma once

#include "sim/event/observer.h"
#include "sim/state/warp.h"
#include "sim/tensor/tensor_memory.h"

#include <functional>

namespace tilewright::sim {

/// Of a CTA; made when it is first asked for.
TensorMemory& tensor_memory_of(Cta& cta);

/// The other CTA of a pair: ranks 2i and 2i + 1 of the cluster.
/// Errors   FaultError if the cluster has no such CTA, or it has ended
Cta& peer_of(Warp& warp, std::uint32_t lanes);

/// An operation of one thread: notifies the observers, then does it or queues it.
///     operation   what it touches, in Tensor Memory and in shared memory
///     apply       reads all operands and writes the results. It may throw FaultError
void issue_tensor(Warp& warp, const Insn& insn, const TensorOperation& operation,
                  std::function<void()> apply);

/// The same for a commit: after all that was issued before. No observer sees it.
void issue_after_tensor(Warp& warp, const Insn& insn, std::function<void()> apply);

}  // namespace tilewright::sim
