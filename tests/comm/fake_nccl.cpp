// A stand-in for NCCL whose ranks are threads and whose device memory is the host's, as the
// simulator's is: what nccl.cpp calls, with the checks that NCCL has, and a fault that a test
// plants.
#include "comm/nccl_library.h"

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

using namespace tilewright::comm::nccl_abi;

#ifndef FAKE_NCCL_VERSION
#define FAKE_NCCL_VERSION 22809
#endif

namespace {

enum class Kind { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kRecv };

struct Op {
  Kind kind;
  const void* in;
  void* out;
  std::size_t count;
  DataType type;
  int peer;  // or root
};

struct Group {
  int size = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<Op>> ops;
  int num_here = 0;
  std::uint64_t times = 0;
  bool is_aborted = false;

  bool meet() {
    std::unique_lock lock(mutex);
    const std::uint64_t now = times;
    if (++num_here == size) {
      num_here = 0;
      ++times;
      changed.notify_all();
      return true;
    }
    changed.wait(lock, [&] { return times != now || is_aborted; });
    return times != now;
  }
};

std::mutex groups_mutex;
std::map<std::uint64_t, Group> groups;
std::uint64_t next_id = 1;
int planted_error = 0, num_aborts = 0;
thread_local int group_depth = 0;
thread_local std::vector<Op> pending;

std::size_t width(DataType type) {
  return type == kFloat32 ? 4 : type == kBfloat16 ? 2 : 1;
}

}  // namespace

namespace tilewright::comm::nccl_abi {

struct Communicator {
  Group* group;
  int rank;
};

}  // namespace tilewright::comm::nccl_abi

namespace {

thread_local Handle current = nullptr;

std::vector<std::uint8_t> bytes_at(const void* from, std::size_t first, std::size_t count) {
  const auto* const begin = static_cast<const std::uint8_t*>(from) + first;
  return {begin, begin + count};
}

// fp32 only, from the first rank to the last.
std::vector<std::uint8_t> sum_of(const Group& group, std::size_t k, std::size_t first,
                                 std::size_t count) {
  std::vector<float> sums(count);
  for (const auto& ops : group.ops)
    for (std::size_t i = 0; i < count; ++i)
      sums[i] += static_cast<const float*>(ops[k].in)[first + i];
  return bytes_at(sums.data(), 0, 4 * count);
}

std::vector<std::uint8_t> result_of(const Communicator& comm, std::size_t k) {
  const Group& group = *comm.group;
  const auto rank = static_cast<std::size_t>(comm.rank);
  const Op& op = group.ops[rank][k];
  std::vector<std::uint8_t> result;
  switch (op.kind) {
    case Kind::kAllReduce:
      return sum_of(group, k, 0, op.count);
    case Kind::kReduceScatter:
      return sum_of(group, k, rank * op.count, op.count);
    case Kind::kReduce:
      return op.peer == comm.rank ? sum_of(group, k, 0, op.count) : result;
    case Kind::kBroadcast:
      return bytes_at(group.ops[static_cast<std::size_t>(op.peer)][k].in, 0,
                      op.count * width(op.type));
    case Kind::kAllGather:
      for (const auto& ops : group.ops) {
        const auto part = bytes_at(ops[k].in, 0, op.count * width(op.type));
        result.insert(result.end(), part.begin(), part.end());
      }
      return result;
    case Kind::kSend:
      return result;
    case Kind::kRecv:
      for (const Op& sent : group.ops[static_cast<std::size_t>(op.peer)])
        if (sent.kind == Kind::kSend && sent.peer == comm.rank && sent.count == op.count)
          return bytes_at(sent.in, 0, op.count);
  }
  return result;
}

Result run_pending() {
  Group& group = *current->group;
  group.ops[static_cast<std::size_t>(current->rank)] = pending;
  if (!group.meet()) return static_cast<Result>(6);
  std::vector<std::vector<std::uint8_t>> results;
  for (std::size_t k = 0; k < pending.size(); ++k) results.push_back(result_of(*current, k));
  if (!group.meet()) return static_cast<Result>(6);
  for (std::size_t k = 0; k < pending.size(); ++k)
    if (!results[k].empty()) std::memcpy(pending[k].out, results[k].data(), results[k].size());
  pending.clear();
  return group.meet() ? kSuccess : static_cast<Result>(6);
}

Result add(Handle comm, const Op& op) {
  if (comm == nullptr || (op.count > 0 && op.in == nullptr && op.out == nullptr))
    return static_cast<Result>(4);
  current = comm;
  pending.push_back(op);
  return group_depth > 0 ? kSuccess : run_pending();
}

}  // namespace

extern "C" {

Result ncclGetVersion(int* version) {
  *version = FAKE_NCCL_VERSION;
  return kSuccess;
}

Result ncclGetUniqueId(UniqueId* id) {
  const std::lock_guard lock(groups_mutex);
  std::memset(id->internal, 0x5a, sizeof id->internal);
  std::memcpy(id->internal + 120, &next_id, sizeof next_id);  // the end has to arrive, too
  ++next_id;
  return kSuccess;
}

Result ncclCommInitRank(Handle* comm, int size, UniqueId id, int rank) {
  std::uint64_t key = 0;
  std::memcpy(&key, id.internal + 120, sizeof key);
  if (key == 0 || key >= next_id || id.internal[0] != 0x5a) return static_cast<Result>(4);
  {
    const std::lock_guard lock(groups_mutex);
    Group& group = groups[key];
    group.size = size;
    group.ops.resize(static_cast<std::size_t>(size));
    *comm = new Communicator{&group, rank};
  }
  return (*comm)->group->meet() ? kSuccess : static_cast<Result>(6);
}

Result ncclCommDestroy(Handle comm) {
  delete comm;
  return kSuccess;
}

Result ncclCommAbort(Handle comm) {
  {
    const std::lock_guard lock(comm->group->mutex);
    comm->group->is_aborted = true;
    ++num_aborts;
    comm->group->changed.notify_all();
  }
  delete comm;
  return kSuccess;
}

Result ncclCommGetAsyncError(Handle, Result* error) {
  *error = static_cast<Result>(planted_error);
  return kSuccess;
}

const char* ncclGetErrorString(Result result) {
  return result == 6 ? "remote process exited or there was a network error" : "invalid argument";
}

#ifndef FAKE_NCCL_LACKS
const char* ncclGetLastError(Handle) {
  return "fake details";
}
#endif

Result ncclAllReduce(const void* in, void* out, size_t count, DataType type, Operation, Handle comm,
                     void*) {
  return add(comm, {Kind::kAllReduce, in, out, count, type, 0});
}

Result ncclReduce(const void* in, void* out, size_t count, DataType type, Operation, int root,
                  Handle comm, void*) {
  return add(comm, {Kind::kReduce, in, out, count, type, root});
}

Result ncclBroadcast(const void* in, void* out, size_t count, DataType type, int root, Handle comm,
                     void*) {
  return add(comm, {Kind::kBroadcast, in, out, count, type, root});
}

Result ncclAllGather(const void* in, void* out, size_t count, DataType type, Handle comm, void*) {
  return add(comm, {Kind::kAllGather, in, out, count, type, 0});
}

Result ncclReduceScatter(const void* in, void* out, size_t count, DataType type, Operation,
                         Handle comm, void*) {
  return add(comm, {Kind::kReduceScatter, in, out, count, type, 0});
}

Result ncclSend(const void* in, size_t count, DataType type, int peer, Handle comm, void*) {
  return add(comm, {Kind::kSend, in, nullptr, count, type, peer});
}

Result ncclRecv(void* out, size_t count, DataType type, int peer, Handle comm, void*) {
  return add(comm, {Kind::kRecv, nullptr, out, count, type, peer});
}

Result ncclGroupStart() {
  ++group_depth;
  return kSuccess;
}

Result ncclGroupEnd() {
  return --group_depth == 0 && !pending.empty() ? run_pending() : kSuccess;
}

void fake_nccl_plant_error(int error) {
  planted_error = error;
}

int fake_nccl_num_aborts() {
  return num_aborts;
}

}  // extern "C"
