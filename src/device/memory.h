// Device memory, pinned host memory, and what an address is.
#pragma once

#include "device/stream.h"

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

namespace tilewright::device {

/// Something with contiguous elements that may be copied byte by byte: vector, array, span, ...
template <class Range>
concept HostElements = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    std::is_trivially_copyable_v<std::ranges::range_value_t<Range>>;

/// Device memory of a fixed size, at least 256-byte aligned. Move-only; freed by the destructor,
/// which waits for all work on the device.
///
/// Functions without a stream return when the copy is done. They are ordered neither after nor
/// before work on a Stream: synchronize that first. The _async functions are ordered by their
/// stream and return at once; the host memory must stay valid and unchanged until the stream has
/// done the copy, and should be pinned (else the driver stages it, and the host may wait).
///
/// Units    offsets and sizes are bytes
/// Errors   InvalidArgument if a copy leaves the buffer; OutOfMemory; DeviceError
class Buffer {
 public:
  /// Uninitialised memory. Size 0 is allowed and takes none.
  Buffer(const Device& device, std::size_t size_bytes);
  /// A copy of host elements.
  template <HostElements Range>
  static Buffer from(const Device& device, const Range& elements) {
    Buffer buffer(device, std::ranges::size(elements) * sizeof(*std::ranges::data(elements)));
    buffer.copy_from_host(std::as_bytes(std::span(elements)));
    return buffer;
  }

  abi::CUdeviceptr address() const noexcept { return owned_.get(); }
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  const Device& device() const noexcept { return owned_.device(); }

  void copy_from_host(std::span<const std::byte> from, std::size_t offset = 0);
  void copy_to_host(std::span<std::byte> to, std::size_t offset = 0) const;
  /// Both buffers on the same device.
  void copy_from(const Buffer& from);
  void copy_from_host_async(std::span<const std::byte> from, const Stream& stream,
                            std::size_t offset = 0);
  void copy_to_host_async(std::span<std::byte> to, const Stream& stream,
                          std::size_t offset = 0) const;
  void copy_from_async(const Buffer& from, const Stream& stream);

  /// The whole buffer as elements of T.
  /// Errors   InvalidArgument if its size is no multiple of sizeof(T)
  template <class T>
  requires std::is_trivially_copyable_v<T> std::vector<T> to_vector()
  const {
    require_multiple_of(sizeof(T));
    std::vector<T> elements(size_bytes_ / sizeof(T));
    copy_to_host(std::as_writable_bytes(std::span(elements)));
    return elements;
  }

  void fill(std::byte value);
  void fill_async(std::byte value, const Stream& stream);
  /// Fills with 0xff: a NaN in every floating format that has one (f32, bf16, f16, e4m3, e5m2,
  /// ue8m0), -1 in integers. What a kernel forgets to write cannot pass for a result.
  void poison() { fill(kPoison); }
  static constexpr std::byte kPoison{0xff};

 private:
  void require_range(const char* function, std::size_t offset, std::size_t bytes) const;
  void require_multiple_of(std::size_t element_bytes) const;
  /// Waits for what was put on the legacy default stream.
  void finish() const;

  Owned<abi::CUdeviceptr, &abi::DriverFunctions::mem_free> owned_;
  std::size_t size_bytes_;
};

/// Page-locked host memory, which the device copies from and to directly. Move-only.
class PinnedBuffer {
 public:
  /// Uninitialised. Size 0 is allowed and takes none.
  /// Errors   OutOfMemory
  PinnedBuffer(const Device& device, std::size_t size_bytes);

  std::span<std::byte> bytes() const noexcept {
    return {static_cast<std::byte*>(owned_.get()), size_bytes_};
  }
  /// As many whole elements as fit.
  template <class T>
  requires std::is_trivially_copyable_v<T> std::span<T> as()
  const noexcept { return {static_cast<T*>(owned_.get()), size_bytes_ / sizeof(T)}; }

 private:
  Owned<void*, &abi::DriverFunctions::mem_free_host> owned_;
  std::size_t size_bytes_;
};

/// What the driver knows about an address that the caller gave.
struct PointerInfo {
  enum class Kind { kUnknown, kHost, kDevice, kManaged };  ///< kUnknown: e.g. from malloc
  Kind kind = Kind::kUnknown;
  int ordinal = -1;  ///< of the GPU among those of its driver
  /// The allocation that holds the address; 0 for host memory.
  abi::CUdeviceptr allocation_start = 0;
  std::size_t allocation_bytes = 0;
};
PointerInfo query_pointer(const Device& device, abi::CUdeviceptr address);

}  // namespace tilewright::device
