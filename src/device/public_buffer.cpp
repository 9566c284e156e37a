// The public face of this module: memory.
#include "tilewright/buffer.h"

#include "base/error.h"
#include "device/internal.h"
#include "device/memory.h"

#include <utility>

namespace tilewright {

struct Buffer::State {
  device::Buffer buffer;

  void require_range(const char* function, std::size_t offset, std::size_t bytes) const {
    const std::size_t size = buffer.size_bytes();
    require(offset <= size && bytes <= size - offset, ErrorKind::kInvalidArgument,
            "Buffer::{}: {} bytes at offset {} do not fit into a buffer of {} bytes; {} are left "
            "there",
            function, bytes, offset, size, offset < size ? size - offset : 0);
  }
};

Buffer::Buffer(const Device& device, std::size_t size_bytes)
    : state_(new State{device::Buffer(opened(device), size_bytes)}) {}
Buffer::~Buffer() = default;
Buffer::Buffer(Buffer&& other) noexcept = default;
Buffer& Buffer::operator=(Buffer&& other) noexcept = default;

void* Buffer::data() const noexcept {
  return reinterpret_cast<void*>(state_->buffer.address());  // NOLINT: a device address
}
std::size_t Buffer::size_bytes() const noexcept {
  return state_->buffer.size_bytes();
}

void Buffer::upload(std::span<const std::byte> from, std::size_t offset) {
  state_->require_range("upload", offset, from.size());
  state_->buffer.copy_from_host(from, offset);
}

void Buffer::download(std::span<std::byte> to, std::size_t offset) const {
  state_->require_range("download", offset, to.size());
  state_->buffer.copy_to_host(to, offset);
}

std::vector<std::byte> Buffer::download() const {
  return to_vector<std::byte>();
}

void Buffer::fill(std::byte value) {
  state_->buffer.fill(value);
}

void Buffer::fill(std::byte value, const Stream& stream) {
  state_->buffer.fill_async(value, opened(stream));
}

std::size_t Buffer::whole_elements(std::size_t element_bytes) const {
  require(size_bytes() % element_bytes == 0, ErrorKind::kInvalidArgument,
          "Buffer::to_vector: a buffer of {} bytes does not hold whole elements of {} bytes; ask "
          "for another type, or download() a part",
          size_bytes(), element_bytes);
  return size_bytes() / element_bytes;
}

void copy_to_host(const Device& device, const void* from, std::span<std::byte> to) {
  if (to.empty()) return;
  const device::Device& inner = opened(device);
  const auto current = inner.make_current();
  inner.check(inner.cu().memcpy_dtoh(to.data(), reinterpret_cast<device::abi::CUdeviceptr>(from),
                                     to.size()),
              "cuMemcpyDtoH", "{} bytes from {}", to.size(), from);
}

void copy_on_device(const Stream& stream, const void* from, void* to, std::size_t size_bytes) {
  if (size_bytes == 0) return;
  const device::Device& device = opened(stream).device();
  const auto current = device.make_current();
  device.check(device.cu().memcpy_dtod_async(reinterpret_cast<device::abi::CUdeviceptr>(to),
                                             reinterpret_cast<device::abi::CUdeviceptr>(from),
                                             size_bytes, opened(stream).handle()),
               "cuMemcpyDtoDAsync", "{} bytes from {} to {}", size_bytes, from, to);
}

}  // namespace tilewright
