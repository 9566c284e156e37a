// targets: sm_90a
//
// K4.2, both products on the tensor core: scores stay in registers from the first to the second.
//
// New against K4.1: nothing goes through shared memory any more. A thread's accumulators of q k^T
// are columns of two rows, shared with the three other threads of its quad: a maximum takes two
// shuffles, and the sum is left in parts until the end. Rounded to 16 bits, the registers of the
// accumulators are, in order, those of the A operand of p v: nothing is moved. V has the keys as
// rows, which for this product are the reduction index: the descriptor says MN-major, and the box
// is the same.
//
//   thread 0      | ask 0..4 |                            | ask 5 |
//   tensor core              | q k^T |          | p v |           | q k^T |          | p v |
//   128 threads              |  wait | softmax  | wait | release  |  wait | softmax  | wait | ...
//   barriers      full 0:    ^                    empty 0: ^
//
// Limit: 4 * 64 * 64 * head_dim flops a tile; the tensor cores would do 990 TFLOP/s. At head_dim
// 128 that is 512 cycles of an SM, and 64 * 64 exponentials are 256 at 16 a cycle,
// masks, maxima and sums about as many again. One warpgroup does one after the other, and a product
// of 64 rows by 64 columns is too short to fill the pipe between its waits; loads, too, are asked
// for by a warp that computes, when all others have released a stage. Expected: 150 to 300
// TFLOP/s. A second CTA fits at head_dim 64 and brings some overlap. Causal: all tiles are visited,
// half of them in vain.
// Measured: see the table in README.md of this folder.
// Sources: the worklog's K4.2; FlashAttention-3, section 3.2; PTX ISA, "wgmma.mma_async".
#include "kernels/attention/accumulator.h"
#include "kernels/attention/accumulator_store.h"
#include "kernels/attention/epilogue.h"
#include "kernels/attention/k4_2_wgmma.h"
#include "kernels/attention/rows.h"
#include "kernels/attention/stages.h"
#include "tile/entry.h"
#include "tile/online_softmax.h"
#include "tile/warpgroup_mma.h"

namespace tilewright::kernels {
namespace {

constexpr int kThreads = k4_2_tile(64).threads, kRows = k4_2_tile(64).queries;

template <int HeadDim>
using Shared = tile::AttentionStages<HeadDim, k4_2_stages(HeadDim)>;

using Scores = tile::Accumulator<kRows>;
using Operand = std::uint32_t[Scores::kSteps][4];

// s = q k^T of one stage.
template <class Element, int HeadDim>
__device__ void multiply_scores(float (&s)[Scores::kRegisters], const std::uint8_t* q,
                                const std::uint8_t* k) {
  tile::multiply_and_wait(s, [&] {
    tile::multiply_qk<Element, kRows, HeadDim>(
        s, tile::Box<kRows, 2 * HeadDim>::k_major(ptx::shared_address(q)),
        tile::Box<kRows, 2 * HeadDim>::k_major(ptx::shared_address(k)));
  });
}

// Scores of keys that the queries do not see become -inf. `start` is the key of column 0.
__device__ void hide_keys(float (&s)[Scores::kRegisters],
                          const tile::VisibleKeys (&visible)[Scores::kRows], std::int32_t start) {
#pragma unroll
  for (int column = 0; column < Scores::kColumns; ++column) {
#pragma unroll
    for (int row = 0; row < Scores::kRows; ++row) {
      const int i = Scores::index(row, column);
      const auto key = start + static_cast<std::int32_t>(Scores::place(i)[1]);
      if (key < visible[row].begin || key >= visible[row].end) s[i] = -INFINITY;
    }
  }
}

// The largest score of a row: of this thread's columns in four chains, then of all that share it.
__device__ float row_maximum(const float (&s)[Scores::kRegisters], int row) {
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  float top[4];
#pragma unroll
  for (int column = 0; column < Scores::kColumns; ++column) {
    const float x = s[Scores::index(row, column)];
    top[column % 4] = column < 4 ? x : fmaxf(top[column % 4], x);
  }
  return Scores::reduce_row(fmaxf(fmaxf(top[0], top[1]), fmaxf(top[2], top[3])), larger);
}

// The online step: scores to probabilities relative to the maximum so far. What was added up
// relative to a smaller one is to be multiplied with `correction`.
__device__ void update(tile::OnlineSoftmax& softmax, float (&s)[Scores::kRegisters], float scale,
                       float (&correction)[Scores::kRows]) {
  float base[Scores::kRows];
#pragma unroll
  for (int row = 0; row < Scores::kRows; ++row) {
    const float top = fmaxf(softmax.max[row], row_maximum(s, row));
    base[row] = top == -INFINITY ? 0.0f : top * scale;  // -inf - 0 and not -inf + inf
    correction[row] = ptx::ex2_approx_ftz_f32(fmaf(softmax.max[row], scale, -base[row]));
    softmax.max[row] = top;
  }
#pragma unroll
  for (int row = 0; row < Scores::kRows; ++row) {
    float part = 0.0f;
#pragma unroll
    for (int column = 0; column < Scores::kColumns; ++column) {
      float& x = s[Scores::index(row, column)];
      x = ptx::ex2_approx_ftz_f32(fmaf(x, scale, -base[row]));
      part += x;
    }
    softmax.sum[row] = fmaf(softmax.sum[row], correction[row], part);
  }
}

// The results so far, row by row.
template <int HeadDim>
__device__ void correct_rows(float (&o)[HeadDim / 2], const float (&correction)[Scores::kRows]) {
  using Result = tile::Accumulator<HeadDim>;
#pragma unroll
  for (int row = 0; row < Result::kRows; ++row) {
#pragma unroll
    for (int column = 0; column < Result::kColumns; ++column)
      o[Result::index(row, column)] *= correction[row];
  }
}

// The accumulators re-read as the A operand of p v, rounded to 16 bits, two to a register.
template <class Element>
__device__ void hand_off(Operand& p, const float (&s)[Scores::kRegisters]) {
#pragma unroll
  for (int step = 0; step < Scores::kSteps; ++step) {
#pragma unroll
    for (int pair = 0; pair < 4; ++pair)
      p[step][pair] =
          Element::pack(s[Scores::operand(2 * pair, step)], s[Scores::operand(2 * pair + 1, step)]);
  }
}

// o += p v of one stage.
template <class Element, int HeadDim>
__device__ void add_values(float (&o)[HeadDim / 2], const Operand& p, const std::uint8_t* v) {
  tile::multiply_and_wait(o, [&] {
    tile::multiply_pv<Element, HeadDim, kRows>(
        o, p, tile::Box<kRows, 2 * HeadDim>::mn_major(ptx::shared_address(v)));
  });
}

template <class Element, int HeadDim>
__device__ void attend(const AttentionParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<Shared<HeadDim>*>(dynamic);
  static_assert(sizeof(shared) == k4_2_tile(HeadDim).shared_bytes);
  constexpr int kStages = k4_2_stages(HeadDim);

  const auto head = static_cast<std::int32_t>(blockIdx.y);
  const auto batch = static_cast<std::int32_t>(blockIdx.z);
  // Where this thread's first query stands among the keys.
  const std::int32_t position = static_cast<std::int32_t>(blockIdx.x * kRows) +
                                static_cast<std::int32_t>(Scores::place(0)[0]) + params.kv_len -
                                params.q_len;
  const tile::VisibleKeys visible[Scores::kRows] = {
      {params, position + Scores::row_step(0), params.kv_len},
      {params, position + Scores::row_step(1), params.kv_len}};
  float o[HeadDim / 2] = {};
  tile::OnlineSoftmax softmax;

  const std::int32_t num_tiles = (params.kv_len + kRows - 1) / kRows;
  tile::StageLoader<HeadDim, tile::kBoxColumns, kStages> loader = {params, shared, num_tiles};
  loader.start(kThreads / 32);
  const tile::Ring<kStages> ring(shared.kv_ring);
  tile::RingPosition<kStages> at;
  if (num_tiles > 0) tile::Ring<1>(shared.q_ring).wait_full({});
  for (std::int32_t n = 0; n < num_tiles; ++n) {
    ring.wait_full(at);
    float s[Scores::kRegisters], correction[Scores::kRows];
    Operand p;
    multiply_scores<Element, HeadDim>(s, shared.q, shared.k[at.stage]);
    hide_keys(s, visible, n * kRows);
    update(softmax, s, params.scale_log2, correction);
    correct_rows<HeadDim>(o, correction);
    hand_off<Element>(p, s);
    add_values<Element, HeadDim>(o, p, shared.v[at.stage]);
    ring.release(at);
    at.advance();
    loader.refill();
  }
  const tile::RowResult result =
      tile::finish_rows(softmax.max, softmax.sum, params.scale_log2, nullptr);
  tile::store_accumulator<Element, HeadDim>(params, o, result, batch, head,
                                            static_cast<std::int32_t>(blockIdx.x * kRows));
}

}  // namespace

#define TILEWRIGHT_K4_2(TYPE, ELEMENT, HEAD_DIM)                          \
  TILEWRIGHT_KERNEL(attention_k4_2_##TYPE##_d##HEAD_DIM, AttentionParams, \
                    __launch_bounds__(kThreads), attend<tile::ELEMENT, HEAD_DIM>)

TILEWRIGHT_K4_2(bf16, Bf16, 64)
TILEWRIGHT_K4_2(bf16, Bf16, 128)
TILEWRIGHT_K4_2(bf16, Bf16, 256)
TILEWRIGHT_K4_2(f16, Fp16, 64)
TILEWRIGHT_K4_2(f16, Fp16, 128)
TILEWRIGHT_K4_2(f16, Fp16, 256)

}  // namespace tilewright::kernels
