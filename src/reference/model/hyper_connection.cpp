#include "reference/model/hyper_connection.h"

#include "reference/dot.h"
#include "reference/shape.h"

#include <algorithm>
#include <cmath>

namespace tilewright::reference {
namespace {

double sigmoid(double z) {
  return 1 / (1 + std::exp(-z));
}

// vec(x) . fn^T of every token, divided by the root mean square of its streams.
std::vector<double> normalized_mix(const HyperParams& p, std::span<const double> x,
                                   std::span<const double> fn, int64_t outputs) {
  const int64_t n = p.streams * p.hidden;
  require_at_least("hyper_connection", "streams * hidden", n, 1);
  require_shape("hyper_connection", "x", x.size(), "[tokens, streams, hidden]",
                {p.tokens, p.streams, p.hidden});
  require_shape("hyper_connection", "fn", fn.size(), "[outputs, streams * hidden]", {outputs, n});
  std::vector<double> m;
  for (int64_t t = 0; t < p.tokens; ++t) {
    const double* row = x.data() + t * n;
    const double rms = std::sqrt(dot(row, row, n) / static_cast<double>(n) + p.norm_eps);
    for (int64_t i = 0; i < outputs; ++i) m.push_back(dot(row, &fn[i * n], n) / rms);
  }
  return m;
}

}  // namespace

void sinkhorn(std::span<double> c, int64_t n, int64_t iters, double eps) {
  require_shape("sinkhorn", "c", c.size(), "[n, n]", {n, n});
  require_at_least("sinkhorn", "iters", iters, 1);
  const auto divide = [&](int64_t first, int64_t step) {  // n elements by their sum + eps
    double sum = eps;
    for (int64_t i = 0; i < n; ++i) sum += c[first + i * step];
    for (int64_t i = 0; i < n; ++i) c[first + i * step] /= sum;
  };
  for (int64_t j = 0; j < n; ++j) {
    const auto row = c.subspan(j * n, n);
    const double max = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (double& value : row) sum += value = std::exp(value - max);
    for (double& value : row) value = value / sum + eps;
  }
  for (int64_t k = 0; k < n; ++k) divide(k, n);
  for (int64_t i = 1; i < iters; ++i) {
    for (int64_t j = 0; j < n; ++j) divide(j * n, 1);
    for (int64_t k = 0; k < n; ++k) divide(k, n);
  }
}

HyperMix hyper_mix(const HyperParams& p, std::span<const double> x, std::span<const double> fn,
                   std::span<const double> base, std::span<const double> scale) {
  const int64_t n = p.streams, outputs = 2 * n + n * n;
  require_shape("hyper_connection", "base", base.size(), "[outputs]", {outputs});
  require_shape("hyper_connection", "scale", scale.size(), "[3]", {3});
  const auto m = normalized_mix(p, x, fn, outputs);
  HyperMix mix;
  for (int64_t t = 0; t < p.tokens; ++t) {
    const double* row = m.data() + t * outputs;
    for (int64_t i = 0; i < n; ++i) {
      mix.pre.push_back(sigmoid(row[i] * scale[0] + base[i]) + p.eps);
      mix.post.push_back(2 * sigmoid(row[n + i] * scale[1] + base[n + i]));
    }
    std::vector<double> c;
    for (int64_t i = 2 * n; i < outputs; ++i) c.push_back(row[i] * scale[2] + base[i]);
    sinkhorn(c, n, p.sinkhorn_iters, p.eps);
    mix.comb.insert(mix.comb.end(), c.begin(), c.end());
  }
  return mix;
}

std::vector<double> hyper_pre(const HyperParams& p, std::span<const double> x,
                              std::span<const double> pre) {
  require_shape("hyper_connection", "x", x.size(), "[tokens, streams, hidden]",
                {p.tokens, p.streams, p.hidden});
  require_shape("hyper_connection", "pre", pre.size(), "[tokens, streams]", {p.tokens, p.streams});
  std::vector<double> y(p.tokens * p.hidden, 0);
  for (int64_t row = 0; row < p.tokens * p.streams; ++row) {
    double* out = y.data() + row / p.streams * p.hidden;
    for (int64_t c = 0; c < p.hidden; ++c) out[c] += pre[row] * x[row * p.hidden + c];
  }
  return y;
}

std::vector<double> hyper_post(const HyperParams& p, std::span<const double> x,
                               std::span<const double> f, const HyperMix& mix) {
  const int64_t n = p.streams;
  require_shape("hyper_connection", "x", x.size(), "[tokens, streams, hidden]",
                {p.tokens, n, p.hidden});
  require_shape("hyper_connection", "f", f.size(), "[tokens, hidden]", {p.tokens, p.hidden});
  require_shape("hyper_connection", "post", mix.post.size(), "[tokens, streams]", {p.tokens, n});
  require_shape("hyper_connection", "comb", mix.comb.size(), "[tokens, streams, streams]",
                {p.tokens, n, n});
  std::vector<double> out(x.size(), 0);
  for (int64_t t = 0; t < p.tokens; ++t) {
    for (int64_t k = 0; k < n; ++k) {
      double* to = out.data() + (t * n + k) * p.hidden;
      for (int64_t c = 0; c < p.hidden; ++c) to[c] = mix.post[t * n + k] * f[t * p.hidden + c];
      for (int64_t j = 0; j < n; ++j) {
        const double weight = mix.comb[(t * n + j) * n + k];
        const double* from = x.data() + (t * n + j) * p.hidden;
        for (int64_t c = 0; c < p.hidden; ++c) to[c] += weight * from[c];
      }
    }
  }
  return out;
}

std::vector<double> hyper_head_mix(const HyperParams& p, std::span<const double> x,
                                   std::span<const double> fn, std::span<const double> base,
                                   std::span<const double> scale) {
  require_shape("hyper_connection", "base", base.size(), "[streams]", {p.streams});
  require_shape("hyper_connection", "scale", scale.size(), "[1]", {1});
  std::vector<double> weights = normalized_mix(p, x, fn, p.streams);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = sigmoid(weights[i] * scale[0] + base[i % p.streams]) + p.eps;
  return weights;
}

}  // namespace tilewright::reference
