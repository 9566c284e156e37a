// The order of work on a device, and points and times in it, for programs that have no streams and
// events of their own.
#pragma once

#include "tilewright/device.h"

#include <functional>
#include <memory>

namespace tilewright {

class Event;

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
  /// Whether everything enqueued so far is done.
  /// Errors   DeviceError, also for kernels that failed meanwhile
  bool is_idle() const;
  /// Later work on this stream starts after the point that the event marks. Does not block the
  /// host.
  void wait_for(const Event& event) const;

 private:
  friend struct Internal;
  struct State;
  std::unique_ptr<State> state_;
};

/// A point in the work of a stream: what another stream or the host waits for, and what times are
/// taken between. Move-only.
///
/// Thread   as Stream; record() replaces the previous point
class Event {
 public:
  /// Errors   DeviceError
  explicit Event(const Device& device);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  /// The CUevent.
  void* handle() const noexcept;
  /// Marks the end of what has been enqueued on the stream so far.
  void record(const Stream& stream) const;
  /// Waits until the point is reached; returns at once if nothing was recorded.
  /// Errors   DeviceError, also for kernels that failed meanwhile
  void synchronize() const;
  /// Whether the point is reached; true if nothing was recorded.
  bool is_reached() const;

 private:
  friend struct Internal;
  struct State;
  std::unique_ptr<State> state_;
};

/// Microseconds from one recorded point to another; resolution about 0.5 us. On a simulated device
/// the times are those of the host, which say nothing about a GPU.
/// Errors   DeviceError if one of them was not recorded, or is not reached yet: synchronize the
///          later one first
double elapsed_us(const Event& begin, const Event& end);

/// Takes the time of work on a stream.
///
///     StreamTimer timer(device);
///     double us = timer.time_us(stream, [&] { attention.run(arguments); });
///
/// Errors   DeviceError
class StreamTimer {
 public:
  explicit StreamTimer(const Device& device) : begin_(device), end_(device) {}

  /// Microseconds between two events around what `enqueue` puts on the stream, all of which is done
  /// when this returns. Where the stream was empty, the time until the first kernel begins counts
  /// as well; where work was still waiting there, it does not.
  double time_us(const Stream& stream, const std::function<void()>& enqueue) const;

 private:
  Event begin_, end_;
};

}  // namespace tilewright
