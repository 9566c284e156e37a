// A CUDA driver on host memory for tests: GPUs, contexts and memory. It obeys the documented rules,
// logs every call, counts every handle and fails where a test asks it to.
#include "fake_call.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tilewright::device::fake {

using namespace abi;

State& state() {
  static State instance;
  return instance;
}

std::vector<CUcontext>& contexts() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

CUstream& captured_stream() {
  thread_local CUstream stream = nullptr;
  return stream;
}

bool breaks_capture() {
  if (captured_stream() == nullptr) return false;
  state().objects[number_of(captured_stream())].is_capture_broken = true;
  return true;
}

CUresult enqueue(Call& call, CUstream stream, std::function<void()> work,
                 const std::string& kernel) {
  if (call.is_failed()) return call.result();
  if (stream == nullptr) {
    if (breaks_capture()) return CUresult::kStreamCaptureImplicit;
    work();
    return CUresult::kSuccess;
  }
  Object* const object = call.find(stream, "stream");
  if (object == nullptr) return CUresult::kInvalidHandle;
  if (object->is_capturing) {
    object->recorded.push_back(std::move(work));
    object->nodes.push_back(kernel);
  } else {
    work();
  }
  return CUresult::kSuccess;
}

namespace {

constexpr std::size_t kAlignment = 256;

/// Contexts are GPUs in disguise: ordinal + 1 as a number.
CUcontext context_of(CUdevice device) {
  return reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1);
}

Gpu& current_gpu() {
  return state().gpus.at(reinterpret_cast<std::uintptr_t>(contexts().back()) - 1);
}

std::size_t used_bytes(CUcontext context) {
  std::size_t bytes = 0;
  for (const auto& [handle, object] : state().objects) {
    if (object.kind == "memory" && object.context == context) bytes += object.bytes;
  }
  return bytes;
}

bool is_gpu(CUdevice device) {
  return device >= 0 && device < static_cast<int>(state().gpus.size());
}

/// Whether the bytes lie in one live allocation of the current context.
bool is_inside(CUdeviceptr address, std::size_t bytes, const char* kind = "memory") {
  auto after = state().objects.upper_bound(address);
  if (after == state().objects.begin()) return false;
  const auto& [start, object] = *std::prev(after);
  return object.kind == kind && object.context == contexts().back() &&
         address + bytes <= start + object.bytes;
}

void* host(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

CUresult allocate(Call& call, std::size_t bytes, const char* kind, unsigned flags, void*& memory) {
  if (call.is_failed()) return call.result();
  if (breaks_capture()) return CUresult::kStreamCaptureUnsupported;
  if (bytes == 0) return call.misuse(CUresult::kInvalidValue, "with size 0");
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (used_bytes(contexts().back()) + rounded > current_gpu().memory_bytes) {
    return CUresult::kOutOfMemory;
  }
  memory = std::aligned_alloc(kAlignment, rounded);
  std::memset(memory, 0x5a, rounded);  // not what poison() writes
  Object object;
  object.kind = kind;
  object.context = contexts().back();
  object.bytes = bytes;
  object.flags = flags;
  state().objects[number_of(memory)] = std::move(object);
  return CUresult::kSuccess;
}

CUresult free_memory(Call& call, void* memory, const char* kind) {
  const CUresult result = call.release(memory, kind);
  const bool is_gone = state().objects.find(number_of(memory)) == state().objects.end();
  if (is_gone && result != CUresult::kInvalidHandle) std::free(memory);
  return result;
}

CUresult copy(Call& call, CUstream stream, void* to, const void* from, std::size_t bytes,
              CUdeviceptr checked) {
  if (!call.is_failed() && !is_inside(checked, bytes)) {
    return call.misuse(CUresult::kInvalidValue, "outside of an allocation");
  }
  return enqueue(call, stream, [=] { std::memcpy(to, from, bytes); });
}

template <class Word>
CUresult set(Call& call, CUstream stream, CUdeviceptr to, Word value, std::size_t count) {
  if (!call.is_failed() && !is_inside(to, count * sizeof(Word))) {
    return call.misuse(CUresult::kInvalidValue, "outside of an allocation");
  }
  return enqueue(call, stream, [=] { std::fill_n(static_cast<Word*>(host(to)), count, value); });
}

}  // namespace
}  // namespace tilewright::device::fake

using namespace tilewright::device::abi;
using namespace tilewright::device::fake;

extern "C" {

State* fake_state() {
  return &state();
}

std::size_t fake_context_depth() {
  return contexts().size();
}

void fake_reset() {
  State& s = state();
  for (const auto& [handle, object] : s.objects) {
    if (object.kind == "memory" || object.kind == "pinned") std::free(host(handle));
  }
  const std::uint64_t next_handle = s.next_handle;  // a stale handle must stay unknown
  s.~State();
  new (&s) State;
  s.next_handle = next_handle;
  contexts().clear();
  captured_stream() = nullptr;
}

CUresult cuInit(unsigned) {
  Call call(__func__, Needs::kNothing);
  if (call.is_failed()) return call.result();
  if (state().gpus.empty()) return CUresult::kNoDevice;
  state().is_initialized = true;
  return CUresult::kSuccess;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = nullptr;
  if (error == static_cast<CUresult>(4242)) *name = "CUDA_ERROR_FROM_THE_FUTURE";
  return *name != nullptr ? CUresult::kSuccess : CUresult::kInvalidValue;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUresult::kOutOfMemory ? "out of memory" : "text from the fake driver";
  return CUresult::kSuccess;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  Call call(__func__, Needs::kInit);
  if (call.is_failed()) return call.result();
  *device = ordinal;
  return is_gpu(ordinal) ? CUresult::kSuccess : CUresult::kInvalidDevice;
}

CUresult cuDeviceGetCount(int* count) {
  Call call(__func__, Needs::kInit);
  *count = static_cast<int>(state().gpus.size());
  return call.result();
}

CUresult cuDeviceGetName(char* name, int size_bytes, CUdevice device) {
  Call call(__func__, Needs::kInit);
  if (call.is_failed()) return call.result();
  std::strncpy(name, state().gpus.at(device).name.c_str(), static_cast<std::size_t>(size_bytes));
  return CUresult::kSuccess;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  Call call(__func__, Needs::kInit);
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(0x10 * i + i + 16 * device);
  return call.result();
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  Call call(__func__, Needs::kInit);
  *bytes = state().gpus.at(device).memory_bytes;
  return call.result();
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  Call call(__func__, Needs::kInit);
  if (call.is_failed()) return call.result();
  using A = CUdevice_attribute;
  const Gpu& gpu = state().gpus.at(device);
  std::map<int, int> values = gpu.attributes;  // emplace keeps what a test set
  const std::pair<A, int> defaults[] = {{A::kComputeMajor, gpu.capability / 10},
                                        {A::kComputeMinor, gpu.capability % 10},
                                        {A::kNumSms, 132},
                                        {A::kL2Bytes, 50 << 20},
                                        {A::kSharedPerSm, 233472},
                                        {A::kMaxSharedPerBlock, 49152},
                                        {A::kMaxSharedPerBlockOptin, 232448},
                                        {A::kReservedSharedPerBlock, 1024},
                                        {A::kRegistersPerSm, 65536},
                                        {A::kMaxThreadsPerSm, 2048},
                                        {A::kClockRateKhz, 1980000},
                                        {A::kMemoryClockRateKhz, 3201000},
                                        {A::kMemoryBusWidthBits, 6144},
                                        {A::kClusterLaunch, 1},
                                        {A::kTensorMapAccess, 1}};
  for (const auto& [key, number] : defaults) values.emplace(static_cast<int>(key), number);
  const auto found = values.find(static_cast<int>(attribute));
  if (found == values.end()) return call.misuse(CUresult::kInvalidValue, "with that attribute");
  *value = found->second;
  return CUresult::kSuccess;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  Call call(__func__, Needs::kInit);
  if (call.is_failed()) return call.result();
  ++state().gpus.at(device).primary_context_users;
  *context = context_of(device);
  return CUresult::kSuccess;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  Call call(__func__, Needs::kInit);
  if (state().gpus.at(device).primary_context_users-- == 0) {
    return call.misuse(CUresult::kInvalidContext, "more often than retained");
  }
  return call.result();
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  Call call(__func__, Needs::kInit);
  *context = contexts().empty() ? nullptr : contexts().back();
  return call.result();
}

CUresult cuCtxSetCurrent(CUcontext context) {
  Call call(__func__, Needs::kInit);
  if (call.is_failed()) return call.result();
  if (!contexts().empty()) contexts().pop_back();
  if (context != nullptr) contexts().push_back(context);
  return CUresult::kSuccess;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  Call call(__func__, Needs::kInit);
  if (call.is_failed()) return call.result();
  if (context == nullptr) return call.misuse(CUresult::kInvalidContext, "with null");
  contexts().push_back(context);
  return CUresult::kSuccess;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  Call call(__func__);
  if (contexts().empty()) return CUresult::kInvalidContext;
  *context = contexts().back();
  contexts().pop_back();
  return call.result();
}

CUresult cuCtxSynchronize() {
  return Call(__func__).result();
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  Call call(__func__);
  void* memory = nullptr;
  const CUresult result = allocate(call, bytes, "memory", 0, memory);
  if (result == CUresult::kSuccess) *address = number_of(memory);
  return result;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  Call call(__func__);
  return free_memory(call, host(address), "memory");
}

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  *total_bytes = current_gpu().memory_bytes;
  *free_bytes = *total_bytes - used_bytes(contexts().back());
  return CUresult::kSuccess;
}

CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  Call call(__func__);
  return allocate(call, bytes, "pinned", flags, *memory);
}

CUresult cuMemFreeHost(void* memory) {
  Call call(__func__);
  return free_memory(call, memory, "pinned");
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  Call call(__func__);
  return copy(call, nullptr, host(to), from, bytes, to);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  Call call(__func__);
  return copy(call, nullptr, to, host(from), bytes, from);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  Call call(__func__);
  if (!call.is_failed() && !is_inside(from, bytes)) {
    return call.misuse(CUresult::kInvalidValue, "from outside of an allocation");
  }
  return copy(call, nullptr, host(to), host(from), bytes, to);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                              CUstream stream) {
  Call call(__func__);
  return copy(call, stream, host(to), from, bytes, to);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  Call call(__func__);
  return copy(call, stream, to, host(from), bytes, from);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                              CUstream stream) {
  Call call(__func__);
  if (!call.is_failed() && !is_inside(from, bytes)) {
    return call.misuse(CUresult::kInvalidValue, "from outside of an allocation");
  }
  return copy(call, stream, host(to), host(from), bytes, to);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t num_bytes) {
  Call call(__func__);
  return set(call, nullptr, to, value, num_bytes);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, std::size_t num_words) {
  Call call(__func__);
  return set(call, nullptr, to, value, num_words);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t num_bytes,
                         CUstream stream) {
  Call call(__func__);
  return set(call, stream, to, value, num_bytes);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t num_words, CUstream stream) {
  Call call(__func__);
  return set(call, stream, to, value, num_words);
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  const bool is_device = is_inside(address, 1);
  if (!is_device && !is_inside(address, 1, "pinned")) return CUresult::kInvalidValue;
  const auto& [start, object] = *std::prev(state().objects.upper_bound(address));
  const auto type = is_device ? CUmemorytype::kDevice : CUmemorytype::kHost;
  switch (attribute) {
    case CUpointer_attribute::kMemoryType:
      *static_cast<CUmemorytype*>(value) = type;
      break;
    case CUpointer_attribute::kIsManaged:
      *static_cast<unsigned*>(value) = 0;
      break;
    case CUpointer_attribute::kDeviceOrdinal:
      *static_cast<int*>(value) =
          static_cast<int>(reinterpret_cast<std::intptr_t>(object.context)) - 1;
      break;
    case CUpointer_attribute::kRangeStartAddress:
      *static_cast<CUdeviceptr*>(value) = start;
      break;
    case CUpointer_attribute::kRangeSize:
      *static_cast<std::size_t*>(value) = object.bytes;
      break;
  }
  return CUresult::kSuccess;
}

}  // extern "C"
