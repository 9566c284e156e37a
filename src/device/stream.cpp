#include "device/stream.h"

namespace tilewright::device {

using abi::CUresult;

namespace {

abi::CUstream create_stream(const Device& device, Stream::Priority priority) {
  const auto current = device.make_current();
  int least = 0;
  int greatest = 0;
  device.check(device.cu().ctx_get_stream_priority_range(&least, &greatest),
               "cuCtxGetStreamPriorityRange");
  const int number = priority == Stream::Priority::kHighest ? greatest : least;
  const auto flags = static_cast<unsigned>(abi::CUstream_flags::kNonBlocking);
  abi::CUstream handle = nullptr;
  device.check(device.cu().stream_create_with_priority(&handle, flags, number),
               "cuStreamCreateWithPriority", "priority = {}", number);
  return handle;
}

abi::CUevent create_event(const Device& device, Event::Timing timing) {
  const auto current = device.make_current();
  const auto flags = timing == Event::Timing::kOn ? abi::CUevent_flags::kDefault
                                                  : abi::CUevent_flags::kDisableTiming;
  abi::CUevent handle = nullptr;
  device.check(device.cu().event_create(&handle, static_cast<unsigned>(flags)), "cuEventCreate");
  return handle;
}

/// Turns the answer of a query into a bool.
bool is_done(const Device& device, CUresult result, const char* function) {
  if (result == CUresult::kNotReady) return false;
  device.check(result, function);
  return true;
}

}  // namespace

Stream::Stream(const Device& device, Priority priority)
    : owned_(device, create_stream(device, priority)), handle_(owned_.get()) {}

Stream Stream::lent(const Device& device, abi::CUstream handle) {
  return {OwnedStream(device, nullptr), handle};
}

void Stream::synchronize() const {
  const auto current = device().make_current();
  device().check(device().cu().stream_synchronize(handle_), "cuStreamSynchronize");
}

bool Stream::is_idle() const {
  const auto current = device().make_current();
  return is_done(device(), device().cu().stream_query(handle_), "cuStreamQuery");
}

void Stream::wait_for(const Event& event) const {
  const auto current = device().make_current();
  device().check(device().cu().stream_wait_event(handle_, event.handle(), 0), "cuStreamWaitEvent");
}

Event::Event(const Device& device, Timing timing) : owned_(device, create_event(device, timing)) {}

void Event::record(const Stream& stream) const {
  const auto current = device().make_current();
  device().check(device().cu().event_record(handle(), stream.handle()), "cuEventRecord");
}

void Event::synchronize() const {
  const auto current = device().make_current();
  device().check(device().cu().event_synchronize(handle()), "cuEventSynchronize");
}

bool Event::is_reached() const {
  const auto current = device().make_current();
  return is_done(device(), device().cu().event_query(handle()), "cuEventQuery");
}

float elapsed_ms(const Event& start, const Event& end) {
  const Device& device = start.device();
  const auto current = device.make_current();
  float milliseconds = 0;
  device.check(
      device.cu().event_elapsed_time(&milliseconds, start.handle(), end.handle()),
      "cuEventElapsedTime",
      "both events must be made with timing, recorded, and reached (synchronize the later one)");
  return milliseconds;
}

}  // namespace tilewright::device
