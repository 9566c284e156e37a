// targets: sm_90a
//
// K4.1, the first tensor-core product: q k^T by one warpgroup, its result handed to the scalar rest
// through shared memory.
//
// New against K3: a warpgroup MMA multiplies 64 queries by 64 keys, 16 of head_dim at a time,
// straight from shared memory, where tensor copies now lay boxes of 64 columns with the 128-byte
// swizzle. Half of the flops leave the scalar units, with all their conversions. The accumulators
// are scattered over the 128 threads as the hardware likes; composed with the tile in shared
// memory, the layout of the fragment is the address of each of them, and the softmax reads rows
// again, two threads to each. A warp holds 16 whole rows in either form: no barrier of the CTA is
// needed in between.
//
//   thread 0      | ask 0..4 |                                       | ask 5 | ...
//   tensor core              | q k^T |                                       | q k^T |
//   128 threads              |  wait | scatter, read, softmax | p v  |       |  wait | ...
//   barriers      full 0:    ^                             empty 0:  ^
//
// Limit: p v is left on the scalar units: 2 * 64 * 64 * head_dim flops a tile, a conversion for
// each fused multiply-add, at 27 TFLOP/s: about 50 for the whole if nothing else took time. With
// 128 threads a CTA and one CTA an SM (193 KB at head_dim 128) a scheduler has one warp, and none
// to hide its latencies: a few TFLOP/s. The rung is there for the scatter.
// Measured: see the table in README.md of this folder.
// Sources: the worklog's K4.1; PTX ISA, "wgmma.mma_async: Register Fragments".
#include "arch/fragments/smem_tiles.h"
#include "kernels/attention/accumulator.h"
#include "kernels/attention/k4_1_wgmma_qk.h"
#include "kernels/attention/scalar_attention.h"
#include "kernels/attention/stages.h"
#include "tile/entry.h"
#include "tile/warpgroup_mma.h"

namespace tilewright::kernels {
namespace {

constexpr int kThreads = k4_1_tile(64).threads, kRows = tile::kTileRows, kStages = kK41Stages;
constexpr int kThreadsPerRow = kThreads / kRows;

template <int HeadDim>
struct Shared {
  tile::AttentionStages<HeadDim, kStages> stages;
  float p[tile::kScoreElems];
};

// (thread, register) -> where it goes among the scores: a thread's part of the tile of scores.
using Scores = tile::Accumulator<kRows>;
constexpr Layout kScatter = partition_C(Scores::kMma, tile::kScoreTile);

// scores = q k^T of one stage.
template <class Element, int HeadDim>
__device__ void multiply_scores(float* scores, const std::uint8_t* q, const std::uint8_t* k) {
  float s[Scores::kRegisters];
  tile::multiply_and_wait(s, [&] {
    tile::multiply_qk<Element, kRows, HeadDim>(
        s, tile::Box<kRows, 2 * HeadDim>::k_major(ptx::shared_address(q)),
        tile::Box<kRows, 2 * HeadDim>::k_major(ptx::shared_address(k)));
  });
#pragma unroll
  for (std::uint32_t i = 0; i < Scores::kRegisters; ++i)
    scores[offset_in<kScatter>(threadIdx.x, i)] = s[i];
}

template <class Element, int HeadDim>
__device__ void attend(const AttentionParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<Shared<HeadDim>*>(dynamic);
  static_assert(sizeof(shared) == k4_1_tile(HeadDim).shared_bytes);
  constexpr ComposedLayout kTile =
      arch::make_smem_tile(arch::Major::kK, arch::SmemSwizzle::k128B, 16, kRows, HeadDim);

  const auto first_query = static_cast<std::int32_t>(blockIdx.x * kRows);
  const auto head = static_cast<std::int32_t>(blockIdx.y);
  const auto batch = static_cast<std::int32_t>(blockIdx.z);
  tile::ScalarRow<Element, HeadDim, kThreadsPerRow> row;
  const std::int32_t query = first_query + static_cast<std::int32_t>(row.row);
  const tile::VisibleKeys visible(params, query + params.kv_len - params.q_len, params.kv_len);

  const std::int32_t num_tiles = (params.kv_len + kRows - 1) / kRows;
  tile::StageLoader<HeadDim, tile::kBoxColumns, kStages> loader = {params, shared.stages,
                                                                   num_tiles};
  loader.start(kThreads / 32);
  const tile::Ring<kStages> ring(shared.stages.kv_ring);
  tile::RingPosition<kStages> at;
  if (num_tiles > 0) tile::Ring<1>(shared.stages.q_ring).wait_full({});
  for (std::int32_t n = 0; n < num_tiles; ++n) {
    ring.wait_full(at);
    multiply_scores<Element, HeadDim>(shared.p, shared.stages.q, shared.stages.k[at.stage]);
    float s[row.kScores];
    row.load_scores(s, shared.p);
    row.mask(s, visible, params.scale_log2, n * kRows);
    row.update(s, shared.p);
    row.template add_values<kTile>(shared.p, tile::elements(shared.stages.v[at.stage]));
    ring.release(at);
    at.advance();
    loader.refill();
  }
  row.store(params, batch, head, query);
}

}  // namespace

#define TILEWRIGHT_K4_1(TYPE, ELEMENT, HEAD_DIM)                          \
  TILEWRIGHT_KERNEL(attention_k4_1_##TYPE##_d##HEAD_DIM, AttentionParams, \
                    __launch_bounds__(kThreads), attend<tile::ELEMENT, HEAD_DIM>)

TILEWRIGHT_K4_1(bf16, Bf16, 64)
TILEWRIGHT_K4_1(bf16, Bf16, 128)
TILEWRIGHT_K4_1(f16, Fp16, 64)
TILEWRIGHT_K4_1(f16, Fp16, 128)

}  // namespace tilewright::kernels
