// targets: sm_90a
//
// K6 over pages (k6_paged.cu) that are shorter than a part worth a tensor copy: four warps gather a
// tile of keys row by row (paged_gather.h). These are entries of their own, as a fence behind a
// branch among the products cost 2 %.
//
// Limit: as K6, with 4 to 40 % more time.
#include "kernels/attention/forward/k6_paged.h"
#include "kernels/attention/forward/paged_consumer.h"
#include "kernels/attention/forward/paged_gather.h"
#include "kernels/attention/forward/paged_kernel.h"
#include "kernels/attention/forward/paged_tiles.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

// Chosen by measurement, apart from copied_form: gathering takes about as long as products do.
constexpr K6Variant gathered_form(K6Variant form) {
  const bool is_two = form.head_dim == 128 && form.consumers == 2;
  if (is_two) form.kv_stages = 2, form.more_values = 1;
  if (is_two || form.head_dim == 256) form.pass = K6Pass::kAfterMaximum;
  if (is_two || (form.head_dim == 192 && form.value_dim == 192)) form.first_polls = true;
  return form;
}

template <class Element, int VariantIndex>
struct GatheringConfig : PagedForm<Element, VariantIndex, gathered_form> {
  using Params = AttentionPagedParams;
  using Shared = tile::AttentionShared<GatheringConfig>;
  using Consumer = tile::PagedConsumer<GatheringConfig>;
  static constexpr bool kGathers = true;
  static constexpr int kKvArrivals = 32 * kPageWarps;

  static __device__ void produce(const Params& params, K6Shared<GatheringConfig>& shared) {
    const ThreadTiles<tile::PagedTiles<GatheringConfig::kTile.queries>> of_thread{{params},
                                                                                  {shared.table}};
    load_tiles<tile::PagedGatherer<GatheringConfig>>(params, shared,
                                                     WarpTiles{of_thread, {shared.table}});
  }
};

}  // namespace

#define TILEWRIGHT_K6_PAGES_OF(TYPE, NAME, ...)                                      \
  TILEWRIGHT_KERNEL(attention_k6_pages_##TYPE##_##NAME##_rows, AttentionPagedParams, \
                    __launch_bounds__(__VA_ARGS__::kTile.threads, 1),                \
                    attention_over_pages<__VA_ARGS__>)
#define TILEWRIGHT_K6_PAGES(NAME)                                                             \
  TILEWRIGHT_K6_PAGES_OF(bf16, NAME,                                                          \
                         GatheringConfig<tile::Bf16, find_k6_index(kK6PagedVariants, #NAME)>) \
  TILEWRIGHT_K6_PAGES_OF(f16, NAME,                                                           \
                         GatheringConfig<tile::Fp16, find_k6_index(kK6PagedVariants, #NAME)>)

TILEWRIGHT_K6_PAGES(d64)
TILEWRIGHT_K6_PAGES(d96)
TILEWRIGHT_K6_PAGES(d128)
TILEWRIGHT_K6_PAGES(d128_tall)
TILEWRIGHT_K6_PAGES(d192)
TILEWRIGHT_K6_PAGES(d256)
TILEWRIGHT_K6_PAGES(d192_v128)

}  // namespace tilewright::kernels
