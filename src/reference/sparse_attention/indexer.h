// Float64 reference of DeepSeek-V4's lightning indexer: which compressed entries a token attends.
#pragma once

#include "formats/block_format.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

/// The transform of both sides, after rotation: Hadamard of `dim` with the factor dim^-0.5, without
/// random signs. With rounding: input to bf16, result to bf16, then the blocks of `format`
/// (mxfp4_ceil for FP4; nullptr: none).
/// Shapes   x, result [rows, dim]
/// Errors   as hadamard()
/// Source   DeepSeek-V4 reference model
std::vector<double> indexer_transform(int64_t dim, std::span<const double> x,
                                      bool round_bf16 = false, const BlockFormat* format = nullptr);

struct IndexerParams {
  int64_t tokens = 0;
  int64_t heads = 64;
  int64_t dim = 128;
};

/// The factor of the head weights, w = factor * weights_proj x: dim^-0.5 * heads^-0.5.
double indexer_weight_factor(const IndexerParams& params);

/// score[t,j] = sum_h relu(q[t,h,:] . k[j,:]) * w[t,h] for j < visible[t], else -inf. w may be
/// negative; the relu comes before it.
/// Shapes   q [tokens, heads, dim]; k [entries, dim]; w [tokens, heads] with the factor; visible
///          [tokens]; result [tokens, entries]
/// Layout   contiguous
/// Errors   InvalidArgument if an array does not have its shape
/// Thread   safe
/// Source   DeepSeek-V4 reference model
std::vector<double> indexer_scores(const IndexerParams& params, std::span<const double> q,
                                   std::span<const double> k, std::span<const double> w,
                                   std::span<const int32_t> visible);

/// The entries of the topk largest scores of every token, ascending, then -1. Equal scores: the
/// lower entry first. A score of -inf or NaN is never chosen.
/// Shapes   scores [tokens, entries]; result [tokens, topk]
/// Errors   InvalidArgument if an array does not have its shape or topk < 0
std::vector<int32_t> indexer_select(int64_t tokens, std::span<const double> scores, int64_t topk);

}  // namespace tilewright::reference
