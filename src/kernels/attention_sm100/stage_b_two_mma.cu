// targets: sm_100f
//
// Stage B, two products: P = Q K^T goes to the tensor core again as the A operand of P V.
//
// What one product leaves in Tensor Memory is not what the next one reads there. The accumulator
// has a 32-bit cell for every element: row m, column n in lane m, column n. An A operand of 16-bit
// elements has two in a cell: row m, element k in lane m, column k / 2, even k in the low half. 128
// scores are 128 columns; as an operand they are 64.
//
//   accumulator   lane m | s0 | s1 | s2 | s3 | ... | s127 |       128 columns, f32
//   A operand     lane m | p1 p0 | p3 p2 | ... | p127 p126 |       64 columns, 2 x 16 bits
//
// Values that stay in the places of the accumulator, converted or not, are read as other keys and
// as their own low halves; nothing on the chip objects. But the lane is right. So the thread that
// owns the lane loads its row, rounds, packs two neighbours into a register and stores half as many
// columns. It makes no difference whether the type is bf16 or fp16. `tilewright layout handoff`
// says all this of the two layouts; README.md has the drawing.
//
//   warp 5, one thread    TMA: Q once, then of each tile of 128 keys K and V, boxes of 64 columns
//   warp 4, one thread    S = Q K^T; commit s_full; wait p_ready; O += P V
//   warps 0-3             wait s_full; tcgen05.ld 32x32b.x8: 8 columns of 32 rows a warp; round,
//                         pack, tcgen05.st; wait::st; arrive p_ready
//   tensor     | Q K0 |           | P V0 | Q K1 |           | P V1 | ...
//   rows              | ld pack st |             | ld pack st |
//
// P has columns of its own (stage C too): a product that reads P and a later one that writes S are
// not ordered with each other unless they have the same accumulator.
// Sources: the kernel suite's stage B; P7's reading of the columns; PTX ISA, "tcgen05.mma", matrix
// A in Tensor Memory.
#include "kernels/attention_sm100/boxes_16bit.h"
#include "kernels/attention_sm100/one_tile.h"
#include "kernels/attention_sm100/stage_b_two_mma.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

using Columns = tile::TensorColumns<tile::kKeys>;

template <int HeadDim>
using Shared = tile::TensorAttentionShared<HeadDim, HeadDim, sm100_stages(HeadDim)>;

// 16 columns of a row of scores: scaled, rounded, packed into 8 cells.
template <class Element>
__device__ void move_packed(std::uint32_t scores, std::uint32_t operand, int column, float scale) {
  float s[2][8];
  ptx::tcgen05_ld_32x32b(s[0], scores + column);
  ptx::tcgen05_ld_32x32b(s[1], scores + column + 8);
  ptx::tcgen05_wait_ld_sync_aligned();
  ptx::tcgen05_fence_operand(s[0]);
  ptx::tcgen05_fence_operand(s[1]);
  std::uint32_t cells[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    cells[i] = Element::pack(s[i / 4][i % 4 * 2] * scale, s[i / 4][i % 4 * 2 + 1] * scale);
  ptx::tcgen05_st_32x32b(operand + column / 2, cells);
}

// The mistake: 8 columns of a row, rounded, one to a cell as in the accumulator. Half of the 128
// columns that this takes would lie on the results, so only the first 64 keys are kept: those that
// the product then reads from 64 columns.
template <class Element>
__device__ void move_in_place(std::uint32_t scores, std::uint32_t operand, int column,
                              float scale) {
  float s[8];
  ptx::tcgen05_ld_32x32b(s, scores + column);
  ptx::tcgen05_wait_ld_sync_aligned();
  ptx::tcgen05_fence_operand(s);
  std::uint32_t cells[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) cells[i] = Element::pack(s[i] * scale, 0.0f);
  ptx::tcgen05_st_32x32b(operand + column, cells);
}

template <class Element, bool IsPacked>
__device__ void move_scores(std::uint32_t columns, float scale) {
  const std::uint32_t scores = tile::own_lanes(columns) + Columns::kScores;
  const std::uint32_t operand = tile::own_lanes(columns) + Columns::kOperand;
  if constexpr (IsPacked) {
#pragma unroll 2
    for (int column = 0; column < tile::kKeys; column += 16)
      move_packed<Element>(scores, operand, column, scale);
  } else {
#pragma unroll 2
    for (int column = 0; column < tile::kKeys / 2; column += 8)
      move_in_place<Element>(scores, operand, column, scale);
  }
  ptx::tcgen05_wait_st_sync_aligned();
}

template <class Element, int HeadDim, bool IsPacked>
__device__ void run(const AttentionParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<Shared<HeadDim>*>(dynamic);
  static_assert(sizeof(shared) <= sm100_shared_bytes(HeadDim));
  constexpr int kColumns = Columns::allocated(HeadDim);
  const tile::GroupWork<HeadDim, HeadDim> work(params);
  tile::clear_rows_behind(shared.q, work.box_rows());
  const std::uint32_t columns =
      tile::open_tensor_memory<kColumns>(shared.tensor_memory, [&] { shared.initialise(); });
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  if (warp < tile::kMmaWarp) {
    for (std::int32_t n = 0; n < work.num_tiles(); ++n) {
      tile::wait_for_tensor_memory(ptx::shared_address(&shared.s_full), n & 1);
      move_scores<Element, IsPacked>(columns, params.scale_log2);
      tile::hand_over_tensor_memory(ptx::shared_address(&shared.p_ready));
    }
    if (work.num_tiles() > 0) tile::wait_for_tensor_memory(ptx::shared_address(&shared.o_full), 0);
    tile::store_results<Element, HeadDim / tile::kBoxElems>(
        params, shared.q, work, columns + Columns::kResults, 1.0f, work.num_tiles() > 0);
  } else if (ptx::elect_sync()) {
    if (warp == tile::kMmaWarp) {
      tile::multiply_tiles<Element>(shared, columns, work.num_tiles());
    } else {
      tile::load_operands(params, shared, work);
    }
  }
  __syncwarp();
  tile::close_tensor_memory<kColumns>(columns);
}

}  // namespace
#define TILEWRIGHT_STAGE_B(NAME, ...)                                \
  TILEWRIGHT_KERNEL(attention_sm100_stage_b_##NAME, AttentionParams, \
                    __launch_bounds__(kSm100Threads, 1), run<__VA_ARGS__>)

using tile::Bf16;
using tile::Fp16;
TILEWRIGHT_STAGE_B(bf16_d64, Bf16, 64, true)
TILEWRIGHT_STAGE_B(bf16_d128, Bf16, 128, true)
TILEWRIGHT_STAGE_B(f16_d64, Fp16, 64, true)
TILEWRIGHT_STAGE_B(f16_d128, Fp16, 128, true)
TILEWRIGHT_STAGE_B(wrong_bf16_d64, Bf16, 64, false)
TILEWRIGHT_STAGE_B(wrong_f16_d64, Fp16, 64, false)

}  // namespace tilewright::kernels
