// targets: sm_90a sm_100f
//
// Merges the partial results of tiles that several groups shared, and applies the sink, once: as
// sparse_combine.cu, with rows of a tile for heads of a query.
//
//   out = sum_i 2^(lse_i - top) out_i / (sum_i 2^(lse_i - top) + 2^(sink log2 e - top))
//
// Limit: 2 KB of partial results a row and part, read once, out of L2.
#include "kernels/sparse_attention/latent/pieces.h"
#include "ptx/grid_dependency.h"
#include "ptx/math.h"
#include "tile/element.h"
#include "tile/entry.h"
#include "tile/row_end.h"

#include <math.h>

namespace tilewright::kernels {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

// `Chunks` of 128 dims of a row, from chunk `first_chunk` on.
template <int Dims, int Chunks>
struct MergedRow {
  const LatentParams& params;
  const SparseMerge& merge;
  std::int32_t row;  // of the tile
  std::int32_t first_chunk;
  std::int32_t lane = static_cast<std::int32_t>(threadIdx.x % 32);

  __device__ std::int64_t index(std::int32_t part) const {
    return std::int64_t{sparse_part_slot(merge.first_slot, part)} * params.ctas * kLatentTileRows +
           row;
  }
  // Largest of the parts' lse.
  __device__ float top() const {
    float most = -INFINITY;
    for (std::int32_t i = lane; i < merge.parts; i += 32)
      most = fmaxf(most, params.partial_lse[index(i)]);
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, step));
    return most;
  }
  // Sum of the parts' sums relative to `base`, and of their results.
  __device__ float add(float base, float4 (&out)[Chunks]) const {
    float sum = 0;
#pragma unroll(8 / Chunks)
    for (std::int32_t part = 0; part < merge.parts; ++part) {
      const float weight = ptx::ex2_approx_ftz_f32(params.partial_lse[index(part)] - base);
      const auto* const from =
          reinterpret_cast<const float4*>(params.partial_out + index(part) * Dims) +
          32 * first_chunk + lane;
      sum += weight;
#pragma unroll
      for (int c = 0; c < Chunks; ++c) {
        const float4 x = from[32 * c];
        out[c].x = fmaf(weight, x.x, out[c].x);
        out[c].y = fmaf(weight, x.y, out[c].y);
        out[c].z = fmaf(weight, x.z, out[c].z);
        out[c].w = fmaf(weight, x.w, out[c].w);
      }
    }
    return sum;
  }
};

template <class Element, int Dims, int Chunks>
__device__ void combine_row(const LatentParams& latent, const SparseMerge& merge, std::int32_t row,
                            std::int32_t first_chunk) {
  const std::int32_t head_tile = merge.query / latent.tiles;
  const std::int32_t tile = merge.query - head_tile * latent.tiles;
  const tile::LatentRow at(latent, head_tile / latent.kv_heads, head_tile % latent.kv_heads,
                           tile * latent.ctas * kLatentTileRows + row);
  if (!at.is_there) return;
  const MergedRow<Dims, Chunks> merged{latent, merge, row, first_chunk};
  const float top = merged.top(), base = top == -INFINITY ? 0.0f : top;
  float4 out[Chunks] = {};
  const float sum = merged.add(base, out);
  const tile::RowEnd end(top, tile::NoScale{}, sum,
                         latent.sink == nullptr ? nullptr : latent.sink + at.head);
  auto* const to = reinterpret_cast<uint2*>(latent.out + at.offset(latent.out_strides)) +
                   32 * first_chunk + merged.lane;
#pragma unroll
  for (int c = 0; c < Chunks; ++c)
    to[32 * c] = make_uint2(Element::pack(out[c].x * end.factor, out[c].y * end.factor),
                            Element::pack(out[c].z * end.factor, out[c].w * end.factor));
  if (first_chunk == 0 && merged.lane == 0 && latent.lse != nullptr)
    latent.lse[at.offset(latent.lse_strides)] = top == -INFINITY ? latent.empty_lse : end.lse;
}

// A warp a row; CTAs of groups in which no cut tile begins end at once.
template <class Element, int Dims>
__device__ void combine(const LatentCombineParams& params) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const SparseMerge merge = params.merges[blockIdx.x];
  if (merge.query < 0) return;
  const auto row = static_cast<std::int32_t>(blockIdx.y * kSparseCombineHeads + threadIdx.x / 32);
  combine_row<Element, Dims, Dims / 128>(params.latent, merge, row, 0);
}

// A warp 128 dims of a row, and the tile is looked for: few tiles have many parts each, which few
// SMs would be long in reading.
template <class Element, int Dims>
__device__ void combine_few(const LatentCombineParams& params) {
  constexpr std::int32_t kChunks = Dims / 128;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto walk = static_cast<std::int32_t>(blockIdx.x);
  std::int32_t found = -1;
  for (auto i = static_cast<std::int32_t>(threadIdx.x % 32); i < params.latent.groups; i += 32)
    if (params.merges[i].query == walk) found = i;
  found = __reduce_max_sync(kAllLanes, found);
  if (found < 0) return;  // one group had all of it
  const SparseMerge merge = params.merges[found];
  const auto unit = static_cast<std::int32_t>(blockIdx.y * kSparseCombineHeads + threadIdx.x / 32);
  combine_row<Element, Dims, 1>(params.latent, merge, unit / kChunks, unit % kChunks);
}

}  // namespace

#define TILEWRIGHT_LATENT_COMBINE(NAME, ELEMENT, DIMS)                                      \
  TILEWRIGHT_KERNEL(latent_combine_##NAME, LatentCombineParams,                             \
                    __launch_bounds__(kSparseCombineThreads), combine<tile::ELEMENT, DIMS>) \
  TILEWRIGHT_KERNEL(latent_combine_few_##NAME, LatentCombineParams,                         \
                    __launch_bounds__(kSparseCombineThreads), combine_few<tile::ELEMENT, DIMS>)

TILEWRIGHT_LATENT_COMBINE(bf16_v512, Bf16, 512)
TILEWRIGHT_LATENT_COMBINE(bf16_v256, Bf16, 256)
TILEWRIGHT_LATENT_COMBINE(f16_v512, Fp16, 512)
TILEWRIGHT_LATENT_COMBINE(f16_v256, Fp16, 256)

}  // namespace tilewright::kernels
