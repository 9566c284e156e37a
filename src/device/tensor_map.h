// Tensor maps: what the Tensor Memory Accelerator has to know about a tensor and the box it copies.
#pragma once

#include "device/device.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::device {

using TensorMapType = abi::CUtensorMapDataType;
using TensorMapInterleave = abi::CUtensorMapInterleave;
using TensorMapSwizzle = abi::CUtensorMapSwizzle;
using TensorMapL2Promotion = abi::CUtensorMapL2promotion;
using TensorMapOobFill = abi::CUtensorMapFloatOOBfill;

/// A tensor in global memory and the box of it that one TMA instruction copies ("tiled" mode).
/// Index 0 is the innermost dimension, whose elements are contiguous.
///
/// The kernel gives the box's first element. Its innermost coordinate, in bytes, must be a multiple
/// of 16, inside of the tensor and outside; an H200 raises "illegal instruction" otherwise. The
/// other coordinates are free.
///
///     // K [heads, kv_len, head_dim] bf16, in boxes of 128 rows by 64 columns
///     const abi::CUtensorMap map = encode_tensor_map(device, {
///         .name = "K",
///         .type = TensorMapType::kBfloat16,
///         .address = k.address(),
///         .dims = {head_dim, kv_len, heads},
///         .strides_bytes = {head_dim * 2, kv_len * head_dim * 2},
///         .box = {64, 128, 1},
///         .swizzle = TensorMapSwizzle::k128B,
///     });
struct TensorMapSpec {
  std::string name;  ///< for messages
  TensorMapType type = TensorMapType::kUint8;
  /// Multiple of 16; of 32 with interleave 32B or the types k16U4Align16B and k16U6Align16B.
  abi::CUdeviceptr address = 0;
  /// Elements, 1 to 5 dimensions (3 to 5 with interleave) of 1 to 2^32. dims[0] must be even for
  /// k16U4Align8B, a multiple of 128 for k16U4Align16B and k16U6Align16B.
  std::vector<std::uint64_t> dims;
  /// Distance between neighbours along dims[1], dims[2], ...: one fewer than dims. Below 2^40, a
  /// multiple of what the address must be one of.
  std::vector<std::uint64_t> strides_bytes;
  /// Elements of the box per dimension, 1 to 256. Without interleave, the bytes of box[0] must be a
  /// multiple of 16 and fit the span of the swizzle. 128 for k16U4Align16B and k16U6Align16B.
  std::vector<std::uint32_t> box;
  /// Step between copied elements per dimension, 1 to 8; empty means 1 everywhere. Without
  /// interleave the hardware ignores the first, so it must be 1.
  std::vector<std::uint32_t> element_strides = {};
  TensorMapInterleave interleave = TensorMapInterleave::kNone;
  TensorMapSwizzle swizzle = TensorMapSwizzle::kNone;  ///< k32B with interleave 32B
  TensorMapL2Promotion l2_promotion = TensorMapL2Promotion::kNone;
  /// What is read outside the tensor; kNan for floating types only.
  TensorMapOobFill oob_fill = TensorMapOobFill::kZeros;
};

/// Errors   InvalidArgument if a rule above is broken. The message names the field, its value and
///          the rule; the driver would only say "invalid value"
/// Source   CUDA driver API, cuTensorMapEncodeTiled
void validate(const TensorMapSpec& spec);

/// Validates and encodes. The result is plain data that stays valid while the memory does. It goes
/// into a kernel's Params, 64-byte aligned; std::bit_cast turns it into any type of 128 bytes.
/// Errors   as validate(); DeviceError if the driver still refuses; Unsupported before Hopper
abi::CUtensorMap encode_tensor_map(const Device& device, const TensorMapSpec& spec);

/// Bits of one element in global memory: 4, 6, 8, 16, 32 or 64.
int element_bits(TensorMapType type) noexcept;

/// "kBfloat16", "k128B": as in TensorMapSpec.
const char* name_of(TensorMapType type) noexcept;
const char* name_of(TensorMapSwizzle swizzle) noexcept;

}  // namespace tilewright::device
