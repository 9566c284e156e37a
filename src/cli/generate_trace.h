// `tilewright generate --trace`: a run of a reference file, stage by stage.
#pragma once

#include "cli/model_options.h"

#include <string>
#include <vector>

namespace tilewright::cli {

struct TraceArgs {
  std::string file;
  std::vector<std::string> runs;  ///< "p200.quant"; empty: all that fit --kv
  double tolerance = 1e-4, relative = 0;
  bool shows_all = false;
};

void add_trace_options(CLI::App& command, TraceArgs& args);

/// Feeds the prompts of the file to the model and prints a table of the stages; exit status 1 if
/// one is not met.
void run_trace(const TraceArgs& args, const ModelArgs& model, Context& context);

}  // namespace tilewright::cli
