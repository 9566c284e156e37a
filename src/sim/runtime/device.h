// What the runtime keeps about threads and their last errors, across files.
#pragma once

namespace tilewright::sim::runtime {

/// The thread has no last error any more, not even one that stays.
void forget_last_error() noexcept;

}  // namespace tilewright::sim::runtime
