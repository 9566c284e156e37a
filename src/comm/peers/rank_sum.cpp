#include "comm/peers/rank_sum.h"

#include "base/error.h"

#include <utility>

namespace tilewright::comm {

RankSum::RankSum(const Device& device, std::shared_ptr<Communicator> comm,
                 std::unique_ptr<PeerMemory> memory, std::unique_ptr<PeerMemory> connection_memory)
    : device_(device),
      comm_(std::move(comm)),
      memory_(std::move(memory)),
      connection_memory_(std::move(connection_memory)),
      given_up_(device, comm_) {}

void RankSum::run(const void* in, void* out, std::int64_t count, DType dtype, void* stream) {
  const std::int64_t bytes = count * bits_per_elem(dtype) / 8;
  if (bytes > PeerReduceProblem::kMostBytes || bytes % 16 != 0)
    return comm_->all_reduce(in, out, count, dtype, stream);
  const auto [found, is_new] =
      sums_.try_emplace({count, dtype}, device_,
                        PeerReduceProblem{.ranks = comm_->size(), .count = count, .dtype = dtype});
  // Loading a kernel may wait for devices that map this one's memory: none waits for this rank yet.
  if (is_new) comm_->barrier();
  PeerReduceArguments a = {.rank = comm_->rank(), .given_up = given_up_.get(), .stream = stream};
  a.parts[0] = {in, out};
  for (int r = 0; r < comm_->size(); ++r) a.memory[rank_idx(r)] = memory_->of(r);
  found->second.run(a);
}

HyperConnectionRanks RankSum::connection_ranks() const {
  require(connection_memory_ != nullptr, ErrorKind::kInternal,
          "the sum over ranks was made without memory for hyper-connections");
  HyperConnectionRanks ranks = {
      .rank = comm_->rank(), .ranks = comm_->size(), .memory = {}, .given_up = given_up_.get()};
  for (int r = 0; r < comm_->size(); ++r) ranks.memory[rank_idx(r)] = connection_memory_->of(r);
  return ranks;
}

std::unique_ptr<RankSum> make_rank_sum(const Device& device,
                                       const std::shared_ptr<Communicator>& comm,
                                       std::int64_t hidden) {
  if (!may_have_peers(device, *comm)) return nullptr;
  auto memory =
      std::make_unique<PeerMemory>(device, *comm, PeerReduce::memory(device, comm->size()));
  if (!memory->is_mapped()) return nullptr;
  std::unique_ptr<PeerMemory> connection_memory;
  if (hidden > 0) {
    connection_memory = std::make_unique<PeerMemory>(
        device, *comm, HyperConnection::memory(device, comm->size(), hidden));
    if (!connection_memory->is_mapped()) return nullptr;
  }
  return std::make_unique<RankSum>(device, comm, std::move(memory), std::move(connection_memory));
}

}  // namespace tilewright::comm
