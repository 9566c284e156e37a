// DeepSeek-V4's attention: each token sees the rows of its list, which are key and value in one.
// Checked against plain loops.
#include "example.h"

#include <cstdint>

#include <tilewright/sparse_attention.h>

constexpr int kTokens = 3, kHeads = 16, kRows = 300, kTopk = 96, kDim = 512;

int main() try {
  const tw::Device device = tw::Device::open();
  const tw::SparseAttention attention(device,
                                      tw::sparse_prefill_problem(kTokens, kHeads, kRows, kTopk));
  const auto q = draw(kTokens * kHeads * kDim, 1), rows = draw(kRows * kDim, 2);
  std::vector<std::int32_t> lists(kTokens * kTopk);
  for (int i = 0; i < kTokens * kTopk; ++i)
    lists[i] = i % 7 == 6 ? -1 : i * 37 % kRows;  // -1: none
  const tw::Buffer device_q = upload_bf16(device, q), device_rows = upload_bf16(device, rows),
                   device_lists = tw::Buffer::from(device, lists);
  const tw::Buffer out = poisoned(device, device_q.size_bytes());
  const tw::Buffer lse = poisoned(device, kTokens * kHeads * sizeof(float)),
                   max_logits = poisoned(device, kTokens * kHeads * sizeof(float));
  const tw::Buffer workspace = poisoned(device, attention.plan().workspace_bytes);
  attention.run(
      {.q = device_q.data(),
       .window = {.pages = device_rows.data(), .indices = device_lists.as<std::int32_t>()},
       .out = out.data(),
       .lse = lse.as<float>(),
       .max_logits = max_logits.as<float>(),
       .workspace = workspace.data()});

  std::vector<double> expected(q.size());
  for (int row = 0; row < kTokens * kHeads; ++row) {
    double sum = 0;
    for (int j = 0; j < kTopk; ++j) {
      const std::int32_t at = lists[row / kHeads * kTopk + j];
      if (at < 0) continue;
      double score = 0;
      for (int c = 0; c < kDim; ++c) score += double{q[row * kDim + c]} * rows[at * kDim + c];
      const double p = std::exp(score / std::sqrt(kDim));
      sum += p;
      for (int c = 0; c < kDim; ++c) expected[row * kDim + c] += p * rows[at * kDim + c];
    }
    for (int c = 0; c < kDim; ++c) expected[row * kDim + c] /= sum;
  }
  // Probabilities and out are bf16: 2^-8 of at most 1 each.
  return verdict(attention.plan().kernel, device, download_bf16(out), expected, 0.02);
} catch (const tw::Error& error) {
  return failure(error);
}
