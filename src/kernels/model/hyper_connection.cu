// targets: sm_90a sm_100a
//
// Hyper-connections: four streams of the hidden size instead of one residual. Around a sub-layer
//
//   merge:  streams' = post * f + comb^T streams  -> mix parts     grid: columns x tokens
//   pre:    mix = Sinkhorn ...; y = pre . streams'; norm           grid: tokens
//
// The merge after one sub-layer and the mix before the next read the same streams, so one kernel
// does both: a warp holds 128 columns of the four streams of a token in registers (lane l: columns
// 4 l to 4 l + 3), writes the new streams, and multiplies them with its columns of the 24 rows of
// fn, which are f32 and stay f32: on a device without tensor cores for f32 the sums are exact to
// rounding. A warp that does several tokens reads fn once for all of them.
//
//   lanes of a warp  | load x, f | x' | store x' | 24 rows: 4 x 16-byte loads, 16 FMA a token |
//                    | sums over lanes: 27 exchanges a token | store part |
//
// The sums of the slices are added by `pre`, in order: every run gives the same bits.
//
// Limit: HBM for many tokens. A token of hidden size H reads and writes 8 H bytes each (bf16), and
// reads 2 H to 4 H of f: 7168: 129 KB, 30 ns at 4.3 TB/s. Few tokens: latency and the 384 H bytes
// of fn from L2, spread over H / 128 CTAs.
//
// Measured, merge and pre together, H200, bf16, cold caches, in a CUDA graph, before the loads of
// parts were in flight together:
//
//   hidden    1 token   16     128    1024    8192 tokens    floor of 8192 at 4.2 TB/s
//   4096      22 us     22     26     122     882            224
//   7168      24 us     24     40     200     1476           392
//
// So many tokens are bound by instructions (96 H fp32 FMA a token and what feeds them), at a
// quarter of the bandwidth; few by latency. Next would be the mix on tensor cores: fn as three bf16
// terms, or tf32.
#include "kernels/model/hyper_connection.h"
#include "ptx/grid_dependency.h"
#include "tile/column4.h"

#include <math.h>

namespace tilewright::kernels {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kWarps = kHyperMergeThreads / 32;

// Of 2 * Count values, lanes with the bit keep the upper half and the others the lower one, each
// with what its partner had of it.
template <int Count, int Bit>
__device__ void fold(float* v, int lane) {
  const bool has_bit = (lane & Bit) != 0;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const float mine = has_bit ? v[Count + i] : v[i];
    const float other = has_bit ? v[i] : v[Count + i];
    v[i] = mine + __shfl_xor_sync(kAllLanes, other, Bit);
  }
}

// Lane l gets the sum over all lanes of value l of 32.
__device__ float transpose_sum(float (&v)[32], int lane) {
  fold<16, 16>(v, lane);
  fold<8, 8>(v, lane);
  fold<4, 4>(v, lane);
  fold<2, 2>(v, lane);
  fold<1, 1>(v, lane);
  return v[0];
}

// The four streams of a token at this lane's columns after the merge.
template <class Stream>
__device__ void merge_token(const HyperMergeParams& p, std::int64_t token, int column,
                            tile::Column4 (&x)[kHyperStreams]) {
  const std::int64_t first = token * kHyperStreams * p.hidden + column;
  const auto* const from = static_cast<const Stream*>(p.streams) + first;
#pragma unroll
  for (int j = 0; j < kHyperStreams; ++j)
    x[j] = tile::load4(from + static_cast<std::int64_t>(j) * p.hidden);
  if (p.f == nullptr) return;
  tile::Column4 f = tile::load4(p.f, token * p.f_stride + column, p.is_f_f32);
  if (p.g != nullptr) {
    const tile::Column4 g = tile::load4(p.g, token * p.g_stride + column, p.is_g_f32);
#pragma unroll
    for (int i = 0; i < 4; ++i) f.v[i] += g.v[i];
  }
  const float* const mix = p.mix + token * kHyperMixRows;
  tile::Column4 merged[kHyperStreams];
#pragma unroll
  for (int k = 0; k < kHyperStreams; ++k) {
    const float post = mix[4 + k];
#pragma unroll
    for (int i = 0; i < 4; ++i) merged[k].v[i] = post * f.v[i];
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j) {
      const float comb = mix[8 + 4 * j + k];
#pragma unroll
      for (int i = 0; i < 4; ++i) merged[k].v[i] = fmaf(comb, x[j].v[i], merged[k].v[i]);
    }
  }
  auto* const to = static_cast<Stream*>(p.merged) + first;
#pragma unroll
  for (int k = 0; k < kHyperStreams; ++k) {
    x[k] = merged[k];
    tile::store4(to + static_cast<std::int64_t>(k) * p.hidden, x[k]);
  }
}

template <class Stream>
__device__ void merge(const HyperMergeParams& p) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int column = static_cast<int>(blockIdx.x) * kHyperSliceColumns + lane * 4;
  const int first = (static_cast<int>(blockIdx.y) * kWarps + warp) * p.warp_tokens;
  const int count = min(p.warp_tokens, p.tokens - first);
  if (count <= 0) return;
  const bool has_columns = column < p.hidden;
  tile::Column4 x[kHyperWarpTokens][kHyperStreams] = {};
#pragma unroll
  for (int t = 0; t < kHyperWarpTokens; ++t)
    if (t < count && has_columns) merge_token<Stream>(p, first + t, column, x[t]);
  if (p.fn == nullptr) return;
  float sums[kHyperWarpTokens][kHyperMixRows] = {};
  if (has_columns) {
#pragma unroll
    for (int r = 0; r < kHyperMixRows; ++r) {
      if (r >= p.rows) break;
#pragma unroll
      for (int j = 0; j < kHyperStreams; ++j) {
        const tile::Column4 fn = tile::load4(
            p.fn + (static_cast<std::int64_t>(r) * kHyperStreams + j) * p.hidden + column);
#pragma unroll
        for (int t = 0; t < kHyperWarpTokens; ++t)
          if (t < count) sums[t][r] = tile::dot4(fn, x[t][j], sums[t][r]);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < kHyperWarpTokens; ++t) {
    if (t >= count) break;
    float values[32] = {};
#pragma unroll
    for (int r = 0; r < kHyperMixRows; ++r) values[r] = sums[t][r];
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j)
      values[kHyperSquares] = tile::dot4(x[t][j], x[t][j], values[kHyperSquares]);
    const float sum = transpose_sum(values, lane);
    const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * p.tokens + first + t;
    if (lane < kHyperPartStride) p.parts[row * kHyperPartStride + lane] = sum;
  }
}

__device__ float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

// Lane 4 j + k of the lower half holds comb[j, k]; the upper half repeats it.
__device__ float sinkhorn(float logit, int iterations, float eps) {
  const auto row_sum = [](float x) {
    x += __shfl_xor_sync(kAllLanes, x, 1);
    return x + __shfl_xor_sync(kAllLanes, x, 2);
  };
  const auto column_sum = [](float x) {
    x += __shfl_xor_sync(kAllLanes, x, 4);
    return x + __shfl_xor_sync(kAllLanes, x, 8);
  };
  float largest = fmaxf(logit, __shfl_xor_sync(kAllLanes, logit, 1));
  largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
  const float power = expf(logit - largest);
  float c = power / row_sum(power) + eps;
  c /= column_sum(c) + eps;
  for (int i = 1; i < iterations; ++i) {
    c /= row_sum(c) + eps;
    c /= column_sum(c) + eps;
  }
  return c;
}

// By one warp: the mix of a token, into shared memory and `mix`.
__device__ void finish_mix(const HyperPreParams& p, std::int64_t token, int lane, float* pre) {
  float sum = 0;
  if (lane < kHyperPartStride) {
    const float* part = p.parts + token * kHyperPartStride + lane;
    const std::int64_t stride = static_cast<std::int64_t>(p.tokens) * kHyperPartStride;
#pragma unroll 8
    for (int s = 0; s < p.slices; ++s) sum += part[s * stride];  // loads in flight, sums in order
  }
  const float squares = __shfl_sync(kAllLanes, sum, kHyperSquares);
  const float m = sum * rsqrtf(squares / static_cast<float>(kHyperStreams * p.hidden) + p.norm_eps);
  const int rows = p.is_head ? kHyperHeadRows : kHyperMixRows;
  const float base = lane < rows ? p.base[lane] : 0.0f;
  const float scale = lane < rows ? p.scale[lane < 4 ? 0 : lane < 8 ? 1 : 2] : 0.0f;
  const float logit = fmaf(m, scale, base);
  float value = sigmoid(logit) * (lane < 4 ? 1.0f : 2.0f) + (lane < 4 ? p.eps : 0.0f);
  if (!p.is_head) {
    const float comb = __shfl_sync(kAllLanes, logit, 8 + lane % 16);
    const float balanced =
        __shfl_sync(kAllLanes, sinkhorn(comb, p.iterations, p.eps), (lane + 24) % 32);
    if (lane >= 8) value = balanced;  // lane 8 + i takes entry i
  }
  if (lane < 4) pre[lane] = value;
  if (lane < rows) p.mix[token * rows + lane] = value;
}

// Columns of a thread: kChunks times four.
constexpr int kChunks = kHyperMaxHidden / (kHyperPreThreads * 4);

template <class Stream>
__device__ void pre(const HyperPreParams& p) {
  __shared__ float shared_pre[kHyperStreams];
  __shared__ float warp_squares[kHyperPreThreads / 32];
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto token = static_cast<std::int64_t>(blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  if (warp == 0) finish_mix(p, token, lane, shared_pre);
  __syncthreads();
  const auto* const x = static_cast<const Stream*>(p.streams) + token * kHyperStreams * p.hidden;
  tile::Column4 y[kChunks] = {};
  float squares = 0;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int column = (c * kHyperPreThreads + static_cast<int>(threadIdx.x)) * 4;
    if (column >= p.hidden) break;
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j) {
      const tile::Column4 v = tile::load4(x + static_cast<std::int64_t>(j) * p.hidden + column);
#pragma unroll
      for (int i = 0; i < 4; ++i) y[c].v[i] = fmaf(shared_pre[j], v.v[i], y[c].v[i]);
    }
    squares = tile::dot4(y[c], y[c], squares);
  }
  squares = tile::warp_sum(squares);
  if (lane == 0) warp_squares[warp] = squares;
  __syncthreads();
  float total = 0;
#pragma unroll
  for (int w = 0; w < kHyperPreThreads / 32; ++w) total += warp_squares[w];
  const float factor = rsqrtf(total / static_cast<float>(p.hidden) + p.norm_eps);
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int column = (c * kHyperPreThreads + static_cast<int>(threadIdx.x)) * 4;
    if (column >= p.hidden) break;
    const tile::Column4 weight = tile::load4(p.weight + column);
    tile::Column4 out;
#pragma unroll
    for (int i = 0; i < 4; ++i) out.v[i] = y[c].v[i] * factor * weight.v[i];
    tile::store4(p.out + token * p.out_stride + column, out);
  }
}

}  // namespace
}  // namespace tilewright::kernels

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kHyperMergeThreads)
    hyper_merge_bf16(const __grid_constant__ tilewright::kernels::HyperMergeParams params) {
  tilewright::kernels::merge<std::uint16_t>(params);
}
extern "C" __global__ void __launch_bounds__(tilewright::kernels::kHyperMergeThreads)
    hyper_merge_f32(const __grid_constant__ tilewright::kernels::HyperMergeParams params) {
  tilewright::kernels::merge<float>(params);
}

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kHyperPreThreads)
    hyper_pre_bf16(const __grid_constant__ tilewright::kernels::HyperPreParams params) {
  tilewright::kernels::pre<std::uint16_t>(params);
}
extern "C" __global__ void __launch_bounds__(tilewright::kernels::kHyperPreThreads)
    hyper_pre_f32(const __grid_constant__ tilewright::kernels::HyperPreParams params) {
  tilewright::kernels::pre<float>(params);
}

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kHyperEmbedThreads)
    hyper_embed(const __grid_constant__ tilewright::kernels::HyperEmbedParams params) {
  using namespace tilewright;
  using namespace tilewright::kernels;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto column = static_cast<int>(blockIdx.x * kHyperEmbedThreads + threadIdx.x) * 4;
  if (column >= params.hidden) return;
  const auto token = static_cast<std::int64_t>(blockIdx.y);
  const std::int32_t id = params.ids[token];
  tile::Column4 x = {};
  if (id >= 0 && id < params.vocab)
    x = tile::load4(params.table + static_cast<std::int64_t>(id) * params.hidden + column);
#pragma unroll
  for (int k = 0; k < kHyperStreams; ++k) {
    const std::int64_t index = (token * kHyperStreams + k) * params.hidden + column;
    if (params.is_f32)
      tile::store4(static_cast<float*>(params.streams) + index, x);
    else
      tile::store4(static_cast<std::uint16_t*>(params.streams) + index, x);
  }
}
