// Rows of attention that are computed in float64 as well: which ones, and the keys they see.
#pragma once

#include "base/thread_pool.h"
#include "reference/attention/attention.h"
#include "verify/attention/data.h"

#include <map>
#include <utility>

namespace tilewright::cli {

/// A row of out, exactly, and how far off a correct kernel may be.
struct ExactRow {
  std::int64_t batch = 0, head = 0, row = 0;
  std::int64_t first = 0;  ///< row of the tensor where its sequence begins: 0 unless packed
  std::vector<double> out = {}, out_bound = {};
  std::vector<double> out_magnitude = {};  ///< sum_j p_j |v_j|
  double lse = 0, lse_bound = 0;
};

/// `count` rows spread over batches, heads and queries, or all if there are no more, without
/// results.
std::vector<ExactRow> choose_rows(const AttentionData& data, std::int64_t count,
                                  std::uint64_t seed);

/// Keys of its sequence that a row sees.
struct VisibleKeys {
  std::int64_t begin, end;

  std::int64_t count() const noexcept { return end - begin; }
};
VisibleKeys visible_keys(const AttentionData& data, const ExactRow& row);

/// One query over keys that it sees all of, with magnitudes.
reference::AttentionResult attend_query(const AttentionData& data, const ExactRow& row,
                                        std::span<const double> q, std::span<const double> k,
                                        std::span<const double> v);

/// Calls attend(read(batch, kv_head), row) for every row, those with the same keys together and in
/// several threads.
template <class Read, class Attend>
void attend_rows(const AttentionData& data, std::vector<ExactRow>& rows, const Read& read,
                 const Attend& attend) {
  const AttentionProblem& p = data.problem;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<ExactRow*>> groups;
  for (ExactRow& row : rows) groups[{row.batch, row.head / (p.heads / p.kv_heads)}].push_back(&row);
  ThreadPool pool;
  for (const auto& [group, members] : groups) {
    const auto keys = read(group.first, group.second);
    pool.parallel_for(0, static_cast<std::int64_t>(members.size()), 4,
                      [&](std::int64_t first, std::int64_t last) {
                        for (std::int64_t i = first; i < last; ++i)
                          attend(keys, *members[static_cast<std::size_t>(i)]);
                      });
  }
}

}  // namespace tilewright::cli
