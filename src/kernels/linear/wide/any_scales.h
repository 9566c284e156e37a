// Scales of blocks of FP8 weights beside products of bf16: as weights are decoded, or of sums.
#pragma once

#include "kernels/linear/wide/bf16.h"
#include "kernels/linear/wide/bf16_consumer.h"
#include "kernels/linear/wide/schedule.h"

#include <cstdint>

namespace tilewright::tile {

// Block scales that are powers of two multiply weights as they are decoded, in place of the bias
// of e4m3; others sums. C says whether those of rows g + 8 may differ. The next block's are loaded
// while this one is multiplied.
template <class C>
struct WideAnyScales : WideSumScales<C::kScaleHalves> {
  static constexpr bool kHasBlockScales = C::kFormat == WeightFormat::kFp8;
  static constexpr int kHalves = C::kScaleHalves;

  const float* at;
  std::int32_t stride, blocks;
  std::int32_t up = 0;  // from the scale of rows g to that of rows g + 8
  bool is_power;
  using WideSumScales<kHalves>::current, WideSumScales<kHalves>::next;
  using WideSumScales<kHalves>::factors;

  template <class Consumer>
  __device__ WideAnyScales(const Consumer& consumer, const WideTile& tile)
      : stride(consumer.scale_blocks()),
        blocks(ceil_div(consumer.params.k, kernels::kFp8BlockK)),
        is_power(consumer.params.has_power_scales != 0) {
    if constexpr (kHasBlockScales) {
      const std::int32_t block = consumer.steps.begin / kWideBf16BlockSteps;
      at = consumer.block_scales_of(tile, 0) + block * stride;
      if (kHalves == 2 && consumer.params.is_swiglu) up = stride / 2;
      blocks -= block;
#pragma unroll
      for (int h = 0; h < kHalves; ++h) {
        current[h] = 1;
        next[h] = at[h * up];
      }
      set();
      load_next();
    }
  }
  __device__ void set() {
    if (is_power) {
#pragma unroll
      for (int h = 0; h < 2; ++h)
        factors[h] = __byte_perm(__float_as_uint(next[h % kHalves]) + (120u << 23), 0, 0x3232);
    } else {
#pragma unroll
      for (int h = 0; h < kHalves; ++h) current[h] = next[h];
    }
  }
  __device__ void load_next() {
    at += stride;
    if (--blocks <= 0) return;
#pragma unroll
    for (int h = 0; h < kHalves; ++h) next[h] = at[h * up];
  }
  // Before the first fragment of a step.
  template <int Count>
  __device__ void advance(float (&d)[Count], std::int32_t step) {
    if (step % kWideBf16BlockSteps != 0) return;
    if (!is_power) {
      float quotients[kHalves];
      this->find_quotients(quotients);
      this->scale_behind_products(d, quotients);
    }
    set();
    load_next();
  }
};

}  // namespace tilewright::tile
