// Float64 reference of the merge of partial results of attention.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

/// L = ln sum_s e^lse_s, out = sum_s e^(lse_s - L) part_s / (1 + e^(sink - L)), over the parts
/// whose lse is not infinite; without any, out = 0 and L = -inf. Everything contiguous: parts
/// [parts, lines, head_dim], lse of parts [parts, lines], where lines are [.., heads].
struct AttentionMergeParams {
  std::int64_t parts = 0, lines = 0, heads = 1, head_dim = 0;
  std::span<const double> sink = {};  ///< [heads], or empty
};

struct MergedAttention {
  std::vector<double> out;        ///< [lines, head_dim]
  std::vector<double> lse;        ///< [lines], without the sink
  std::vector<double> magnitude;  ///< [lines, head_dim] sum over parts of |part|: for error bounds
};

MergedAttention merge_attention(const AttentionMergeParams& params,
                                std::span<const double> part_out, std::span<const double> part_lse);

}  // namespace tilewright::reference
