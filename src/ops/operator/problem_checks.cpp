#include "ops/operator/problem_checks.h"

#include <cmath>

namespace tilewright {

std::string to_string(const Reason& reason) {
  const bool is_lack = reason.field == "kernel" || reason.field == "device";
  std::string text =
      is_lack ? fmt::format("{} {} {}", reason.field, reason.value, reason.rule)
              : fmt::format("{} = {}; expected {}", reason.field, reason.value, reason.rule);
  if (!reason.fix.empty()) text += ". " + reason.fix;
  return text;
}

namespace ops {

Noted ProblemChecks::note(Reason reason) {
  root_->reasons_.push_back(std::move(reason));
  return Noted(&root_->reasons_.back());
}

void ProblemChecks::scores(std::optional<double> scale, const char* default_scale, double softcap) {
  const bool is_positive = !scale || (std::isfinite(*scale) && *scale > 0);
  const bool has_scale =
      expect(is_positive, "scale", scale.value_or(0), "a finite number > 0, or none for {}",
             default_scale) &&
      expect(!scale || is_normal_float(*scale * kLog2e), "scale", scale.value_or(0),
             "one that fp32 holds as a normal number, also times log2 e: "
             "1.2e-38 to 2.3e38");
  if (!expect(std::isfinite(softcap) && softcap >= 0, "softcap", softcap,
              "a finite number > 0, or 0 for none") ||
      softcap == 0)
    return;
  if (!expect(softcap <= kMaxSoftcap, "softcap", softcap,
              "at most {}: tanh in fp32, times a larger one, is off by more than rounding costs",
              kMaxSoftcap)
           .remedy("Give 0 for no cap."))
    return;
  if (!has_scale) return;
  expect(is_normal_float(softcap) && is_normal_float(2 * kLog2e * scale.value_or(1) / softcap),
         "softcap", softcap,
         "a cap, and a quotient scale / softcap with scale = {}, that fp32 holds as normal numbers",
         scale ? fmt::format("{}", *scale) : std::string(default_scale));
}

void ProblemChecks::finish() const {
  if (!is_fine()) refuse(ErrorKind::kInvalidArgument, op_, root_->reasons_);
}

void refuse(ErrorKind kind, const std::string& op, std::vector<Reason> reasons) {
  std::string text = op + ": ";
  for (std::size_t i = 0; i < reasons.size(); ++i)
    text += (i > 0 ? "\n  " : "") + to_string(reasons[i]);
  throw Refusal(kind, text, std::move(reasons));
}

}  // namespace ops

}  // namespace tilewright
