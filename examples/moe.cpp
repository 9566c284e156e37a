// A mixture of experts with SwiGLU, routed by the caller; checked against plain loops.
#include "example.h"

#include <cstdint>

#include <tilewright/moe.h>

constexpr std::int64_t kTokens = 6, kExperts = 4, kTopk = 2, kHidden = 128, kInter = 64;

/// w x for one expert's weight [n, k].
std::vector<double> product(const std::vector<float>& w, std::int64_t expert, std::int64_t n,
                            const auto* x, std::int64_t k) {
  std::vector<double> out(n);
  for (std::int64_t i = 0; i < n * k; ++i) out[i / k] += double{w[expert * n * k + i]} * x[i % k];
  return out;
}

int main() try {
  const tw::Device device = tw::Device::open();
  const auto x = draw(kTokens * kHidden, 1), w1 = draw(kExperts * kInter * kHidden, 2, 0.25f),
             w3 = draw(kExperts * kInter * kHidden, 3, 0.25f),
             w2 = draw(kExperts * kHidden * kInter, 4, 0.25f);
  const auto experts = [](const std::vector<std::byte>& values, std::int64_t n, std::int64_t k) {
    const auto view = tw::contiguous_view(values.data(), tw::DType::kBF16, {kExperts, n, k});
    return tw::stacked_experts(tw::NumberFormat::kBf16, view, {}, {});
  };
  const auto gate = tw::encode(tw::DType::kBF16, w1), up = tw::encode(tw::DType::kBF16, w3),
             down = tw::encode(tw::DType::kBF16, w2);
  const tw::MoeWeights weights =
      tw::MoeWeights::prepare(device, {experts(gate, kInter, kHidden), experts(up, kInter, kHidden),
                                       experts(down, kHidden, kInter)});
  const tw::Moe moe(weights, {.tokens = kTokens, .topk = kTopk, .out_dtype = tw::DType::kF32});

  std::vector<std::int32_t> ids;
  for (std::int32_t t = 0; t < kTokens; ++t) ids.insert(ids.end(), {t % 4, (t + 1) % 4});
  const tw::Buffer device_x = upload_bf16(device, x), device_ids = tw::Buffer::from(device, ids),
                   shares = tw::Buffer::from(device, std::vector(kTokens * kTopk, 0.5f));
  const tw::Buffer out = poisoned(device, kTokens * kHidden * sizeof(float));
  const tw::Buffer workspace = poisoned(device, moe.plan().workspace_bytes);
  moe.run({.x = device_x.data(),
           .ids = device_ids.as<std::int32_t>(),
           .weights = shares.as<float>(),
           .out = out.data(),
           .workspace = workspace.data()});

  std::vector<double> expected(kTokens * kHidden);
  for (std::int64_t pair = 0; pair < kTokens * kTopk; ++pair) {
    const float* token = &x[pair / kTopk * kHidden];
    std::vector<double> g = product(w1, ids[pair], kInter, token, kHidden);
    const std::vector<double> u = product(w3, ids[pair], kInter, token, kHidden);
    for (std::int64_t i = 0; i < kInter; ++i) g[i] = g[i] / (1 + std::exp(-g[i])) * u[i] / kTopk;
    const std::vector<double> y = product(w2, ids[pair], kHidden, g.data(), kInter);
    for (std::int64_t c = 0; c < kHidden; ++c) expected[pair / kTopk * kHidden + c] += y[c];
  }
  // The inner product and each expert's sum, at most about 2, are rounded to bf16.
  return verdict(moe.plan().kernel, device, out.to_vector<float>(), expected, 0.02);
} catch (const tw::Error& error) {
  return failure(error);
}
