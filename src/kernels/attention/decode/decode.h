// Contract of flash decode: a few queries a sequence against a long cache of keys and values.
#pragma once

#include "base/fast_divisor.h"

#include <cstdint>

namespace tilewright::kernels {

/// Keys and values are split in pieces of this many keys.
inline constexpr int kDecodePieceKeys = 16;
inline constexpr int kDecodeMaxCluster = 8;
inline constexpr std::int32_t kDecodeUnbounded = 1 << 30;  ///< a window, or chunk, of all keys

/// Where a head's row of a key is: k + page * page_stride + slot * row_stride + head * head_stride,
/// v likewise; bytes, multiples of 16. Key j of sequence b is slot j % page_size of page
/// block_table[b * table_stride + j / page_size], or of page b if there is no table. An entry that
/// is not below num_pages is not read.
struct DecodeCache {
  std::uint8_t *k, *v;
  std::int64_t page_stride, row_stride, head_stride;
  const std::int32_t* block_table;
  std::int64_t table_stride;  ///< elements
  std::int32_t page_size, num_pages;
  std::int32_t capacity;  ///< keys that a sequence has room for; lengths beyond count as this
  FastDivisor page_divisor;
};

/// Dequantisation scales, at [b * batch + h * head]; null: 1.
struct DecodeDescale {
  const float *k, *v;
  std::int64_t batch, head;
};

struct DecodeStrides {
  std::int64_t batch, row, head;  ///< elements
};

/// How the work is scheduled; every CTA computes its own from the lengths. A tile is one
/// sequence's rows of one KV head (as many of them as a kernel takes at a time); its pieces are
/// those with keys that any row sees, but at least one.
enum class DecodeDeal : std::int32_t {
  kAuto,   ///< what is expected to end first: kAligned or kBalanced
  kFixed,  ///< every tile in `splits` splits: results of a sequence depend on nothing else
};

/// out[b,i,h,:] = sum_j p_j v[b,j,g,:], p = softmax over the visible keys j of
/// s_j = scale * q[b,i,h,:] . k[b,j,g,:], g = h / (heads / kv_heads). Sequence b has
/// n = min(lengths[b] + added, capacity) keys, n < 0 counting as 0; query i stands at position
/// n - q_len + i and sees the keys from `window_left` before it on, up to itself if is_causal.
///
/// Rows of a tile are r = i * (heads / kv_heads) + (h % (heads / kv_heads)).
struct DecodeParams {
  const void* q;
  void* out;
  float* lse;                   ///< [batch, heads, q_len] or null
  const float* sink;            ///< [heads] or null
  const std::int32_t* lengths;  ///< [batch]
  DecodeCache cache;
  DecodeDescale descale;
  DecodeStrides q_strides, out_strides;  ///< multiples of 8
  std::int32_t batch, q_len, heads, kv_heads;
  std::int32_t group;        ///< heads / kv_heads
  std::int32_t rows;         ///< of a tile, as the entry's name says
  std::int32_t m_tiles;      ///< tiles of a (sequence, KV head): ceil(group * q_len / rows)
  std::int32_t added;        ///< keys beyond lengths
  std::int32_t window_left;  ///< kDecodeUnbounded: all
  std::int32_t is_causal;
  std::int32_t q_is_f16;  ///< q and out are f16, else bf16
  float scale_log2;       ///< scale * log2 e; softcap * log2 e if there is a softcap
  float softcap_scale;    ///< 2 log2 e * scale / softcap, or 0
  /// Expected lengths, read before the preceding kernels end; checked afterwards.
  const std::int32_t* guess;
  std::int32_t ahead_keys;  ///< that a CTA prefetches by then; 0: no speculative prologue
  DecodeDeal deal;
  std::int32_t splits;       ///< kFixed
  std::int32_t groups;       ///< clusters of the attending kernel, of CTAs that share a segment
  std::int32_t tile_cost;    ///< of a tile or a part of one beside its pieces, in pieces
  std::int32_t least_share;  ///< pieces of a group below which cutting does not pay
  float merge_cost;          ///< of a part of a tile for the group that merges all, in pieces
  float* partial_out;        ///< [slot, rows, head_dim], 16-byte aligned
  float* partial_sums;       ///< [slot, rank, rows, 2]: reference in units of log2, sum by it
  /// [slot, rank] counter_tag + the number of stored splits of the tile with that first slot, of
  /// the dimensions that CTA `rank` of a cluster merges. A counter with another tag is 0: the
  /// workspace needs no preparation. The last CTA merges all splits, in order, and leaves 0.
  std::uint64_t* counters;
  std::uint64_t counter_tag;  ///< a multiple of kDecodeMaxParts, else random
  FastDivisor group_divisor;
  /// Entries ..._tma: the driver's opaque CUtensorMap of the caches as bytes, [page, head, slot,
  /// head_dim], in boxes of a piece's keys and up to 128 bytes, swizzled over the bytes of a row.
  alignas(64) std::uint8_t k_map[128];
  alignas(64) std::uint8_t v_map[128];
};

/// Of entries ..._any: rows may be narrower than what they multiply, and a query may see the keys
/// of its own chunk alone, those whose position divided by `chunk` is what its own one is.
struct DecodeAnyParams : DecodeParams {
  std::int32_t head_dim;   ///< elements of a row, a multiple of 8 up to the entry's
  std::int32_t row_bytes;  ///< of the caches, that many elements
  std::int32_t chunk;      ///< keys; kDecodeUnbounded: all are one chunk
  FastDivisor chunk_divisor;
};

inline constexpr std::uint64_t kDecodeMaxParts = 1 << 16;

enum class DecodeKv { kBf16, kF16, kE4m3 };
constexpr int decode_kv_bytes(DecodeKv kv) {
  return kv == DecodeKv::kE4m3 ? 1 : 2;
}

/// Bytes of a box's row.
constexpr int decode_box_bytes(int row_bytes) {
  return row_bytes < 128 ? row_bytes : 128;
}

/// Segments that a CTA has in shared memory at a time, and what they and a flag take.
inline constexpr int kDecodeAgenda = 4;
inline constexpr int kDecodeAgendaBytes = 384;

/// Shared memory that each of so many CTAs of an SM may have, beside the 1 KB that a CTA
/// costs beyond its request.
constexpr int decode_max_shared(int residents) {
  return 228 * 1024 / residents - 1024;
}

}  // namespace tilewright::kernels
