#include "ops/moe/grouped_bind.h"

#include "device/tensor_map.h"
#include "formats/grouped_scales.h"
#include "formats/scale_layout.h"
#include "ops/operator/ceil_div.h"

#include <cstring>

namespace tilewright::ops {

namespace {

using device::TensorMapSpec;
using device::TensorMapSwizzle;
using device::TensorMapType;

constexpr std::int64_t kStep = kernels::kBlockScaledStepBytes;

std::uint64_t extent(std::int64_t x) {
  return static_cast<std::uint64_t>(x);
}
std::uint32_t narrow(std::int64_t x) {
  return static_cast<std::uint32_t>(x);
}
void store_map(const device::Device& device, const TensorMapSpec& spec, std::uint8_t (&to)[128]) {
  const device::abi::CUtensorMap map = device::encode_tensor_map(device, spec);
  static_assert(sizeof map == sizeof to);
  std::memcpy(to, &map, sizeof map);
}

// Rows of a step's 128 bytes, or of 128 elements of 4 bits that copies unpack.
TensorMapSpec rows_of(const char* name, device::abi::CUdeviceptr address, bool unpacks,
                      std::int64_t columns, std::int64_t rows, std::int64_t pitch, int box_rows) {
  return {.name = name,
          .type = unpacks ? TensorMapType::k16U4Align16B : TensorMapType::kUint8,
          .address = address,
          .dims = {extent(unpacks ? ceil_div(columns, kStep) * kStep : columns), extent(rows)},
          .strides_bytes = {extent(pitch)},
          .box = {narrow(kStep), narrow(box_rows)},
          .swizzle = TensorMapSwizzle::k128B};
}

// Whole tiles of scales: 128 words, tiles along k, tiles down the rows.
TensorMapSpec scale_tiles(const char* name, device::abi::CUdeviceptr address, std::int64_t tiles_k,
                          std::int64_t tiles, int box_k, int box_tiles) {
  return {.name = name,
          .type = TensorMapType::kUint32,
          .address = address,
          .dims = {kScaleTileBytes / 4, extent(tiles_k), extent(tiles)},
          .strides_bytes = {kScaleTileBytes, extent(tiles_k * kScaleTileBytes)},
          .box = {kScaleTileBytes / 4, narrow(box_k), narrow(box_tiles)}};
}

device::abi::CUdeviceptr address_of(const void* pointer) {
  return reinterpret_cast<device::abi::CUdeviceptr>(pointer);
}

void bind_maps(const device::Device& device, const MoeGroupedVariant& variant,
               const MoeGroupedProduct& m, kernels::MoeGroupedParams& params) {
  const kernels::BlockScaledConfig& c = variant.config;
  const std::int64_t n = m.experts.shape.rows, k = m.experts.shape.k;
  const std::int64_t row = variant.code_bytes(k), tiles_k = variant.scale_tiles(k);
  kernels::BlockScaledGemmParams& gemm = params.gemm;
  store_map(device, rows_of("rows of x", address_of(m.x), false, row, m.rows, row, m.box_rows),
            gemm.a_map);
  store_map(device,
            rows_of("experts", m.experts.bricks.address(), c.unpacks_b(), c.unpacks_b() ? k : row,
                    m.matrices * n, m.experts.row_bytes, c.b_box_rows()),
            gemm.b_map);
  store_map(device,
            scale_tiles("scales of x", address_of(m.x_scales), tiles_k,
                        grouped_scale_tiles(m.rows, m.matrices), c.scale_atoms_k(), 1),
            gemm.a_scale_map);
  store_map(device,
            scale_tiles("scales of experts", m.experts.scales.address(), tiles_k,
                        m.matrices * params.b_atoms, c.scale_atoms_k(), c.scale_atoms_n()),
            gemm.b_scale_map);
  if (m.is_gate_up) return;
  store_map(device,
            {.name = "y",
             .type = TensorMapType::kBfloat16,
             .address = address_of(m.out),
             .dims = {extent(n), extent(m.rows)},
             .strides_bytes = {extent(n * 2)},
             .box = {kernels::kBlockScaledStoreColumns, kernels::kBlockScaledStoreRows},
             .swizzle = TensorMapSwizzle::k128B},
            gemm.d_map);
  gemm.has_d_map = 1;
}

}  // namespace

kernels::MoeGroupedParams bind_grouped(const device::Device& device,
                                       const MoeGroupedVariant& variant,
                                       const MoeGroupedProduct& m) {
  const std::int64_t n = m.experts.shape.rows;
  const kernels::BlockScaledTile& tile = variant.config.tile;
  kernels::MoeGroupedParams params = {};
  params.experts = static_cast<std::int32_t>(m.matrices);
  params.a_box_rows = m.box_rows;
  params.b_atoms = static_cast<std::int32_t>(ceil_div(n, kScaleTileRows));
  kernels::BlockScaledGemmParams& gemm = params.gemm;
  gemm.m = static_cast<std::int32_t>(m.rows);
  gemm.n = static_cast<std::int32_t>(n);
  gemm.k = m.experts.shape.k;
  gemm.tiles_n = static_cast<std::int32_t>(ceil_div(n, tile.n));
  gemm.d = static_cast<std::uint8_t*>(m.out);
  gemm.d_scales = static_cast<std::uint8_t*>(m.out_scales);
  gemm.d_row_bytes = m.is_gate_up ? variant.code_bytes(n / 2) : 2 * n;
  gemm.encode_scale = kHiddenEncodeScale;
  gemm.alpha = !m.is_gate_up && variant.is_nvfp4() ? 1 / kHiddenEncodeScale : 1;
  bind_maps(device, variant, m, params);
  return params;
}

}  // namespace tilewright::ops
