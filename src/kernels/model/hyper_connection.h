// Contract of the hyper-connections' two kernels: the streams around a sub-layer.
#pragma once

#include "kernels/exchange/peer_reduce.h"

#include <cstdint>

namespace tilewright::kernels {

inline constexpr int kHyperStreams = 4;
inline constexpr int kHyperMixRows = 24;  ///< pre 4, post 4, comb 4 x 4
inline constexpr int kHyperHeadRows = 4;  ///< pre alone

/// x'_k = post_k * (f + g) + sum_j comb[j, k] * x_j, rounded to the streams' type, and of x' a part
/// of the dot products with the rows of fn and of the sum of squares: that of kHyperSliceColumns
/// columns of all four streams.
///
/// Without `f`, x' = x and nothing is written but the parts; without `fn` there are no parts.
struct HyperMergeParams {
  const void* streams;  ///< x [tokens, 4, hidden] bf16 or f32
  void* merged;         ///< x', may be `streams`
  const void *f, *g;    ///< [tokens, hidden] results of the sub-layer, or null
  const float* mix;     ///< [tokens, 24], what the sub-layer before was given
  const float* fn;      ///< [rows, 4 * hidden] or null
  float* parts;         ///< [slices, tokens, kHyperPartStride]: dot products, sum of squares
  std::int64_t f_stride, g_stride;    ///< elements, multiples of 4
  std::int32_t tokens, hidden, rows;  ///< hidden % 4 == 0; rows of fn: 24 or 4
  std::int32_t tiles;                 ///< of kHyperMergeTokens tokens, of a CTA
  bool is_f_f32, is_g_f32;            ///< else bf16
};

inline constexpr int kHyperSliceColumns = 128;
inline constexpr int kHyperMergeTokens = 16;    ///< of a tile
inline constexpr int kHyperMergeThreads = 256;  ///< a warp for each 16 columns
/// Floats of a token in a part: the dot products, then at kHyperSquares the sum of squares.
inline constexpr int kHyperPartStride = 28;
inline constexpr int kHyperSquares = 24;
/// Entries hyper_merge_bf16, hyper_merge_f32: grid (ceil(hidden / kHyperSliceColumns) *
/// ceil(tokens / (tiles * kHyperMergeTokens))), slices of the same tokens beside each other.

/// m = dot products * rsqrt(mean of squares + norm_eps)
/// pre_i = sigmoid(m_i s_0 + b_i) + eps, post_i = 2 sigmoid(m_(4+i) s_1 + b_(4+i)),
/// comb = Sinkhorn(m_(8+4j+k) s_2 + b_(8+4j+k)): softmax of the rows, + eps, and `iterations`
/// divisions of the columns by their sum + eps, with one of the rows between each two
/// y = sum_i pre_i x_i,  out = y * rsqrt(mean(y^2) + norm_eps) * weight, rounded once
struct HyperPreParams {
  const void* streams;          ///< x [tokens, 4, hidden] bf16 or f32
  const float* parts;           ///< [slices, tokens, kHyperPartStride]
  const float *base, *scale;    ///< [24], [3]; of a head [4], [1]
  const std::uint16_t* weight;  ///< bf16 [hidden]
  float* mix;                   ///< [tokens, 24], of a head [tokens, 4]: pre, post, comb
  std::uint16_t* out;           ///< bf16 [tokens, hidden]
  std::int64_t out_stride;      ///< elements, a multiple of 4
  std::int32_t tokens, hidden, slices, iterations;
  float eps, norm_eps;
  bool is_head;
};

inline constexpr int kHyperPreThreads = 288;  ///< eight warps for columns, one for Sinkhorn
/// Entries hyper_pre_bf16, hyper_pre_f32: grid (tokens).
inline constexpr int kHyperMaxHidden = 8192;

/// Ranks whose results are added up before they are merged: f + g of every rank, in fp32, in the
/// order of the ranks. Memory of a rank: words
/// [kPeerBuffers][ranks][kHyperConnectTokens][hidden / 4] of 16 bytes, then for every CTA the
/// number of its buffer, 4 bytes; all preset to kPeerEmpty. See exchange/peer_reduce.h.
struct HyperPeers {
  void* memory[kPeerRanks];  ///< of every rank, as this device reaches it
  const std::uint32_t* given_up;
  std::int32_t rank, ranks;  ///< ranks: 1 or less: there are none
};

/// logits[t, e] = alpha * sum over c of out[t, c] * w[e, c], out as it is stored. Packed bf16
/// weights (packed_weight.h) of `bricks` bricks of rows; null: there is no router.
struct HyperRouter {
  const std::uint8_t* weights;
  float* logits;  ///< rows of logits_stride numbers, at least 16 * bricks
  std::int64_t logits_stride;
  std::int32_t bricks;  ///< at most kHyperRouterBricks
  float alpha;
};
inline constexpr int kHyperRouterBricks = 24;  ///< of 16 experts
/// Every CTA has whole blocks of K of the router.
constexpr bool is_router_width(std::int64_t hidden) {
  return hidden % (16 * 64) == 0;
}

/// Both steps in one launch, for kHyperConnectTokens tokens and streams in bf16. `parts` of both is
/// not used; the merge has all of `fn`.
struct HyperConnectParams {
  HyperMergeParams merge;
  HyperPreParams pre;
  HyperPeers peers;
  HyperRouter router;
};

inline constexpr int kHyperConnectTokens = 2;
inline constexpr int kHyperConnectCtas = 16;      ///< a cluster
inline constexpr int kHyperConnectThreads = 288;  ///< eight warps for columns, one for Sinkhorn
/// Columns of a CTA: the last one of the cluster may have fewer.
constexpr int hyper_connect_columns(std::int64_t hidden) {
  return static_cast<int>((hidden + 4 * kHyperConnectCtas - 1) / (4 * kHyperConnectCtas)) * 4;
}
/// Of all rows of fn, `columns` of them.
constexpr std::uint32_t hyper_connect_fn_bytes(int columns) {
  return static_cast<std::uint32_t>(4 * kHyperMixRows * kHyperStreams * columns);
}
/// fn in fp32, and what a router multiplies in bf16. For hidden sizes to 4096 a projection's CTA
/// fits beside it.
constexpr std::uint32_t hyper_connect_shared_bytes(std::int64_t tokens, std::int64_t hidden) {
  const int columns = hyper_connect_columns(hidden);
  return hyper_connect_fn_bytes(columns) + static_cast<std::uint32_t>(2 * tokens * columns);
}
/// Entry hyper_connect: grid (kHyperConnectCtas), one cluster.

constexpr std::int64_t hyper_peer_words(std::int64_t ranks, std::int64_t hidden) {
  return kPeerBuffers * ranks * kHyperConnectTokens * (hidden / 4);
}
constexpr std::int64_t hyper_peer_bytes(std::int64_t ranks, std::int64_t hidden) {
  return 16 * hyper_peer_words(ranks, hidden) + 4 * kHyperConnectCtas;
}

/// All four streams of a token are its row of the embedding.
struct HyperEmbedParams {
  const std::uint16_t* table;  ///< bf16 [vocab, hidden]
  const std::int32_t* ids;     ///< [tokens]; outside the table: zeros
  void* streams;               ///< [tokens, 4, hidden] bf16 or f32
  std::int32_t tokens, hidden, vocab;
  bool is_f32;
};
inline constexpr int kHyperEmbedThreads = 128;
/// Entry hyper_embed: grid (ceil(hidden / (4 * kHyperEmbedThreads)), tokens).

}  // namespace tilewright::kernels
