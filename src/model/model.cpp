#include "model/model.h"

#include "base/error.h"

#include <algorithm>

namespace tilewright::model {

Logits Runner::draft(std::span<const std::vector<std::int32_t>> /*next*/,
                     std::span<const std::int64_t> /*logit_rows*/) {
  fail(ErrorKind::kUnsupported,
       "model: draft() without a draft layer; expected RunnerOptions::has_draft, and weights that "
       "have one");
}

std::vector<std::int32_t> Runner::run_and_draw(
    std::span<const std::vector<std::int32_t>> /*tokens*/, std::span<const DrawnRows> /*rows*/) {
  fail(ErrorKind::kUnsupported,
       "model: run_and_draw() of a runner that gives logits alone; expected one that can_draw()");
}

std::vector<std::int32_t> Runner::draft_and_draw(
    std::span<const std::vector<std::int32_t>> /*next*/, std::span<const std::int64_t> /*rows*/) {
  fail(ErrorKind::kUnsupported,
       "model: draft_and_draw() of a runner that gives logits alone; expected one that can_draw()");
}

Logits Runner::forward(std::span<const std::vector<std::int32_t>> tokens, LogitRows rows) {
  std::vector<std::int64_t> counts;
  for (const auto& list : tokens) {
    const auto count = static_cast<std::int64_t>(list.size());
    counts.push_back(rows == LogitRows::kAll ? count : std::min<std::int64_t>(1, count));
  }
  return run(tokens, counts);
}

}  // namespace tilewright::model
