#include "verify/attention/rows.h"

#include <algorithm>

namespace tilewright::cli {

// (batch, head) pairs with some rows each: few pairs, for the keys of one have to be converted.
std::vector<ExactRow> choose_rows(const AttentionData& data, std::int64_t count,
                                  std::uint64_t seed) {
  const AttentionProblem& p = data.problem;
  const std::int64_t pairs = p.batch * p.heads;
  const std::int64_t total = p.is_packed ? p.heads * p.total_q : pairs * p.q_len;
  std::vector<ExactRow> rows;
  const auto add = [&](std::int64_t pair, std::int64_t row) {
    ExactRow& added = rows.emplace_back();
    added.batch = pair / p.heads;
    added.head = pair % p.heads;
    added.row = row;
    added.first = find_sequence(data, added.batch).q_first;
  };
  if (total <= count) {
    for (std::int64_t pair = 0; pair < pairs; ++pair)
      for (std::int64_t i = 0; i < find_sequence(data, pair / p.heads).q_len; ++i) add(pair, i);
    return rows;
  }
  const std::int64_t chosen_pairs = std::min<std::int64_t>(pairs, 8);
  std::uint64_t state = seed;
  const auto draw = [&](std::int64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(below));
  };
  for (std::int64_t i = 0; i < chosen_pairs; ++i) {
    const std::int64_t pair = (i * pairs + draw(pairs)) / chosen_pairs;
    const std::int64_t q_len = find_sequence(data, pair / p.heads).q_len;
    const std::int64_t per_pair = std::min((count + chosen_pairs - 1) / chosen_pairs, q_len);
    // The first and the last row are where masks and tiles go wrong.
    for (std::int64_t r = 0; r < per_pair; ++r)
      add(pair, r == 0 ? 0 : r == 1 ? q_len - 1 : draw(q_len));
  }
  return rows;
}

VisibleKeys visible_keys(const AttentionData& data, const ExactRow& row) {
  const AttentionProblem& p = data.problem;
  const AttentionSequence sequence = find_sequence(data, row.batch);
  const std::int64_t kv_len = sequence.kv_len, position = row.row + kv_len - sequence.q_len;
  // No window needs to be wider than all positions together; sums of wider ones overflow.
  const std::int64_t widest = kv_len + sequence.q_len;
  const std::int64_t right = p.causal ? 0 : std::min(p.window_right, widest);
  const std::int64_t end =
      std::clamp<std::int64_t>(right < 0 ? kv_len : position + right + 1, 0, kv_len);
  const std::int64_t begin = std::clamp<std::int64_t>(
      p.window_left < 0 ? 0 : position - std::min(p.window_left, widest), 0, end);
  return {begin, end};
}

reference::AttentionResult attend_query(const AttentionData& data, const ExactRow& row,
                                        std::span<const double> q, std::span<const double> k,
                                        std::span<const double> v) {
  const AttentionProblem& p = data.problem;
  std::vector<double> sink;
  if (p.has_sink) sink = {data.sink[static_cast<std::size_t>(row.head)]};
  return reference::attention({.batch = 1,
                               .heads = 1,
                               .kv_heads = 1,
                               .q_len = 1,
                               .kv_len = visible_keys(data, row).count(),
                               .head_dim = p.head_dim,
                               .v_head_dim = value_dim(p),
                               .scale = p.scale,
                               .softcap = p.softcap,
                               .sink = sink,
                               .magnitudes = true},
                              q, k, v);
}

}  // namespace tilewright::cli
