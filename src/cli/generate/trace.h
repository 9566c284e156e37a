// `tilewright generate --trace`: a run of a reference file, stage by stage.
#pragma once

#include "cli/tool/model_options.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::cli {

struct TraceArgs {
  std::string file;
  std::vector<std::string> runs;  ///< "p200.quant"; empty: all that fit --kv
  /// Of differences from the file. Without them kernels are judged by what their own inputs give.
  std::optional<double> tolerance, relative;
  std::int64_t tokens = 0;  ///< of a prompt; 0: all
  bool shows_all = false;
};

void add_trace_options(CLI::App& command, TraceArgs& args);

/// Feeds the prompts of the file to the model and prints a table of the stages; exit status 1 if
/// one is not met. The float64 model is compared with the file. Kernels round, so that they are off
/// by more from stage to stage: each of their stages is compared with float64 from the inputs that
/// it had (model/float64/stage_check.h), and logits with the file's of mode `exact`.
void run_trace(const TraceArgs& args, const ModelArgs& model, Context& context);

}  // namespace tilewright::cli
