// Streams and events: the order of work on a device, and the time between two points of it.
#pragma once

#include "device/owned.h"

namespace tilewright::device {

class Event;

/// An ordered queue of work: either made here, or lent by the caller, e.g. by an inference engine.
///
/// Streams made here do not synchronise with the legacy default stream (CU_STREAM_NON_BLOCKING):
/// work on two streams is ordered by wait_for() or by the host only.
///
/// Thread   enqueueing from several threads is safe, but the order is then up to chance
class Stream {
 public:
  enum class Priority { kNormal, kHighest };
  explicit Stream(const Device& device, Priority priority = Priority::kNormal);

  /// A stream of the caller, who keeps it alive and destroys it. Null means the legacy default
  /// stream. It must belong to the primary context of the device.
  static Stream lent(const Device& device, abi::CUstream handle);

  abi::CUstream handle() const noexcept { return handle_; }
  const Device& device() const noexcept { return owned_.device(); }

  /// Waits until everything enqueued so far is done.
  /// Errors   DeviceError, also for kernels that failed meanwhile
  void synchronize() const;
  /// Whether everything enqueued so far is done.
  bool is_idle() const;
  /// Later work on this stream starts after the work that the event marks. Does not block the host.
  void wait_for(const Event& event) const;

 private:
  using OwnedStream = Owned<abi::CUstream, &abi::DriverFunctions::stream_destroy>;
  Stream(OwnedStream owned, abi::CUstream handle) noexcept
      : owned_(std::move(owned)), handle_(handle) {}

  OwnedStream owned_;     // holds null if the stream is lent
  abi::CUstream handle_;  // the stream in either case
};

/// A point in the work of a stream.
///
/// Thread   as Stream; record() replaces the previous point
class Event {
 public:
  enum class Timing { kOn, kOff };  ///< kOff is cheaper; elapsed_ms() then fails
  explicit Event(const Device& device, Timing timing = Timing::kOn);

  abi::CUevent handle() const noexcept { return owned_.get(); }

  void record(const Stream& stream) const;
  /// Waits until the recorded point is reached; returns at once if nothing was recorded.
  void synchronize() const;
  bool is_reached() const;
  const Device& device() const noexcept { return owned_.device(); }

 private:
  Owned<abi::CUevent, &abi::DriverFunctions::event_destroy> owned_;
};

/// Milliseconds between two recorded points that the device has reached, resolution about 0.5 us.
/// Errors   DeviceError if one was not recorded, is not reached yet (synchronize the later one
///          first) or was made without timing
float elapsed_ms(const Event& start, const Event& end);

}  // namespace tilewright::device
