#include "sim/driver/objects/stream.h"

#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/graph.h"

#include <algorithm>

namespace tilewright::sim {

std::shared_ptr<Stream> find_stream(abi::CUstream handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number == 0 || number == abi::kLegacyStream) return current_context().legacy_stream;
  if (number == abi::kPerThreadStream) return current_context().per_thread_stream();
  return Driver::get().streams.find(handle);
}

std::shared_ptr<Capture>& Stream::current_capture() {
  if (capture_ != nullptr && capture_->is_over) {
    capture_.reset();
    captured_after.clear();
  }
  return capture_;
}

void require_not_captured(Stream& stream) {
  const std::lock_guard lock(stream.mutex);
  if (stream.current_capture() == nullptr) return;
  stream.current_capture()->status = abi::CUstreamCaptureStatus::kInvalidated;
  refuse(CUresult::kStreamCaptureUnsupported);
}

namespace abi {

namespace {

constexpr unsigned kStreamFlags = static_cast<unsigned>(CUstream_flags::kNonBlocking);

void create(CUstream* out, unsigned flags, int priority) {
  Context& context = usable_context();
  expect(out != nullptr && (flags & ~kStreamFlags) == 0);
  const auto stream = std::make_shared<Stream>(context);
  stream->flags = flags;
  stream->priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
  *out = Driver::get().streams.add(stream);
}

}  // namespace

CUresult cuStreamCreate(CUstream* out, unsigned flags) {
  return call([&] { create(out, flags, 0); });
}

CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  return call([&] { create(out, flags, priority); });
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  return call([&] {
    const std::shared_ptr<Stream> stream = Driver::get().streams.take(handle);
    const std::lock_guard lock(stream->mutex);
    if (stream->current_capture() != nullptr) {
      stream->current_capture()->status = CUstreamCaptureStatus::kInvalidated;
      stream->current_capture().reset();
    }
  });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    require_not_captured(*stream);
    stream->context.synchronize();
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    require_not_captured(*stream);
    stream->context.synchronize();
  });
}

CUresult cuStreamGetFlags(CUstream handle, unsigned* out) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    expect(out != nullptr);
    *out = stream->flags;
  });
}

CUresult cuStreamGetPriority(CUstream handle, int* out) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    expect(out != nullptr);
    *out = stream->priority;
  });
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* out) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    expect(out != nullptr);
    *out = stream->id;
  });
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* out) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    expect(out != nullptr);
    *out = Registry<CUcontext, Context>::handle_of(&stream->context);
  });
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* out) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    expect(out != nullptr);
    *out = stream->context.device.ordinal;
  });
}

CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID id, CUstreamAttrValue* out) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    expect(out != nullptr);
    const std::lock_guard lock(stream->mutex);
    const auto found = stream->attributes.find(id);
    *out = found == stream->attributes.end() ? CUstreamAttrValue{} : found->second;
    if (id == CUstreamAttrID::kPriority) out->priority = stream->priority;
  });
}

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID id, const CUstreamAttrValue* value) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    expect(value != nullptr);
    const std::lock_guard lock(stream->mutex);
    stream->attributes[id] = *value;
    if (id == CUstreamAttrID::kPriority) stream->priority = value->priority;
  });
}

CUresult cuStreamCopyAttributes(CUstream to_handle, CUstream from_handle) {
  return call([&] {
    const std::shared_ptr<Stream> to = find_stream(to_handle);
    const std::shared_ptr<Stream> from = find_stream(from_handle);
    if (to == from) return;
    const std::scoped_lock lock(to->mutex, from->mutex);
    to->attributes = from->attributes;
  });
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr, size_t, unsigned) {
  return call([&] { find_stream(handle); });
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data,
                             unsigned flags) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    expect(callback != nullptr && flags == 0);
    require_not_captured(*stream);
    run(stream->context, HostWork{.function = nullptr, .data = nullptr, .callback = [=] {
                                    callback(handle, CUresult::kSuccess, data);
                                  }});
  });
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    expect(function != nullptr);
    submit(*stream, make_host_work({.fn = function, .user_data = data}));
  });
}

CUresult cuStreamWriteValue32_v2(CUstream handle, CUdeviceptr address, std::uint32_t value,
                                 unsigned) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    submit(*stream, make_memset_work({.dst = address,
                                      .pitch = 0,
                                      .value = value,
                                      .element_size = 4,
                                      .width = 1,
                                      .height = 1}));
  });
}

CUresult cuStreamWriteValue64_v2(CUstream handle, CUdeviceptr address, std::uint64_t value,
                                 unsigned) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    expect(address % 8 == 0);
    require_range(address, 8, false);
    require_not_captured(*stream);
    run(stream->context, HostWork{.function = nullptr, .data = nullptr, .callback = [=] {
                                    *reinterpret_cast<std::uint64_t*>(address) = value;
                                  }});
  });
}

}  // namespace abi
}  // namespace tilewright::sim
