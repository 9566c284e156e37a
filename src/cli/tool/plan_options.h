// What every command that plans has: --plan, --all, and how a plan is reported.
#pragma once

#include "tilewright/plan.h"

#include "cli/tool/command.h"

#include <nlohmann/json.hpp>

namespace tilewright::cli {

struct PlanArgs {
  bool only = false;  ///< run nothing
  bool all = false;   ///< list every kernel that was not chosen
};

/// Options --plan and --all.
void add_plan_options(CLI::App& command, PlanArgs& args);
/// --runs; `how`: further words of its help.
void add_runs_option(CLI::App& command, int& runs, const std::string& how = "");

/// The whole plan, and its text: for a terminal the short one, unless all is wanted.
nlohmann::json plan_json(const Plan& plan, const PlanArgs& args, const Context& context);

}  // namespace tilewright::cli
