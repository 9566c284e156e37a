// A sixteenth-pair of a cache row as bf16: what one lane of a warp decodes so that the warp has all
// 512 numbers. Plain and correct; kernels that live on conversion have quicker ways.
#pragma once

#include "formats/kv_page.h"
#include "tile/unpack_e4m3.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kKvLaneElems = kKvDims / 32;  ///< a block of NVFP4
inline constexpr int kKvPlainLanes =
    kKvPlainDims / kKvLaneElems;  ///< lanes without rotated numbers

/// Magnitudes of e2m1, twice: 0, 1, 2, 3, 4, 6, 8, 12.
__device__ inline float unpack_e2m1(std::uint32_t code) {
  const std::uint32_t doubled = 0xc8643210u >> code % 8 * 4 & 15u;
  return static_cast<float>(doubled) * (code & 8 ? -0.5f : 0.5f);
}

/// Sixteen e2m1 codes times a scale.
__device__ inline void unpack_e2m1(uint4 (&out)[2], const uint2& codes, float scale) {
  const std::uint32_t words[2] = {codes.x, codes.y};
  std::uint32_t pairs[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t pair = words[i / 4] >> i % 4 * 8;
    pairs[i] = Bf16::pack(unpack_e2m1(pair & 15) * scale, unpack_e2m1(pair >> 4 & 15) * scale);
  }
  out[0] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  out[1] = make_uint4(pairs[4], pairs[5], pairs[6], pairs[7]);
}

/// Numbers 16 lane to 16 lane + 15 of a row; of rows of 576 the first 512. `data` and `scales` are
/// those of its slot.
template <KvFormat Format>
__device__ void load_kv(uint4 (&out)[2], const std::uint8_t* data, const std::uint8_t* scales,
                        std::uint32_t lane) {
  if constexpr (Format == KvFormat::kBf16Mla) {
    out[0] = reinterpret_cast<const uint4*>(data)[2 * lane];
    out[1] = reinterpret_cast<const uint4*>(data)[2 * lane + 1];
  } else if constexpr (Format == KvFormat::kFp8Mla) {
    const float scale =
        reinterpret_cast<const float*>(scales)[lane * kKvLaneElems / kKvFp8MlaBlock];
    unpack_e4m3<Bf16>(out, reinterpret_cast<const uint4*>(data)[lane], scale);
  } else if (Format == KvFormat::kBf16 || lane >= kKvPlainLanes) {
    const std::uint8_t* const from =
        data + (Format == KvFormat::kBf16 ? 0 : kv_plain_bytes(Format)) +
        (lane - (Format == KvFormat::kBf16 ? 0 : kKvPlainLanes)) * kKvLaneElems * 2;
    out[0] = reinterpret_cast<const uint4*>(from)[0];
    out[1] = reinterpret_cast<const uint4*>(from)[1];
  } else if constexpr (Format == KvFormat::kFp8) {
    const float scale = unpack_e8m0(scales[lane * kKvLaneElems / kKvFp8Block]);
    unpack_e4m3<Bf16>(out, reinterpret_cast<const uint4*>(data)[lane], scale);
  } else {
    unpack_e2m1(out, reinterpret_cast<const uint2*>(data)[lane], unpack_e4m3(scales[lane]));
  }
}

}  // namespace tilewright::tile
