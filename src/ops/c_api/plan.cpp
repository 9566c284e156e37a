#include "ops/c_api/plan.h"

#include "base/error.h"
#include "ops/c_api/convert/all.h"

#include <memory>

namespace tilewright::c_api {

namespace {

// A refusal of the problem itself; another failure is none.
tw_plan refused_plan(const std::vector<Reason>& before, const Refusal& refusal) {
  tw_plan plan = {.status = TW_INVALID_ARGUMENT, .reasons = before, .text = {}};
  // What cannot be done is a guess if members were wrong.
  if (before.empty() && refusal.kind() == ErrorKind::kUnsupported) plan.status = TW_UNSUPPORTED;
  if (before.empty() || refusal.kind() == ErrorKind::kInvalidArgument) {
    plan.reasons.insert(plan.reasons.end(), refusal.reasons().begin(), refusal.reasons().end());
    plan.text = refusal.what();
  }
  return plan;
}

tw_plan made_plan(const std::vector<Reason>& before, const std::function<Plan()>& make) {
  try {
    tw_plan plan = {.plan = make(), .reasons = before, .text = {}};
    if (!before.empty()) return {.status = TW_INVALID_ARGUMENT, .reasons = before, .text = {}};
    plan.text = plan.plan.to_string();
    return plan;
  } catch (const Refusal& refusal) {
    return refused_plan(before, refusal);
  }
}

// The reasons that come from the members of C, in front of the text of those that C++ gave.
void complete_text(tw_plan& plan, std::size_t num_before) {
  std::string text;
  for (std::size_t i = 0; i < num_before; ++i) text += to_string(plan.reasons[i]) + "\n";
  plan.text = text + plan.text;
}

template <class C>
tw_status give(const tw_plan* plan, const char* function, const char* name, std::size_t index,
               std::size_t count, C* given, const std::function<void(C&)>& fill) {
  return guarded([&] {
    require_address(plan, function, "plan");
    require_address(given, function, name);
    require(index < count, ErrorKind::kInvalidArgument, "{}: index = {}; expected less than {}",
            function, index, count);
    C ours = Version<C>::defaults();
    fill(ours);
    write_struct(Version<C>::kShape, &ours, given, {function, name});
  });
}

}  // namespace

tw_status make_plan(std::vector<Reason>& refused, tw_plan** plan,
                    const std::function<Plan()>& make) {
  auto made = std::make_unique<tw_plan>(made_plan(refused, make));
  complete_text(*made, refused.size());
  const tw_status status = made->status;
  if (status != TW_OK) note_failure(made->text);
  *plan = made.release();
  return status;
}

}  // namespace tilewright::c_api

namespace c_api = tilewright::c_api;

void tw_plan_destroy(tw_plan* plan) {
  delete plan;
}

tw_status tw_plan_status(const tw_plan* plan) {
  return plan == nullptr ? TW_INVALID_ARGUMENT : plan->status;
}

const char* tw_plan_text(const tw_plan* plan) {
  return plan == nullptr ? "" : plan->text.c_str();
}

const char* tw_plan_kernel(const tw_plan* plan) {
  return plan == nullptr ? "" : plan->plan.kernel.c_str();
}

size_t tw_plan_workspace_bytes(const tw_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.workspace_bytes;
}

double tw_plan_flops(const tw_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.flops;
}

double tw_plan_bytes(const tw_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.bytes;
}

const char* tw_plan_assumption(const tw_plan* plan) {
  return plan == nullptr ? "" : plan->plan.assumption.c_str();
}

size_t tw_plan_num_reasons(const tw_plan* plan) {
  return plan == nullptr ? 0 : plan->reasons.size();
}

tw_status tw_plan_reason(const tw_plan* plan, size_t index, tw_reason* reason) {
  return c_api::give<tw_reason>(plan, "tw_plan_reason", "reason", index, tw_plan_num_reasons(plan),
                                reason, [&](tw_reason& c) {
                                  const tilewright::Reason& r = plan->reasons[index];
                                  c.field = r.field.c_str();
                                  c.value = r.value.c_str();
                                  c.rule = r.rule.c_str();
                                  c.fix = r.fix.c_str();
                                });
}

size_t tw_plan_num_candidates(const tw_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.candidates.size();
}

tw_status tw_plan_candidate(const tw_plan* plan, size_t index, tw_candidate* candidate) {
  return c_api::give<tw_candidate>(plan, "tw_plan_candidate", "candidate", index,
                                   tw_plan_num_candidates(plan), candidate, [&](tw_candidate& c) {
                                     const tilewright::Candidate& from =
                                         plan->plan.candidates[index];
                                     c.name = from.name.c_str();
                                     c.reason = from.reason.c_str();
                                     c.is_possible = from.is_possible ? 1 : 0;
                                     c.is_automatic = from.is_automatic ? 1 : 0;
                                     c.is_chosen = from.name == plan->plan.kernel ? 1 : 0;
                                     c.cost_us = from.cost_us;
                                   });
}

size_t tw_plan_num_launches(const tw_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.launches.size();
}

tw_status tw_plan_launch(const tw_plan* plan, size_t index, tw_launch* launch) {
  return c_api::give<tw_launch>(plan, "tw_plan_launch", "launch", index, tw_plan_num_launches(plan),
                                launch, [&](tw_launch& c) {
                                  const tilewright::Launch& from = plan->plan.launches[index];
                                  const auto number = [](std::uint32_t x) {
                                    return static_cast<std::int32_t>(x);
                                  };
                                  c.step = from.step.c_str();
                                  c.entry = from.entry.c_str();
                                  c.grid_x = number(from.grid[0]);
                                  c.grid_y = number(from.grid[1]);
                                  c.grid_z = number(from.grid[2]);
                                  c.block_x = number(from.block[0]);
                                  c.block_y = number(from.block[1]);
                                  c.block_z = number(from.block[2]);
                                  c.cluster = number(from.cluster);
                                  c.shared_bytes = number(from.shared_bytes);
                                });
}
