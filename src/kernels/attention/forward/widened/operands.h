// Contract of K6 over caches of e4m3.
#pragma once

#include "kernels/attention/forward/pages.h"

#include <cstdint>

namespace tilewright::kernels {

/// What codes are multiplied with: of a sequence and a head of keys
/// values[batch * batch_stride + head * head_stride].
struct CacheScales {
  const float* values;
  std::int64_t batch_stride, head_stride;
};

/// Of keys and values k, v and their strides are read, in bytes, and no map.
struct AttentionWidenedParams : AttentionPagedParams {
  CacheScales k_scales, v_scales;
};

}  // namespace tilewright::kernels
