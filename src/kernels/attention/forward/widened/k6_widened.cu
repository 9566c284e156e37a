// targets: sm_90a
//
// K6 over keys in pages and with lengths that only the device knows, for queries of 16 bits over
// caches of e4m3. Read K6 over pages (forward/k6_paged.cu) first; what is different here:
//
//   keys, values   four warps widen codes to 16 bits, exactly, on their way to shared memory
//                  (paged_widener.h): products are those of K6, none is rounded to e4m3
//   scales         of keys: scores are multiplied with them; of values: results
//
// Limit: the four warps that widen. Where products bind, 1.3 to 2.2 times the time of K6 over pages
// of 16 bits, most with head_dim 256; where memory does, 1.1 to 1.7 times, with half the bytes.
#include "kernels/attention/forward/k6_paged.h"
#include "kernels/attention/forward/paged_kernel.h"
#include "kernels/attention/forward/paged_tiles.h"
#include "kernels/attention/forward/widened/paged_widener.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

// Codes that are ahead are in registers: all of a tile's up to head_dim 128, beyond it as many as
// the results of consumers leave.
struct WidenedRegisters {
  int units_ahead;  ///< PagedWidener::kAhead
  int producer, consumer;
};
constexpr WidenedRegisters widened_registers(const K6Variant& form) {
  if (form.consumers == 3) return {3, 80, 144};
  if (form.head_dim <= 128) return {8, 104, 200};
  if (form.value_dim < 192) return {4, 88, 208};
  return {form.head_dim == 192 ? 3 : 2, 72, 216};
}

template <class Element, int VariantIndex>
struct WideningConfig : PagedForm<Element, VariantIndex> {
  using Params = AttentionWidenedParams;
  using Shared = tile::WidenedShared<WideningConfig>;
  using Consumer = tile::WidenedConsumer<WideningConfig>;
  static constexpr bool kGathers = false;  // writers have the fence
  static constexpr int kKvArrivals = kPageWarps;
  static constexpr int kUnitsAhead = widened_registers(WideningConfig::kVariant).units_ahead;
  static constexpr int kProducerRegisters = widened_registers(WideningConfig::kVariant).producer;
  static constexpr int kConsumerRegisters = widened_registers(WideningConfig::kVariant).consumer;

  static __device__ int loading_warps(const Params& /*params*/) { return kPageWarps; }
  static __device__ void produce(const Params& params, K6Shared<WideningConfig>& shared) {
    const ThreadTiles<tile::PagedTiles<WideningConfig::kTile.queries>> of_thread{{params},
                                                                                 {shared.table}};
    load_tiles<tile::PagedWidener<WideningConfig>>(params, shared,
                                                   WarpTiles{of_thread, {shared.table}});
  }
};

}  // namespace

#define TILEWRIGHT_K6_WIDENED_OF(TYPE, NAME, ...)                                    \
  TILEWRIGHT_KERNEL(attention_k6_pages_##TYPE##_e4m3_##NAME, AttentionWidenedParams, \
                    __launch_bounds__(__VA_ARGS__::kTile.threads, 1),                \
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
