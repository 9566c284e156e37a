// --gpus and --parallel: a model on several devices.
#pragma once

#include "cli/tool/command.h"
#include "cli/tool/model_options.h"
#include "model/model.h"
#include "model/ranks.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace tilewright::cli {

using model::OpenRank;
using model::RankArgs;

void add_rank_options(CLI::App& command, RankArgs& args);

/// Before anything is opened: where ranks are processes that nobody has started yet, starts them,
/// waits, and returns false with Context::exit_status set. In a process that is to work it returns
/// true; ranks other than 0 print nothing on standard output from then on, and show no progress.
///
/// Ranks are processes of a launcher if it says so and one of the options is given (model/ranks.h);
/// threads on a simulated device; else processes of this host.
/// Errors   InvalidArgument: --gpus with --device reference or a certain GPU, or not as many as the
///          launcher has
bool begin_ranks(const RankArgs& args, Context& context);

/// Starts `size` processes with the variables of a rank each (comm/launcher.h). Returns true in
/// each of them; in the one that has called, false, when all have ended: Context::exit_status is
/// that of the first that failed, whereupon the others get 2 s to end by themselves.
/// Errors   DeviceError if one was ended by a signal; OutOfMemory if one cannot be started
bool start_rank_processes(int size, Context& context);

/// Whether the ranks are processes, of which this is one.
bool are_processes(const RankArgs& args);

/// Opens the weights, of this process' rank its share, and makes their runner.
/// Errors   those of open_weights, require_room and make_runner; of ranks that do not find each
///          other
std::unique_ptr<model::Runner> make_rank_runner(const RankArgs& args, const ModelArgs& model,
                                                const Context& context,
                                                const model::RunnerOptions& options,
                                                std::int64_t sequences);

/// The same with `work` in place of a runner: of this process' rank, or of each simulated rank in a
/// thread of its own. What it throws ends all ranks. `sequences`: of each rank; of all, where heads
/// are divided. `has_runner`: `work` makes a model::Runner, which has an idle sequence beside those
/// of a rank where ranks divide sequences.
void run_ranks(const RankArgs& args, const ModelArgs& model, const Context& context,
               const model::RunnerOptions& options, std::int64_t sequences, bool has_runner,
               const std::function<void(OpenRank)>& work);
/// Ranks of no model.
void run_ranks_alone(const RankArgs& args, const Context& context,
                     const std::function<void(OpenRank)>& work);

}  // namespace tilewright::cli
