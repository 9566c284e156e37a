#include "model/float64/stage_check.h"

#include "base/error.h"
#include "reference/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace tilewright::model {

const StageCheck::Named StageCheck::kHandlers[] = {
    {"attn_mix", &StageCheck::check_mix},
    {"ffn_mix", &StageCheck::check_mix},
    {"head_mix", &StageCheck::check_head_mix},
    {"attn_in", &StageCheck::check_input},
    {"ffn_in", &StageCheck::check_input},
    {"final_norm", &StageCheck::check_input},
    {"qr", &StageCheck::check_latent},
    {"q", &StageCheck::check_query},
    {"kv", &StageCheck::check_plain_row},
    {"comp", &StageCheck::check_plain_row},
    {"kv_fp8", &StageCheck::check_codes},
    {"comp_fp8", &StageCheck::check_codes},
    {"kv_nvfp4", &StageCheck::check_codes},
    {"comp_nvfp4", &StageCheck::check_codes},
    {"kv_scale", &StageCheck::check_scales},
    {"comp_scale", &StageCheck::check_scales},
    {"kv_rope", &StageCheck::check_rotated},
    {"comp_rope", &StageCheck::check_rotated},
    {"idx_k", &StageCheck::check_index_keys},
    {"idx_q", &StageCheck::check_index_queries},
    {"idx_w", &StageCheck::check_index_weights},
    {"idx_scores", &StageCheck::check_index_scores},
    {"idx_selected", &StageCheck::check_selected},
    {"lse", &StageCheck::check_lse},
    {"attn_o", &StageCheck::check_attended},
    {"attn_o_inv_rope", &StageCheck::check_turned},
    {"attn_out", &StageCheck::check_projected},
    {"streams_mid", &StageCheck::check_streams},
    {"streams", &StageCheck::check_streams},
    {"router_scores", &StageCheck::check_router_scores},
    {"router_ids", &StageCheck::check_router_ids},
    {"router_weights", &StageCheck::check_router_weights},
    {"moe_out", &StageCheck::check_moe},
    {"logits", &StageCheck::check_logits},
};

StageCheck::StageCheck(std::shared_ptr<const Weights> weights, const RunnerOptions& options,
                       std::vector<std::int32_t> tokens, std::vector<std::int64_t> positions)
    : source_(std::move(weights)),
      config_(source_->config()),
      options_(options),
      tokens_(std::move(tokens)),
      checked_(std::move(positions)),
      embed_(to_doubles(source_->embed)),
      head_(to_doubles(source_->head)),
      norm_(source_->norm.begin(), source_->norm.end()),
      hc_head_(to_doubles(source_->hc_head)),
      layers_(static_cast<std::size_t>(config_.num_layers())),
      memory_(static_cast<std::size_t>(config_.num_layers())) {}

void StageCheck::receive(const Stage& stage) {
  if (stage.sequence != 0 || stage.shape.empty() || stage.shape[0] == 0) return;
  const auto found = std::ranges::find(kHandlers, stage.name, &Named::name);
  if (found == std::end(kHandlers)) return;
  layer_ = stage.layer;
  if (layer_ >= 0) {
    std::optional<Layer64>& layer = layers_[static_cast<std::size_t>(layer_)];
    if (!layer) layer = to_doubles(source_->layers[static_cast<std::size_t>(layer_)], false);
    remember(stage);
  }
  numbers_.clear();
  const auto cols = static_cast<std::int64_t>(stage.values.size()) / stage.shape[0];
  Doubles values;
  for (std::int64_t r = 0; r < stage.shape[0]; ++r) {
    if (!is_checked(stage, r)) continue;
    numbers_.push_back(stage.first_row + r);
    const auto row = Rows::part(stage.values, cols, r, r + 1);
    values.insert(values.end(), row.begin(), row.end());
  }
  if (numbers_.empty()) return;
  Stage checked = stage;
  checked.shape[0] = std::ssize(numbers_);
  checked.values = now_[std::string(stage.name)] = std::move(values);
  if (stage.name == "final_norm") final_ = numbers_;
  (this->*found->handler)(checked);
}

namespace {

bool has_entries(const Stage& stage) {
  return stage.name.starts_with("comp") || stage.name == "idx_k";
}

}  // namespace

bool StageCheck::is_checked(const Stage& stage, std::int64_t row) const {
  if (checked_.empty()) return true;
  const std::int64_t tokens = has_entries(stage) ? static_cast<std::int64_t>(kind()) : 1;
  const std::int64_t first = (stage.first_row + row) * tokens;
  const auto found = std::ranges::lower_bound(checked_, first);
  return found != checked_.end() && *found < first + tokens;
}

std::vector<StageVerdict> StageCheck::verdicts() const {
  return verdicts_;
}

StageVerdict& StageCheck::verdict(std::string_view name) {
  const std::string full =
      layer_ < 0 ? std::string(name) : fmt::format("layers.{}.{}", layer_, name);
  const auto [place, is_new] = place_.try_emplace(full, verdicts_.size());
  if (is_new) {
    verdicts_.emplace_back();
    verdicts_.back().name = full;
  }
  return verdicts_[place->second];
}

void StageCheck::note(StageVerdict& verdict, const Stage& stage, std::int64_t row,
                      const std::string& what) {
  if (!verdict.first.empty()) return;
  verdict.first = fmt::format("{} {}, {}", has_entries(stage) ? "entry" : "position",
                              numbers_[static_cast<std::size_t>(row)], what);
}

void StageCheck::compare(const Stage& stage, const Bounded& expected, double unit) {
  constexpr double kSmallest = 0x1p-126, kInfinity = std::numeric_limits<double>::infinity();
  StageVerdict& to = verdict(stage.name);
  const std::int64_t rows = stage.shape[0];
  const std::int64_t cols = static_cast<std::int64_t>(stage.values.size()) / rows;
  require(expected.value.size() == stage.values.size(), ErrorKind::kInvalidArgument,
          "stage check: {} has {} numbers, its inputs give {}; the weights are another model's",
          to.name, stage.values.size(), expected.value.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    bool is_beyond = false;
    for (std::int64_t c = 0; c < cols; ++c) {
      const auto i = static_cast<std::size_t>(r * cols + c);
      const double want = expected.value[i], got = stage.values[i], e = expected.error[i];
      if (std::isfinite(want)) to.squares += want * want;
      if (got == want) continue;
      const double bound = e + unit * (std::abs(want) + e) + kSmallest;
      double d = std::abs(got - want);
      if (!std::isfinite(d)) d = kInfinity;
      to.max_difference = std::max(to.max_difference, d);
      to.squared_differences += d * d;
      to.worst = std::max(to.worst, d / bound);
      if (d <= bound) continue;
      is_beyond = true;
      note(to, stage, r,
           fmt::format("element {}: {:.9g} instead of {:.9g} +- {:.2g}", c, got, want, bound));
    }
    to.beyond_rows += is_beyond;
  }
  to.rows += rows;
  to.elems += rows * cols;
}

const Doubles& StageCheck::now(const char* name) const {
  const auto found = now_.find(name);
  require(found != now_.end(), ErrorKind::kInvalidArgument,
          "stage check: {} did not come before a stage that needs it; feed it all stages of a run",
          name);
  return found->second;
}

// Nothing that was left out may be better than something chosen by more than both bounds.
void StageCheck::check_choice(const Stage& stage, std::int64_t row, const Bounded& scores,
                              const std::vector<std::int64_t>& chosen) {
  StageVerdict& to = verdict(stage.name);
  std::vector<bool> is_chosen(scores.value.size(), false);
  for (const std::int64_t id : chosen) is_chosen[static_cast<std::size_t>(id)] = true;
  double sure = -std::numeric_limits<double>::infinity(), possible = sure, exact = sure;
  std::size_t best = 0;
  for (std::size_t i = 0; i < scores.value.size(); ++i) {
    if (is_chosen[i]) continue;
    const double s = scores.value[i], e = scores.error[i];
    if (s - e > sure) best = i;
    sure = std::max(sure, s - e);
    possible = std::max(possible, s + e);
    exact = std::max(exact, s);
  }
  bool is_beyond = false;
  for (const std::int64_t id : chosen) {
    const auto i = static_cast<std::size_t>(id);
    const double s = scores.value[i], e = scores.error[i];
    to.different += s < exact;
    to.undecided += s - e <= possible;
    if (s + e >= sure) continue;
    is_beyond = true;
    note(to, stage, row,
         fmt::format("{} with a score of {:.9g} +- {:.2g} was chosen, {} with {:.9g} +- {:.2g} not",
                     id, s, e, best, scores.value[best], scores.error[best]));
  }
  to.beyond_rows += is_beyond;
}

std::vector<std::int32_t> StageCheck::positions() const {
  return {numbers_.begin(), numbers_.end()};
}

}  // namespace tilewright::model
