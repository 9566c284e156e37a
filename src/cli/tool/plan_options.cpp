#include "cli/tool/plan_options.h"

#include <cmath>

namespace tilewright::cli {

using nlohmann::json;

void add_plan_options(CLI::App& command, PlanArgs& args) {
  command.add_flag("--plan", args.only,
                   "say what would run, and why; run nothing. Needs no GPU and no simulator with "
                   "--device plan:h200");
  command.add_flag("--all", args.all,
                   "list every other kernel with its reason, not only the best three");
}

void add_runs_option(CLI::App& command, int& runs, const std::string& how) {
  command.add_option("--runs", runs, "timed runs on a GPU" + how)
      ->check(quiet(CLI::Range(0, 10000)))
      ->capture_default_str()
      ->type_name("N");
}

json plan_json(const Plan& plan, const PlanArgs& args, const Context& context) {
  json candidates = json::array(), launches = json::array();
  for (const Candidate& c : plan.candidates)
    candidates.push_back({{"name", c.name},
                          {"possible", c.is_possible},
                          {"automatic", c.is_automatic},
                          {"cost_us", std::isfinite(c.cost_us) ? json(c.cost_us) : json()},
                          {"reason", c.reason}});
  for (const Launch& l : plan.launches)
    launches.push_back({{"step", l.step},
                        {"entry", l.entry},
                        {"grid", l.grid},
                        {"block", l.block},
                        {"cluster", l.cluster},
                        {"shared_bytes", l.shared_bytes}});
  return {{"kernel", plan.kernel},
          {"text", args.all || context.json ? plan.to_string() : plan.summary("--all")},
          {"candidates", candidates},
          {"launches", launches},
          {"workspace_bytes", plan.workspace_bytes},
          {"flops", plan.flops},
          {"bytes", plan.bytes}};
}

}  // namespace tilewright::cli
