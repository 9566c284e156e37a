// Contract of the tensor-copy probe: one box of a 2-D tensor map is copied to shared memory and
// shown as raw bytes.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

struct TensorCopyProbeParams {
  alignas(64) std::uint8_t tensor_map[128];  ///< the driver's opaque CUtensorMap
  std::uint32_t* shared_out;                 ///< box_bytes
  std::int32_t x,
      y;  ///< element at which the box starts, x a multiple of 16 bytes; may lie outside
  std::uint32_t box_bytes;  ///< multiple of 16, at most kTensorCopyProbeMaxBytes
};

inline constexpr int kTensorCopyProbeThreads = 32;
inline constexpr int kTensorCopyProbeMaxBytes = 32 * 1024;
inline constexpr int kTensorCopyProbeAlignment = 1024;
inline constexpr int kTensorCopyProbeSharedBytes =
    kTensorCopyProbeMaxBytes + kTensorCopyProbeAlignment;

}  // namespace tilewright::kernels
