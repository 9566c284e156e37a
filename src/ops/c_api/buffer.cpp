#include "tilewright/buffer.h"

#include "tilewright/convert.h"
#include "tilewright/tilewright_buffer.h"

#include "base/error.h"
#include "ops/c_api/convert/versions.h"
#include "ops/c_api/device.h"
#include "ops/c_api/status.h"

#include <cstring>
#include <span>
#include <utility>

using tilewright::DType;
using tilewright::ErrorKind;
using tilewright::require;
using tilewright::c_api::guarded;
using tilewright::c_api::require_address;

struct tw_buffer {
  tilewright::Buffer buffer;
};

namespace {

DType convertible_dtype(const char* function, std::int32_t dtype) {
  static constexpr std::pair<std::int32_t, DType> kTypes[] = {{TW_BF16, DType::kBF16},
                                                              {TW_F16, DType::kF16},
                                                              {TW_F32, DType::kF32},
                                                              {TW_E4M3, DType::kF8_E4M3},
                                                              {TW_E8M0, DType::kF8_E8M0}};
  for (const auto& [c, type] : kTypes) {
    if (c == dtype) return type;
  }
  tilewright::fail(ErrorKind::kInvalidArgument,
                   "{}: dtype = {}; expected a tw_dtype: TW_BF16 = 0, TW_F16 = 1, TW_F32 = 2, "
                   "TW_E4M3 = 3 or TW_E8M0 = 4",
                   function, dtype);
}

}  // namespace

tw_status tw_buffer_create(const tw_device* device, std::size_t size_bytes, tw_buffer** buffer) {
  return guarded([&] {
    require_address(device, "tw_buffer_create", "device");
    require_address(buffer, "tw_buffer_create", "buffer");
    *buffer = nullptr;
    *buffer = new tw_buffer{tilewright::Buffer(device->device, size_bytes)};
  });
}

void tw_buffer_destroy(tw_buffer* buffer) {
  delete buffer;
}

void* tw_buffer_data(const tw_buffer* buffer) {
  return buffer == nullptr ? nullptr : buffer->buffer.data();
}

std::size_t tw_buffer_size_bytes(const tw_buffer* buffer) {
  return buffer == nullptr ? 0 : buffer->buffer.size_bytes();
}

tw_status tw_buffer_upload(tw_buffer* buffer, std::size_t offset, const void* from,
                           std::size_t bytes) {
  return guarded([&] {
    require_address(buffer, "tw_buffer_upload", "buffer");
    if (bytes > 0) require_address(from, "tw_buffer_upload", "from");
    buffer->buffer.upload({static_cast<const std::byte*>(from), bytes}, offset);
  });
}

tw_status tw_buffer_download(const tw_buffer* buffer, std::size_t offset, void* to,
                             std::size_t bytes) {
  return guarded([&] {
    require_address(buffer, "tw_buffer_download", "buffer");
    if (bytes > 0) require_address(to, "tw_buffer_download", "to");
    buffer->buffer.download({static_cast<std::byte*>(to), bytes}, offset);
  });
}

tw_status tw_buffer_fill(tw_buffer* buffer, unsigned char value) {
  return guarded([&] {
    require_address(buffer, "tw_buffer_fill", "buffer");
    buffer->buffer.fill(std::byte{value});
  });
}

tw_status tw_encode(std::int32_t dtype, const float* numbers, std::size_t count, void* elements) {
  return guarded([&] {
    const DType type = convertible_dtype("tw_encode", dtype);
    if (count == 0) return;
    require_address(numbers, "tw_encode", "numbers");
    require_address(elements, "tw_encode", "elements");
    const auto bytes = tilewright::encode(type, {numbers, count});
    std::memcpy(elements, bytes.data(), bytes.size());
  });
}

tw_status tw_decode(std::int32_t dtype, const void* elements, std::size_t count, float* numbers) {
  return guarded([&] {
    const DType type = convertible_dtype("tw_decode", dtype);
    if (count == 0) return;
    require_address(elements, "tw_decode", "elements");
    require_address(numbers, "tw_decode", "numbers");
    const std::size_t bytes = count * static_cast<std::size_t>(tilewright::bits_per_elem(type)) / 8;
    const auto values = tilewright::decode(type, {static_cast<const std::byte*>(elements), bytes});
    std::memcpy(numbers, values.data(), values.size() * sizeof(float));
  });
}
