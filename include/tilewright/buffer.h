// Memory of a device, for programs that have no other way to get it: examples, tests, tools. An
// engine passes the addresses of its own allocator.
#pragma once

#include "tilewright/device.h"
#include "tilewright/stream.h"

#include <cstddef>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

namespace tilewright {

/// Memory of a GPU or of a simulated one, given back when the object goes. Move-only.
///
///     Buffer q = Buffer::from(device, encode(DType::kBF16, numbers));   // convert.h
///     Buffer out(device, q.size_bytes());
///     attention.run({.q = q.data(), .out = out.data(), ...});
///     std::vector<float> result = decode(DType::kBF16, out.download());
///
/// upload(), download() and fill() return when the copy is done. They wait for the legacy default
/// stream, which is where run() puts its work unless it is given another one; work on another
/// stream has to be waited for first (Stream::synchronize(), Device::synchronize()).
///
/// Units    offsets and sizes are bytes
/// Errors   InvalidArgument if a copy leaves the buffer; OutOfMemory; DeviceError
/// Thread   one at a time
class Buffer {
 public:
  /// Uninitialised; 256-byte aligned. Size 0 is allowed and has the address null.
  Buffer(const Device& device, std::size_t size_bytes);
  /// A copy of the elements of a contiguous range.
  template <std::ranges::contiguous_range Range>
  static Buffer from(const Device& device, const Range& elements) {
    static_assert(std::is_trivially_copyable_v<std::ranges::range_value_t<Range>>);
    const auto bytes = std::as_bytes(std::span(elements));
    Buffer buffer(device, bytes.size());
    buffer.upload(bytes);
    return buffer;
  }
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  /// The device address, and the same as a pointer to elements. Not for use by the host.
  void* data() const noexcept;
  template <class T>
  T* as() const noexcept {
    return static_cast<T*>(data());
  }
  std::size_t size_bytes() const noexcept;

  void upload(std::span<const std::byte> from, std::size_t offset = 0);
  void download(std::span<std::byte> to, std::size_t offset = 0) const;
  /// The whole buffer; as elements of T if its size is a multiple of theirs.
  std::vector<std::byte> download() const;
  template <class T>
  std::vector<T> to_vector() const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> elements(whole_elements(sizeof(T)));
    download(std::as_writable_bytes(std::span(elements)));
    return elements;
  }

  void fill(std::byte value);
  /// The same in the order of a stream; returns at once.
  void fill(std::byte value, const Stream& stream);
  /// Fills with 0xff: a NaN in every floating format that has one, -1 in integers. What a kernel
  /// forgets to write cannot pass for a result.
  void poison() { fill(std::byte{0xff}); }

 private:
  std::size_t whole_elements(std::size_t element_bytes) const;

  struct State;
  std::unique_ptr<State> state_;
};

/// A copy from memory of the device, whoever allocated it, to the host. Waits as download() does.
/// Errors   DeviceError, also if the address is not of the device
void copy_to_host(const Device& device, const void* from, std::span<std::byte> to);

/// A copy within the memory of the device, in the order of the stream; returns at once.
/// Errors   DeviceError
void copy_on_device(const Stream& stream, const void* from, void* to, std::size_t size_bytes);

}  // namespace tilewright
