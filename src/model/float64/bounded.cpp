#include "model/float64/bounded.h"

#include "formats/block_scale.h"
#include "reference/error_bound.h"
#include "reference/linear/linear.h"
#include "reference/moe/swiglu.h"
#include "reference/rotation/hadamard.h"
#include "reference/round.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace tilewright::model {

Bounded exactly(std::span<const double> values) {
  return {{values.begin(), values.end()}, Doubles(values.size(), 0.0)};
}

Bounded part(const Bounded& x, std::int64_t first, std::int64_t count) {
  const auto from = static_cast<std::ptrdiff_t>(first), to = from + count;
  return {{x.value.begin() + from, x.value.begin() + to},
          {x.error.begin() + from, x.error.begin() + to}};
}

void append(Bounded& to, const Bounded& from) {
  to.value.insert(to.value.end(), from.value.begin(), from.value.end());
  to.error.insert(to.error.end(), from.error.begin(), from.error.end());
}

namespace {

// sum_c a[c] |b[c]|, as reference::dot() adds.
double dot_with_sizes(const double* a, const double* b, std::int64_t n) {
  constexpr std::int64_t kSums = 8;
  std::array<double, kSums> sums = {};
  std::int64_t c = 0;
  for (; c + kSums <= n; c += kSums)
    for (std::size_t s = 0; s < kSums; ++s)
      sums[s] +=
          a[c + static_cast<std::int64_t>(s)] * std::abs(b[c + static_cast<std::int64_t>(s)]);
  for (; c < n; ++c) sums[0] += a[c] * std::abs(b[c]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

Bounded linear(const Bounded& x, std::span<const double> w, std::int64_t rows) {
  if (rows == 0) return {};
  const auto k = static_cast<std::int64_t>(x.value.size()) / rows;
  const auto n = static_cast<std::int64_t>(w.size()) / k;
  const double growth = reference::tensor_core_error(k) + 32 * kUnit;
  // One sum for both parts of the error: of |w| with e + growth (|x| + e).
  Doubles of_input;
  for (std::size_t i = 0; i < x.value.size(); ++i)
    of_input.push_back(x.error[i] + growth * (std::abs(x.value[i]) + x.error[i]));
  Bounded out = {reference::linear({rows, n, k}, x.value, w),
                 Doubles(static_cast<std::size_t>(rows * n))};
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < rows; ++i)
      out.error[static_cast<std::size_t>(i * n + j)] =
          dot_with_sizes(of_input.data() + i * k, w.data() + j * k, k);
  return out;
}

Bounded rms_norm(const reference::RmsNormParams& p, const Bounded& x,
                 std::span<const double> weight) {
  Bounded out = {reference::rms_norm(p, x.value, weight), Doubles(x.value.size())};
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const auto first = static_cast<std::size_t>(r * p.dim);
    double squares = 0, change = 0;
    for (std::size_t i = first; i < first + static_cast<std::size_t>(p.dim); ++i) {
      const double a = std::abs(x.value[i]), e = x.error[i];
      squares += a * a;
      change += 2 * a * e + e * e;
    }
    const double mean = squares / static_cast<double>(p.dim) + p.eps;
    const double relative_mean = change / static_cast<double>(p.dim) / mean + kChain * kUnit;
    // 1 / sqrt(1 - d) - 1 is at most d for d <= 1/2; of a larger one nothing is known.
    const double of_rms = relative_mean < 0.5 ? relative_mean : 1e30;
    const double relative = of_rms + 4 * kUnit;
    for (std::int64_t i = 0; i < p.dim; ++i) {
      const auto at = first + static_cast<std::size_t>(i);
      const double w = weight.empty() ? 1 : std::abs(weight[static_cast<std::size_t>(i)]);
      const double passed = x.error[at] * w / std::sqrt(mean);
      out.error[at] = passed * (1 + relative) + std::abs(out.value[at]) * relative;
    }
  }
  return out;
}

// A pair (a, b) becomes (a c - b s, b c + a s): two products of factors that fp32 rounded, and a
// sum.
Bounded rope(const reference::RopeParams& p, const Bounded& x,
             std::span<const std::int32_t> positions, std::span<const double> frequencies) {
  Bounded out = {reference::rope(p, x.value, positions, frequencies), x.error};
  const std::int64_t plain = p.head_dim - p.rotary_dim;
  for (std::int64_t row = 0; row < p.tokens * p.heads; ++row) {
    const double position = positions[static_cast<std::size_t>(row / p.heads)];
    for (std::int64_t i = 0; i < p.rotary_dim; i += 2) {
      const auto at = static_cast<std::size_t>(row * p.head_dim + plain + i);
      const double angle = position * frequencies[static_cast<std::size_t>(i / 2)];
      const double c = std::abs(std::cos(angle)), s = std::abs(std::sin(angle));
      const double ea = x.error[at], eb = x.error[at + 1];
      const double size = std::abs(x.value[at]) + std::abs(x.value[at + 1]) + ea + eb;
      out.error[at] = c * ea + s * eb + 4 * kUnit * size;
      out.error[at + 1] = c * eb + s * ea + 4 * kUnit * size;
    }
  }
  return out;
}

Bounded round_to_bf16(const Bounded& x) {
  Doubles low, high;
  for (std::size_t i = 0; i < x.value.size(); ++i) {
    low.push_back(x.value[i] - x.error[i]);
    high.push_back(x.value[i] + x.error[i]);
  }
  Bounded out = {x.value, Doubles(x.value.size())};
  reference::round_to_bf16(low);
  reference::round_to_bf16(high);
  reference::round_to_bf16(out.value);
  for (std::size_t i = 0; i < x.value.size(); ++i)
    out.error[i] = std::max(high[i] - out.value[i], out.value[i] - low[i]);
  return out;
}

Bounded hadamard(std::int64_t dim, const Bounded& x) {
  const auto rows = static_cast<std::int64_t>(x.value.size()) / dim;
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  const double additions = std::log2(static_cast<double>(dim)) + 2;
  Bounded out = {reference::hadamard({rows, dim, scale}, x.value), {}};
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::int64_t i = r * dim; i < (r + 1) * dim; ++i) {
      const auto at = static_cast<std::size_t>(i);
      sum += x.error[at] + additions * kUnit * (std::abs(x.value[at]) + x.error[at]);
    }
    out.error.insert(out.error.end(), static_cast<std::size_t>(dim), sum * scale);
  }
  return out;
}

namespace {

// One channel of an entry: slots with values v and scores s.
struct Slots {
  Doubles value, value_error, score;
  double score_error = 0;
};

// p_t = exp(s_t) / sum: scores off by at most d change every p by a factor exp(2 d) at most; ex2
// and its argument lose 2^-22 and 3 u of the largest difference of scores.
void pool_channel(const Slots& slots, double& value, double& error) {
  const double top = *std::ranges::max_element(slots.score);
  double sum = 0, weighted = 0, magnitude = 0, passed = 0, spread = 0;
  for (std::size_t t = 0; t < slots.score.size(); ++t) {
    const double p = std::exp(slots.score[t] - top);
    sum += p;
    weighted += p * slots.value[t];
    magnitude += p * std::abs(slots.value[t]);
    passed += p * slots.value_error[t];
    if (p > 0x1p-30) spread = std::max(spread, top - slots.score[t]);
  }
  const double off = slots.score_error + 0x1p-22 + 3 * kUnit * spread;
  const double relative =
      std::expm1(2 * off) + (static_cast<double>(slots.score.size()) + 4) * kUnit + 0x1p-28;
  value = weighted / sum;
  error = (passed * (1 + relative) + magnitude * relative) / sum;
}

}  // namespace

Bounded pool(const reference::CompressorParams& p, const Bounded& values, const Bounded& gates,
             std::span<const double> ape, std::int64_t first_token, std::int64_t first,
             std::int64_t count) {
  const std::int64_t width = p.width();
  Bounded out = {Doubles(static_cast<std::size_t>(count * p.dim)),
                 Doubles(static_cast<std::size_t>(count * p.dim))};
  for (std::int64_t j = first; j < first + count; ++j) {
    for (std::int64_t c = 0; c < p.dim; ++c) {
      Slots slots;
      const auto take = [&](std::int64_t token, std::int64_t channel) {
        if (token < 0) return;
        const auto at = static_cast<std::size_t>((token - first_token) * width + channel);
        const double bias = ape[static_cast<std::size_t>(token % p.ratio * width + channel)];
        slots.value.push_back(values.value[at]);
        slots.value_error.push_back(values.error[at]);
        slots.score.push_back(gates.value[at] + bias);
        slots.score_error =
            std::max(slots.score_error, gates.error[at] + kUnit * std::abs(slots.score.back()));
      };
      if (p.overlap)
        for (std::int64_t t = (j - 1) * p.ratio; t < j * p.ratio; ++t) take(t, c);
      for (std::int64_t t = j * p.ratio; t < (j + 1) * p.ratio; ++t)
        take(t, p.overlap ? p.dim + c : c);
      const auto at = static_cast<std::size_t>((j - first) * p.dim + c);
      pool_channel(slots, out.value[at], out.error[at]);
    }
  }
  return out;
}

// |silu'| <= 1.1; clamps do not enlarge errors.
Bounded swiglu(const Bounded& gate, const Bounded& up, double limit, double factor) {
  Bounded out = {reference::swiglu(gate.value, up.value, {.limit = limit}), {}};
  for (std::size_t i = 0; i < gate.value.size(); ++i) {
    const double g = std::min(gate.value[i], limit), u = std::min(std::abs(up.value[i]), limit);
    const double silu = std::abs(g / (1 + std::exp(-g))), of_gate = 1.1 * gate.error[i];
    const double error = of_gate * (u + up.error[i]) + silu * up.error[i];
    out.value[i] *= factor;
    out.error.push_back(std::abs(factor) * (error + 16 * kUnit * (silu * u + error)));
  }
  return out;
}

namespace {

// The codes of a block for every number of the interval lie between those of its ends.
BlockVerdict check_scaled(const BlockFormat& format, std::span<const double> decoded, float scale,
                          std::span<const double> value, std::span<const double> error,
                          float own_scale) {
  const auto quantized = [&](double x, float by) {
    return static_cast<double>(
        decode_element(format, encode_element(format, static_cast<float>(x), by), by));
  };
  BlockVerdict verdict;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const double low = quantized(value[i] - error[i], scale);
    const double high = quantized(value[i] + error[i], scale);
    verdict.undecided += low != high;
    verdict.different += decoded[i] != quantized(value[i], own_scale);
    if (low <= decoded[i] && decoded[i] <= high) continue;
    if (verdict.beyond++ == 0) verdict.first = static_cast<std::int64_t>(i);
  }
  return verdict;
}

}  // namespace

BlockVerdict check_block(const BlockFormat& format, std::span<const double> decoded,
                         const double* scale, std::span<const double> value,
                         std::span<const double> error) {
  double least = 0, most = 0, own = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const double size = std::abs(value[i]);
    least = std::max(least, size - error[i]);
    most = std::max(most, size + error[i]);
    own = std::max(own, size);
  }
  const auto code_of = [&](double amax) {
    return encode(format.scale, ideal_block_scale(format, static_cast<float>(amax)));
  };
  const auto scale_of = [&](std::uint32_t code) {
    return static_cast<float>(decode(format.scale, code));
  };
  const float own_scale = scale_of(code_of(own));
  const std::uint32_t first = code_of(least), last = code_of(most);
  if (scale != nullptr) {
    const auto given = static_cast<float>(*scale);
    BlockVerdict verdict = check_scaled(format, decoded, given, value, error, own_scale);
    verdict.has_scale = scale_of(first) <= given && given <= scale_of(last);
    return verdict;
  }
  BlockVerdict best;
  best.beyond = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t code = first; code <= last && best.beyond > 0; ++code) {
    const auto verdict = check_scaled(format, decoded, scale_of(code), value, error, own_scale);
    if (verdict.beyond < best.beyond) best = verdict;
  }
  return best;
}

}  // namespace tilewright::model
