// targets: sm_90a
//
// K6 over keys in pages and with lengths that only the device knows, for queries of 16 bits over
// caches of e4m3. Read K6 over pages (forward/k6_paged.cu) first; what is different here:
//
//   keys, values   four warps widen codes to 16 bits, exactly, on their way to shared memory
//                  (paged_widener.h): products are those of K6, none is rounded to e4m3
//   scales         of keys: scores are multiplied with them; of values: results
//
// Limit: as K6 over pages; half its bytes are read.
#include "kernels/attention/forward/k6_paged.h"
#include "kernels/attention/forward/paged_kernel.h"
#include "kernels/attention/forward/widened/paged_widener.h"
#include "kernels/attention/forward/widened/used_tiles.h"
#include "tile/dealt_tiles.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

template <class Element, int VariantIndex>
struct WideningConfig : PagedForm<Element, VariantIndex> {
  using Params = AttentionPagedFp8Params;
  using Shared = tile::WidenedShared<WideningConfig>;
  using Consumer = tile::WidenedConsumer<WideningConfig>;
  static constexpr bool kGathers = false;  // writers have the fence
  static constexpr int kKvArrivals = kPageWarps;

  static __device__ int loading_warps(const Params& /*params*/) { return kPageWarps; }
  static __device__ void produce(const Params& params, K6Shared<WideningConfig>& shared) {
    tile::PagedWidener<WideningConfig> loader(params, shared.rings);
    tile::UsedTiles<WideningConfig::kTile.queries> tiles{params, {params}};
    tile::TileDealer dealer{shared.table};
    tile::TileTaker taker{shared.table};
    while (true) {
      if (threadIdx.x == 0) dealer.deal(tiles.draw());
      __syncwarp();
      const tile::DealtTile tile = taker.take();
      taker.release();
      if (tile.is_last) return;
      const auto seen = WideningConfig::key_tiles(params, tile);
      if (seen.begin < seen.end) loader.load(tile, seen.begin, seen.end);
    }
  }
};

}  // namespace

#define TILEWRIGHT_K6_WIDENED_OF(TYPE, NAME, ...)                                     \
  TILEWRIGHT_KERNEL(attention_k6_pages_##TYPE##_e4m3_##NAME, AttentionPagedFp8Params, \
                    __launch_bounds__(__VA_ARGS__::kTile.threads, 1),                 \
                    attention_over_pages<__VA_ARGS__>)
#define TILEWRIGHT_K6_WIDENED(NAME)                                                            \
  TILEWRIGHT_K6_WIDENED_OF(bf16, NAME,                                                         \
                           WideningConfig<tile::Bf16, find_k6_index(kK6PagedVariants, #NAME)>) \
  TILEWRIGHT_K6_WIDENED_OF(f16, NAME,                                                          \
                           WideningConfig<tile::Fp16, find_k6_index(kK6PagedVariants, #NAME)>)

TILEWRIGHT_K6_WIDENED(d64)
TILEWRIGHT_K6_WIDENED(d96)
TILEWRIGHT_K6_WIDENED(d128)
TILEWRIGHT_K6_WIDENED(d192)
TILEWRIGHT_K6_WIDENED(d256)
TILEWRIGHT_K6_WIDENED(d192_v128)

}  // namespace tilewright::kernels
