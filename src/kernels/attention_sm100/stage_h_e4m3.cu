// targets: sm_100f
//
// Stage H, e4m3: stage E with operands of a byte. Products take half of the cycles and of the
// bytes, so the exponentials are what is left: 1024 cycles for 128 x 128 scores at 16 a cycle,
// against 256 to 1024 of the tensor core (head_dim 64 to 256).
//
//   weights   2^(s - max + 7) as codes, as in K7: e4m3 ends at 448. The reference moves when one
//             would leave the format. Four to a cell of Tensor Memory, over the scores
//   values    in rows, as they came: the tensor core reads B of 8 bits with its rows contiguous,
//             so nothing is transposed, and none are needed in columns
//   scales    of q and k go into the exponent's factor, of v to the end; per block of keys a weight
//             is smaller as its values' scale is below the largest one
// Roles, barriers and columns of Tensor Memory as in stage E, P in two halves. At head_dim 256
// results of two tiles would be all 512 columns: there is one, and products and softmax take turns.
#include "kernels/attention_sm100/e4m3_tiles.h"
#include "kernels/attention_sm100/stage_h_e4m3.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

struct Work : tile::GridWork<AttentionFp8Params> {
  static constexpr int shared_bytes(int head_dim) { return stage_h_shared_bytes(head_dim); }
};

template <int HeadDim>
struct Kernel : tile::E4m3Tiles<Kernel<HeadDim>, HeadDim, Work> {
  using Base = tile::E4m3Tiles<Kernel, HeadDim, Work>;
  using Base::kBoxes, Base::kItemBytes, Base::kSpan, Base::kSpanBoxBytes, Base::kStages;
  using Base::kTiles, Base::load_queries, Base::rows_of;
  using typename Base::KeyRange;
  using typename Base::Rows;
  using typename Base::Shared;

  static __device__ void load_rows(const AttentionFp8Params& params, Shared& shared,
                                   const Rows& work, const void* map, std::int32_t n,
                                   tile::RingPosition<kStages>& at) {
    const tile::Ring<kStages> ring(shared.ring);
    ring.start_filling(at, kItemBytes);
    for (int box = 0; box < kBoxes; ++box)
      ptx::cp_async_bulk_tensor_4d_shared_global(
          ptx::shared_address(shared.boxes[at.stage]) + box * kSpanBoxBytes, map, box * kSpan,
          work.sequence.kv_begin + n * tile::kKeys, work.kv_head,
          params.cu_kv == nullptr ? work.batch : 0, ring.full(at));
    at.advance();
  }
  // Queries and the first keys, before the CTA has its columns of Tensor Memory.
  static __device__ void begin_loading(const AttentionFp8Params& params, Shared& shared) {
    const KeyRange keys(params, shared);
    if (keys.count() == 0) return;
    const Rows work = rows_of(params, shared, 0);
    ptx::mbarrier_arrive_expect_tx(ptx::shared_address(&shared.barriers.q_full),
                                   kTiles * kBoxes * work.box_rows() * kSpan);
    for (int t = 0; t < kTiles; ++t) load_queries(params, shared, t);
    tile::RingPosition<kStages> at;
    load_rows(params, shared, work, params.k_map, keys.begin, at);
  }
  static __device__ void load(const AttentionFp8Params& params, Shared& shared) {
    const KeyRange keys(params, shared);
    const Rows work = rows_of(params, shared, 0);
    auto at = tile::box_position<kStages>(1);
    for (std::int32_t n = keys.begin; n < keys.end; ++n) {
      if (n > keys.begin) load_rows(params, shared, work, params.k_map, n, at);
      load_rows(params, shared, work, params.v_map, n, at);
    }
  }
};

}  // namespace
#define TILEWRIGHT_STAGE_H(HEAD_DIM)                                              \
  TILEWRIGHT_KERNEL(attention_sm100_stage_h_e4m3_d##HEAD_DIM, AttentionFp8Params, \
                    __launch_bounds__(kStageHThreads, 1), Kernel<HEAD_DIM>::run_roles)

TILEWRIGHT_STAGE_H(64)
TILEWRIGHT_STAGE_H(128)
TILEWRIGHT_STAGE_H(256)

}  // namespace tilewright::kernels
