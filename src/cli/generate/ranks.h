// --gpus and --parallel: a model on several devices.
#pragma once

#include "tilewright/device.h"

#include "cli/tool/command.h"
#include "cli/tool/model_options.h"
#include "comm/communicator.h"
#include "model/model.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tilewright::cli {

struct RankArgs {
  int gpus = 0;          ///< 0: not asked for
  std::string parallel;  ///< "expert", "tensor"; empty: not asked for
};

void add_rank_options(CLI::App& command, RankArgs& args);

/// Before anything is opened: where ranks are processes that nobody has started yet, starts them,
/// waits, and returns false with Context::exit_status set. In a process that is to work it returns
/// true; ranks other than 0 print nothing on standard output from then on, and show no progress.
///
/// Ranks are processes of a launcher if it says so (comm/launcher.h) and --parallel is given;
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

/// What a rank works with.
struct OpenRank {
  Device device;
  std::shared_ptr<const model::Weights> weights;  ///< its share; null: of no model
  std::shared_ptr<comm::Communicator> comm;       ///< null: there is one rank
};

/// The same with `work` in place of a runner: of this process' rank, or of each simulated rank in a
/// thread of its own. What it throws ends all ranks.
void run_ranks(const RankArgs& args, const ModelArgs& model, const Context& context,
               const model::RunnerOptions& options, std::int64_t sequences,
               const std::function<void(OpenRank)>& work);
/// Ranks of no model.
void run_ranks_alone(const RankArgs& args, const Context& context,
                     const std::function<void(OpenRank)>& work);

}  // namespace tilewright::cli
