// How a plan reads.
#include "tilewright/moe.h"

#include <cmath>

#include <fmt/format.h>

namespace tilewright {

namespace {

std::string dims_text(const std::array<std::uint32_t, 3>& dims) {
  if (dims[2] != 1) return fmt::format("{} x {} x {}", dims[0], dims[1], dims[2]);
  return dims[1] != 1 ? fmt::format("{} x {}", dims[0], dims[1]) : fmt::format("{}", dims[0]);
}

std::string routing_text(const MoeProblem& p) {
  if (p.routing == MoeRouting::kGiven) return "given routing";
  std::string text = p.routing == MoeRouting::kHash ? "routing by hash, " : "routing by logits, ";
  text += p.score == MoeScore::kSoftmax ? "softmax" : "sqrt-softplus";
  if (p.has_bias) text += ", bias";
  if (p.normalize) text += ", normalised";
  if (p.route_scale != 1) text += fmt::format(", times {:g}", p.route_scale);
  return text;
}

std::string problem_text(const MoeWeightsInfo& w, const MoeProblem& p) {
  std::string text = fmt::format(
      "tokens {}, {} of {} experts{}, hidden {}, inter {}, weights {} for {} activations, out {}, "
      "{}",
      p.tokens, p.topk, w.experts, w.has_shared ? " and a shared one" : "", w.hidden, w.inter,
      to_string(w.format), to_string(w.activations), to_string(p.out_dtype), routing_text(p));
  if (std::isfinite(p.swiglu_limit)) text += fmt::format(", limit {:g}", p.swiglu_limit);
  if (p.weight_after_down) text += ", weights after down";
  return text;
}

}  // namespace

std::string MoePlan::to_string() const {
  std::string text = fmt::format("moe        {}\n", problem_text(weights, problem));
  text += fmt::format("kernel     {}\n", kernel);
  if (launches.empty()) text += "launches   none: there are no tokens\n";
  for (const MoeLaunch& l : launches) {
    text += fmt::format("{:<11}{}: grid {}, block {}", l.step, l.entry, dims_text(l.grid),
                        dims_text(l.block));
    if (l.cluster > 1) text += fmt::format(", clusters of {}", l.cluster);
    if (l.shared_bytes > 0) text += fmt::format(", {} bytes of shared memory", l.shared_bytes);
    text += '\n';
  }
  text += fmt::format("workspace  {} bytes\n", workspace_bytes);
  text += fmt::format("work       {:.6g} GFLOP, {:.6g} MB with {:.1f} experts\n", flops * 1e-9,
                      bytes * 1e-6, expected_experts);
  for (const MoeCandidate& candidate : candidates) {
    if (candidate.name != kernel)
      text += fmt::format("not {}: it {}\n", candidate.name, candidate.reason);
  }
  return text;
}

}  // namespace tilewright
