// targets: sm_90a
//
// K3, fed by TMA: the arithmetic of K2, with one thread asking for whole tiles in advance.
//
// New against K2: keys and values come as boxes by tensor copies, which one thread starts and no
// thread waits in. A stage holds the keys and values of one step; its full barrier counts their
// bytes, its empty barrier the warps that are done with it. The tensor map knows where the tensor
// ends, and gives zeros beyond. With S stages, S - 1 steps of loads are under way during the
// arithmetic of one.
//
//   thread 0      | ask 0 1 2 3 4 |           | ask 5 |           | ask 6 |  (five stages)
//   TMA             K0 V0 | K1 V1 | K2 V2 | K3 V3 ...   K5 V5 ...
//   256 threads           | q k^T, softmax, p v of 0 | of 1          | of 2 ...
//   barriers      full:   ^                          ^               ^
//                 empty:                             ^ 0             ^ 1
//
// K3.1 has one stage, K3.2 two, K3.3 five.
//
// Limit: that of K2, about 27 TFLOP/s of conversions; the loads were hidden by the other CTAs
// already, and five stages at head_dim 128 leave room for one CTA only, whose warps then wait for
// each other. What this rung gives is the structure: an asynchronous producer, barriers that count
// bytes. Tensor copies without swizzle write rows 128 or 256 bytes apart, in which all columns of a
// tile are in the same banks: the scores therefore walk along their rows from different starting
// points.
// Measured: see the table in README.md of this folder.
// Sources: the worklog's K3; PTX ISA, "cp.async.bulk.tensor", "mbarrier".
#include "kernels/attention/k3_tma.h"
#include "kernels/attention/scalar_attention.h"
#include "kernels/attention/stages.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kThreads = k3_tile(64, 1).threads, kRows = tile::kTileRows;
constexpr int kThreadsPerRow = kThreads / kRows;

template <int HeadDim, int Stages>
struct Shared {
  tile::AttentionStages<HeadDim, Stages> stages;
  float p[tile::kScoreElems];
};

template <class Element, int HeadDim, int Stages>
__device__ void attend(const AttentionParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<Shared<HeadDim, Stages>*>(dynamic);
  static_assert(sizeof(shared) == k3_tile(HeadDim, Stages).shared_bytes);
  constexpr Layout kTile = tile::kPlainTile<HeadDim>;

  const auto first_query = static_cast<std::int32_t>(blockIdx.x * kRows);
  const auto head = static_cast<std::int32_t>(blockIdx.y);
  const auto batch = static_cast<std::int32_t>(blockIdx.z);
  tile::ScalarRow<Element, HeadDim, kThreadsPerRow> row;
  const std::int32_t query = first_query + static_cast<std::int32_t>(row.row);
  const tile::VisibleKeys visible(params, query + params.kv_len - params.q_len, params.kv_len);

  const std::int32_t num_tiles = (params.kv_len + kRows - 1) / kRows;
  tile::StageLoader<HeadDim, HeadDim, Stages> loader = {params, shared.stages, num_tiles};
  loader.start(kThreads / 32);
  const tile::Ring<Stages> ring(shared.stages.kv_ring);
  tile::RingPosition<Stages> at;
  if (num_tiles > 0) tile::Ring<1>(shared.stages.q_ring).wait_full({});
  for (std::int32_t n = 0; n < num_tiles; ++n) {
    ring.wait_full(at);
    float s[row.kScores];
    row.template multiply_scores<kTile>(s, tile::elements(shared.stages.q),
                                        tile::elements(shared.stages.k[at.stage]));
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

#define TILEWRIGHT_K3(RUNG, STAGES, TYPE, ELEMENT, HEAD_DIM)                     \
  TILEWRIGHT_KERNEL(attention_k3_##RUNG##_##TYPE##_d##HEAD_DIM, AttentionParams, \
                    __launch_bounds__(kThreads), attend<tile::ELEMENT, HEAD_DIM, STAGES>)

TILEWRIGHT_K3(1, 1, bf16, Bf16, 64)
TILEWRIGHT_K3(1, 1, bf16, Bf16, 128)
TILEWRIGHT_K3(1, 1, f16, Fp16, 64)
TILEWRIGHT_K3(1, 1, f16, Fp16, 128)
TILEWRIGHT_K3(2, 2, bf16, Bf16, 64)
TILEWRIGHT_K3(2, 2, bf16, Bf16, 128)
TILEWRIGHT_K3(2, 2, f16, Fp16, 64)
TILEWRIGHT_K3(2, 2, f16, Fp16, 128)
TILEWRIGHT_K3(3, 5, bf16, Bf16, 64)
TILEWRIGHT_K3(3, 5, bf16, Bf16, 128)
TILEWRIGHT_K3(3, 5, f16, Fp16, 64)
TILEWRIGHT_K3(3, 5, f16, Fp16, 128)

}  // namespace tilewright::kernels
