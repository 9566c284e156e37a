// Tokens that the device draws, and drafts of the layers behind the last.
#include "base/error.h"
#include "model/kernel_runner/runner.h"

#include <numeric>

namespace tilewright::model {

// Rows that draw, filled up; none if no rank draws.
DrawShape KernelRunner::draw_shape(const StepKey& key, const std::vector<StepPlan>& plans) const {
  DrawShape shape;
  std::int64_t all = 0;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const std::int64_t tokens = divides_sequences() ? key.tokens.of_ranks[rank] : key.tokens.own;
    const std::int64_t rows = plans[rank].num_logit_rows();
    shape.push_back({.tokens = tokens, .rows = filled_up(rows, tokens)});
    all += rows;
  }
  return all > 0 ? shape : DrawShape{};
}

std::vector<DrawnRow> KernelRunner::drawn_rows(const StepPlan& plan,
                                               std::span<const DrawnRows> rows) const {
  std::vector<DrawnRow> drawn;
  for (const std::int64_t row : plan.logit_rows) {
    const NewTokens& owner = owner_of(plan, row);
    drawn.push_back({.row = row,
                     .position = owner.start + row - owner.first_row + 1,
                     .how = rows[static_cast<std::size_t>(owner.sequence)]});
  }
  return drawn;
}

// In the order of the plans' rows.
std::vector<std::int32_t> KernelRunner::drawn_ids(const DrawShape& draw,
                                                  const std::vector<StepPlan>& plans) {
  if (draw.empty()) return {};
  std::vector<std::vector<std::int64_t>> rows;
  for (const StepPlan& plan : plans) rows.push_back(plan.logit_rows);
  synchronize();
  return sampler_->ids(draw, rows);
}

std::vector<std::int32_t> KernelRunner::run_and_draw(
    std::span<const std::vector<std::int32_t>> tokens, std::span<const DrawnRows> rows) {
  std::vector<std::int64_t> counts;
  for (const DrawnRows& of_sequence : rows) {
    require(of_sequence.rows <= kDecodeTokens, ErrorKind::kInvalidArgument,
            "model: draws after {} tokens of a sequence; expected at most {} in a run",
            of_sequence.rows, kDecodeTokens);
    counts.push_back(of_sequence.rows);
  }
  sequences_.check_run(tokens, counts);
  std::vector<std::int64_t> next_row = first_rows(counts);
  std::vector<std::int32_t> result(
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})));
  return tell_of_failure([&] {
    for_each_step({tokens, counts}, [&](const std::vector<StepPlan>& plans) {
      StepKey key = key_of(plans);
      key.draw = draw_shape(key, plans);
      if (!key.draw.empty()) sampler_->upload(key.draw, drawn_rows(plans[own_plan()], rows));
      run_step(plans, key);
      const std::vector<std::int32_t> ids = drawn_ids(key.draw, plans);
      auto next = ids.begin();
      for (const StepPlan& plan : plans)
        for (const std::int64_t row : plan.logit_rows)
          result[static_cast<std::size_t>(
              next_row[static_cast<std::size_t>(owner_of(plan, row).sequence)]++)] = *next++;
    });
    return result;
  });
}

// The last step again, of the tokens that stayed, with the rows that are wanted; ids: what follows
// each token of this rank's.
std::vector<StepPlan> KernelRunner::plan_draft(std::span<const std::vector<std::int32_t>> next,
                                               std::span<const std::int64_t> rows,
                                               std::vector<std::int32_t>& ids) {
  sequences_.check_draft(next, rows);
  require(last_.has_value(), ErrorKind::kInvalidArgument,
          "model: draft() after a run() of several steps; expected at most {} tokens in that",
          at_->positions.count());
  std::vector<StepPlan> plans = *last_;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    StepPlan& plan = plans[rank];
    plan.logit_rows.clear();
    const bool is_own = rank == own_plan();
    if (is_own) ids.assign(static_cast<std::size_t>(plan.count), -1);
    for (const NewTokens& owner : plan.tokens) {
      const auto& list = next[static_cast<std::size_t>(owner.sequence)];
      const std::int64_t count = std::ssize(list);
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t row = owner.first_row + k;
        if (is_own && owner.start + k > 0)
          ids[static_cast<std::size_t>(row)] = list[static_cast<std::size_t>(k)];
        if (k >= count - rows[static_cast<std::size_t>(owner.sequence)])
          plan.logit_rows.push_back(row);
      }
    }
  }
  return plans;
}

void KernelRunner::run_draft(const std::vector<StepPlan>& plans, std::vector<std::int32_t> ids,
                             const DrawShape& draw) {
  StepKey key = key_of(plans);
  key.is_draft = true;
  key.draw = draw;
  ids.resize(static_cast<std::size_t>(key.tokens.own), -1);
  at_->draft_ids.buffer().upload(std::as_bytes(std::span(ids)));
  launch_step(key, {.model = model_,
                    .memory = *memory_,
                    .at = *at_,
                    .longest = key.longest,
                    .stream = stream_.handle()});
}

Logits KernelRunner::draft(std::span<const std::vector<std::int32_t>> next,
                           std::span<const std::int64_t> logit_rows) {
  if (!options_.has_draft) return Runner::draft(next, logit_rows);
  std::vector<std::int32_t> ids;
  const std::vector<StepPlan> plans = plan_draft(next, logit_rows, ids);
  std::vector<double> values = tell_of_failure([&] {
    synchronize();
    run_draft(plans, std::move(ids), {});
    return head_rows(logits(plans));
  });
  sequences_.append_drafted(next);
  return {.vocab = config().vocab, .values = std::move(values)};
}

std::vector<std::int32_t> KernelRunner::draft_and_draw(
    std::span<const std::vector<std::int32_t>> next, std::span<const std::int64_t> rows) {
  if (!options_.has_draft) return Runner::draft_and_draw(next, rows);
  for (const std::int64_t of_sequence : rows)
    require(of_sequence <= kDecodeTokens, ErrorKind::kInvalidArgument,
            "model: draws after {} drafts of a sequence; expected at most {} in a call",
            of_sequence, kDecodeTokens);
  std::vector<std::int32_t> ids;
  const std::vector<StepPlan> plans = plan_draft(next, rows, ids);
  const std::vector<DrawnRows> greedy(next.size());
  std::vector<std::int32_t> drawn = tell_of_failure([&] {
    synchronize();
    const DrawShape draw = draw_shape(key_of(plans), plans);
    if (!draw.empty()) sampler_->upload(draw, drawn_rows(plans[own_plan()], greedy));
    run_draft(plans, std::move(ids), draw);
    return drawn_ids(draw, plans);
  });
  sequences_.append_drafted(next);
  return drawn;
}

}  // namespace tilewright::model
