// A model that is small enough to run in a test, and how far kernels are from float64 on it.
#pragma once

#include "model/checkpoint/make_checkpoint.h"
#include "model/float64/reference_runner.h"
#include "model/kernel_runner/make.h"
#include "model/text/generate.h"

#include <memory>
#include <vector>

namespace tilewright::model {

// Every token has all experts: with random weights their order would hang on the last bit.
inline Config narrow_config() {
  Config c = small_config("flash");
  c.hidden = 128;
  c.heads = 2;
  c.o_rank = 64;
  c.layers = {LayerKind::kWindow, LayerKind::kCsa, LayerKind::kHca};
  c.hash_layers = 1;
  c.index_heads = 2;
  c.index_topk = 4;
  c.experts = 2;
  c.inter = 128;
  c.vocab = 32;
  return c;
}

// As in kernel_runner_test.cpp: roundings between operators, no bound.
inline constexpr double kLargestKl = 1e-3;

inline double kl_of(const Device& device, std::shared_ptr<const Weights> weights) {
  const RunnerOptions options = {.max_tokens = 64};
  const auto kernels = make_kernel_runner(device, weights, options);
  const auto exact = make_reference_runner(weights, options);
  kernels->start(1);
  exact->start(1);
  const std::vector<std::vector<std::int32_t>> text = {{3, 1, 4, 1, 5, 9, 2, 6, 5}};
  return mean_kl(exact->forward(text, LogitRows::kAll), kernels->forward(text, LogitRows::kAll));
}

}  // namespace tilewright::model
