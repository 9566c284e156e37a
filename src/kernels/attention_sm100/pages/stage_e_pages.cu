// targets: sm_100f
//
// Stage E over keys in pages, and with lengths that only the device knows: parts of prompts and
// sequences that decode, in one call. Read stage E (stage_e_two_tiles.cu) first; what is different
// here:
//
//   pages     a warp brings a tile of keys, a lane a part that lies in one page, or four rows of
//             pages that are shorter (loader.h); the next tile's pages are looked up while
//             this one's are on their way
//   lengths   tiles of all sequences are numbered one after the other (work.h)
//   chunks    a query sees keys of its own chunk alone (kernels/attention/forward/paged_mask.h)
//   values    behind the last key are cleared in every sequence: a page may hold anything there
//
// Limit: as stage E. A tile's copies are 4 to 128 at head_dim 128, 32 lanes at a time; at about 20
// cycles each, as an H200 takes, those of the shortest pages are three quarters of a step.
#include "kernels/attention_sm100/pages/loader.h"
#include "kernels/attention_sm100/pages/stage_e_pages.h"
#include "kernels/attention_sm100/pages/work.h"
#include "kernels/attention_sm100/two_tiles.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

struct Work : tile::PagedWork {
  static constexpr int shared_bytes(int head_dim) { return stage_e_pages_shared_bytes(head_dim); }
};

template <class Element, int HeadDim, int ValueDim = HeadDim>
struct Kernel
    : tile::TwoTiles<Kernel<Element, HeadDim, ValueDim>, Element, HeadDim, ValueDim, Work> {
  using Base = tile::TwoTiles<Kernel, Element, HeadDim, ValueDim, Work>;
  using Base::kKeyBoxes, Base::kTiles, Base::kValueBoxes, Base::kStages, Base::rows_of;
  using typename Base::KeyRange;
  using typename Base::Rows;
  using typename Base::Shared;
  using Loader = tile::PageLoader<Shared>;

  // The loading warp; queries by one thread, while the first pages are looked up.
  static __device__ void begin_loading(const AttentionPagedParams& params, Shared& shared) {
    const KeyRange keys(params, shared);
    if (keys.count() == 0) return;
    const Rows first = rows_of(params, shared, 0);
    Loader loader = {{params, first.kv_head}, shared, {}};
    const tile::PageWalk walk(params, first, keys.begin * tile::kKeys + loader.first_row());
    const auto places = loader.find(walk);
    if (Loader::lane() == 0) {
      const std::uint32_t q_full = ptx::shared_address(&shared.barriers.q_full);
      ptx::mbarrier_arrive_expect_tx(q_full,
                                     kTiles * kKeyBoxes * first.box_rows() * tile::kBoxRowBytes);
      tile::load_queries(params, shared.q[0], first, q_full);
      tile::load_queries(params, shared.q[1], rows_of(params, shared, 1), q_full);
    }
    __syncwarp();
    loader.template load_keys<kKeyBoxes>(places);
  }
  static __device__ void load(const AttentionPagedParams& params, Shared& shared) {
    const KeyRange keys(params, shared);
    const Rows first = rows_of(params, shared, 0);
    Loader loader = {{params, first.kv_head}, shared, tile::box_position<kStages>(kKeyBoxes)};
    tile::PageWalk walk(params, first, keys.begin * tile::kKeys + loader.first_row());
    auto places = loader.find(walk);
    for (std::int32_t n = keys.begin; n < keys.end; ++n) {
      walk.advance();
      const auto next = loader.find(walk);
      loader.template load_values<kValueBoxes>(places);
      if (n + 1 < keys.end) loader.template load_keys<kKeyBoxes>(next);
      places = next;
    }
  }

  static __device__ void run(const AttentionPagedParams& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<Shared*>(dynamic);
    const std::int32_t queries = kTiles * (tile::kTensorRows / (params.heads / params.kv_heads));
    shared.found.find(params, static_cast<std::int32_t>(blockIdx.x), queries);
    Base::run_roles(params);
  }
};

}  // namespace
#define TILEWRIGHT_STAGE_E_PAGES(NAME, ELEMENT, ...)                    \
  TILEWRIGHT_KERNEL(attention_sm100_pages_##NAME, AttentionPagedParams, \
                    __launch_bounds__(kStageEThreads, 1), Kernel<tile::ELEMENT, __VA_ARGS__>::run)

TILEWRIGHT_STAGE_E_PAGES(bf16_d64, Bf16, 64)
TILEWRIGHT_STAGE_E_PAGES(bf16_d128, Bf16, 128)
TILEWRIGHT_STAGE_E_PAGES(bf16_d192_v128, Bf16, 192, 128)
TILEWRIGHT_STAGE_E_PAGES(f16_d64, Fp16, 64)
TILEWRIGHT_STAGE_E_PAGES(f16_d128, Fp16, 128)
TILEWRIGHT_STAGE_E_PAGES(f16_d192_v128, Fp16, 192, 128)

}  // namespace tilewright::kernels
