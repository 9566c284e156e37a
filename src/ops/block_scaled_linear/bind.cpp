#include "ops/block_scaled_linear/bind.h"

#include "device/tensor_map.h"
#include "formats/scale_layout.h"
#include "ops/operator/ceil_div.h"

#include <cstring>

namespace tilewright::ops {

namespace {

using device::TensorMapSpec;
using device::TensorMapSwizzle;
using device::TensorMapType;
using kernels::BlockScaledGemmParams;

std::uint64_t extent(std::int64_t x) {
  return static_cast<std::uint64_t>(x);
}
std::uint32_t narrow(std::int64_t x) {
  return static_cast<std::uint32_t>(x);
}
device::abi::CUdeviceptr address_of(const void* pointer) {
  return reinterpret_cast<device::abi::CUdeviceptr>(pointer);
}
void store_map(const device::Device& device, const TensorMapSpec& spec, std::uint8_t (&to)[128]) {
  const device::abi::CUtensorMap map = device::encode_tensor_map(device, spec);
  static_assert(sizeof map == sizeof to);
  std::memcpy(to, &map, sizeof map);
}

// Rows of bytes, in boxes of a step.
TensorMapSpec byte_rows(const char* name, const void* address, std::int64_t rows,
                        std::int64_t bytes, std::int64_t pitch, int box_rows) {
  return {.name = name,
          .type = TensorMapType::kUint8,
          .address = address_of(address),
          .dims = {extent(bytes), extent(rows)},
          .strides_bytes = {extent(pitch)},
          .box = {kernels::kBlockScaledStepBytes, narrow(box_rows)},
          .swizzle = TensorMapSwizzle::k128B};
}

// Rows of 4-bit elements that become bytes on their way: rows of whole 128.
TensorMapSpec unpacked_rows(const char* name, const BlockScaledMemory& memory, std::int64_t rows,
                            std::int64_t k, int box_rows) {
  constexpr std::int64_t kElems = 128;
  return {.name = name,
          .type = TensorMapType::k16U4Align16B,
          .address = address_of(memory.b),
          .dims = {extent(ceil_div(k, kElems) * kElems), extent(rows)},
          .strides_bytes = {extent(memory.b_row_bytes)},
          .box = {kElems, narrow(box_rows)},
          .swizzle = TensorMapSwizzle::k128B};
}

// Whole tiles of scales: 128 words, tiles along k, tiles along the rows.
TensorMapSpec scale_tiles(const char* name, const void* address, std::int64_t rows,
                          std::int64_t blocks, int box_k, int box_rows) {
  const std::int64_t tiles_k = scale_tiles_along_k(blocks);
  return {.name = name,
          .type = TensorMapType::kUint32,
          .address = address_of(address),
          .dims = {kScaleTileBytes / 4, extent(tiles_k), extent(ceil_div(rows, kScaleTileRows))},
          .strides_bytes = {kScaleTileBytes, extent(tiles_k * kScaleTileBytes)},
          .box = {kScaleTileBytes / 4, narrow(box_k), narrow(box_rows)}};
}

void bind_operands(const device::Device& device, const BlockScaledVariant& variant,
                   const BlockScaledSizes& s, const BlockScaledMemory& memory,
                   BlockScaledGemmParams& params) {
  const kernels::BlockScaledConfig& c = variant.config;
  const std::int64_t row = variant.x_row_bytes(s.k), blocks = s.k / variant.scale_block();
  store_map(device, byte_rows("x", memory.a, s.m, row, memory.a_row_bytes, 128), params.a_map);
  store_map(device,
            c.unpacks_b()
                ? unpacked_rows("weight", memory, s.n, s.k, c.b_box_rows())
                : byte_rows("weight", memory.b, s.n, row, memory.b_row_bytes, c.b_box_rows()),
            params.b_map);
  if (!c.has_scales()) return;
  store_map(device, scale_tiles("scales of x", memory.a_scales, s.m, blocks, c.scale_atoms_k(), 1),
            params.a_scale_map);
  store_map(device,
            scale_tiles("scales of the weight", memory.b_scales, s.n, blocks, c.scale_atoms_k(),
                        c.scale_box_atoms_n()),
            params.b_scale_map);
}

void bind_results(const device::Device& device, const BlockScaledVariant& variant, std::int64_t m,
                  std::int64_t columns, BlockScaledGemmParams& params) {
  const bool is_bf16 = !variant.is_requantising && !variant.is_mxfp8_out;
  const std::int64_t bytes = variant.out_row_bytes(columns);
  store_map(device,
            {.name = "out",
             .type = is_bf16 ? TensorMapType::kBfloat16 : TensorMapType::kUint8,
             .address = address_of(params.d),
             .dims = {extent(is_bf16 ? columns : bytes), extent(m)},
             .strides_bytes = {extent(params.d_row_bytes)},
             .box = {variant.is_requantising ? 32u : 64u, kernels::kBlockScaledStoreRows},
             .swizzle = is_bf16                ? TensorMapSwizzle::k128B
                        : variant.is_mxfp8_out ? TensorMapSwizzle::k64B
                                               : TensorMapSwizzle::k32B},
            params.d_map);
}

}  // namespace

void bind_rows(const device::Device& device, const char* name, const void* address,
               std::int64_t rows, std::int64_t bytes, std::int64_t pitch, int box_rows,
               std::uint8_t (&to)[128]) {
  store_map(device, byte_rows(name, address, rows, bytes, pitch, box_rows), to);
}

BlockScaledGemmParams bind_block_scaled(const device::Device& device,
                                        const BlockScaledVariant& variant,
                                        const BlockScaledSizes& sizes,
                                        const BlockScaledMemory& memory,
                                        const BlockScaledFactors& factors) {
  constexpr std::int64_t kMapAlignment = 16;
  BlockScaledGemmParams params = {};
  params.m = static_cast<std::int32_t>(sizes.m);
  const std::int64_t columns = variant.out_columns(sizes.n);
  params.n = static_cast<std::int32_t>(columns);
  params.k = static_cast<std::int32_t>(sizes.k);
  params.tiles_m = static_cast<std::int32_t>(ceil_div(sizes.m, variant.config.tile_m()));
  params.tiles_n = static_cast<std::int32_t>(ceil_div(sizes.n, variant.config.tile.n));
  params.d = static_cast<std::uint8_t*>(memory.d);
  params.d_row_bytes = memory.d_row_bytes;
  params.d_scales = static_cast<std::uint8_t*>(memory.d_scales);
  params.alpha = factors.alpha;
  params.encode_scale = factors.encode_scale;
  params.swiglu_limit = factors.swiglu_limit;
  const bool has_results = sizes.m > 0 && sizes.n > 0;
  if (has_results && sizes.k > 0) bind_operands(device, variant, sizes, memory, params);
  // A tensor store ends a row at the next 16 bytes, which may lie behind it.
  const bool is_aligned = memory.d_row_bytes % kMapAlignment == 0 &&
                          address_of(memory.d) % kMapAlignment == 0 &&
                          variant.out_row_bytes(columns) % kMapAlignment == 0;
  params.has_d_map = has_results && is_aligned ? 1 : 0;
  if (params.has_d_map != 0) bind_results(device, variant, sizes.m, columns, params);
  return params;
}

}  // namespace tilewright::ops
