// How much a step of a model reads and computes at the least: what its time is held against.
#pragma once

#include "model/checkpoint/plan_model.h"

#include <cstdint>

namespace tilewright::model {

/// New tokens of a step: as many of each sequence.
struct StepTokensRead {
  std::int64_t sequences = 1;    ///< of this rank; where ranks divide them, all have as many
  std::int64_t tokens = 1;       ///< of each
  std::int64_t start = 0;        ///< position of the first
  std::int64_t logit_rows = -1;  ///< rows that go through the head; -1: one of each sequence
};

/// Of one rank.
struct StepWork {
  double weight_bytes = 0;     ///< each weight that is needed once; experts as expected
  double cache_bytes = 0;      ///< each row of the caches that is looked at, once a sequence
  double fp8_flops = 0;        ///< products with weights of e4m3
  double bf16_flops = 0;       ///< all others
  double exchanged_bytes = 0;  ///< that a rank sends to others

  double bytes() const noexcept { return weight_bytes + cache_bytes; }
  double flops() const noexcept { return fp8_flops + bf16_flops; }
};

/// Of `shape` its sizes of a step are not read.
///
/// Experts   of T tokens, each with k of E chosen alike: a rank's share of them times
///           1 - (1 - k / E)^T is read
/// Caches    of a token at position p, c = p + 1: min(window, c) rows, and min(topk, c / 4) or
///           c / 128 entries; the indexer looks at c / 4 keys
StepWork step_work(const StepShape& shape, const StepTokensRead& tokens);

}  // namespace tilewright::model
