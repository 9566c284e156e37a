// The public face of this module: memory and streams.
#include "tilewright/buffer.h"
#include "tilewright/stream.h"

#include "base/error.h"
#include "device/internal.h"
#include "device/memory.h"
#include "device/stream.h"

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

std::size_t Buffer::whole_elements(std::size_t element_bytes) const {
  require(size_bytes() % element_bytes == 0, ErrorKind::kInvalidArgument,
          "Buffer::to_vector: a buffer of {} bytes does not hold whole elements of {} bytes; ask "
          "for another type, or download() a part",
          size_bytes(), element_bytes);
  return size_bytes() / element_bytes;
}

struct Stream::State {
  device::Stream stream;
};

Stream::Stream(const Device& device) : state_(new State{device::Stream(opened(device))}) {}
Stream::~Stream() = default;
Stream::Stream(Stream&& other) noexcept = default;
Stream& Stream::operator=(Stream&& other) noexcept = default;

void* Stream::handle() const noexcept {
  return state_->stream.handle();
}
void Stream::synchronize() const {
  state_->stream.synchronize();
}

}  // namespace tilewright
