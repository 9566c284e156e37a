#include "comm/nccl.h"

#include "base/error.h"
#include "comm/driver_calls.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tilewright::comm {

namespace {

using nccl_abi::DataType;

DataType nccl_type(DType dtype) {
  if (dtype == DType::kF32) return nccl_abi::kFloat32;
  return dtype == DType::kBF16 ? nccl_abi::kBfloat16 : nccl_abi::kUint8;
}

bool are_equal(const std::vector<std::int64_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [&](std::int64_t c) { return c == counts[0]; });
}

std::size_t to_size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

class NcclRank final : public Communicator {
 public:
  NcclRank(const Device& device, std::unique_ptr<Rendezvous> rendezvous,
           std::shared_ptr<const NcclLibrary> library, std::chrono::milliseconds timeout)
      : calls_(device),
        rendezvous_(std::move(rendezvous)),
        library_(std::move(library)),
        timeout_(timeout) {
    nccl_abi::UniqueId id{};
    if (rank() == 0) check_call(library_->call.get_unique_id(&id), "ncclGetUniqueId");
    std::vector<std::byte> bytes(sizeof id);
    std::memcpy(bytes.data(), &id, sizeof id);
    rendezvous_->share(bytes);
    std::memcpy(&id, bytes.data(), sizeof id);
    rendezvous_->barrier();  // all have come so far: what follows cannot be interrupted
    const DriverCalls::Current current(calls_);
    check_call(library_->call.comm_init_rank(&comm_, size(), id, rank()), "ncclCommInitRank");
  }
  ~NcclRank() override {
    // Destroying waits for the others, who may be gone, or wait for this rank.
    rendezvous_->leave();
    if (comm_ != nullptr && failure_.empty() && rendezvous_->failure().empty())
      library_->call.comm_destroy(comm_);
    else
      abort();
    if (aborted_.valid()) aborted_.wait_for(kAbortTime);
  }

  int rank() const noexcept override { return rendezvous_->rank(); }
  int size() const noexcept override { return rendezvous_->size(); }
  bool in_order() const noexcept override { return false; }
  std::string description() const override {
    return fmt::format("rank {} of {}, {}", rank(), size(), library_->description());
  }

  void barrier() override {
    check();
    rendezvous_->barrier();
  }
  void synchronize(const Stream& stream) override;
  void check() override {
    look();
    if (!failure_.empty()) throw Error(ErrorKind::kDeviceError, failure_);
  }
  void tell_failure(std::string_view reason) noexcept override {
    if (failure_.empty())
      failure_ = fmt::format("rank {} of {} failed: {}", rank(), size(), reason);
    give_up();
    rendezvous_->tell_failure(reason);
  }
  void leave() noexcept override { rendezvous_->leave(); }

 protected:
  void run(const Exchange& exchange, const void* in, void* out, void* stream) override;

 private:
  void check_call(nccl_abi::Result result, const char* function) const;
  void look();
  bool look_now_and_then();
  void look_who_left();
  void abort_with(std::string reason);
  void abort();
  void run_even(const Exchange& e, const void* in, void* out, void* stream) const;
  void run_parts(const Exchange& e, const void* in, void* out, void* stream) const;

  DriverCalls calls_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::shared_ptr<const NcclLibrary> library_;
  std::chrono::milliseconds timeout_;
  std::chrono::steady_clock::time_point next_look_ = {};
  // So long it takes at most where no graph is left; where one is, it does not matter any more.
  static constexpr std::chrono::seconds kAbortTime{2};

  // What a rank that has left had its part in ends long before.
  static constexpr std::chrono::seconds kLeftTime{2};
  std::optional<std::chrono::steady_clock::time_point> left_since_ = {};  // as this wait knows

  nccl_abi::Handle comm_ = nullptr;
  std::future<void> aborted_;
  std::string failure_;
};

void NcclRank::check_call(nccl_abi::Result result, const char* function) const {
  if (result == nccl_abi::kSuccess) return;
  const char* const last = library_->call.get_last_error(comm_);
  fail(ErrorKind::kDeviceError, "rank {} of {}: {} failed: {}{}{}", rank(), size(), function,
       library_->call.get_error_string(result), last != nullptr && *last != '\0' ? "; " : "",
       last != nullptr ? last : "");
}

// Kernels that wait for a dead rank end when the communicator is aborted.
void NcclRank::abort_with(std::string reason) {
  failure_ = std::move(reason);
  give_up();
  abort();
}

// ncclCommAbort first ends the kernels, and then waits until no graph has calls of the communicator
// any more. Graphs die with the step that is about to be told of the failure: so a thread waits.
void NcclRank::abort() {
  if (comm_ == nullptr) return;
  std::promise<void> done;
  aborted_ = done.get_future();
  std::thread([library = library_, comm = std::exchange(comm_, nullptr),
               done = std::move(done)]() mutable {
    library->call.comm_abort(comm);
    done.set_value();
  }).detach();
}

void NcclRank::look() {
  if (!failure_.empty()) return;
  if (std::string text = rendezvous_->failure(); !text.empty()) return abort_with(std::move(text));
  nccl_abi::Result error = nccl_abi::kSuccess;
  const nccl_abi::Result got = library_->call.comm_get_async_error(comm_, &error);
  if (got != nccl_abi::kSuccess) error = got;
  if (error == nccl_abi::kSuccess || error == nccl_abi::kInProgress) return;
  const std::string text = fmt::format("NCCL: {}", library_->call.get_error_string(error));
  rendezvous_->tell_failure(text);
  abort_with(fmt::format("rank {} of {} failed: {}", rank(), size(), text));
}

// A step takes milliseconds: the host looks after the others seldom.
bool NcclRank::look_now_and_then() {
  constexpr std::chrono::milliseconds kPause(20);
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return false;
  next_look_ = now + kPause;
  check();
  return true;
}

// One that is done has not failed; but nobody can wait for it.
void NcclRank::look_who_left() {
  const std::string left = rendezvous_->left();
  const auto now = std::chrono::steady_clock::now();
  if (left.empty()) return;
  if (!left_since_) left_since_ = now;
  if (now - *left_since_ < kLeftTime) return;
  const std::string text =
      fmt::format("{} has ended, and rank {} of {} waits for it", left, rank(), size());
  rendezvous_->tell_failure(text);
  abort_with(text);
  check();
}

void NcclRank::synchronize(const Stream& stream) {
  left_since_.reset();
  const auto begin = std::chrono::steady_clock::now();
  while (!stream.is_idle()) {
    if (look_now_and_then()) look_who_left();
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited > timeout_) {
      const std::string text = fmt::format(
          "its work has not ended after {:g} s, and no rank is known to have failed; "
          "all ranks have to make the same calls with the same sizes",
          std::chrono::duration<double>(timeout_).count());
      rendezvous_->tell_failure(text);
      abort_with(fmt::format("rank {} of {} failed: {}", rank(), size(), text));
      check();
    }
    // Where work is long, the host sleeps.
    if (waited > std::chrono::milliseconds(50))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  look_now_and_then();
  if (!failure_.empty()) check();
}

void NcclRank::run(const Exchange& exchange, const void* in, void* out, void* stream) {
  if (!failure_.empty()) throw Error(ErrorKind::kDeviceError, failure_);
  const DriverCalls::Current current(calls_);
  const bool has_parts = exchange.kind == ExchangeKind::kAllToAll || !are_equal(exchange.counts);
  if (has_parts)
    run_parts(exchange, in, out, stream);
  else
    run_even(exchange, in, out, stream);
}

void NcclRank::run_even(const Exchange& e, const void* in, void* out, void* stream) const {
  const nccl_abi::Functions& call = library_->call;
  const DataType type = nccl_type(e.dtype);
  const std::size_t count = to_size(e.counts[0]);
  if (count == 0) return;
  switch (e.kind) {
    case ExchangeKind::kAllReduce:
      return check_call(call.all_reduce(in, out, count, type, nccl_abi::kSum, comm_, stream),
                        "ncclAllReduce");
    case ExchangeKind::kAllGather:
      return check_call(call.all_gather(in, out, count, type, comm_, stream), "ncclAllGather");
    case ExchangeKind::kReduceScatter:
      return check_call(call.reduce_scatter(in, out, count, type, nccl_abi::kSum, comm_, stream),
                        "ncclReduceScatter");
    case ExchangeKind::kBroadcast:
      return check_call(call.broadcast(in, out, count, type, e.root, comm_, stream),
                        "ncclBroadcast");
    case ExchangeKind::kAllToAll:
      return;  // in parts
  }
}

void NcclRank::run_parts(const Exchange& e, const void* in, void* out, void* stream) const {
  const nccl_abi::Functions& call = library_->call;
  const DataType type = nccl_type(e.dtype);
  const auto* from = static_cast<const std::uint8_t*>(in);
  auto* to = static_cast<std::uint8_t*>(out);
  check_call(call.group_start(), "ncclGroupStart");
  for (int r = 0; r < size(); ++r) {
    const std::int64_t count = e.counts[rank_idx(r)];
    const std::int64_t bytes = bytes_of(e.dtype, count);
    if (e.kind == ExchangeKind::kAllGather && count > 0) {
      check_call(call.broadcast(from, to, to_size(count), type, r, comm_, stream), "ncclBroadcast");
      to += bytes;
    } else if (e.kind == ExchangeKind::kReduceScatter && count > 0) {
      check_call(call.reduce(from, out, to_size(count), type, nccl_abi::kSum, r, comm_, stream),
                 "ncclReduce");
      from += bytes;
    } else if (e.kind == ExchangeKind::kAllToAll) {
      const std::int64_t received = e.received[rank_idx(r)];
      if (count > 0)
        check_call(call.send(from, to_size(count), type, r, comm_, stream), "ncclSend");
      if (received > 0)
        check_call(call.recv(to, to_size(received), type, r, comm_, stream), "ncclRecv");
      from += bytes;
      to += bytes_of(e.dtype, received);
    }
  }
  check_call(call.group_end(), "ncclGroupEnd");
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(const Device& device,
                                                     std::unique_ptr<Rendezvous> rendezvous,
                                                     std::shared_ptr<const NcclLibrary> library,
                                                     std::chrono::milliseconds timeout) {
  return std::make_unique<NcclRank>(device, std::move(rendezvous), std::move(library), timeout);
}

}  // namespace tilewright::comm
