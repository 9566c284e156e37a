// Contract of the forward attention kernels: one set of arguments for every rung of the ladder.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// Distances between neighbours, in elements; head_dim is contiguous.
struct AttentionStrides {
  std::int64_t batch, row, head;
};

/// out[b,i,h,:] = sum_j p_j v[b,j,g,:], p = softmax over the visible keys j of
/// s_j = scale * q[b,i,h,:] . k[b,j,g,:], g = h / (heads / kv_heads). Mask,
/// softcap, sink and lse (natural log, sink excluded) are as in reference/attention/attention.h.
///
/// Maps (from K3 up): 4-D [batch, head, row, head_dim], strides multiples of 16 bytes; swizzle
/// 128B and boxes of 64 elements from K4.1 up, none and boxes of head_dim elements in K3. Rows of a
/// box: those of a warpgroup (q, out) or a tile of keys (k, v). Packed sequences are one batch
/// whose rows are all tokens. A rung reads only what it supports: its header says what that is.
struct AttentionParams {
  alignas(64) std::uint8_t q_map[128];  ///< the driver's opaque CUtensorMap
  alignas(64) std::uint8_t k_map[128];
  alignas(64) std::uint8_t v_map[128];
  alignas(64) std::uint8_t out_map[128];
  const void *q, *k, *v;
  void* out;                  ///< rows 16-byte aligned
  float* lse;                 ///< or null
  const float* sink;          ///< [heads] natural logarithms, or null
  const std::int32_t* cu_q;   ///< [batch + 1] first rows of packed sequences, or null
  const std::int32_t* cu_kv;  ///< the same for keys
  float* scores;              ///< K1: [batch, heads, kv_len, q_len]
  std::uint32_t* next_tile;   ///< K6, K7: [1], starts at 0: tiles are drawn; null: dealt in turn
  AttentionStrides q_strides, k_strides, v_strides, out_strides;
  std::int64_t lse_batch_stride, lse_head_stride;  ///< elements; rows are adjacent
  std::int32_t batch, heads, kv_heads;
  std::int32_t q_len, kv_len;      ///< of every sequence; of the longest if packed
  std::int32_t head_dim, q_tiles;  ///< q_tiles: of the longest sequence
  std::int32_t section_heads;      ///< K6: (batch, head) pairs whose tiles are dealt longest first
  std::int32_t window_left, window_right;  ///< keys seen before and after; kUnboundedWindow for all
  float scale_log2;        ///< scale * log2 e; softcap * log2 e if there is a softcap
  float softcap_scale;     ///< 2 log2 e * scale / softcap, or 0
  std::int32_t value_dim;  ///< of v and out
};

inline constexpr std::int32_t kUnboundedWindow = 1 << 30;

/// How a kernel cuts the problem, and what a launch of it needs.
struct AttentionTile {
  int queries;         ///< of a CTA
  int keys;            ///< of a step
  int box_queries;     ///< rows of the boxes of q_map and out_map
  int threads;         ///< of a CTA
  int shared_bytes;    ///< dynamic
  bool is_persistent;  ///< grid = (SMs); else (tiles, heads, batch)
};

inline constexpr int kWarpgroupRows = 64;  ///< queries of a warpgroup's product

/// Of a persistent kernel with `consumers` warpgroups, and one that loads.
constexpr AttentionTile persistent_tile(int consumers, int keys, int shared_bytes) {
  return {consumers * kWarpgroupRows, keys,         kWarpgroupRows,
          (consumers + 1) * 128,      shared_bytes, true};
}

}  // namespace tilewright::kernels
