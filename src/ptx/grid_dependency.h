// Kernels that begin before the one before them ends ("programmatic dependent launch"). Without
// that attribute of the launch, neither does anything. PTX ISA: "griddepcontrol".
#pragma once

namespace tilewright::ptx {

/// The next kernel may begin when every CTA of this grid has called this, or has ended. One thread
/// of a CTA is enough. Says nothing about memory: see griddepcontrol_wait.
__device__ inline void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/// Waits until the preceding kernels on the stream have ended and their writes are visible.
__device__ inline void griddepcontrol_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

}  // namespace tilewright::ptx
