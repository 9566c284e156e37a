// Causal attention with grouped heads, checked against plain loops. With another problem (a
// window, a softcap, packed sequences, e4m3) only the designated initialiser changes.
#include "example.h"

#include <tilewright/attention.h>

constexpr int kLength = 96, kHeads = 4, kKvHeads = 2, kDim = 128;

/// out for query i of head h, added to `row`.
void attend(const float* q, const std::vector<float>& k, const std::vector<float>& v, int i, int g,
            double* row) {
  double sum = 0;
  for (int j = 0; j <= i; ++j) {
    const std::size_t at = (j * kKvHeads + g) * kDim;
    double score = 0;
    for (int c = 0; c < kDim; ++c) score += double{q[c]} * k[at + c];
    const double p = std::exp(score / std::sqrt(kDim));
    sum += p;
    for (int c = 0; c < kDim; ++c) row[c] += p * v[at + c];
  }
  for (int c = 0; c < kDim; ++c) row[c] /= sum;
}

int main() try {
  const tw::Device device = tw::Device::open();
  const tw::Attention attention(device, {.heads = kHeads,
                                         .kv_heads = kKvHeads,
                                         .q_len = kLength,
                                         .kv_len = kLength,
                                         .head_dim = kDim,
                                         .causal = true});
  const auto q = draw(kLength * kHeads * kDim, 1);
  const auto k = draw(kLength * kKvHeads * kDim, 2), v = draw(kLength * kKvHeads * kDim, 3);
  const tw::Buffer device_q = upload_bf16(device, q), device_k = upload_bf16(device, k),
                   device_v = upload_bf16(device, v);
  const tw::Buffer out = poisoned(device, device_q.size_bytes());
  const tw::Buffer workspace = poisoned(device, attention.plan().workspace_bytes);
  attention.run({.q = device_q.data(),
                 .k = device_k.data(),
                 .v = device_v.data(),
                 .out = out.data(),
                 .workspace = workspace.data()});

  std::vector<double> expected(q.size());
  for (int row = 0; row < kLength * kHeads; ++row) {
    const int i = row / kHeads, g = row % kHeads / (kHeads / kKvHeads);
    attend(&q[row * kDim], k, v, i, g, &expected[row * kDim]);
  }
  // Probabilities and out are bf16: 2^-8 of at most 1 each.
  return verdict(attention.plan().kernel, device, download_bf16(out), expected, 0.02);
} catch (const tw::Error& error) {
  return failure(error);
}
