#include "device/memory.h"

namespace tilewright::device {

using abi::CUdeviceptr;
using abi::CUpointer_attribute;
using abi::CUresult;

namespace {

/// The device is asked for its free memory only after the failure.
[[noreturn]] void out_of_memory(const Device& device, std::size_t size_bytes) {
  MemoryInfo memory;
  const CUresult result = device.cu().mem_get_info(&memory.free_bytes, &memory.total_bytes);
  const std::string state =
      result == CUresult::kSuccess
          ? fmt::format("{} bytes free of {}", memory.free_bytes, memory.total_bytes)
          : fmt::format("free memory unknown ({})", name_of(result));
  device.raise(CUresult::kOutOfMemory, "cuMemAlloc",
               fmt::format("requested {} bytes, {}", size_bytes, state));
}

CUdeviceptr allocate(const Device& device, std::size_t size_bytes) {
  if (size_bytes == 0) return 0;
  const auto current = device.make_current();
  CUdeviceptr address = 0;
  const CUresult result = device.cu().mem_alloc(&address, size_bytes);
  if (result == CUresult::kOutOfMemory) out_of_memory(device, size_bytes);
  device.check(result, "cuMemAlloc", "requested {} bytes", size_bytes);
  return address;
}

PointerInfo::Kind kind_of_memory(unsigned type) {
  return type == static_cast<unsigned>(abi::CUmemorytype::kHost) ? PointerInfo::Kind::kHost
                                                                 : PointerInfo::Kind::kDevice;
}

void* allocate_pinned(const Device& device, std::size_t size_bytes) {
  if (size_bytes == 0) return nullptr;
  const auto current = device.make_current();
  void* memory = nullptr;
  device.check(device.cu().mem_host_alloc(&memory, size_bytes, abi::kMemHostAllocPortable),
               "cuMemHostAlloc", "requested {} bytes of pinned host memory", size_bytes);
  return memory;
}

}  // namespace

Buffer::Buffer(const Device& device, std::size_t size_bytes)
    : owned_(device, allocate(device, size_bytes)), size_bytes_(size_bytes) {}

void Buffer::require_range(const char* function, std::size_t offset, std::size_t bytes) const {
  require(offset <= size_bytes_ && bytes <= size_bytes_ - offset, ErrorKind::kInvalidArgument,
          "Buffer::{}: {} bytes at offset {} do not fit into a buffer of {} bytes", function, bytes,
          offset, size_bytes_);
}

void Buffer::require_multiple_of(std::size_t element_bytes) const {
  require(size_bytes_ % element_bytes == 0, ErrorKind::kInvalidArgument,
          "Buffer::to_vector: a buffer of {} bytes does not hold whole elements of {} bytes",
          size_bytes_, element_bytes);
}

// The driver's own "synchronous" calls may return before the device is done (small host-to-device
// copies, device-to-device copies, fills), and streams made with CU_STREAM_NON_BLOCKING do not wait
// for them. Hence every function without a stream ends with this.
void Buffer::finish() const {
  device().check(device().cu().stream_synchronize(nullptr), "cuStreamSynchronize");
}

void Buffer::copy_from_host(std::span<const std::byte> from, std::size_t offset) {
  require_range("copy_from_host", offset, from.size());
  if (from.empty()) return;
  const auto current = device().make_current();
  device().check(device().cu().memcpy_htod(address() + offset, from.data(), from.size()),
                 "cuMemcpyHtoD", "{} bytes to {:#x}", from.size(), address() + offset);
  finish();
}

void Buffer::copy_to_host(std::span<std::byte> to, std::size_t offset) const {
  require_range("copy_to_host", offset, to.size());
  if (to.empty()) return;
  const auto current = device().make_current();
  device().check(device().cu().memcpy_dtoh(to.data(), address() + offset, to.size()),
                 "cuMemcpyDtoH", "{} bytes from {:#x}", to.size(), address() + offset);
}

void Buffer::copy_from(const Buffer& from) {
  require_range("copy_from", 0, from.size_bytes());
  if (from.size_bytes() == 0) return;
  const auto current = device().make_current();
  device().check(device().cu().memcpy_dtod(address(), from.address(), from.size_bytes()),
                 "cuMemcpyDtoD", "{} bytes from {:#x} to {:#x}", from.size_bytes(), from.address(),
                 address());
  finish();
}

void Buffer::copy_from_host_async(std::span<const std::byte> from, const Stream& stream,
                                  std::size_t offset) {
  require_range("copy_from_host_async", offset, from.size());
  if (from.empty()) return;
  const auto current = device().make_current();
  device().check(device().cu().memcpy_htod_async(address() + offset, from.data(), from.size(),
                                                 stream.handle()),
                 "cuMemcpyHtoDAsync", "{} bytes to {:#x}", from.size(), address() + offset);
}

void Buffer::copy_to_host_async(std::span<std::byte> to, const Stream& stream,
                                std::size_t offset) const {
  require_range("copy_to_host_async", offset, to.size());
  if (to.empty()) return;
  const auto current = device().make_current();
  device().check(
      device().cu().memcpy_dtoh_async(to.data(), address() + offset, to.size(), stream.handle()),
      "cuMemcpyDtoHAsync", "{} bytes from {:#x}", to.size(), address() + offset);
}

void Buffer::copy_from_async(const Buffer& from, const Stream& stream) {
  require_range("copy_from_async", 0, from.size_bytes());
  if (from.size_bytes() == 0) return;
  const auto current = device().make_current();
  device().check(device().cu().memcpy_dtod_async(address(), from.address(), from.size_bytes(),
                                                 stream.handle()),
                 "cuMemcpyDtoDAsync", "{} bytes from {:#x} to {:#x}", from.size_bytes(),
                 from.address(), address());
}

void Buffer::fill(std::byte value) {
  if (size_bytes_ == 0) return;
  const auto current = device().make_current();
  device().check(
      device().cu().memset_d8(address(), std::to_integer<unsigned char>(value), size_bytes_),
      "cuMemsetD8", "{} bytes at {:#x}", size_bytes_, address());
  finish();
}

void Buffer::fill_async(std::byte value, const Stream& stream) {
  if (size_bytes_ == 0) return;
  const auto current = device().make_current();
  device().check(device().cu().memset_d8_async(address(), std::to_integer<unsigned char>(value),
                                               size_bytes_, stream.handle()),
                 "cuMemsetD8Async", "{} bytes at {:#x}", size_bytes_, address());
}

PinnedBuffer::PinnedBuffer(const Device& device, std::size_t size_bytes)
    : owned_(device, allocate_pinned(device, size_bytes)), size_bytes_(size_bytes) {}

PointerInfo query_pointer(const Device& device, CUdeviceptr address) {
  const auto current = device.make_current();
  unsigned type = 0;
  const CUresult known =
      device.cu().pointer_get_attribute(&type, CUpointer_attribute::kMemoryType, address);
  // The driver calls an address that it never heard of an invalid value.
  if (known == CUresult::kInvalidValue) return {};
  device.check(known, "cuPointerGetAttribute", "address = {:#x}", address);

  const auto read = [&](void* value, CUpointer_attribute attribute) {
    device.check(device.cu().pointer_get_attribute(value, attribute, address),
                 "cuPointerGetAttribute", "attribute = {}, address = {:#x}",
                 static_cast<int>(attribute), address);
  };
  unsigned is_managed = 0;
  PointerInfo info;
  read(&is_managed, CUpointer_attribute::kIsManaged);
  read(&info.ordinal, CUpointer_attribute::kDeviceOrdinal);
  info.kind = is_managed != 0 ? PointerInfo::Kind::kManaged : kind_of_memory(type);
  if (info.kind == PointerInfo::Kind::kHost) return info;
  read(&info.allocation_start, CUpointer_attribute::kRangeStartAddress);
  read(&info.allocation_bytes, CUpointer_attribute::kRangeSize);
  return info;
}

}  // namespace tilewright::device
