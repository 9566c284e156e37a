#include "ops/moe/grouped_bind.h"

#include "formats/grouped_scales.h"
#include "formats/scale_layout.h"
#include "ops/block_scaled_linear/maps.h"
#include "ops/operator/ceil_div.h"

namespace tilewright::ops {

namespace {

const void* pointer_to(const device::Buffer& buffer) {
  return reinterpret_cast<const void*>(buffer.address());
}

void bind_maps(const device::Device& device, const MoeGroupedVariant& variant,
               const MoeGroupedProduct& m, kernels::MoeGroupedParams& params) {
  const kernels::BlockScaledConfig& c = variant.config;
  const std::int64_t n = m.experts.shape.rows, k = m.experts.shape.k;
  const std::int64_t row = variant.x_row_bytes(k), tiles_k = variant.scale_tiles(k);
  const void* const experts = pointer_to(m.experts.bricks);
  kernels::BlockScaledGemmParams& gemm = params.gemm;
  store_map(device, byte_rows("rows of x", m.x, m.rows, row, row, m.box_rows), gemm.a_map);
  store_map(device,
            c.unpacks_weight() ? unpacked_rows("experts", experts, m.matrices * n, k,
                                               m.experts.row_bytes, c.weight_box_rows())
                               : byte_rows("experts", experts, m.matrices * n, row,
                                           m.experts.row_bytes, c.weight_box_rows()),
            gemm.b_map);
  store_map(device,
            scale_tiles("scales of x", m.x_scales, tiles_k, grouped_scale_tiles(m.rows, m.matrices),
                        c.scale_atoms_k(), 1),
            gemm.a_scale_map);
  store_map(device,
            scale_tiles("scales of experts", pointer_to(m.experts.scales), tiles_k,
                        m.matrices * params.b_atoms, c.scale_atoms_k(), c.scale_atoms_n()),
            gemm.b_scale_map);
  if (m.is_gate_up || c.is_swapped) return;
  store_map(device, result_rows("y", m.out, false, m.rows, n, n * 2), gemm.d_map);
  gemm.has_d_map = 1;
}

}  // namespace

kernels::MoeGroupedParams bind_grouped(const device::Device& device,
                                       const MoeGroupedVariant& variant,
                                       const MoeGroupedProduct& m) {
  const std::int64_t n = m.experts.shape.rows;
  kernels::MoeGroupedParams params = {};
  params.experts = static_cast<std::int32_t>(m.matrices);
  params.a_box_rows = m.box_rows;
  params.b_atoms = static_cast<std::int32_t>(ceil_div(n, kScaleTileRows));
  kernels::BlockScaledGemmParams& gemm = params.gemm;
  gemm.m = static_cast<std::int32_t>(m.rows);
  gemm.n = static_cast<std::int32_t>(n);
  gemm.k = m.experts.shape.k;
  gemm.tiles_n = static_cast<std::int32_t>(ceil_div(n, variant.config.columns()));
  gemm.d = static_cast<std::uint8_t*>(m.out);
  gemm.d_scales = static_cast<std::uint8_t*>(m.out_scales);
  gemm.d_row_bytes = m.is_gate_up ? variant.x_row_bytes(n / 2) : 2 * n;
  gemm.encode_scale = kHiddenEncodeScale;
  gemm.alpha = !m.is_gate_up && variant.config.is_nvfp4() ? 1 / kHiddenEncodeScale : 1;
  bind_maps(device, variant, m, params);
  return params;
}

}  // namespace tilewright::ops
