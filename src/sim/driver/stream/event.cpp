// Events: the time of one is the host's clock when it was recorded. How long the simulator took
// says nothing about a GPU.
#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/graph.h"
#include "sim/driver/objects/stream.h"

#include <algorithm>

namespace tilewright::sim::abi {

namespace {

constexpr unsigned kEventFlags = 7;
constexpr unsigned kDisableTiming = static_cast<unsigned>(CUevent_flags::kDisableTiming);
constexpr unsigned kInterprocess = static_cast<unsigned>(CUevent_flags::kInterprocess);

std::shared_ptr<Event> find_event(CUevent handle) {
  return Driver::get().events.find(handle);
}

void record(CUevent handle, CUstream stream_handle, unsigned flags) {
  expect((flags & ~kEventRecordExternal) == 0);
  const std::shared_ptr<Event> event = find_event(handle);
  const std::shared_ptr<Stream> stream = find_stream(stream_handle);
  stream->context.is_silently_broken();  // refuses if the fault was reported
  expect(event->context == &stream->context);
  const std::lock_guard lock(stream->mutex);
  if (stream->current_capture() == nullptr || (flags & kEventRecordExternal) != 0) {
    submit(*stream, EventRecordWork{event});
    return;
  }
  expect(stream->current_capture()->status == CUstreamCaptureStatus::kActive,
         CUresult::kStreamCaptureInvalidated);
  // Within a capture an event is no work, only a name for what it comes after.
  const std::lock_guard event_lock(event->mutex);
  event->capture = stream->current_capture();
  event->captured_after = stream->captured_after;
}

void require_outside_of_capture(Event& event) {
  const std::lock_guard lock(event.mutex);
  if (event.capture == nullptr || event.capture->is_over) return;
  event.capture->status = CUstreamCaptureStatus::kInvalidated;
  refuse(CUresult::kCapturedEvent);
}

}  // namespace

CUresult cuEventCreate(CUevent* out, unsigned flags) {
  return call_in_usable_context([&](Context& context) {
    expect(out != nullptr && (flags & ~kEventFlags) == 0);
    expect((flags & kInterprocess) == 0, CUresult::kNotSupported);
    const auto event = std::make_shared<Event>();
    event->context = &context;
    event->flags = flags;
    *out = Driver::get().events.add(event);
  });
}

CUresult cuEventDestroy_v2(CUevent handle) {
  return call([&] { Driver::get().events.take(handle); });
}

CUresult cuEventRecord(CUevent handle, CUstream stream) {
  return call([&] { record(handle, stream, 0); });
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned flags) {
  return call([&] { record(handle, stream, flags); });
}

CUresult cuEventQuery(CUevent handle) {
  return call([&] {
    const std::shared_ptr<Event> event = find_event(handle);
    require_outside_of_capture(*event);
    event->context->synchronize();
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return call([&] {
    const std::shared_ptr<Event> event = find_event(handle);
    require_outside_of_capture(*event);
    event->context->synchronize();
  });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  return call([&] {
    expect(milliseconds != nullptr);
    const std::shared_ptr<Event> start = find_event(start_handle);
    const std::shared_ptr<Event> end = find_event(end_handle);
    expect(((start->flags | end->flags) & kDisableTiming) == 0, CUresult::kInvalidHandle);
    require_outside_of_capture(*start);
    require_outside_of_capture(*end);
    end->context->report_fault();
    const std::scoped_lock lock(start->mutex);
    const auto from = start->time;
    const bool is_start_recorded = start->is_recorded;
    auto to = from;
    bool is_end_recorded = is_start_recorded;
    if (end != start) {
      const std::scoped_lock end_lock(end->mutex);
      to = end->time;
      is_end_recorded = end->is_recorded;
    }
    expect(is_start_recorded && is_end_recorded, CUresult::kInvalidHandle);
    *milliseconds = std::chrono::duration<float, std::milli>(to - from).count();
  });
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags) {
  return call([&] {
    expect(flags <= 1);
    const std::shared_ptr<Stream> stream = find_stream(stream_handle);
    const std::shared_ptr<Event> event = find_event(handle);
    stream->context.is_silently_broken();
    const std::scoped_lock lock(stream->mutex, event->mutex);
    const std::shared_ptr<Capture>& capture = event->capture;
    if (capture == nullptr || capture->is_over || flags == 1) {
      expect(stream->current_capture() == nullptr || flags == 1, CUresult::kStreamCaptureIsolation);
      submit(*stream, EventWaitWork{event});
      return;
    }
    expect(capture->status == CUstreamCaptureStatus::kActive, CUresult::kStreamCaptureInvalidated);
    if (stream->current_capture() == nullptr) {  // the stream joins in
      stream->current_capture() = capture;
      stream->captured_after.clear();
    }
    expect(stream->current_capture() == capture, CUresult::kStreamCaptureMerge);
    for (GraphNode* node : event->captured_after) {
      auto& after = stream->captured_after;
      if (std::find(after.begin(), after.end(), node) == after.end()) after.push_back(node);
    }
  });
}

}  // namespace tilewright::sim::abi
