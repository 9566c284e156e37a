// NCCL, found at run time: the functions that are called here, declared by hand.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace tilewright::comm {

namespace nccl_abi {

// As nccl.h has them since 2.10, in which bf16 came.
struct Communicator;  // opaque
using Handle = Communicator*;
struct UniqueId {
  char internal[128];
};
enum Result : int { kSuccess = 0, kInProgress = 7 };
enum DataType : int { kUint8 = 1, kFloat32 = 7, kBfloat16 = 9 };
enum Operation : int { kSum = 0 };

// clang-format off
#define TILEWRIGHT_NCCL_FUNCTIONS(X)                                                              \
  X(get_version, ncclGetVersion, Result, (int* version))                                          \
  X(get_unique_id, ncclGetUniqueId, Result, (UniqueId* id))                                       \
  X(comm_init_rank, ncclCommInitRank, Result, (Handle* comm, int size, UniqueId id, int rank))    \
  X(comm_destroy, ncclCommDestroy, Result, (Handle comm))                                         \
  X(comm_abort, ncclCommAbort, Result, (Handle comm))                                             \
  X(comm_get_async_error, ncclCommGetAsyncError, Result, (Handle comm, Result* error))            \
  X(get_error_string, ncclGetErrorString, const char*, (Result result))                           \
  X(get_last_error, ncclGetLastError, const char*, (Handle comm))                                 \
  X(all_reduce, ncclAllReduce, Result,                                                            \
    (const void* in, void* out, size_t count, DataType type, Operation op, Handle comm,           \
     void* stream))                                                                               \
  X(reduce, ncclReduce, Result,                                                                   \
    (const void* in, void* out, size_t count, DataType type, Operation op, int root, Handle comm, \
     void* stream))                                                                               \
  X(broadcast, ncclBroadcast, Result,                                                             \
    (const void* in, void* out, size_t count, DataType type, int root, Handle comm,               \
     void* stream))                                                                               \
  X(all_gather, ncclAllGather, Result,                                                            \
    (const void* in, void* out, size_t count, DataType type, Handle comm, void* stream))          \
  X(reduce_scatter, ncclReduceScatter, Result,                                                    \
    (const void* in, void* out, size_t count, DataType type, Operation op, Handle comm,           \
     void* stream))                                                                               \
  X(send, ncclSend, Result,                                                                       \
    (const void* in, size_t count, DataType type, int peer, Handle comm, void* stream))           \
  X(recv, ncclRecv, Result,                                                                       \
    (void* out, size_t count, DataType type, int peer, Handle comm, void* stream))                \
  X(group_start, ncclGroupStart, Result, ())                                                      \
  X(group_end, ncclGroupEnd, Result, ())
// clang-format on

struct Functions {
#define TILEWRIGHT_MEMBER(member, exported, result, parameters) \
  result(*member) parameters = nullptr;
  TILEWRIGHT_NCCL_FUNCTIONS(TILEWRIGHT_MEMBER)
#undef TILEWRIGHT_MEMBER
};

}  // namespace nccl_abi

/// The loaded library; it stays loaded.
class NcclLibrary {
 public:
  static constexpr int kLeastVersion = 21800;  ///< 2.18, the first for Hopper with CUDA 12.1
  static constexpr const char* kVariable = "TILEWRIGHT_NCCL_LIBRARY";

  /// `path` is a file, or a name for the dynamic loader. Empty: what TILEWRIGHT_NCCL_LIBRARY says,
  /// else libnccl.so.2.
  /// Errors   Unsupported if there is no such library, it lacks a function, or is older than 2.18;
  ///          the sentence says how to get one
  static std::shared_ptr<const NcclLibrary> open(const std::string& path = "");

  nccl_abi::Functions call;

  int version() const noexcept { return version_; }  ///< 10000 * major + 100 * minor + patch
  /// "NCCL 2.28.9 (/usr/lib/libnccl.so.2)"
  std::string description() const;

 private:
  NcclLibrary() = default;
  std::string path_;
  int version_ = 0;
};

}  // namespace tilewright::comm
