#include "model/agreement.h"

#include "base/error.h"

#include <algorithm>
#include <exception>
#include <set>

namespace tilewright::model {

namespace {

constexpr std::size_t kMostCancelled = 13;

}  // namespace

struct Agreement::Brought {
  std::int64_t requests;
  std::uint64_t told;
  std::int64_t cancels;  // in all; those that have no room come to another meeting
  std::int64_t cancelled[kMostCancelled];
};

void Agreement::require_the_same(const std::vector<Brought>& ranks) {
  const Brought& first = ranks[0];
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const Brought& other = ranks[rank];
    require(other.requests == first.requests, ErrorKind::kInvalidArgument,
            "ranks: rank {} of {} was given {} prompts so far, rank 0 {}; expected the same ones "
            "on all ranks, in one order and before the same step",
            rank, ranks.size(), other.requests, first.requests);
    require(other.told == first.told, ErrorKind::kInvalidArgument,
            "ranks: rank {} of {} was given other options, prompts or sampling than rank 0 ({} "
            "prompts so far); expected the same on all ranks",
            rank, ranks.size(), first.requests);
  }
}

void Told::add_bytes(std::span<const std::byte> bytes) noexcept {
  for (const std::byte byte : bytes)
    hash_ = (hash_ ^ static_cast<std::uint64_t>(byte)) * 1099511628211U;
}

Agreement::Agreement(const Device& device, std::shared_ptr<comm::Communicator> comm)
    : comm_(std::move(comm)),
      stream_(device),
      own_(device, sizeof(Brought)),
      all_(device, sizeof(Brought) * comm::rank_idx(comm_->size())) {}

// Before anything is freed: what is freed later waits for the others, who may wait for this rank.
Agreement::~Agreement() {
  comm_->leave();
}

std::vector<Agreement::Brought> Agreement::exchange(const Brought& own) {
  static_assert(sizeof(Brought) == 128);
  const std::vector<std::int64_t> bytes(comm::rank_idx(comm_->size()), sizeof(Brought));
  try {
    own_.upload(std::as_bytes(std::span(&own, 1)));
    comm_->all_gather(own_.data(), all_.data(), bytes, stream_.handle());
    comm_->synchronize(stream_);
    return all_.to_vector<Brought>();
  } catch (const std::exception& error) {
    tell_failure(error.what());
    throw;
  }
}

std::vector<std::int64_t> Agreement::meet(std::int64_t requests, const Told& told,
                                          std::span<const std::int64_t> own) {
  std::set<std::int64_t> cancelled;
  std::size_t done = 0, most = 0;
  do {
    Brought mine = {
        .requests = requests, .told = told.hash(), .cancels = std::ssize(own), .cancelled = {}};
    for (std::size_t i = done; i < std::min(own.size(), done + kMostCancelled); ++i)
      mine.cancelled[i - done] = own[i];
    const std::vector<Brought> ranks = exchange(mine);
    require_the_same(ranks);
    for (const Brought& rank : ranks) {
      const auto count = static_cast<std::size_t>(rank.cancels);
      most = std::max(most, count);
      for (std::size_t i = done; i < std::min(count, done + kMostCancelled); ++i)
        cancelled.insert(rank.cancelled[i - done]);
    }
    done += kMostCancelled;
  } while (done < most);
  return {cancelled.begin(), cancelled.end()};
}

}  // namespace tilewright::model
