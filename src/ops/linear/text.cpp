// How weights, activations and plans read.
#include "base/error.h"
#include "ops/linear/plan.h"
#include "ops/operator/type_word.h"

#include <fmt/format.h>

namespace tilewright {

namespace {

std::string problem_text(const LinearWeightInfo& w, const LinearProblem& p) {
  std::string text = fmt::format("m {}, n {}, k {}, weight {} for {} activations, x {}, out {}",
                                 p.m, w.n, w.k, to_string(w.format), to_string(w.activations),
                                 ops::type_word(p.x_dtype), ops::type_word(p.out_dtype));
  if (w.groups > 1) text += fmt::format(", {} groups", w.groups);
  if (p.has_bias) text += ", bias";
  if (p.x_stride != w.k * w.groups) text += fmt::format(", x rows {} apart", p.x_stride);
  if (p.out_stride != w.n) text += fmt::format(", out rows {} apart", p.out_stride);
  return text;
}

}  // namespace

const char* to_string(LinearActivations activations) noexcept {
  switch (activations) {
    case LinearActivations::kFp8:
      return "fp8";
    case LinearActivations::kBlockScaled:
      return "block_scaled";
    default:
      return "bf16";
  }
}

std::vector<PlanNote> ops::linear_notes(const LinearPlan& plan) {
  std::vector<PlanNote> notes = {{"linear", problem_text(plan.weight, plan.problem)},
                                 {"kernel", plan.kernel}};
  if (plan.launches.empty()) notes.push_back({"launches", "none: x has no rows"});
  return notes;
}

}  // namespace tilewright
