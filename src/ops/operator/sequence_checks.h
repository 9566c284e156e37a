// Checks of what several operators take: tokens of sequences, and their pages.
#pragma once

#include "tilewright/cache_writer.h"

#include "ops/operator/arguments.h"

namespace tilewright::ops {

inline void check_sequences(const ArgumentChecks& checks, const SequenceBatch& s) {
  constexpr std::int64_t kMaxBatch = 65535;
  checks.range("sequences.batch", s.batch, 1, kMaxBatch);
  checks.address("sequences.starts", s.starts, 4);
  if (s.offsets != nullptr) {
    checks.address("sequences.offsets", s.offsets, 4);
  } else {
    checks.range("sequences.q_len", s.q_len, 1);
  }
}

inline void check_table(const ArgumentChecks& checks, const SequencePages& t) {
  checks.range("table.blocks", t.blocks, 1);
  checks.address("table.pages", t.pages, 4);
}

}  // namespace tilewright::ops
