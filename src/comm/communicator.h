// Ranks that compute together: what they exchange, in the order of their streams.
#pragma once

#include "tilewright/stream.h"

#include "comm/exchange.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::comm {

/// One rank's end of a group. Behind it are threads of one process (thread_group.h) or NCCL
/// (nccl.h).
///
///     comm->all_reduce(partial, partial, tokens * hidden, DType::kF32, stream.handle());
///     comm->synchronize(stream);
///
/// Collectives are enqueued, as kernels are: they wait for nothing, allocate nothing once a call of
/// that shape has been made, and may be captured in a CUDA graph after such a first call. All ranks
/// make the same calls with fitting sizes in the same order. Calls of a rank are in order: on one
/// stream, or on streams that wait for each other.
///
/// Sums     of kF32 in fp32, of kBF16 in fp32 and rounded once, in_0 + in_1 + ... from left to
///          right, where in_order() says so; NCCL has an order of its own, which depends on size
///          and topology alone
/// Errors   InvalidArgument for a count below 0, a list that is not as long as there are ranks, an
///          address of null for a count above 0, another type, a root that is no rank. What goes
///          wrong once enqueued - sizes that do not fit each other, a rank that died - is told by
///          synchronize() and check() of every rank, with one sentence; nothing waits for ever
/// Thread   one at a time
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  /// "rank 0 of 2 in one process", "rank 0 of 2, NCCL 2.28.9 (libnccl.so.2)"
  virtual std::string description() const = 0;
  /// Whether sums are in the order of the ranks, and so the same bits on every system.
  virtual bool in_order() const noexcept = 0;

  /// out[i] = sum_r in_r[i]; in may be out.
  void all_reduce(const void* in, void* out, std::int64_t count, DType dtype, void* stream);
  /// out = in_0, in_1, ... one behind the other; rank r gives bytes[r].
  void all_gather(const void* in, void* out, std::span<const std::int64_t> bytes, void* stream);
  /// Every rank gives sum(counts) elements; rank r gets the sums of the r-th counts[r] of them.
  void reduce_scatter(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                      void* stream);
  /// The r-th part of in, sent[r] bytes, goes to rank r; out has received[r] bytes of each rank, in
  /// the order of the ranks. sent[r] here is received[here] on rank r.
  void all_to_all(const void* in, void* out, std::span<const std::int64_t> sent,
                  std::span<const std::int64_t> received, void* stream);
  /// data of every rank = data of root.
  void broadcast(void* data, std::int64_t bytes, int root, void* stream);

  /// Blocks this thread until all ranks are here. Has nothing to do with streams.
  /// Errors   DeviceError if a rank has failed or does not come
  virtual void barrier() = 0;
  /// As Stream::synchronize(), and ends if a rank has failed meanwhile.
  /// Errors   DeviceError, InvalidArgument: what check() says; also the stream's
  virtual void synchronize(const Stream& stream) = 0;
  /// Errors   DeviceError, InvalidArgument if this or another rank has failed
  virtual void check() = 0;
  /// Tells the other ranks that this one has failed and why: their check() says it.
  virtual void tell_failure(std::string_view reason) noexcept = 0;
  /// Tells the other ranks that this one makes no more collective calls: who waits for one in
  /// synchronize() is told so. Its end may still have a barrier(). Not while an exception is on its
  /// way. Where ranks are threads nothing happens.
  virtual void leave() noexcept {}
  /// `call` is made once, when this or another rank has failed and before what was enqueued is
  /// ended: for kernels that wait for other ranks by themselves. It may not throw. One of each
  /// `owner`; empty: none any more.
  void when_failed(const void* owner, std::function<void()> call) {
    std::erase_if(when_failed_, [&](const auto& entry) { return entry.first == owner; });
    if (call) when_failed_.emplace_back(owner, std::move(call));
  }

 protected:
  void give_up() noexcept {
    for (const auto& [owner, call] : std::exchange(when_failed_, {})) call();
  }
  virtual void run(const Exchange& exchange, const void* in, void* out, void* stream) = 0;

 private:
  std::vector<std::pair<const void*, std::function<void()>>> when_failed_;
  void run_checked(const Exchange& exchange, const void* in, void* out, void* stream);
};

}  // namespace tilewright::comm
