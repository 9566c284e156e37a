// targets: sm_90a sm_100f
//
// Queries and cache rows: norm, rotation, rounding, and for the cache its codes and where they go.
//
//   warp = row of 512, lane = 16 neighbours (the last four lanes hold what is rotated)
//     position, slot | load 32 or 64 B | squares, 5 shuffles | x / rms (* weight) | lanes 28..31:
//     8 cosines, 8 sines | bf16 | q: store 32 B    kv: amax of 4 lanes or of 1, codes | store
//
// Rows of the cache come first, since they take longer. No warp waits for another.
//
// Limit: memory. A query row is read and written, 2 KB; a cache row reads 1 (bf16) or 2 KB and
// writes 584, 384 or 1024 bytes. 256 tokens of 64 heads: 33.9 MB, 7.9 us at the 4.3 TB/s of a copy
// where nothing is in L2. About 130 instructions a lane and row: 16,640 rows on 132 SMs are
// 126 rows * 130 / 4 = 4,100 cycles, 2.3 us, so memory has room.
// Measured on an H200: 10.5 us (75 % of a copy), 4096 tokens 144 us (87 %); docs/06-deepseek-v4.md.
// Sources: the official DeepSeek-V4 inference code (order of operations); vLLM fuses the same
// steps.
#include "kernels/sparse_attention/cache/cache_write.h"
#include "kernels/sparse_attention/cache_row.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

// x times its inverse root mean square, and the weight if there is one.
__device__ void normalise(float (&x)[tile::kRowElems], const std::uint16_t* weight, float eps,
                          int lane) {
  tile::scale_row(x, tile::inverse_rms(tile::sum_of_squares<32>(x), kKvDims, eps));
  if (weight != nullptr) tile::scale_row(x, weight + lane * tile::kRowElems);
}

__device__ void rotate(float (&x)[tile::kRowElems], const CacheWriteParams& params,
                       std::int32_t position, int lane) {
  if (lane < tile::kRopeLane) return;
  const float* const row = params.rope + std::int64_t{position} * kKvRopeDims;
  tile::rotate_pairs(x, row, (lane - tile::kRopeLane) * (tile::kRowElems / 2));
}

__device__ void write_query(const CacheWriteParams& params, std::int32_t token, std::int32_t head,
                            int lane) {
  const std::int32_t position = params.positions[token];
  const std::uint16_t* const from = params.q + token * params.q_token_stride +
                                    head * params.q_head_stride + lane * tile::kRowElems;
  std::uint16_t* const to = params.q_out + token * params.q_out_token_stride +
                            head * params.q_out_head_stride + lane * tile::kRowElems;
  float x[tile::kRowElems];
  tile::to_f32(x, tile::load_row_chunk(from));
  if (position >= 0 && position < params.num_positions) {
    normalise(x, nullptr, params.eps, lane);
    rotate(x, params, position, lane);
  } else {
    const float none = position < 0 ? 0.0f : __uint_as_float(0x7fc00000u);
#pragma unroll
    for (float& value : x) value = none;
  }
  tile::store_row_chunk(to, tile::to_bf16(x));
}

__device__ void load_kv(float (&x)[tile::kRowElems], const CacheWriteParams& params,
                        std::int32_t token, int lane) {
  const std::int64_t at = token * params.kv_stride + lane * tile::kRowElems;
  if (params.is_kv_f32 == 0) {
    return tile::to_f32(x, tile::load_row_chunk(static_cast<const std::uint16_t*>(params.kv) + at));
  }
  const auto* const from =
      reinterpret_cast<const float4*>(static_cast<const float*>(params.kv) + at);
#pragma unroll
  for (int i = 0; i < tile::kRowElems / 4; ++i) {
    const float4 four = from[i];
    x[4 * i] = four.x, x[4 * i + 1] = four.y, x[4 * i + 2] = four.z, x[4 * i + 3] = four.w;
  }
}

__device__ void write_cache_row(const CacheWriteParams& params, std::int32_t token, int lane) {
  const std::int32_t position = params.positions[token], slot = params.slots[token];
  if (position < 0 || position >= params.num_positions) return;
  float x[tile::kRowElems];
  load_kv(x, params, token, lane);
  normalise(x, params.kv_weight, params.eps, lane);
  rotate(x, params, position, lane);
  const tile::EncodedRow row(params.cache.format, tile::to_bf16(x));
  if (tile::has_row(params.cache, slot)) row.store(tile::KvAddress(params.cache, slot), lane);
  if (params.kv_out == nullptr) return;
  tile::store_row_chunk(params.kv_out + token * params.kv_out_stride + lane * tile::kRowElems,
                        row.decoded(lane));
}

__device__ void write(const CacheWriteParams& params) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  auto row = static_cast<std::int32_t>(blockIdx.x * kCacheWriteWarps + threadIdx.x / 32);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  if (params.kv != nullptr) {
    if (row < params.tokens) return write_cache_row(params, row, lane);
    row -= params.tokens;
  }
  if (row >= params.tokens * params.heads) return;
  const std::int32_t token = row / params.heads;
  write_query(params, token, row - token * params.heads, lane);
}

}  // namespace

TILEWRIGHT_KERNEL(cache_write, CacheWriteParams, __launch_bounds__(kCacheWriteThreads), write)

}  // namespace tilewright::kernels
