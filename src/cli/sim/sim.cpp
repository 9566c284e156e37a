// tilewright sim: the simulator from the command line.
#include "cli/tool/command.h"

namespace tilewright::cli {

void add_sim(CLI::App& app, Context& context) {
  CLI::App* sim = app.add_subcommand(
      "sim", "run programs or single kernels on a simulated GPU, and find their errors");
  sim->require_subcommand(1);
  add_sim_exec(*sim, context);
  add_sim_run(*sim, context);
  add_sim_isa(*sim, context);
}

}  // namespace tilewright::cli
