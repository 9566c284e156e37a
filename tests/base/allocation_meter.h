// How much memory code asks for at most.
#pragma once

#include <cstddef>

namespace tilewright {

/// Measures from its construction on; one at a time. The test program replaces operator new for it.
class AllocationMeter {
 public:
  AllocationMeter();

  /// The most bytes that were allocated at once, beyond what was allocated at the beginning.
  std::size_t peak_bytes() const;

 private:
  std::size_t begin_bytes_;
};

}  // namespace tilewright
