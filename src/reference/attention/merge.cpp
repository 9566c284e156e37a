#include "reference/attention/merge.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::reference {

MergedAttention merge_attention(const AttentionMergeParams& params,
                                std::span<const double> part_out,
                                std::span<const double> part_lse) {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  MergedAttention merged;
  merged.out.assign(at(params.lines * params.head_dim), 0);
  merged.magnitude = merged.out;
  merged.lse.assign(at(params.lines), kNothing);
  for (std::int64_t line = 0; line < params.lines; ++line) {
    const auto lse_of = [&](std::int64_t s) { return part_lse[at(s * params.lines + line)]; };
    double top = kNothing, sum = 0;
    for (std::int64_t s = 0; s < params.parts; ++s)
      if (!std::isinf(lse_of(s))) top = std::max(top, lse_of(s));
    if (top == kNothing) continue;
    for (std::int64_t s = 0; s < params.parts; ++s)
      if (!std::isinf(lse_of(s))) sum += std::exp(lse_of(s) - top);
    const double lse = top + std::log(sum);
    double share = 1;
    if (!params.sink.empty())
      share = 1 / (1 + std::exp(params.sink[at(line % params.heads)] - lse));
    merged.lse[at(line)] = lse;
    for (std::int64_t s = 0; s < params.parts; ++s) {
      if (std::isinf(lse_of(s))) continue;
      for (std::int64_t c = 0; c < params.head_dim; ++c) {
        const double x = part_out[at((s * params.lines + line) * params.head_dim + c)];
        merged.out[at(line * params.head_dim + c)] += share * std::exp(lse_of(s) - lse) * x;
        merged.magnitude[at(line * params.head_dim + c)] += std::abs(x);
      }
    }
  }
  return merged;
}

}  // namespace tilewright::reference
