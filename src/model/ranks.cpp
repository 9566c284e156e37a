#include "model/ranks.h"

#include "base/error.h"
#include "comm/nccl.h"
#include "comm/rendezvous.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

namespace tilewright::model {

Scheme scheme_of(const RankArgs& args) {
  return args.parallel == "expert" ? Scheme::kExpertParallel : Scheme::kTensorParallel;
}

comm::Launch launch_of(const RankArgs& args) {
  return args.parallel.empty() && args.gpus == 0 ? comm::Launch{} : comm::read_launch();
}

bool is_any_gpu(const std::string& device) {
  return device.empty() || device == "auto" || device == "cuda";
}

void check_ranks(const RankArgs& args, const comm::Launch& launch, bool is_reference,
                 const std::string& asked) {
  constexpr ErrorKind kBadRanks = ErrorKind::kInvalidArgument;
  require(args.gpus <= 1 || !is_reference, kBadRanks,
          "{}: the float64 model (device reference) runs on one rank; leave it out", asked);
  require(launch.size == 1 || args.gpus == 0 || args.gpus == launch.size, kBadRanks,
          "{}: {} has started {} processes; start as many, or leave it out", asked,
          launch.started_by, launch.size);
  require(launch.size == 1 || !is_reference, kBadRanks,
          "the float64 model (device reference) runs on one rank, and {} has started {}; start one "
          "process",
          launch.started_by, launch.size);
}

void as_process_rank(const RankArgs& args, const comm::Launch& launch, const std::string& device,
                     const OpenShare& open_share, const std::function<void(OpenRank)>& work) {
  auto rendezvous = std::make_unique<comm::Rendezvous>(launch);
  try {
    const Device gpu =
        Device::open(is_any_gpu(device) ? fmt::format("cuda:{}", launch.local_rank) : device);
    require(!gpu.is_simulated(), ErrorKind::kUnsupported,
            "ranks: {} processes on {}; simulated ranks are threads of one process: start it "
            "without {}, and ask for {} GPUs",
            launch.size, gpu.spec(), launch.started_by, launch.size);
    OpenRank rank = {.device = gpu,
                     .weights = open_share(gpu, {scheme_of(args), launch.rank, launch.size}),
                     .comm = nullptr};
    rank.comm = comm::make_nccl_communicator(gpu, std::move(rendezvous));
    const std::shared_ptr<comm::Communicator> comm = rank.comm;
    try {
      work(std::move(rank));
    } catch (const std::exception& error) {
      comm->tell_failure(error.what());
      throw;
    }
  } catch (const std::exception& error) {
    if (rendezvous) rendezvous->tell_failure(error.what());
    throw;
  }
}

std::vector<std::shared_ptr<const Weights>> thread_weights(const RankArgs& args,
                                                           const Device& device,
                                                           const OpenShare& open_share) {
  std::vector<std::shared_ptr<const Weights>> weights;
  for (int rank = 0; rank < args.gpus; ++rank)
    weights.push_back(open_share(device, {scheme_of(args), rank, args.gpus}));
  return weights;
}

}  // namespace tilewright::model
