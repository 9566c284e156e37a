// targets: sm_100f
//
// Stage H over keys in pages, and with lengths that only the device knows: caches and queries of
// e4m3. Read stage H (stage_h_e4m3.cu) and stage E over pages (stage_e_pages.cu) first: here the
// warp that copies pages, the numbering of tiles and the mask of the second meet products and
// softmax of the first.
//
//   boxes     rows of 64 bytes at head_dim 64, else of 128; an item of 256 columns is two boxes
//   scales    one of a sequence and a head, or one of all: caches have no others
//
// Limit: as stage H. A tile's copies are half as many as stage E's, for half of its bytes.
#include "kernels/attention_sm100/e4m3_tiles.h"
#include "kernels/attention_sm100/pages/loader.h"
#include "kernels/attention_sm100/pages/stage_h_pages.h"
#include "kernels/attention_sm100/pages/work.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

struct Work : tile::PagedWork {
  using Params = AttentionPagedFp8Params;
  static constexpr int shared_bytes(int head_dim) { return stage_h_pages_shared_bytes(head_dim); }
};

template <int HeadDim>
struct Kernel : tile::E4m3Tiles<Kernel<HeadDim>, HeadDim, Work> {
  using Base = tile::E4m3Tiles<Kernel, HeadDim, Work>;
  using Base::kBoxes, Base::kSpan, Base::kStages, Base::kTiles, Base::load_queries, Base::rows_of;
  using typename Base::KeyRange;
  using typename Base::Rows;
  using typename Base::Shared;
  using Loader = tile::PageLoader<Shared>;

  // The loading warp; queries by one thread, while the first pages are looked up.
  static __device__ void begin_loading(const AttentionPagedFp8Params& params, Shared& shared) {
    const KeyRange keys(params, shared);
    if (keys.count() == 0) return;
    const Rows first = rows_of(params, shared, 0);
    Loader loader = {{params, first.kv_head}, shared, {}};
    const tile::PageWalk walk(params, first, keys.begin * tile::kKeys + loader.first_row());
    const auto places = loader.find(walk);
    if (Loader::lane() == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::shared_address(&shared.barriers.q_full),
                                     kTiles * kBoxes * first.box_rows() * kSpan);
      for (int t = 0; t < kTiles; ++t) load_queries(params, shared, t);
    }
    __syncwarp();
    loader.template load_keys<kBoxes>(places);
  }
  static __device__ void load(const AttentionPagedFp8Params& params, Shared& shared) {
    const KeyRange keys(params, shared);
    const Rows first = rows_of(params, shared, 0);
    Loader loader = {{params, first.kv_head}, shared, tile::box_position<kStages>(1)};
    tile::PageWalk walk(params, first, keys.begin * tile::kKeys + loader.first_row());
    auto places = loader.find(walk);
    for (std::int32_t n = keys.begin; n < keys.end; ++n) {
      walk.advance();
      const auto next = loader.find(walk);
      loader.template load_values<kBoxes>(places);
      if (n + 1 < keys.end) loader.template load_keys<kBoxes>(next);
      places = next;
    }
  }

  static __device__ void run(const AttentionPagedFp8Params& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<Shared*>(dynamic);
    const std::int32_t queries = kTiles * (tile::kTensorRows / (params.heads / params.kv_heads));
    shared.found.find(params, static_cast<std::int32_t>(blockIdx.x), queries);
    Base::run_roles(params);
  }
};

}  // namespace
#define TILEWRIGHT_STAGE_H_PAGES(HEAD_DIM)                                           \
  TILEWRIGHT_KERNEL(attention_sm100_pages_e4m3_d##HEAD_DIM, AttentionPagedFp8Params, \
                    __launch_bounds__(kStageHThreads, 1), Kernel<HEAD_DIM>::run)

TILEWRIGHT_STAGE_H_PAGES(64)
TILEWRIGHT_STAGE_H_PAGES(128)
TILEWRIGHT_STAGE_H_PAGES(256)

}  // namespace tilewright::kernels
