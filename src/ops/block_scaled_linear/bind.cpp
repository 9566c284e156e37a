#include "ops/block_scaled_linear/bind.h"

#include "formats/scale_layout.h"
#include "ops/block_scaled_linear/maps.h"
#include "ops/operator/ceil_div.h"

#include <cstdint>

namespace tilewright::ops {

namespace {

using kernels::BlockScaledGemmParams;

void bind_operands(const device::Device& device, const BlockScaledVariant& variant,
                   const BlockScaledSizes& s, const BlockScaledMemory& memory,
                   BlockScaledGemmParams& params) {
  const kernels::BlockScaledConfig& c = variant.config;
  const std::int64_t row = variant.x_row_bytes(s.k), pitch = memory.b_row_bytes;
  store_map(device, byte_rows("x", memory.a, s.m, row, memory.a_row_bytes, 128), params.a_map);
  store_map(device,
            c.unpacks_weight() ? unpacked_rows("weight", memory.b, s.n, s.k, pitch, c.b_box_rows())
                               : byte_rows("weight", memory.b, s.n, row, pitch, c.b_box_rows()),
            params.b_map);
  if (!c.has_scales()) return;
  const std::int64_t tiles_k = scale_tiles_along_k(s.k / variant.scale_block());
  store_map(device,
            scale_tiles("scales of x", memory.a_scales, tiles_k, ceil_div(s.m, kScaleTileRows),
                        c.scale_atoms_k(), 1),
            params.a_scale_map);
  store_map(device,
            scale_tiles("scales of the weight", memory.b_scales, tiles_k,
                        ceil_div(s.n, kScaleTileRows), c.scale_atoms_k(), c.scale_box_atoms_n()),
            params.b_scale_map);
}

// Codes go out as bytes, 32 or 64 of a row at a time.
device::TensorMapSpec codes_out(const BlockScaledVariant& variant, std::int64_t m,
                                std::int64_t columns, const BlockScaledGemmParams& params) {
  device::TensorMapSpec spec = byte_rows("out", params.d, m, variant.out_row_bytes(columns),
                                         params.d_row_bytes, kernels::kBlockScaledStoreRows);
  spec.box[0] = variant.is_mxfp8_out ? 64 : 32;
  spec.swizzle =
      variant.is_mxfp8_out ? device::TensorMapSwizzle::k64B : device::TensorMapSwizzle::k32B;
  return spec;
}

void bind_results(const device::Device& device, const BlockScaledVariant& variant, std::int64_t m,
                  std::int64_t columns, BlockScaledGemmParams& params) {
  const bool is_bf16 = !variant.is_requantising && !variant.is_mxfp8_out;
  store_map(device,
            is_bf16 ? result_rows("out", params.d, false, m, columns, params.d_row_bytes)
                    : codes_out(variant, m, columns, params),
            params.d_map);
}

}  // namespace

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
                          reinterpret_cast<std::uintptr_t>(memory.d) % kMapAlignment == 0 &&
                          variant.out_row_bytes(columns) % kMapAlignment == 0;
  params.has_d_map = has_results && is_aligned ? 1 : 0;
  if (params.has_d_map != 0) bind_results(device, variant, sizes.m, columns, params);
  return params;
}

}  // namespace tilewright::ops
