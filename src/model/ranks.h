// Which ranks a model runs on, and what each works with: processes of a launcher, each with a GPU,
// or threads of one process on a simulated device.
#pragma once

#include "tilewright/device.h"

#include "comm/communicator.h"
#include "comm/launcher.h"
#include "model/share.h"
#include "model/weights.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tilewright::model {

/// What is asked for.
struct RankArgs {
  int gpus = 0;          ///< 0: not asked for
  std::string parallel;  ///< what ranks divide, "expert", "tensor"; empty: not asked for
};

/// Experts if they are asked for, else tensors.
Scheme scheme_of(const RankArgs& args);
/// Of the launcher, if ranks are asked for; else one that nobody started: processes that each run a
/// whole model may have been started by one, too.
comm::Launch launch_of(const RankArgs& args);
/// "", "auto" and "cuda": the rank of a process decides which.
bool is_any_gpu(const std::string& device);

/// Errors   InvalidArgument: several ranks of the float64 model, or not as many as the launcher
///          has. `asked` is the number as the user wrote it, "--gpus 2"
void check_ranks(const RankArgs& args, const comm::Launch& launch, bool is_reference,
                 const std::string& asked);

/// What a rank works with.
struct OpenRank {
  Device device;
  std::shared_ptr<const Weights> weights;    ///< its share; null: of no model
  std::shared_ptr<comm::Communicator> comm;  ///< null: there is one rank
};

using OpenShare =
    std::function<std::shared_ptr<const Weights>(const Device& device, const Share& share)>;

/// In a process of a launcher: waits for the others, opens the rank's share on its GPU (`device` if
/// it names one) and calls `work`. What opening or `work` throws is told to the other ranks.
/// Errors   Unsupported: a simulated device; as comm::Rendezvous, comm::make_nccl_communicator,
///          `open_share` and `work`
void as_process_rank(const RankArgs& args, const comm::Launch& launch, const std::string& device,
                     const OpenShare& open_share, const std::function<void(OpenRank)>& work);

/// The shares of args.gpus ranks that are threads, in order.
std::vector<std::shared_ptr<const Weights>> thread_weights(const RankArgs& args,
                                                           const Device& device,
                                                           const OpenShare& open_share);

}  // namespace tilewright::model
