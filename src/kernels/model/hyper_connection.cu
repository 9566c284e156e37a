// targets: sm_90a sm_100f
//
// Hyper-connections: four streams of the hidden size instead of one residual. Around a sub-layer
//
//   merge:  streams' = post * f + comb^T streams  -> mix parts     grid: columns x tokens
//   pre:    mix = Sinkhorn ...; y = pre . streams'; norm           grid: tokens
//
// The merge after one sub-layer and the mix before the next read the same streams, so one kernel
// does both. A CTA has 16 tokens at a time and 128 columns; a warp makes the four new streams of 16
// columns, as fragments of an A operand (row: token, k: column), and multiplies them with the 24
// rows of fn by mma.sync. fn is f32: three bf16 terms have all of its 24 bits, and streams
// in bf16 are exact as they are stored, so that the products are those of f32 (streams in f32 are
// three terms, too: six products of terms). A lane takes four neighbours of a row for the four
// places of k that a fragment wants of it; fn is read in the same order, which is all that counts.
//
//   warp   | fn: 12 x 16 B a lane | wait for f | x: 8 x 8 B, f: 2 x 16 B | x' | store 8 x 8 B |
//          | terms of fn, 36 mma | sums of warps in shared memory | next tokens, same fn |
//
// `pre` adds the sums of the slices in order: every run gives the same bits, and so does a token
// whatever tokens are beside it. A warp of its own does Sinkhorn, with a row and a column
// in each lane. The other eight hold the streams in registers before the mix is there.
//
// Limit: HBM for many tokens. A token of hidden size H reads and writes 8 H bytes each (bf16), and
// reads 2 H to 4 H of f: 7168: 129 KB, 30 ns at 4.3 TB/s. Few tokens: latency and the 384 H bytes
// of fn from L2, spread over H / 128 CTAs.
//
// Measured, merge and pre together, H200, bf16 streams, f in f32, operands of 200 MB in turn, in a
// CUDA graph; in brackets with products on fp32 units and Sinkhorn over lanes, as it was before
// (docs/notes/2026-11-22-dsv4-hyper-connection.md):
//
//   hidden    1 token     16         128        1024       8192 tokens   floor of 8192 at 4.3 TB/s
//   4096      7.6 (23)    9.6 (22)   14.6 (27)  72 (125)   534 (909)     235
//   7168      9.7 (26)    11.5 (26)  22 (42)    124 (205)  833 (1517)    410
//
// What is left: few tokens wait for loads of x, then of parts; many are at 44 to 49 % of the floor.
// A row of x gives 32 bytes to a warp, so that loads and stores take eight lines each.
//
#include "kernels/model/hyper_merge.h"
#include "kernels/model/hyper_mix.h"
#include "ptx/grid_dependency.h"
#include "ptx/warp_roles.h"
#include "tile/entry.h"

#include <type_traits>

namespace tilewright::kernels {
namespace {

using namespace hyper;

constexpr int kMergeWarps = kHyperMergeThreads / 32;
static_assert(kMergeWarps * 16 == kHyperSliceColumns);

// The sums of all warps, in order.
__device__ void store_parts(const HyperMergeParams& p, int slice, int tile,
                            const WarpParts (&parts)[kMergeWarps]) {
  const int first = tile * kHyperMergeTokens;
  const int count = min(kHyperMergeTokens, p.tokens - first) * kHyperPartStride;
  float* const to =
      p.parts + (static_cast<std::int64_t>(slice) * p.tokens + first) * kHyperPartStride;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kHyperMergeThreads) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kMergeWarps; ++w) sum += (&parts[w][0][0])[i];
    to[i] = sum;
  }
}

template <class Stream>
__device__ void merge(const HyperMergeParams& p) {
  __shared__ WarpParts shared_parts[2][kMergeWarps];  // of tiles in turn
  const int slices = (p.hidden + kHyperSliceColumns - 1) / kHyperSliceColumns;
  const int slice = static_cast<int>(blockIdx.x) % slices;
  const int first = static_cast<int>(blockIdx.x) / slices * p.tiles;
  const int tiles = (p.tokens + kHyperMergeTokens - 1) / kHyperMergeTokens;
  FnColumns fn = {};
  if (p.fn != nullptr) load_fn(p, MergePlace(slice, 0), fn);  // no kernel before writes it
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  for (int tile = first; tile < min(first + p.tiles, tiles); ++tile) {
    const MergePlace at(slice, tile);
    TokenStreams x[2] = {};
    tile::Column4 f[2] = {};
    load_tokens<Stream>(p, at, x, f);
    if (p.f != nullptr) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
        if (at.token[r] < p.tokens && at.column < p.hidden)
          merge_token<Stream>(p, at.token[r], at.column, f[r], x[r]);
    }
    if (p.fn == nullptr) continue;
    float sums[kFnTiles][4] = {};
    multiply<Stream>(x, fn, sums);
    WarpParts(&parts)[kMergeWarps] = shared_parts[tile % 2];
    float squares[2] = {};
    add_squares(x, squares);
    put_parts(at, squares, sums, parts[threadIdx.x / 32]);
    __syncthreads();  // a warp that is a tile ahead writes the other half
    store_parts(p, slice, tile, parts);
  }
}

constexpr int kPreWarps = kHyperPreThreads / 32 - 1;  // without the one of Sinkhorn
constexpr int kPreColumns = kPreWarps * 32 * 4;       // of a chunk
constexpr int kChunks = kHyperMaxHidden / kPreColumns;
// Loaded before the mix is there: hidden sizes up to 4096 of bf16. More would not fit in registers.
template <class Stream>
constexpr int kAhead = kChunks / static_cast<int>(sizeof(Stream));

using PartSums = float[kPreWarps][kHyperPartStride];

// A warp adds every kPreWarps-th slice, in order; lane: which sum.
__device__ void add_parts(const HyperPreParams& p, std::int64_t token, int warp, int lane,
                          PartSums& sums) {
  if (lane >= kHyperPartStride) return;
  const float* const part = p.parts + token * kHyperPartStride + lane;
  const std::int64_t stride = static_cast<std::int64_t>(p.tokens) * kHyperPartStride;
  float sum = 0;
#pragma unroll 8
  for (int s = warp; s < p.slices; s += kPreWarps) sum += part[s * stride];
  sums[warp][lane] = sum;
}

// Logit i of the mix in lane i.
__device__ float logit_of_parts(const HyperPreParams& p, const PartSums& sums, int lane) {
  float sum = 0;
  if (lane < kHyperPartStride) {
#pragma unroll
    for (int w = 0; w < kPreWarps; ++w) sum += sums[w][lane];
  }
  return mix_logit(p, sum, lane);
}

// Four columns of the four streams as they lie in memory.
template <class Stream>
struct RawColumns {
  using Word = std::conditional_t<sizeof(Stream) == 2, uint2, float4>;
  Word x[kHyperStreams];
};

template <class Stream>
__device__ RawColumns<Stream> load_columns(const HyperPreParams& p, std::int64_t token,
                                           int column) {
  RawColumns<Stream> raw = {};
  if (column >= p.hidden) return raw;
  const auto* const x =
      static_cast<const Stream*>(p.streams) + token * kHyperStreams * p.hidden + column;
#pragma unroll
  for (int j = 0; j < kHyperStreams; ++j)
    raw.x[j] = *reinterpret_cast<const typename RawColumns<Stream>::Word*>(
        x + static_cast<std::int64_t>(j) * p.hidden);
  return raw;
}

template <class Stream>
__device__ tile::Column4 weighted(const RawColumns<Stream>& raw,
                                  const float (&pre)[kHyperStreams]) {
  tile::Column4 y = {};
#pragma unroll
  for (int j = 0; j < kHyperStreams; ++j) {
    const tile::Column4 x = tile::load4(reinterpret_cast<const Stream*>(&raw.x[j]));
#pragma unroll
    for (int i = 0; i < 4; ++i) y.v[i] = fmaf(pre[j], x.v[i], y.v[i]);
  }
  return y;
}

// The named barrier of the warps that do columns; number 0 is that of the CTA.
constexpr int kColumnsBarrier = 1;

// The sum of one number of every thread of the warps that do columns.
__device__ float sum_of_warps(float x, float (&shared)[kPreWarps], int warp, int lane) {
  x = tile::warp_sum(x);
  if (lane == 0) shared[warp] = x;
  ptx::bar_sync<kColumnsBarrier, kPreWarps * 32>();
  float total = 0;
#pragma unroll
  for (int w = 0; w < kPreWarps; ++w) total += shared[w];
  return total;
}

template <class Stream>
__device__ void pre(const HyperPreParams& p) {
  __shared__ PartSums part_sums;
  __shared__ float squares_of_warps[kPreWarps];
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const auto token = static_cast<std::int64_t>(blockIdx.x);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const int first = static_cast<int>(threadIdx.x) * 4;
  RawColumns<Stream> raw[kAhead<Stream>];
  if (warp < kPreWarps) {
#pragma unroll
    for (int c = 0; c < kAhead<Stream>; ++c)
      raw[c] = load_columns<Stream>(p, token, first + c * kPreColumns);
    add_parts(p, token, warp, lane, part_sums);
  }
  __syncthreads();
  const float logit = logit_of_parts(p, part_sums, lane);
  if (warp == kPreWarps) return store_mix(p, token, logit, lane);
  const float own = gate(p, logit, lane);
  float weights[kHyperStreams];
#pragma unroll
  for (int j = 0; j < kHyperStreams; ++j) weights[j] = __shfl_sync(kAllLanes, own, j);
  tile::Column4 y[kChunks];
  float squares = 0;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    y[c] = weighted(
        c < kAhead<Stream> ? raw[c] : load_columns<Stream>(p, token, first + c * kPreColumns),
        weights);
    squares = tile::dot4(y[c], y[c], squares);
  }
  const float total = sum_of_warps(squares, squares_of_warps, warp, lane);
  const float factor = rsqrtf(total / static_cast<float>(p.hidden) + p.norm_eps);
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int column = first + c * kPreColumns;
    if (column >= p.hidden) break;
    const tile::Column4 weight = tile::load4(p.weight + column);
    tile::Column4 out;
#pragma unroll
    for (int i = 0; i < 4; ++i) out.v[i] = y[c].v[i] * factor * weight.v[i];
    tile::store4(p.out + token * p.out_stride + column, out);
  }
}

}  // namespace

TILEWRIGHT_KERNEL(hyper_merge_bf16, HyperMergeParams, __launch_bounds__(kHyperMergeThreads, 2),
                  merge<std::uint16_t>)
TILEWRIGHT_KERNEL(hyper_merge_f32, HyperMergeParams, __launch_bounds__(kHyperMergeThreads),
                  merge<float>)
TILEWRIGHT_KERNEL(hyper_pre_bf16, HyperPreParams, __launch_bounds__(kHyperPreThreads, 3),
                  pre<std::uint16_t>)
TILEWRIGHT_KERNEL(hyper_pre_f32, HyperPreParams, __launch_bounds__(kHyperPreThreads), pre<float>)

/// Streams of a token all begin with its row of the table; an id that names none is zeros. Written
/// out: what nvcc knows of threadIdx by the launch bounds, it knows in the entry's own body.
extern "C" __global__ void __launch_bounds__(kHyperEmbedThreads)
    hyper_embed(const __grid_constant__ HyperEmbedParams params) {
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

}  // namespace tilewright::kernels
