// targets: sm_100f
//
// Stage E over pages for queries of 16 bits and caches of e4m3. Read stage E over pages
// (stage_e_pages.cu) first; what is different here:
//
//   keys, values   three warps widen codes to 16 bits, exactly, on their way to shared memory
//                  (widener.h): products are those of stage E, none is rounded to e4m3
//   scales         of keys: they go into the exponent's factor; of values: to the end
//
// Limit: as stage E; half its bytes are read. In bf16 16 codes take about 40 instructions of a
// warp: 128 keys of 128 and their values 850 a scheduler, beside 1400 of the softmax.
#include "kernels/attention_sm100/descale.h"
#include "kernels/attention_sm100/pages/stage_e_widened.h"
#include "kernels/attention_sm100/pages/widener.h"
#include "kernels/attention_sm100/pages/work.h"
#include "kernels/attention_sm100/two_tiles.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

// A tile and its scales, from shared memory in every step: threads of the softmax have no registers
// for them.
struct ScaledTile : tile::FoundTile {
  float before_softcap, of_scores, of_values;

  // One thread, whom the barrier follows that all threads of the CTA pass before they take roles.
  __device__ void find_scales(const AttentionPagedFp8Params& params) {
    float of_keys = 1.0f;
    of_values = 1.0f;
    if (sequence.kv_len > 0) {  // without keys there need not be scales
      const auto head = static_cast<std::int32_t>(blockIdx.y);
      of_keys = tile::find_scale(params.k_scales, batch, head, 0);
      of_values = tile::find_scale(params.v_scales, batch, head, 0);
    }
    before_softcap = params.softcap_scale * of_keys;
    of_scores = params.scale_log2 * (params.softcap_scale != 0.0f ? 1.0f : of_keys);
  }
};

struct Work : tile::PagedWork {
  using Params = AttentionPagedFp8Params;
  using Found = ScaledTile;
  static constexpr int kLoadWarps = tile::kWidenWarps;

  static constexpr int shared_bytes(int head_dim) { return stage_e_pages_shared_bytes(head_dim); }
  static __device__ float softcap_scale(const Params& /*params*/, const Found& found) {
    return found.before_softcap;
  }
  static __device__ float scale_log2(const Params& /*params*/, const Found& found) {
    return found.of_scores;
  }
  /// There are zeros already.
  static __device__ bool has_values_behind(const Params& /*params*/) { return false; }
};

template <class Element, int HeadDim, int ValueDim = HeadDim>
struct Kernel
    : tile::TwoTiles<Kernel<Element, HeadDim, ValueDim>, Element, HeadDim, ValueDim, Work> {
  using Base = tile::TwoTiles<Kernel, Element, HeadDim, ValueDim, Work>;
  using Base::kKeyBoxes, Base::kTiles, Base::rows_of;
  using typename Base::KeyRange;
  using typename Base::Rows;
  using typename Base::Shared;
  using typename Base::Softmax;

  // The first of the loading warps: queries, by one thread.
  static __device__ void begin_loading(const AttentionPagedFp8Params& params, Shared& shared) {
    const KeyRange keys(params, shared);
    if (keys.count() == 0 || !ptx::elect_sync()) return;
    const Rows first = rows_of(params, shared, 0);
    const std::uint32_t q_full = ptx::shared_address(&shared.barriers.q_full);
    ptx::mbarrier_arrive_expect_tx(q_full,
                                   kTiles * kKeyBoxes * first.box_rows() * tile::kBoxRowBytes);
    tile::load_queries(params, shared.q[0], first, q_full);
    tile::load_queries(params, shared.q[1], rows_of(params, shared, 1), q_full);
  }
  // All of them.
  static __device__ void load(const AttentionPagedFp8Params& params, Shared& shared) {
    const KeyRange keys(params, shared);
    if (keys.count() == 0) return;
    const Rows first = rows_of(params, shared, 0);
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32) - Base::kLoadWarp;
    tile::PageWidener<Element, Shared>{params, shared, first, warp}.load(keys.begin, keys.end);
  }

  static __device__ float finish_row(const AttentionPagedFp8Params& params, const Shared& shared,
                                     const Rows& rows, const Softmax& softmax) {
    return Base::finish_row(params, shared, rows, softmax) * shared.found.of_values;
  }

  static __device__ void run(const AttentionPagedFp8Params& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<Shared*>(dynamic);
    const std::int32_t queries = kTiles * (tile::kTensorRows / (params.heads / params.kv_heads));
    shared.found.find(params, static_cast<std::int32_t>(blockIdx.x), queries);
    if (threadIdx.x == 0) shared.found.find_scales(params);
    Base::run_roles(params);
  }
};

}  // namespace
#define TILEWRIGHT_STAGE_E_WIDENED(NAME, ELEMENT, ...)                     \
  TILEWRIGHT_KERNEL(attention_sm100_pages_##NAME, AttentionPagedFp8Params, \
                    __launch_bounds__(kStageEThreads, 1), Kernel<tile::ELEMENT, __VA_ARGS__>::run)

TILEWRIGHT_STAGE_E_WIDENED(bf16_e4m3_d64, Bf16, 64)
TILEWRIGHT_STAGE_E_WIDENED(bf16_e4m3_d128, Bf16, 128)
TILEWRIGHT_STAGE_E_WIDENED(bf16_e4m3_d192_v128, Bf16, 192, 128)
TILEWRIGHT_STAGE_E_WIDENED(f16_e4m3_d64, Fp16, 64)
TILEWRIGHT_STAGE_E_WIDENED(f16_e4m3_d128, Fp16, 128)
TILEWRIGHT_STAGE_E_WIDENED(f16_e4m3_d192_v128, Fp16, 192, 128)

}  // namespace tilewright::kernels
