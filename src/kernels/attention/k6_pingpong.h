// Contract of K6.
#pragma once

#include "kernels/attention/attention.h"

namespace tilewright::kernels {

struct K6Shape {
  int warpgroups, keys, q_stages;
};
constexpr K6Shape k6_shape(int head_dim) {
  if (head_dim == 64) return {3, 128, 2};
  if (head_dim == 128) return {2, 128, 1};
  return {2, 80, 1};
}

constexpr AttentionTile k6_tile(int head_dim) {
  const K6Shape shape = k6_shape(head_dim);
  return {.queries = shape.warpgroups * 64,
          .keys = shape.keys,
          .box_queries = 64,
          .threads = (shape.warpgroups + 1) * 128,
          .shared_bytes = shape.q_stages * shape.warpgroups * 64 * head_dim * 2 +
                          4 * shape.keys * head_dim * 2 + 512,
          .is_persistent = true};
}

}  // namespace tilewright::kernels
