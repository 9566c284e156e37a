// Which CTA works on which tile of queries: one CTA per multiprocessor takes tiles until none is left.
#pragma once

#include "kernels/attention/attention.h"
#include "ptx/warp_roles.h"
#include "tile/attention_mask.h"

#include <cstdint>

namespace tilewright::tile {

/// A tile of queries of one head.
struct AttentionWork {
  std::int32_t q_tile, head, batch;

  /// Tile number `index` of all: sections of (batch, head) pairs, so that the keys and values of a
  /// section stay in the L2 cache; in a section the last queries first, which under a causal mask
  /// see the most keys (longest first, so that no long tile starts when others are done).
  __device__ AttentionWork(const kernels::AttentionParams& params, std::int32_t index) {
    const std::int32_t pairs = params.batch * params.heads;
    const std::int32_t per_section = params.section_heads * params.q_tiles;
    const std::int32_t section = index / per_section, inside = index % per_section;
    const std::int32_t first = section * params.section_heads;
    const std::int32_t width = min(params.section_heads, pairs - first);
    const std::int32_t pair = first + inside % width;
    q_tile = params.q_tiles - 1 - inside / width;
    head = pair % params.heads;
    batch = pair / params.heads;
  }
};

__device__ inline AttentionSequence find_sequence(const kernels::AttentionParams& params,
                                                  std::int32_t batch) {
  AttentionSequence s = {0, params.q_len, 0, params.kv_len};
  if (params.cu_q != nullptr) {
    s.q_begin = ptx::uniform(params.cu_q[batch]);
    s.q_len = ptx::uniform(params.cu_q[batch + 1]) - s.q_begin;
  }
  if (params.cu_kv != nullptr) {
    s.kv_begin = ptx::uniform(params.cu_kv[batch]);
    s.kv_len = ptx::uniform(params.cu_kv[batch + 1]) - s.kv_begin;
  }
  return s;
}

}  // namespace tilewright::tile
