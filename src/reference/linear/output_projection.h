// Float64 reference of DeepSeek-V4's grouped low-rank output projection.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

struct OutputProjectionParams {
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t head_dim = 512;
  int64_t groups = 8;  ///< divides heads: group g has the heads / groups consecutive heads g * ...
  int64_t rank = 1024;
  int64_t hidden = 0;
};

/// z[t,g,:] = wo_a[g] . o[t, heads of group g],  y[t,:] = wo_b . flatten(z[t]), groups outermost
/// Shapes   o [tokens, heads, head_dim], after the inverse rotation (rope() with kInverse at the
///          query's position); wo_a [groups, rank, heads / groups * head_dim];
///          wo_b [hidden, groups * rank]; result [tokens, hidden]
/// Layout   contiguous
/// Errors   InvalidArgument if an array does not have its shape or groups does not divide heads
/// Thread   safe
/// Source   DeepSeek-V4 reference model
std::vector<double> output_projection(const OutputProjectionParams& params,
                                      std::span<const double> o, std::span<const double> wo_a,
                                      std::span<const double> wo_b);

/// The first half alone: z [tokens, groups * rank].
std::vector<double> grouped_projection(const OutputProjectionParams& params,
                                       std::span<const double> o, std::span<const double> wo_a);

}  // namespace tilewright::reference
