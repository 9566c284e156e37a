// Ranks that write into each other's memory: sums for messages so small that the way there and back
// is what they cost, and rows of each to all of them, and parts of sums back.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/device.h"
#include "tilewright/plan.h"
#include "tilewright/tensor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tilewright {

/// out[i] = in_0[i] + in_1[i] + ... over the ranks, in fp32 from left to right, rounded once where
/// bf16: the same bits on all ranks. A NaN stays a NaN.
///
/// Calls     all ranks make the same calls in the same order, with the same memory; also in a
///           graph. A call whose ranks do not come waits until `given_up` says that they will not
struct PeerReduceProblem {
  static constexpr int kMostRanks = 8;
  static constexpr std::int64_t kMostBytes = 64 << 10;  ///< of `in`

  int ranks = 2;              ///< 2 to kMostRanks
  std::int64_t count = 0;     ///< elements; a multiple of 16 bytes, to kMostBytes
  DType dtype = DType::kF32;  ///< or kBF16
};

/// bytes: what a rank reads, sends, and gets.
struct PeerReducePlan : Plan {
  PeerReduceProblem problem;
};

/// What a rank adds and gets.
struct PeerReducePart {
  const void* in = nullptr;
  void* out = nullptr;  ///< may be in
};

/// Device addresses, and the stream to work on.
struct PeerReduceArguments {
  int rank = 0;  ///< of parts[0]
  /// One on a GPU. Several: one launch plays as many ranks in one device's memory, for tests.
  std::array<PeerReducePart, PeerReduceProblem::kMostRanks> parts = {};
  int num_parts = 1;
  /// Of every rank, as this device reaches it: PeerReduce::memory() and what others have.
  std::array<void*, PeerReduceProblem::kMostRanks> memory = {};
  /// A word in memory that the device reads; the kernel ends without a result if it is not 0. Or
  /// null.
  const std::uint32_t* given_up = nullptr;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// A plan with its kernel loaded on a device.
///
/// Thread   run() from one thread at a time: calls with the same memory are in order
class PeerReduce {
 public:
  /// Errors   InvalidArgument with all that is wrong; Unsupported without a kernel for the device;
  ///          DeviceError
  PeerReduce(const Device& device, const PeerReduceProblem& problem);
  ~PeerReduce();
  PeerReduce(PeerReduce&&) noexcept;
  PeerReduce& operator=(PeerReduce&&) noexcept;

  const PeerReducePlan& plan() const noexcept;
  /// Enqueues one kernel.
  /// Errors   InvalidArgument for addresses that are null or not multiples of 16, and ranks that
  ///          are none; DeviceError
  void run(const PeerReduceArguments& arguments) const;

  /// The memory that a rank gives to all calls of these ranks, preset. Whole pages of 2 MiB, which
  /// other processes can map.
  static Buffer memory(const Device& device, int ranks);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as PeerReduce's constructor.
PeerReducePlan plan_peer_reduce(const Device& device, const PeerReduceProblem& problem);

enum class PeerRowsKind {
  /// out = in_0, in_1, ... one behind the other, the same on all ranks. Bits stay, except of 4
  /// bytes of ones, which become another NaN
  kGather,
  /// out = the part of this rank of in_0 + in_1 + ..., in fp32 from left to right, rounded once
  /// where bf16. Each in is as long as the parts of all ranks together
  kScatter,
};
/// "gather", "scatter"
const char* to_string(PeerRowsKind kind) noexcept;

/// Calls     as those of PeerReduce: all ranks make the same calls in the same order, with the same
///           memory
struct PeerRowsProblem {
  static constexpr int kMostRanks = PeerReduceProblem::kMostRanks;
  static constexpr std::int64_t kMostBytes = 4 << 20;  ///< of the rows of one rank

  PeerRowsKind kind = PeerRowsKind::kGather;
  /// Elements of the rows of each rank, 2 to kMostRanks of them; multiples of 16 bytes.
  std::vector<std::int64_t> counts = {};
  DType dtype = DType::kF32;  ///< or kBF16
  /// Bytes of the rows of one rank that the memory was made for, to kMostBytes.
  std::int64_t most_bytes = 0;
};

/// bytes: what a rank reads, sends, and gets, of the one with the most rows.
struct PeerRowsPlan : Plan {
  PeerRowsProblem problem;
};

/// Device addresses, and the stream to work on.
struct PeerRowsArguments {
  int rank = 0;  ///< of parts[0]
  /// One on a GPU. Several: one launch plays as many ranks in one device's memory, for tests. `out`
  /// is not `in`.
  std::array<PeerReducePart, PeerRowsProblem::kMostRanks> parts = {};
  int num_parts = 1;
  /// Of every rank, as this device reaches it: PeerRows::memory() and what others have.
  std::array<void*, PeerRowsProblem::kMostRanks> memory = {};
  /// As that of PeerReduceArguments.
  const std::uint32_t* given_up = nullptr;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// A plan with its kernel loaded on a device.
///
/// Thread   as PeerReduce
class PeerRows {
 public:
  /// Errors   InvalidArgument with all that is wrong; Unsupported without a kernel for the device;
  ///          DeviceError
  PeerRows(const Device& device, const PeerRowsProblem& problem);
  ~PeerRows();
  PeerRows(PeerRows&&) noexcept;
  PeerRows& operator=(PeerRows&&) noexcept;

  const PeerRowsPlan& plan() const noexcept;
  /// Enqueues one kernel.
  /// Errors   InvalidArgument for addresses that are null or not multiples of 16, and ranks that
  ///          are none; DeviceError
  void run(const PeerRowsArguments& arguments) const;

  /// The memory that a rank gives to all calls of these ranks, preset. Whole pages of 2 MiB, which
  /// other processes can map.
  static Buffer memory(const Device& device, int ranks, std::int64_t most_bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as PeerRows's constructor.
PeerRowsPlan plan_peer_rows(const Device& device, const PeerRowsProblem& problem);

}  // namespace tilewright
