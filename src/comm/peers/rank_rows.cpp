#include "comm/peers/rank_rows.h"

#include <algorithm>
#include <utility>

namespace tilewright::comm {

RankRows::RankRows(const Device& device, std::shared_ptr<Communicator> comm,
                   std::unique_ptr<PeerMemory> memory)
    : device_(device),
      comm_(std::move(comm)),
      memory_(std::move(memory)),
      given_up_(device, comm_) {}

bool RankRows::run(PeerRowsKind kind, const void* in, void* out,
                   const std::vector<std::int64_t>& counts, DType dtype, void* stream) {
  constexpr std::int64_t kWordBytes = 16;
  const auto fits = [&](std::int64_t count) {
    const std::int64_t bytes = bytes_of(dtype, count);
    return bytes <= kMostBytes && bytes % kWordBytes == 0;
  };
  if (!std::ranges::all_of(counts, fits)) return false;
  const auto [found, is_new] = made_.try_emplace(
      {kind, counts, dtype}, device_,
      PeerRowsProblem{.kind = kind, .counts = counts, .dtype = dtype, .most_bytes = kMostBytes});
  // Loading a kernel may wait for devices that map this one's memory: none waits for this rank yet.
  if (is_new) comm_->barrier();
  PeerRowsArguments a = {.rank = comm_->rank(), .given_up = given_up_.get(), .stream = stream};
  a.parts[0] = {in, out};
  for (int r = 0; r < comm_->size(); ++r) a.memory[rank_idx(r)] = memory_->of(r);
  found->second.run(a);
  return true;
}

void RankRows::gather(const void* in, void* out, const std::vector<std::int64_t>& counts,
                      DType dtype, void* stream) {
  if (run(PeerRowsKind::kGather, in, out, counts, dtype, stream)) return;
  std::vector<std::int64_t> bytes;
  for (const std::int64_t count : counts) bytes.push_back(bytes_of(dtype, count));
  comm_->all_gather(in, out, bytes, stream);
}

void RankRows::scatter(const void* in, void* out, const std::vector<std::int64_t>& counts,
                       DType dtype, void* stream) {
  if (!run(PeerRowsKind::kScatter, in, out, counts, dtype, stream))
    comm_->reduce_scatter(in, out, counts, dtype, stream);
}

std::unique_ptr<RankRows> make_rank_rows(const Device& device,
                                         const std::shared_ptr<Communicator>& comm) {
  if (!may_have_peers(device, *comm)) return nullptr;
  auto memory = std::make_unique<PeerMemory>(
      device, *comm, PeerRows::memory(device, comm->size(), RankRows::kMostBytes));
  if (!memory->is_mapped()) return nullptr;
  return std::make_unique<RankRows>(device, comm, std::move(memory));
}

}  // namespace tilewright::comm
