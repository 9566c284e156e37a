// How a plan reads.
#include "ops/moe/plan.h"
#include "ops/moe/problem.h"
#include "ops/operator/type_word.h"

#include <cmath>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

std::string routing_text(const MoeProblem& p) {
  if (p.routing == MoeRouting::kGiven) return "given routing";
  if (is_single(p)) return "all tokens to one expert";
  if (is_grouped_input(p)) {
    std::string text = is_in_rooms(p) ? "grouped by expert, each with room for all"
                                      : "grouped by expert, one behind the other";
    if (p.expected_tokens != 0) text += fmt::format(", {} expected of each", p.expected_tokens);
    return text;
  }
  std::string text = p.routing == MoeRouting::kHash ? "routing by hash, " : "routing by logits, ";
  text += p.score == MoeScore::kSoftmax ? "softmax" : "sqrt-softplus";
  if (p.has_bias) text += ", bias";
  if (p.normalize) text += ", normalised";
  if (p.route_scale != 1) text += fmt::format(", times {:g}", p.route_scale);
  return text;
}

std::string experts_text(const MoeWeightsInfo& w, const MoeProblem& p) {
  if (p.all_experts == 0) return fmt::format("{} of {} experts", p.topk, w.experts);
  return fmt::format("{} of {} experts, {} to {} of them here", p.topk, p.all_experts,
                     p.first_expert, p.first_expert + w.experts - 1);
}

std::string problem_text(const MoeWeightsInfo& w, const MoeProblem& p) {
  std::string text = fmt::format(
      "tokens {}, {}{}, hidden {}, inter {}, weights {} for {} activations, out {}, "
      "{}",
      p.tokens, experts_text(w, p), w.has_shared ? " and a shared one" : "", w.hidden, w.inter,
      to_string(w.format), to_string(w.activations), ops::type_word(p.out_dtype), routing_text(p));
  if (std::isfinite(p.swiglu_limit)) text += fmt::format(", limit {:g}", p.swiglu_limit);
  if (p.weight_after_down) text += ", weights after down";
  return text;
}

}  // namespace

std::vector<PlanNote> moe_notes(const MoePlan& plan) {
  std::vector<PlanNote> notes = {{"moe", problem_text(plan.weights, plan.problem)},
                                 {"kernel", plan.kernel}};
  if (plan.launches.empty()) notes.push_back({"launches", "none: there are no tokens"});
  return notes;
}

}  // namespace tilewright::ops
