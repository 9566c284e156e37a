// targets: sm_100f
//
// Stage A, Q K^T alone: the way of a product through Tensor Memory, from end to end.
//
// On Blackwell no thread holds the accumulator. One thread issues the product; the tensor core
// reads both operands from shared memory and adds into Tensor Memory, 128 lanes by 512 columns of
// 32 bits beside the registers. With 128 rows, row m of the result is lane m and column n is column
// n: the simplest layout there is (`tilewright layout draw tmem.C.m128.n128`). A warp may touch 32
// lanes only, those of its number modulo 4, so four warps read the result, thread t of warp w the
// row 32 w + t.
//
//   warp 5, one thread    TMA: boxes of Q and K, 128 rows by 64 columns -> ring of stages
//   warp 4, one thread    tcgen05.mma: 4 a stage; commit: stage is empty; last commit: S is there
//   warps 0-3             tcgen05.ld 32x32b -> registers -> shared memory, swizzled -> TMA store
//
//   barriers   full[stage]: bytes have landed, by TMA       empty[stage]: read, by tcgen05.commit
//              done: every product is finished, by tcgen05.commit
//
// A thread of the last four warps writes 16 bytes of its own row at a time. Rows are 128 bytes
// apart, so without the swizzle all threads would hit the same four banks; with it, 8 neighbours
// cover all 32.
//
// Limit: 2 * 128 * 128 * head_dim flop a tile against 8192 flop a cycle, 256 cycles at head_dim 64;
// the 64 KiB of f32 results of a tile at 40 bytes a cycle and SM are 1600: memory.
// Sources: the first stage of the kernel suite's plan; PTX ISA, "tcgen05.mma", "tcgen05.ld".
#include "kernels/attention_sm100/stage_a_qk.h"
#include "kernels/attention_sm100/tensor_mma.h"
#include "ptx/bulk_tensor_copy.h"
#include "tile/entry.h"
#include "tile/ring.h"
#include "tile/tensor_memory.h"

namespace tilewright::kernels {
namespace {

constexpr int kRowBarrier = 1;  // named, of the warps that store; number 0 is that of the CTA

constexpr int kStages = kStageAStages, kOutColumns = 32;  // of a box of s: 128 bytes of f32

struct Shared {
  std::uint8_t q[kStages][tile::kBoxBytes], k[kStages][tile::kBoxBytes];
  std::uint8_t s[kStageATile / kOutColumns][tile::kBoxBytes];
  tile::RingBarriers<kStages> ring;
  std::uint64_t done;
  std::uint32_t tensor_memory;
};
static_assert(sizeof(Shared) <= kStageASharedBytes);

__device__ void load(const StageAParams& params, Shared& shared) {
  const tile::Ring<kStages> ring(shared.ring);
  tile::RingPosition<kStages> at;
  for (std::int32_t column = 0; column < params.head_dim; column += tile::kBoxElems) {
    ring.start_filling(at, 2 * tile::kBoxBytes);
    ptx::cp_async_bulk_tensor_2d_shared_global(ptx::shared_address(shared.q[at.stage]),
                                               params.q_map, column, blockIdx.y * kStageATile,
                                               ring.full(at));
    ptx::cp_async_bulk_tensor_2d_shared_global(ptx::shared_address(shared.k[at.stage]),
                                               params.k_map, column, blockIdx.x * kStageATile,
                                               ring.full(at));
    at.advance();
  }
}

template <class Element>
__device__ void multiply(const StageAParams& params, Shared& shared, std::uint32_t s) {
  const tile::Ring<kStages> ring(shared.ring);
  tile::RingPosition<kStages> at;
  for (std::int32_t column = 0; column < params.head_dim; column += tile::kBoxElems) {
    ring.wait_full(at);
    tile::issue_scores<Element, kStageATile>(s, ptx::shared_address(shared.q[at.stage]),
                                             ptx::shared_address(shared.k[at.stage]), column > 0);
    ptx::tcgen05_commit(ring.empty(at));
    at.advance();
  }
  ptx::tcgen05_commit(ptx::shared_address(&shared.done));
}

// A box at a time: the first is on its way out while the second is read.
__device__ void store(const StageAParams& params, Shared& shared, std::uint32_t s) {
  tile::wait_for_tensor_memory(ptx::shared_address(&shared.done), 0);
#pragma unroll 1
  for (int box = 0; box < kStageATile / kOutColumns; ++box) {
    float x[1][kOutColumns];
    tile::load_row(x, tile::own_lanes(s) + box * kOutColumns);
#pragma unroll
    for (int i = 0; i < kOutColumns / 4; ++i) {
      *tile::line_chunk<float4>(shared.s[box], threadIdx.x, i) =
          make_float4(x[0][4 * i], x[0][4 * i + 1], x[0][4 * i + 2], x[0][4 * i + 3]);
    }
    ptx::fence_proxy_async_shared_cta();
    ptx::bar_sync<kRowBarrier, 128>();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk_tensor_2d_global_shared(
          params.s_map, static_cast<std::int32_t>(blockIdx.x * kStageATile) + box * kOutColumns,
          blockIdx.y * kStageATile, ptx::shared_address(shared.s[box]));
      ptx::cp_async_bulk_commit_group();
    }
  }
  if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group<0>();
}

template <class Element>
__device__ void run(const StageAParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<Shared*>(dynamic);
  const std::uint32_t s = tile::open_tensor_memory<kStageATile>(shared.tensor_memory, [&] {
    shared.ring.initialise(1);
    ptx::mbarrier_init(ptx::shared_address(&shared.done), 1);
  });
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  if (warp < 4) {
    store(params, shared, s);
  } else if (warp == 4) {
    if (ptx::elect_sync()) multiply<Element>(params, shared, s);
  } else {
    if (ptx::elect_sync()) load(params, shared);
  }
  __syncwarp();
  tile::close_tensor_memory<kStageATile>(s);
}

}  // namespace
#define TILEWRIGHT_STAGE_A(NAME, ELEMENT)                         \
  TILEWRIGHT_KERNEL(attention_sm100_stage_a_##NAME, StageAParams, \
                    __launch_bounds__(kStageAThreads, 1), run<tile::ELEMENT>)

TILEWRIGHT_STAGE_A(bf16, Bf16)
TILEWRIGHT_STAGE_A(f16, Fp16)

}  // namespace tilewright::kernels
