#include "ops/operator/choose.h"

#include "ops/operator/problem_checks.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr double kEqual = 1.001;

bool is_possible(const Option& option) {
  return option.obstacle.empty();
}

bool is_automatic(const Option& option) {
  return is_possible(option) && option.reservation.empty();
}

// Whether auto takes the first rather than the second.
bool is_better(const Option& a, const Option& b) {
  const bool is_equal = a.cost_us <= b.cost_us * kEqual && b.cost_us <= a.cost_us * kEqual;
  return is_equal && a.l2_bytes != b.l2_bytes ? a.l2_bytes < b.l2_bytes : a.cost_us < b.cost_us;
}

std::string list_names(std::span<const Option> options, bool (*is_listed)(const Option&)) {
  std::string text;
  for (const Option& option : options) {
    if (is_listed(option)) text += (text.empty() ? "" : ", ") + option.name;
  }
  return text.empty() ? "none" : text;
}

std::size_t find_named(const Request& request, std::span<const Option> options) {
  const auto at = std::ranges::find(options, request.kernel, &Option::name);
  if (at == options.end())
    refuse_unknown(request.op, request.kernel,
                   list_names(options, [](const Option&) { return true; }));
  if (!is_possible(*at))
    refuse(ErrorKind::kUnsupported, request.op,
           {{"kernel", at->name, at->obstacle,
             fmt::format("Possible here: {}.", list_names(options, is_possible))}});
  return static_cast<std::size_t>(at - options.begin());
}

const std::string& reason_against(const Option& option) {
  return is_possible(option) ? option.reservation : option.obstacle;
}

std::vector<Reason> reasons_against(const Request& request, std::span<const Option> options) {
  std::vector<Reason> reasons;
  for (const Option& option : options)
    reasons.push_back({"kernel", option.name, reason_against(option), request.remedy});
  return reasons;
}

// Every reason in a line, with the kernels that it holds for.
std::string list_reasons(std::span<const Option> options) {
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const Option& option : options) {
    const std::string& reason = reason_against(option);
    const auto at = std::ranges::find(reasons, reason, &std::pair<std::string, std::string>::first);
    if (at == reasons.end()) {
      reasons.emplace_back(reason, option.name);
    } else {
      at->second += ", " + option.name;
    }
  }
  std::string text;
  for (const auto& [reason, names] : reasons) text += fmt::format("\n  {}: {}", names, reason);
  return text;
}

std::size_t find_best(const Request& request, std::span<const Option> options) {
  const Option* best = nullptr;
  for (const Option& option : options) {
    if (is_automatic(option) && (best == nullptr || is_better(option, *best))) best = &option;
  }
  if (best == nullptr)
    throw Refusal(ErrorKind::kUnsupported,
                  fmt::format("{}: no kernel does {} on {}:{}\n{}", request.op, request.task,
                              request.device, list_reasons(options), request.remedy),
                  reasons_against(request, options));
  return static_cast<std::size_t>(best - options.data());
}

// Why auto did not take it.
std::string comparison(const Option& option, const Option& best) {
  if (!option.reservation.empty()) return option.reservation;
  if (!std::isfinite(option.cost_us)) return "has no measured rate here";
  const double times = best.cost_us > 0 ? option.cost_us / best.cost_us : 1;
  const std::string ratio = fmt::format("{:.2f}", times);
  if (ratio != "1.00") return fmt::format("is expected to take {} times as long", ratio);
  const double reads = option.l2_bytes / std::max(best.l2_bytes, 1.0);
  if (option.l2_bytes > best.l2_bytes)
    return fmt::format("is expected to take as long, and L2 reads out {:.2f} times as much", reads);
  return "is expected to take as long";
}

}  // namespace

void refuse_unknown(const char* op, const std::string& kernel, const std::string& names) {
  throw Refusal(
      ErrorKind::kInvalidArgument,
      fmt::format("{}: there is no kernel \"{}\"; expected one of auto, {}", op, kernel, names),
      {{"kernel", kernel, fmt::format("does not exist; there are auto, {}", names), {}}});
}

std::size_t choose(Plan& plan, const Request& request, std::span<const Option> options) {
  const bool is_auto = request.kernel == "auto";
  const std::size_t chosen = is_auto ? find_best(request, options) : find_named(request, options);
  plan.kernel = options[chosen].name;
  plan.candidates.clear();
  for (std::size_t i = 0; i < options.size(); ++i) {
    const Option& option = options[i];
    Candidate candidate = {.name = option.name,
                           .reason = option.obstacle,
                           .is_possible = is_possible(option),
                           .is_automatic = is_automatic(option),
                           .cost_us = option.cost_us};
    if (candidate.is_possible && i != chosen)
      candidate.reason = is_auto ? comparison(option, options[chosen]) : "was not asked for";
    plan.candidates.push_back(std::move(candidate));
  }
  return chosen;
}

}  // namespace tilewright::ops
