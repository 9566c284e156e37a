// targets: sm_90a
//
// K7: queries, keys, values and weights in e4m3.
//
// The tensor core does twice as many products per cycle as in K6, the special-function units the
// same number of exponentials: for 64 queries and K keys at head_dim d both products take K d / 32
// cycles and the exponentials 4 K, as long at d = 128. So K6's overlap decides: turns of
// warpgroups, and inside one p v of a tile under the softmax of the next. Three warpgroups instead
// of two find more to overlap, and tiles are as wide as their 160 registers allow.
//
//   memory    q, k: rows | v: columns (kColumns), or rows that warps of the producers turn (kRows)
//   weights   2^(s - max + 7), up to 448: e4m3 ends there, and at 2^-9. The reference moves when
//             one would be larger, by maxima taken before exponentials
//   registers accumulators of q k^T become the operand of p v by packing alone: keys of a group of
//             16 are in another order, and v's columns are in the same one
//   scales    of q and k go into the exponent's factor, of v to the end; per block of keys, a
//             weight is made smaller by its exponent as its values' scale is below the largest one
//
// Sums. For 8-bit operands the tensor core adds up 32 products and the sum so far as multiples of
// 2^(e - 13), e the exponent of the largest: over many keys, small products vanish beside a large
// sum. Two levels: its sums of a few tiles start at 0 and are added in f32. At d = 256 these do not
// fit beside results and scores: there, slices of 64 dimensions take turns in the registers of
// scores that are done with, every tile.
//
// A warpgroup lets keys pass by that none of its rows sees, and all of them if it has no rows: the
// others have the tensor cores to themselves. So tiles of 192 queries are good for 512 or 1024.
//
// Barriers: as K6; the next queries come while these are worked on; and rows of values are a ring
// of their own, which the transposing warps empty into that of columns.
// Limit: issue slots and the serial chain scores, maximum, exponentials of a warpgroup; then power.
// Measured, tried and not kept: docs/notes. Sources: FlashAttention-3 (arXiv 2407.08608), section
// 3.3 (transposition, order of keys); arXiv 2606.06521 (2^x, keys from the last one on).
#include "kernels/attention/k7/k7_fp8.h"
#include "kernels/attention/k7/loader.h"
#include "kernels/attention/k7/query_consumer.h"
#include "kernels/attention/k7/transpose.h"
#include "kernels/attention/k7/worker.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

template <class C>
__device__ void attention_k7(const AttentionFp8Params& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<tile::Fp8AttentionShared<C>*>(dynamic);
  static_assert(sizeof(shared) <= C::kVariant.ring_bytes());
  if (threadIdx.x == 0) {
    shared.initialise();
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<C::kProducerRegisters>();
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
    if (warp == 0) {
      if (ptx::elect_sync()) tile::Fp8AttentionLoader<C>{params, shared, {shared.table}}.run();
    } else if constexpr (C::kIsRows) {
      tile::transpose_all_values<C>(params, shared, warp - 1);
    }
  } else {
    ptx::setmaxnreg_inc_sync_aligned<C::kConsumerRegisters>();
    const std::uint32_t index = ptx::uniform(threadIdx.x / 128 - 1);
    std::uint8_t* const staging =
        dynamic + C::kVariant.ring_bytes() + index * (64 * C::kHeadDim * 2);
    K7Worker<C, tile::QueryFp8Consumer<C>>{{{params, shared, index}, staging},
                                           ptx::shared_address(&shared.zero)}
        .run();
  }
}

}  // namespace

#define TILEWRIGHT_K7(NAME)                                                                     \
  TILEWRIGHT_KERNEL(attention_k7_##NAME, AttentionFp8Params,                                    \
                    __launch_bounds__(kK7Variants.all[find_k7_index(#NAME)].tile().threads, 1), \
                    attention_k7<tile::Fp8AttentionConfig<kK7Variants.all[find_k7_index(#NAME)]>>)
#define TILEWRIGHT_K7_SUMS(NAME) TILEWRIGHT_K7(NAME) TILEWRIGHT_K7(NAME##_two_level)
#define TILEWRIGHT_K7_LONG(NAME)  \
  TILEWRIGHT_K7_SUMS(NAME)        \
  TILEWRIGHT_K7_SUMS(NAME##_rows) \
  TILEWRIGHT_K7(NAME##_block) TILEWRIGHT_K7(NAME##_rows_block)

TILEWRIGHT_K7_LONG(d64)
TILEWRIGHT_K7_LONG(d128)
TILEWRIGHT_K7_LONG(d256)
TILEWRIGHT_K7(d64_short)
TILEWRIGHT_K7(d128_short)
TILEWRIGHT_K7(d128_rows_short)
TILEWRIGHT_K7(d64_rows_short)
TILEWRIGHT_K7(d128_rows_block_short)

}  // namespace tilewright::kernels
