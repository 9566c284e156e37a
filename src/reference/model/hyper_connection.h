// Float64 reference of hyper-connections (mHC): several residual streams around every sub-layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

struct HyperParams {
  int64_t tokens = 0;
  int64_t streams = 4;
  int64_t hidden = 0;
  int64_t sinkhorn_iters = 20;
  double eps = 1e-6;       ///< of the weights and of Sinkhorn's divisions
  double norm_eps = 1e-6;  ///< added to the mean square of a token's streams
};

struct HyperMix {
  std::vector<double> pre;   ///< [tokens, streams]
  std::vector<double> post;  ///< [tokens, streams], the factor 2 included
  std::vector<double> comb;  ///< [tokens, streams, streams], C[j,k] after Sinkhorn
};

/// m = (vec(x) . fn^T) / sqrt(mean(vec(x)^2) + norm_eps), and with n = streams
///
///     pre[i]  = sigmoid(m[i] * scale[0] + base[i]) + eps
///     post[i] = 2 sigmoid(m[n + i] * scale[1] + base[n + i])
///     C[j,k]  = sinkhorn(m[2n + n j + k] * scale[2] + base[2n + n j + k])
///
/// Shapes   x [tokens, streams, hidden]; fn [2n + n n, n * hidden]; base [2n + n n]; scale [3]
/// Layout   contiguous
/// Errors   InvalidArgument if an array does not have its shape
/// Thread   safe
/// Source   DeepSeek-V4 reference model; mHC, arXiv 2512.24880
HyperMix hyper_mix(const HyperParams& params, std::span<const double> x, std::span<const double> fn,
                   std::span<const double> base, std::span<const double> scale);

/// C = softmax of every row + eps, then columns are divided by (sum + eps); then iters - 1 times
/// rows and columns in turn. In place, one [n, n] matrix.
void sinkhorn(std::span<double> c, int64_t n, int64_t iters, double eps);

/// y[t,:] = sum_i pre[t,i] * x[t,i,:]
std::vector<double> hyper_pre(const HyperParams& params, std::span<const double> x,
                              std::span<const double> pre);

/// x'[t,k,:] = post[t,k] * f[t,:] + sum_j C[t,j,k] * x[t,j,:]: the FIRST index of C is summed
/// Shapes   x, result [tokens, streams, hidden]; f [tokens, hidden], the sub-layer's output
std::vector<double> hyper_post(const HyperParams& params, std::span<const double> x,
                               std::span<const double> f, const HyperMix& mix);

/// The weights of the final head: sigmoid(m[i] * scale[0] + base[i]) + eps.
/// Shapes   fn [streams, streams * hidden]; base [streams]; scale [1]; result [tokens, streams]
std::vector<double> hyper_head_mix(const HyperParams& params, std::span<const double> x,
                                   std::span<const double> fn, std::span<const double> base,
                                   std::span<const double> scale);

}  // namespace tilewright::reference
