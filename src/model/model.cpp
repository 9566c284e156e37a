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

Logits Runner::forward(std::span<const std::vector<std::int32_t>> tokens, LogitRows rows) {
  std::vector<std::int64_t> counts;
  for (const auto& list : tokens) {
    const auto count = static_cast<std::int64_t>(list.size());
    counts.push_back(rows == LogitRows::kAll ? count : std::min<std::int64_t>(1, count));
  }
  return run(tokens, counts);
}

}  // namespace tilewright::model
