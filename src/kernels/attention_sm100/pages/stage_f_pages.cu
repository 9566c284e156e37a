// targets: sm_100f
//
// Stage F over keys in pages, and with lengths that only the device knows: what stage E over pages
// (stage_e_pages.cu) is for head_dim up to 128, by a pair of CTAs for head_dim up to 256. Read
// stage F (stage_f_cta_pair.cu) first; what is different here:
//
//   pages     in each CTA a warp copies, a lane a part that lies in one page, or four rows of pages
//             that are shorter (loader.h). Of keys those lanes whose rows are the CTA's half copy
//             two boxes each; of values all lanes, the CTA's half of the columns. A tile's pages
//             are looked up two tiles ahead
//   lengths   tiles of all sequences are numbered one after the other (tile_search.h); a pair has
//             one, of twice as many queries as a CTA's rows have room for
//   chunks    a query sees keys of its own chunk alone (kernels/attention/forward/paged_mask.h)
//   values    behind the last key are cleared in every sequence, in both CTAs
//
// Limit: as stage F. A tile's copies are 8 to 128 a CTA, 32 lanes at a time; at about 20 cycles
// each, as an H200 takes, those of the shortest pages are more than a step of 2048.
#include "kernels/attention_sm100/cta_pair.h"
#include "kernels/attention_sm100/pages/loader.h"
#include "kernels/attention_sm100/pages/stage_f_pages.h"
#include "kernels/attention_sm100/pages/tile_search.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kCtas = tile::kPairCtas;

// A pair's rows where tiles of all sequences are numbered.
template <int Rows>
struct Pages {
  using Params = AttentionPagedParams;
  using Tiles = tile::ChunkTiles<tile::kKeys>;
  using Found = tile::TileSearch<kSm100Threads>;
  // Sequences may be shorter than their room.
  struct Store : tile::OneStore {
    static constexpr bool kHasLengths = true;
  };
  static constexpr int kRows = Rows;
  static constexpr bool kLoadsByWarp = true;

  static __device__ std::int32_t tile(const AttentionPagedParams& /*params*/, const Found& found) {
    return found.tile;
  }
  static __device__ std::int32_t batch(const Found& found) { return found.batch; }
  static __device__ tile::AttentionSequence sequence(const AttentionPagedParams& /*params*/,
                                                     const Found& found) {
    return found.sequence;
  }
  static __device__ tile::VisibleKeys visible(const AttentionPagedParams& params,
                                              std::int32_t position, std::int32_t kv_len) {
    return tile::visible_of_chunk(params, position, kv_len);
  }
  /// Behind the last key a page may hold anything.
  static __device__ bool has_values_behind(const AttentionPagedParams& /*params*/) { return true; }
};

template <class Element, int HeadDim>
struct Kernel
    : tile::CtaPair<Kernel<Element, HeadDim>, Element, HeadDim, Pages<stage_f_rows(HeadDim)>> {
  using Base = tile::CtaPair<Kernel, Element, HeadDim, Pages<stage_f_rows(HeadDim)>>;
  using Base::kBoxes, Base::kHalfBoxBytes, Base::kSlots, Base::kStages;
  using typename Base::Shared;
  using typename Base::Work;
  static_assert(!Base::kIsHalved, "values come a box of 64 columns a product");

  // All lanes of the loading warp.
  struct Loader : tile::PageLane<tile::kBoxRowBytes> {
    static constexpr std::int32_t kHalfKeys = tile::kKeys / kCtas;

    Shared& shared;
    const Work& work;
    tile::RingPosition<kStages> at;

    __device__ Loader(const AttentionPagedParams& all, Shared& of_cta, const Work& of_pair)
        : PageLane{all, of_pair.kv_head}, shared(of_cta), work(of_pair) {}

    // Waits for a stage, of which the first CTA announces the bytes of both. The place of its
    // row `row`.
    __device__ std::uint32_t begin_stage(std::int32_t row) const {
      const tile::Ring<kStages> ring(shared.ring);
      ptx::mbarrier_wait_parity_cluster(ring.empty(at), at.parity ^ 1);
      if (work.rank == 0 && lane() == 0)
        ptx::mbarrier_arrive_expect_tx(ring.full(at), kCtas * tile::kBoxBytes);
      __syncwarp();
      return ptx::shared_address(shared.boxes[at.stage]) +
             static_cast<std::uint32_t>(row * tile::kBoxRowBytes);
    }
    __device__ std::uint32_t full_in_leader() const {
      return tile::in_leader(tile::Ring<kStages>(shared.ring).full(at));
    }
    // Half of a tile's keys, all columns.
    __device__ void load_keys(const Places& places) {
      std::int32_t rows[kLaneRows];
      if (gathers()) find_rows(rows, places, params.k_strides);
      const std::int32_t row = first_row() - static_cast<std::int32_t>(work.rank) * kHalfKeys;
      const bool is_own = row >= 0 && row < kHalfKeys;
#pragma unroll 1
      for (int slot = 0; slot < kSlots; ++slot, at.advance()) {
        const std::uint32_t to = begin_stage(row);
        if (!is_own) continue;
#pragma unroll
        for (int i = 0; i < 2; ++i)
          copy<kCtas>(to + i * kHalfBoxBytes, params.k_map, (slot * 2 + i) * tile::kBoxElems,
                      places, rows, full_in_leader());
      }
    }
    // All of a tile's keys, half of the columns of every product.
    __device__ void load_values(const Places& places) {
      std::int32_t rows[kLaneRows];
      if (gathers()) find_rows(rows, places, params.v_strides);
#pragma unroll 1
      for (int slot = 0; slot < kSlots; ++slot, at.advance()) {
        const std::uint32_t to = begin_stage(first_row());
        const int box = slot * kCtas + static_cast<int>(work.rank);
        copy<kCtas>(to, params.v_map, box * tile::kBoxElems, places, rows, full_in_leader());
      }
    }
    __device__ void run() {
      if (work.steps() <= 0) return;
      tile::PageWalk walk(params, work, work.tiles.begin * tile::kKeys + first_row());
      Places places = find(walk);
      walk.advance();
      Places next = find(walk);
      if (lane() == 0) {
        const std::uint32_t q_full = ptx::shared_address(&shared.q_full);
        ptx::mbarrier_arrive_expect_tx(q_full, kBoxes * work.box_rows() * tile::kBoxRowBytes);
        tile::load_queries(params, shared.q, work, q_full);
      }
      __syncwarp();
      load_keys(places);
#pragma unroll 1
      for (std::int32_t n = work.tiles.begin; n < work.tiles.end; ++n) {
        walk.advance();
        const Places after = find(walk);
        if (n + 1 < work.tiles.end) load_keys(next);
        load_values(places);
        places = next;
        next = after;
      }
      Base::wait_for_commits(shared, at);
    }
  };

  static __device__ void run(const AttentionPagedParams& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<Shared*>(dynamic);
    const std::int32_t queries = kCtas * (Base::kRows / (params.heads / params.kv_heads));
    shared.found.find(params, static_cast<std::int32_t>(blockIdx.x) / kCtas, queries);
    Base::run_roles(params);
  }
};

}  // namespace
#define TILEWRIGHT_STAGE_F_PAGES(NAME, ELEMENT, HEAD_DIM)                              \
  TILEWRIGHT_KERNEL(attention_sm100_pages_##NAME, AttentionPagedParams,                \
                    __cluster_dims__(kCtas, 1, 1) __launch_bounds__(kSm100Threads, 1), \
                    Kernel<tile::ELEMENT, HEAD_DIM>::run)

TILEWRIGHT_STAGE_F_PAGES(bf16_d256, Bf16, 256)
TILEWRIGHT_STAGE_F_PAGES(f16_d256, Fp16, 256)

}  // namespace tilewright::kernels
