#include "ops/linear/wide_bind.h"

#include "device/tensor_map.h"
#include "ops/operator/box_map.h"

#include <cstring>
#include <limits>

namespace tilewright::ops {

namespace {

device::abi::CUtensorMap encode(const device::Device& device, const WideRows& x) {
  const arch::SmemBox box = {.rows = x.box_rows, .row_bytes = 128};
  return device::encode_tensor_map(
      device,
      {.name = x.name,
       .type = x.elem_bytes == 2 ? device::TensorMapType::kBfloat16 : device::TensorMapType::kUint8,
       .address = reinterpret_cast<device::abi::CUdeviceptr>(x.address),
       .dims = {static_cast<std::uint64_t>(x.columns), static_cast<std::uint64_t>(x.rows)},
       .strides_bytes = {static_cast<std::uint64_t>(x.stride_bytes)},
       .box = {map_columns(box, static_cast<std::uint32_t>(x.elem_bytes)), map_rows(box)},
       .swizzle = map_swizzle(box),
       .l2_promotion = device::TensorMapL2Promotion::k256B});
}

}  // namespace

void bind_wide(const device::Device& device, const WideProduct& product,
               kernels::WideParams& params) {
  const device::abi::CUtensorMap map = encode(device, product.x);
  std::memcpy(params.x_map, &map, sizeof params.x_map);
  params.weights = product.bricks;
  params.block_scales = product.block_scales;
  params.y = product.y;
  params.y_pitch = product.y_pitch;
  params.matrix_bytes = product.shape.bytes();
  params.tokens = static_cast<std::int32_t>(product.x.rows);
  params.n = product.shape.rows;
  params.k = product.shape.k;
  params.matrices = 1;
  params.splits = 1;
  params.alpha = 1;
  params.swiglu_limit = std::numeric_limits<float>::infinity();
}

}  // namespace tilewright::ops
