#include "ops/block_scaled_linear/maps.h"

#include "formats/scale_layout.h"
#include "kernels/linear/block_scaled/sm100_block_scaled.h"
#include "ops/operator/ceil_div.h"

#include <cstring>

namespace tilewright::ops {

namespace {

using device::TensorMapSpec;
using device::TensorMapSwizzle;
using device::TensorMapType;

std::uint64_t extent(std::int64_t x) {
  return static_cast<std::uint64_t>(x);
}
std::uint32_t edge(std::int64_t x) {
  return static_cast<std::uint32_t>(x);
}
device::abi::CUdeviceptr address_of(const void* pointer) {
  return reinterpret_cast<device::abi::CUdeviceptr>(pointer);
}

}  // namespace

TensorMapSpec byte_rows(const char* name, const void* address, std::int64_t rows,
                        std::int64_t bytes, std::int64_t pitch, int box_rows) {
  return {.name = name,
          .type = TensorMapType::kUint8,
          .address = address_of(address),
          .dims = {extent(bytes), extent(rows)},
          .strides_bytes = {extent(pitch)},
          .box = {kernels::kBlockScaledStepBytes, edge(box_rows)},
          .swizzle = TensorMapSwizzle::k128B};
}

TensorMapSpec unpacked_rows(const char* name, const void* address, std::int64_t rows,
                            std::int64_t k, std::int64_t pitch, int box_rows) {
  constexpr std::int64_t kElems = 128;
  return {.name = name,
          .type = TensorMapType::k16U4Align16B,
          .address = address_of(address),
          .dims = {extent(ceil_div(k, kElems) * kElems), extent(rows)},
          .strides_bytes = {extent(pitch)},
          .box = {kElems, edge(box_rows)},
          .swizzle = TensorMapSwizzle::k128B};
}

TensorMapSpec scale_tiles(const char* name, const void* address, std::int64_t tiles_k,
                          std::int64_t tiles, int box_k, int box_tiles) {
  return {.name = name,
          .type = TensorMapType::kUint32,
          .address = address_of(address),
          .dims = {kScaleTileBytes / 4, extent(tiles_k), extent(tiles)},
          .strides_bytes = {kScaleTileBytes, extent(tiles_k * kScaleTileBytes)},
          .box = {kScaleTileBytes / 4, edge(box_k), edge(box_tiles)}};
}

TensorMapSpec result_rows(const char* name, const void* address, bool is_f32, std::int64_t rows,
                          std::int64_t columns, std::int64_t pitch) {
  constexpr std::uint32_t kBoxBytes = 128;
  return {.name = name,
          .type = is_f32 ? TensorMapType::kFloat32 : TensorMapType::kBfloat16,
          .address = address_of(address),
          .dims = {extent(columns), extent(rows)},
          .strides_bytes = {extent(pitch)},
          .box = {kBoxBytes / (is_f32 ? 4 : 2), kernels::kBlockScaledStoreRows},
          .swizzle = TensorMapSwizzle::k128B};
}

void store_map(const device::Device& device, const TensorMapSpec& spec, std::uint8_t (&to)[128]) {
  const device::abi::CUtensorMap map = device::encode_tensor_map(device, spec);
  static_assert(sizeof map == sizeof to);
  std::memcpy(to, &map, sizeof map);
}

}  // namespace tilewright::ops
