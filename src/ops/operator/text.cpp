// How plans read: what the plans of all operators have in common.
#include "tilewright/plan.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace tilewright {

namespace {

std::string dims_text(const std::array<std::uint32_t, 3>& dims) {
  if (dims[2] != 1) return fmt::format("{} x {} x {}", dims[0], dims[1], dims[2]);
  return dims[1] != 1 ? fmt::format("{} x {}", dims[0], dims[1]) : fmt::format("{}", dims[0]);
}

std::string line(const std::string& label, const std::string& text) {
  return fmt::format("{:<10} {}\n", label, text);
}

std::string launch_line(const Launch& l) {
  std::string text =
      fmt::format("{}: grid {}, block {}", l.entry, dims_text(l.grid), dims_text(l.block));
  if (l.cluster > 1) text += fmt::format(", clusters of {}", l.cluster);
  if (l.shared_bytes > 0) text += fmt::format(", {} bytes of shared memory", l.shared_bytes);
  return line(l.step, text);
}

std::string work_line(const Plan& plan) {
  std::string text = plan.flops > 0 ? fmt::format("{:.6g} GFLOP, ", plan.flops * 1e-9) : "";
  text += fmt::format("{:.6g} MB", plan.bytes * 1e-6);
  if (!plan.assumption.empty()) text += " with " + plan.assumption;
  return line("work", text);
}

// Those that were not chosen: what "auto" may take, what has to be asked for, what is not possible;
// of each the best first.
std::vector<const Candidate*> others_of(const Plan& plan) {
  std::vector<const Candidate*> others;
  for (const Candidate& c : plan.candidates)
    if (c.name != plan.kernel) others.push_back(&c);
  const auto rank = [](const Candidate* c) { return c->is_automatic ? 0 : c->is_possible ? 1 : 2; };
  std::ranges::stable_sort(others, [&](const Candidate* a, const Candidate* b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return a->cost_us < b->cost_us;
  });
  return others;
}

std::string plan_text(const Plan& plan, std::size_t most_others, const std::string& rest) {
  std::string text;
  for (const PlanNote& note : plan.notes) text += line(note.label, note.text);
  for (const Launch& launch : plan.launches) text += launch_line(launch);
  text += line("workspace", fmt::format("{} bytes", plan.workspace_bytes));
  text += work_line(plan);
  const std::vector<const Candidate*> others = others_of(plan);
  const std::size_t shown = std::min(others.size(), most_others);
  for (std::size_t i = 0; i < shown; ++i)
    text += fmt::format("not {}: it {}\n", others[i]->name, others[i]->reason);
  if (shown < others.size()) text += fmt::format("{} more: {}\n", others.size() - shown, rest);
  return text;
}

}  // namespace

std::string Plan::to_string() const {
  return plan_text(*this, std::numeric_limits<std::size_t>::max(), "");
}

std::string Plan::summary(const std::string& rest) const {
  constexpr std::size_t kMostOthers = 3;
  return plan_text(*this, kMostOthers, rest);
}

}  // namespace tilewright
