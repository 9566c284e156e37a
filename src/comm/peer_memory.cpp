#include "comm/peer_memory.h"

#include "base/error.h"

#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace tilewright::comm {

namespace {

// What a rank tells of its buffer.
struct Offer {
  std::array<char, 64> host = {};
  std::int64_t process = 0;
  std::uint64_t address = 0, context = 0;
  DriverCalls::IpcHandle handle = {};
  std::int64_t has_handle = 0;
};

std::array<char, 64> host_name() {
  std::array<char, 64> name = {};
  ::gethostname(name.data(), name.size() - 1);
  return name;
}

// The same from every rank, through the device: no other way is needed.
template <class T>
std::vector<T> gather(const Device& device, Communicator& comm, const T& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  const Stream stream(device);
  const auto size = static_cast<std::size_t>(comm.size());
  const Buffer in = Buffer::from(device, std::vector<T>{own});
  const Buffer out(device, size * sizeof(T));
  comm.all_gather(in.data(), out.data(), std::vector<std::int64_t>(size, std::int64_t{sizeof(T)}),
                  stream.handle());
  comm.synchronize(stream);
  return out.to_vector<T>();
}

}  // namespace

PeerMemory::PeerMemory(const Device& device, Communicator& comm, Buffer own)
    : calls_(device), own_(std::move(own)), addresses_(rank_idx(comm.size()), nullptr) {
  map_all(comm);
}

PeerMemory::~PeerMemory() {
  for (void* const address : opened_) calls_.close_peer(address);
}

void PeerMemory::map_all(Communicator& comm) {
  Offer own = {.host = host_name(),
               .process = ::getpid(),
               .address = reinterpret_cast<std::uintptr_t>(own_.data()),
               .context = reinterpret_cast<std::uintptr_t>(calls_.device().context())};
  own.has_handle = calls_.export_memory(own_.data(), own.handle) ? 1 : 0;
  const std::vector<Offer> offers = gather(calls_.device(), comm, own);
  std::string problem;
  for (int r = 0; r < comm.size() && problem.empty(); ++r) {
    const Offer& offer = offers[rank_idx(r)];
    void*& address = addresses_[rank_idx(r)];
    if (r == comm.rank()) {
      address = own_.data();
    } else if (offer.host != own.host) {
      problem = fmt::format("rank {} is on another host", r);
    } else if (offer.process == own.process) {
      if (calls_.reach_context(reinterpret_cast<void*>(offer.context)))
        address = reinterpret_cast<void*>(offer.address);
      else
        problem = fmt::format("the device of rank {} is out of reach", r);
    } else if (offer.has_handle != 0) {
      address = calls_.open_peer(offer.handle);
      if (address != nullptr)
        opened_.push_back(address);
      else
        problem = fmt::format("the memory of rank {} cannot be mapped", r);
    } else {
      problem = fmt::format("rank {} has memory that it cannot export", r);
    }
  }
  const auto told = gather(calls_.device(), comm, std::int32_t{problem.empty() ? 1 : 0});
  obstacle_ = problem;
  for (int r = 0; r < comm.size() && obstacle_.empty(); ++r)
    if (told[rank_idx(r)] == 0) obstacle_ = fmt::format("rank {} has not reached all others", r);
}

}  // namespace tilewright::comm
