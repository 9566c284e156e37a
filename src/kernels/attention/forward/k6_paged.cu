// targets: sm_90a
//
// K6 over keys in pages, and with lengths that only the device knows: parts of prompts and
// sequences that decode, in one call. Read K6 (k6_forward.cu) first; what is different here:
//
//   pages       a tile of keys is copied in parts, none of which crosses a page (paged_loader.h);
//               where pages are short, k6_paged_rows.cu copies it row by row
//   lengths     a tile of queries behind the end of its sequence is not dealt, and parts of prompts
//               run beside sequences that decode (paged_tiles.h)
//   groups      rows of a tile are queries times the heads that share keys (paged_consumer.h)
//   chunks      a query sees keys of its own chunk alone (paged_mask.h)
//   stages      a third one of keys and values, where there is room
//   tall tiles  of many queries 192 rows instead of 128: fewer copied bytes a product
//
// Limit: as K6.
#include "kernels/attention/forward/k6_paged.h"
#include "kernels/attention/forward/paged_consumer.h"
#include "kernels/attention/forward/paged_kernel.h"
#include "kernels/attention/forward/paged_loader.h"
#include "kernels/attention/forward/paged_tiles.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

// Two stages were faster than three at head_dim 128, with prompts and with what decodes.
constexpr K6Variant copied_form(K6Variant form) {
  const bool is_wide = form.head_dim == 192 && form.value_dim == 192;
  if (form.head_dim == 128 && form.consumers == 2) form.kv_stages = 2;
  if (form.head_dim == 128 || is_wide) form.first_polls = true;
  return form;
}

template <class Element, int VariantIndex>
struct CopyingConfig : PagedForm<Element, VariantIndex, copied_form> {
  using Params = AttentionPagedParams;
  using Shared = tile::AttentionShared<CopyingConfig>;
  using Consumer = tile::PagedConsumer<CopyingConfig>;
  static constexpr bool kGathers = false;
  static constexpr int kKvArrivals = 1;

  static __device__ void produce(const Params& params, K6Shared<CopyingConfig>& shared) {
    const ThreadTiles<tile::PagedTiles<CopyingConfig::kTile.queries>> of_thread{{params},
                                                                                {shared.table}};
    const WarpTiles of_warps{of_thread, {shared.table}};
    if (params.pages.copies == PageCopies::kWarps) {
      load_tiles<tile::PagedLoader<CopyingConfig, false>>(params, shared, of_warps);
    } else if (threadIdx.x < 32 && ptx::elect_sync()) {
      load_tiles<tile::PagedLoader<CopyingConfig, true>>(params, shared, of_thread);
    }
  }
};

}  // namespace

#define TILEWRIGHT_K6_PAGES_OF(TYPE, NAME, ...)                               \
  TILEWRIGHT_KERNEL(attention_k6_pages_##TYPE##_##NAME, AttentionPagedParams, \
                    __launch_bounds__(__VA_ARGS__::kTile.threads, 1),         \
                    attention_over_pages<__VA_ARGS__>)
#define TILEWRIGHT_K6_PAGES(NAME)                                                           \
  TILEWRIGHT_K6_PAGES_OF(bf16, NAME,                                                        \
                         CopyingConfig<tile::Bf16, find_k6_index(kK6PagedVariants, #NAME)>) \
  TILEWRIGHT_K6_PAGES_OF(f16, NAME,                                                         \
                         CopyingConfig<tile::Fp16, find_k6_index(kK6PagedVariants, #NAME)>)

TILEWRIGHT_K6_PAGES(d64)
TILEWRIGHT_K6_PAGES(d96)
TILEWRIGHT_K6_PAGES(d128)
TILEWRIGHT_K6_PAGES(d128_tall)
TILEWRIGHT_K6_PAGES(d192)
TILEWRIGHT_K6_PAGES(d256)
TILEWRIGHT_K6_PAGES(d192_v128)

}  // namespace tilewright::kernels
