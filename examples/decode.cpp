// Decode attention over a paged cache: three sequences of different lengths with one new query
// each, checked against plain loops.
#include "example.h"

#include <cstdint>

#include <tilewright/attention_decode.h>

constexpr int kBatch = 3, kHeads = 8, kDim = 128, kPage = 64, kPages = 8, kMaxPages = 3;

int main() try {
  const tw::Device device = tw::Device::open();
  // With a fixed number of splits a result does not depend on what else is in the batch.
  const tw::AttentionDecode decode(device, {.batch = kBatch,
                                            .heads = kHeads,
                                            .head_dim = kDim,
                                            .page_size = kPage,
                                            .num_pages = kPages,
                                            .max_pages = kMaxPages,
                                            .splits = 2});
  // Pages of a sequence lie anywhere; -1 stands where it has none.
  const std::vector<std::int32_t> lengths = {150, 64, 1}, table = {5, 0, 7, 2, -1, -1, 3, -1, -1};
  const auto q = draw(kBatch * kHeads * kDim, 1);
  const auto k = draw(kPages * kPage * kDim, 2), v = draw(kPages * kPage * kDim, 3);
  const tw::Buffer device_q = upload_bf16(device, q), device_k = upload_bf16(device, k),
                   device_v = upload_bf16(device, v);
  const tw::Buffer device_lengths = tw::Buffer::from(device, lengths),
                   device_table = tw::Buffer::from(device, table);
  const tw::Buffer out = poisoned(device, device_q.size_bytes());
  const tw::Buffer workspace = poisoned(device, decode.plan().workspace_bytes);
  decode.run({.q = device_q.data(),
              .k_cache = device_k.data(),
              .v_cache = device_v.data(),
              .lengths = device_lengths.as<std::int32_t>(),
              .block_table = device_table.as<std::int32_t>(),
              .out = out.data(),
              .workspace = workspace.data()});

  std::vector<double> expected(q.size());
  for (int row = 0; row < kBatch * kHeads; ++row) {
    const int b = row / kHeads;
    double sum = 0;
    for (int j = 0; j < lengths[b]; ++j) {
      const int at = (table[b * kMaxPages + j / kPage] * kPage + j % kPage) * kDim;
      double score = 0;
      for (int c = 0; c < kDim; ++c) score += double{q[row * kDim + c]} * k[at + c];
      const double p = std::exp(score / std::sqrt(kDim));
      sum += p;
      for (int c = 0; c < kDim; ++c) expected[row * kDim + c] += p * v[at + c];
    }
    for (int c = 0; c < kDim; ++c) expected[row * kDim + c] /= sum;
  }
  // Probabilities and out are bf16: 2^-8 of at most 1 each.
  return verdict(decode.plan().kernel, device, download_bf16(out), expected, 0.02);
} catch (const tw::Error& error) {
  return failure(error);
}
