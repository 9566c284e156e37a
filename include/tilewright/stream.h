// An order of work on a device, for programs that have none of their own.
#pragma once

#include "tilewright/device.h"

#include <memory>

namespace tilewright {

/// A CUDA stream made here, destroyed with the object. It does not wait for the legacy default
/// stream, nor that one for it. Move-only.
///
///     Stream stream(device);
///     attention.run({..., .stream = stream.handle()});
///     stream.synchronize();
///
/// Thread   enqueueing from several threads is safe, but the order is then up to chance
class Stream {
 public:
  /// Errors   DeviceError
  explicit Stream(const Device& device);
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;

  /// The CUstream, as run() of every operator takes it.
  void* handle() const noexcept;
  /// Waits until everything enqueued so far is done.
  /// Errors   DeviceError, also for kernels that failed meanwhile
  void synchronize() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright
