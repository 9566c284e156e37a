// Contract of the hyper-connections' two kernels: the streams around a sub-layer.
#pragma once

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
