// Order between a kernel and the next one of its stream, which may start early (programmatic
// dependent launch). PTX ISA: "griddepcontrol".
#pragma once

namespace tilewright::ptx {

/// Waits until the kernels that this one depends on have ended and what they wrote is visible.
/// Before that, nothing of theirs may be read and nothing that they read may be written. A kernel
/// that was launched plainly passes at once.
__device__ inline void griddepcontrol_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// Once all CTAs have said so or ended, the next kernel may start; it sees this one's results only
/// after its own wait.
__device__ inline void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace tilewright::ptx
