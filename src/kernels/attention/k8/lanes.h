// How the threads of attention_k8_* share a part: rows that are rotated in registers, and columns
// of values.
#pragma once

#include "kernels/attention/k8/part.h"
#include "ptx/math.h"
#include "ptx/special_registers.h"
#include "tile/hadamard.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kChunk = 8;                ///< 16-bit numbers of 16 bytes
inline constexpr std::uint32_t kKeyGroup = 16;  ///< keys whose columns are permuted

__device__ inline std::uint32_t thread() {
  return static_cast<std::uint32_t>(ptx::mov_tid_x());
}
__device__ inline std::uint32_t lane_of_warp() {
  return thread() % 32;
}
__device__ inline std::uint32_t warp_of_cta() {
  return thread() / 32;
}

/// Chunks of a row, chunk j of lane i being the row's chunk j * Lanes + i.
template <int HeadDim, bool HasRope>
struct PrepareRow {
  static constexpr int kHeld = kernels::k8_form(HeadDim, HasRope).held, kChunks = kHeld / kChunk;
  static constexpr int kLanes = HeadDim / kHeld, kWarpRows = 32 / kLanes;
  static constexpr int kPitch = 2 * HeadDim + 16 * kLanes;  // bytes of a row in shared memory
  float x[kHeld];

  std::uint32_t first_dim = thread() % kLanes * kChunk;  // of the lane

  static __device__ int row() { return static_cast<int>(thread() / kLanes); }
  static __device__ std::uint32_t row_of_warp() { return lane_of_warp() / kLanes; }
  __device__ int dim(int chunk) const {
    return chunk * kLanes * kChunk + static_cast<int>(first_dim);
  }
  __device__ float (&chunk(int j))[kChunk] {
    return *reinterpret_cast<float(*)[kChunk]>(x + j * kChunk);
  }

  static __device__ void turn(float& a, float& b, float c, float s) {
    const float real = a, imaginary = b;
    a = __fmaf_rn(-imaginary, s, __fmul_rn(real, c));
    b = __fmaf_rn(imaginary, c, __fmul_rn(real, s));
  }
  // Chunks as `unpack(*this, j)` finds them, turned as soon as both of a pair are there: registers
  // fill slowly.
  template <class Angles, class Unpack>
  __device__ void load_turned(const K8PrepareParams& params, const Angles& angles, Unpack unpack) {
    if (params.rope_pairs == kernels::K8Rope::kInterleaved) {
      load_neighbours(params, angles, unpack);
    } else if (params.rotary_dim == HeadDim) {
      load_halves<kChunks / 2>(angles, unpack);
    } else {
      load_halves<kChunks / 4>(angles, unpack);
    }
    if (angles.is_known) return;
#pragma unroll
    for (float& value : x) value = __uint_as_float(kernels::kK8NanBits);
  }
  template <class Angles, class Unpack>
  __device__ void load_neighbours(const K8PrepareParams& params, const Angles& angles,
                                  Unpack unpack) {
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      unpack(*this, j);
      if (j * kLanes * kChunk >= params.rotary_dim) continue;
      float(&c)[kChunk] = chunk(j);
      angles.turn_four(4 * j, dim(j) / 2, [&](int i, float cosine, float sine) {
        turn(c[2 * i], c[2 * i + 1], cosine, sine);
      });
    }
  }
  // The partner is in this lane, Distance chunks further.
  template <int Distance, class Angles, class Unpack>
  __device__ void load_halves(const Angles& angles, Unpack unpack) {
#pragma unroll
    for (int j = 0; j < Distance; ++j) {
      unpack(*this, j);
      unpack(*this, j + Distance);
      float(&a)[kChunk] = chunk(j), (&b)[kChunk] = chunk(j + Distance);
#pragma unroll
      for (int i = 0; i < kChunk; i += 4) {
        angles.turn_four(kChunk * j + i, dim(j) + i, [&](int e, float cosine, float sine) {
          turn(a[i + e], b[i + e], cosine, sine);
        });
      }
    }
#pragma unroll
    for (int j = 2 * Distance; j < kChunks; ++j) unpack(*this, j);
  }

  __device__ void apply_signs(const uint4* signs) {
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      float(&c)[kChunk] = chunk(j);
      const uint4 pairs = signs[dim(j) / kChunk];
      const std::uint32_t of[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        const std::uint32_t sign = (i % 2 == 0 ? of[i / 2] << 16 : of[i / 2]) & 0x80000000u;
        c[i] = __uint_as_float(__float_as_uint(c[i]) ^ sign);
      }
    }
  }
  __device__ void rotate() {
    tile::butterflies(x, 1);
    tile::butterflies(x, 2);
    tile::butterflies(x, 4);
#pragma unroll
    for (int lanes = 1; lanes < kLanes; lanes *= 2) tile::lane_butterflies(x, lanes);
#pragma unroll
    for (int distance = 8; distance < kHeld; distance *= 2) tile::butterflies(x, distance);
  }

  __device__ std::uint32_t amax_bits() const {
    float most = 0;
#pragma unroll
    for (const float value : x) most = ptx::max_nan_f32(most, fabsf(value));
    return __float_as_uint(most);
  }
};

/// The angles of a lane's numbers. Heads of a token have the same ones, so registers keep them from
/// head to head where there are enough.
template <int HeadDim, bool HasRope>
struct PrepareAngles {
  using Row = PrepareRow<HeadDim, HasRope>;
  static constexpr bool kIsHeld = kernels::k8_holds_angles(HeadDim, HasRope);
  static constexpr int kHeld = kIsHeld ? Row::kHeld / 2 : 4;
  float cosines[kHeld], sines[kHeld];
  const float* table_row;
  int half;
  bool is_known;

  // Of the lane's row. Rows outside the tensor are zeros, which any angle leaves so.
  __device__ void find(const PrepareWork& work) {
    const std::int32_t at = work.part.first_row + Row::row();
    const std::int32_t position = at < work.part.len ? find_position(work, at) : 0;
    is_known = position >= 0 && position < work.params.num_positions;
    table_row = work.params.rope + (is_known ? std::int64_t{position} * work.params.rotary_dim : 0);
    half = work.params.rotary_dim / 2;
    if constexpr (kIsHeld) load(work.params);
  }
  // Four neighbouring ones from `angle` on, registers `held` to held + 3, turn four pairs. Where
  // they are read as they are needed, a barrier keeps the compiler from loading the next ones into
  // registers that are not there.
  template <class Pair>
  __device__ void turn_four(int held, int angle, Pair pair) const {
    if constexpr (kIsHeld) {
#pragma unroll
      for (int i = 0; i < 4; ++i) pair(i, cosines[held + i], sines[held + i]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const float2 c = __ldg(reinterpret_cast<const float2*>(table_row + angle + i));
        const float2 s = __ldg(reinterpret_cast<const float2*>(table_row + half + angle + i));
        pair(i, c.x, s.x);
        pair(i + 1, c.y, s.y);
        __syncwarp();
      }
    }
  }

 private:
  static __device__ std::int32_t find_position(const PrepareWork& work, std::int32_t at) {
    const K8Operand& operand = work.operand();
    if (operand.positions == nullptr) return work.part.first_position + at;
    const std::int64_t first = operand.cu != nullptr ? std::int64_t{work.part.begin}
                                                     : std::int64_t{work.part.batch} * operand.rows;
    return operand.positions[first + at];
  }
  __device__ void load(const K8PrepareParams& params) {
    Row row;
    const bool is_interleaved = params.rope_pairs == kernels::K8Rope::kInterleaved;
#pragma unroll
    for (int i = 0; i < kHeld; i += 4) {
      const int angle = is_interleaved ? row.dim(i / 4) / 2 : row.dim(i / kChunk) + i % kChunk;
      if (angle >= half) continue;
      const float4 c = __ldg(reinterpret_cast<const float4*>(table_row + angle));
      const float4 s = __ldg(reinterpret_cast<const float4*>(table_row + half + angle));
      cosines[i] = c.x, cosines[i + 1] = c.y, cosines[i + 2] = c.z, cosines[i + 3] = c.w;
      sines[i] = s.x, sines[i + 1] = s.y, sines[i + 2] = s.z, sines[i + 3] = s.w;
    }
  }
};

/// A warp has some keys of 64 dimensions, a lane a few chunks of the four keys of columns
/// 4 q .. 4 q + 3.
template <int HeadDim, bool HasRope>
struct PrepareColumns {
  static constexpr int kHeld = kernels::k8_form(HeadDim, HasRope).held,
                       kChunks = kHeld / 4 / kChunk;            // of a key
  static constexpr int kQuads = kHeld / 8, kKeys = 4 * kQuads;  // of a warp
  static constexpr int kWarpDims = 64,
                       kWarps = kernels::kK8TileRows / kKeys;  // that share dimensions
  std::uint32_t quad, first_chunk;                             // of the warp
  std::uint32_t first_key, first_dim;                          // of the part

  __device__ PrepareColumns()
      : quad(lane_of_warp() % kQuads),
        first_chunk(lane_of_warp() / kQuads * kChunks),
        first_key(warp_of_cta() % kWarps * kKeys),
        first_dim(warp_of_cta() / kWarps * kWarpDims) {}

  __device__ std::uint32_t key(std::uint32_t i) const {
    return quad / 4 * kKeyGroup + 2 * (quad % 4) + i % 2 + i / 2 * 8;
  }
  // Where a warp keeps a chunk, so that eight lanes' keys are not in the same banks.
  static __device__ std::uint32_t slot(std::uint32_t key, std::uint32_t chunk) {
    return key * (kWarpDims / kChunk) + (chunk ^ (key / 2 % 4 + key / 16 % 2 * 4));
  }
};

}  // namespace tilewright::tile
