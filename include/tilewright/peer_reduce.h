// A sum over ranks that write into each other's memory: for messages so small that the way there
// and back is what they cost.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/device.h"
#include "tilewright/plan.h"
#include "tilewright/tensor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

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

}  // namespace tilewright
