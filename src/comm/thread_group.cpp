#include "comm/thread_group.h"

#include "base/error.h"
#include "comm/driver_calls.h"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tilewright::comm {

// What a rank brings to an exchange.
struct RankOffer {
  const Exchange* exchange = nullptr;
  const std::byte* in = nullptr;
};

// Page-locked memory of the host.
class HostMemory {
 public:
  HostMemory(const DriverCalls& calls, std::int64_t bytes)
      : calls_(calls),
        memory_(bytes > 0 ? calls.allocate_host(static_cast<std::size_t>(bytes)) : nullptr) {}
  ~HostMemory() { calls_.free_host(memory_); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  std::byte* get() const noexcept { return static_cast<std::byte*>(memory_); }

 private:
  DriverCalls calls_;
  void* memory_;
};

// A point where all ranks wait for each other, again and again.
struct RankGate {
  std::vector<bool> is_here;
  int num_here = 0;
  std::uint64_t times_passed = 0;
};

namespace {

float to_float(std::uint16_t bf16) {
  return std::bit_cast<float>(std::uint32_t{bf16} << 16);
}

// To nearest, ties to even; a NaN stays one.
std::uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

template <class T>
T load(const std::byte* from, std::int64_t i) {
  T value;
  std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

template <class T>
void store(std::byte* to, std::int64_t i, T value) {
  std::memcpy(to + i * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}

// Elements [first, first + count) of all ranks, summed in the order of the ranks.
void add_up(const std::vector<RankOffer>& offers, DType dtype, std::int64_t first,
            std::int64_t count, std::byte* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (std::size_t r = 0; r < offers.size(); ++r) {
      const float x = dtype == DType::kF32 ? load<float>(offers[r].in, first + i)
                                           : to_float(load<std::uint16_t>(offers[r].in, first + i));
      sum = r == 0 ? x : sum + x;
    }
    if (dtype == DType::kF32)
      store(out, i, sum);
    else
      store(out, i, to_bf16(sum));
  }
}

std::int64_t before(const std::vector<std::int64_t>& counts, int rank) {
  std::int64_t sum = 0;
  for (int r = 0; r < rank; ++r) sum += counts[rank_idx(r)];
  return sum;
}

void copy(std::byte*& to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  to += bytes;
}

// What `rank` gets.
void exchange_data(const std::vector<RankOffer>& offers, int rank, std::byte* out) {
  const Exchange& e = *offers[rank_idx(rank)].exchange;
  const int size = static_cast<int>(offers.size());
  switch (e.kind) {
    case ExchangeKind::kAllReduce:
      add_up(offers, e.dtype, 0, e.counts[0], out);
      break;
    case ExchangeKind::kReduceScatter:
      add_up(offers, e.dtype, before(e.counts, rank), e.counts[rank_idx(rank)], out);
      break;
    case ExchangeKind::kAllGather:
      for (int r = 0; r < size; ++r) copy(out, offers[rank_idx(r)].in, e.counts[rank_idx(r)]);
      break;
    case ExchangeKind::kAllToAll:
      for (int r = 0; r < size; ++r) {
        const RankOffer& from = offers[rank_idx(r)];
        copy(out, from.in + before(from.exchange->counts, rank), e.received[rank_idx(r)]);
      }
      break;
    case ExchangeKind::kBroadcast:
      copy(out, offers[rank_idx(e.root)].in, e.counts[0]);
      break;
  }
}

// A sentence if two ranks ask for what does not fit.
std::string difference(const std::vector<RankOffer>& offers) {
  const auto both = [&](std::size_t r, std::size_t q, const char* rule) {
    return fmt::format("rank {} calls {}, rank {} calls {}; {}", r, to_string(*offers[r].exchange),
                       q, to_string(*offers[q].exchange), rule);
  };
  const Exchange& first = *offers[0].exchange;
  for (std::size_t r = 1; r < offers.size(); ++r) {
    const Exchange& other = *offers[r].exchange;
    const bool is_free = first.kind == ExchangeKind::kAllToAll && other.kind == first.kind;
    if (!is_free && other != first)
      return both(0, r, "all ranks make the same calls in the same order, with the same sizes");
  }
  if (first.kind != ExchangeKind::kAllToAll) return {};
  for (std::size_t r = 0; r < offers.size(); ++r)
    for (std::size_t q = 0; q < offers.size(); ++q)
      if (offers[r].exchange->counts[q] != offers[q].exchange->received[r])
        return both(r, q, "what one sends has to be what the other receives");
  return {};
}

}  // namespace

struct ThreadGroup::State {
  State(int num_ranks, std::chrono::milliseconds longest)
      : size(num_ranks),
        timeout(longest),
        has_joined(rank_idx(size)),
        has_left(rank_idx(size)),
        offers(rank_idx(size)) {
    for (RankGate* gate : {&exchange_gate, &host_gate}) gate->is_here.assign(rank_idx(size), false);
  }

  const int size;
  const std::chrono::milliseconds timeout;
  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  std::string failure;  // empty: none
  ErrorKind failure_kind = ErrorKind::kDeviceError;
  std::vector<bool> has_joined, has_left;
  std::vector<RankOffer> offers;
  RankGate exchange_gate, host_gate;
  // Of ranks that have left, while another may still be reading what they offered.
  std::vector<std::shared_ptr<const void>> kept_alive;

  void break_with(ErrorKind kind, std::string text) {
    if (failure.empty()) {
      failure = std::move(text);
      failure_kind = kind;
    }
    changed.notify_all();
  }
  // A rank that the others wait for in vain.
  int missing_for_good(const RankGate& gate) const {
    for (int r = 0; r < size; ++r)
      if (has_left[rank_idx(r)] && !gate.is_here[rank_idx(r)]) return r;
    return -1;
  }

  // Until all ranks are at the gate. The last one looks at what they brought. False: the group is
  // broken, by now or before.
  bool pass(RankGate& gate, int rank, const RankOffer& offer, const std::string& what);
  bool wait(RankGate& gate, int rank, std::unique_lock<std::mutex>& lock, const std::string& what);
};

bool ThreadGroup::State::pass(RankGate& gate, int rank, const RankOffer& offer,
                              const std::string& what) {
  std::unique_lock lock(mutex);
  if (!failure.empty()) return false;
  if (offer.exchange != nullptr) offers[rank_idx(rank)] = offer;
  gate.is_here[rank_idx(rank)] = true;
  if (++gate.num_here < size) return wait(gate, rank, lock, what);
  if (offer.exchange != nullptr) {
    const std::string text = difference(offers);
    if (!text.empty()) break_with(ErrorKind::kInvalidArgument, text);
  }
  gate.num_here = 0;
  gate.is_here.assign(rank_idx(size), false);
  ++gate.times_passed;
  changed.notify_all();
  return failure.empty();
}

bool ThreadGroup::State::wait(RankGate& gate, int rank, std::unique_lock<std::mutex>& lock,
                              const std::string& what) {
  const std::uint64_t now = gate.times_passed;
  const auto is_over = [&] {
    return gate.times_passed != now || !failure.empty() || missing_for_good(gate) >= 0;
  };
  const bool has_ended = changed.wait_for(lock, timeout, is_over);
  if (gate.times_passed != now) return failure.empty();
  if (!has_ended)
    break_with(ErrorKind::kDeviceError,
               fmt::format("rank {} has waited {:g} s in {} and not all of {} ranks came; all have "
                           "to make the same calls",
                           rank, std::chrono::duration<double>(timeout).count(), what, size));
  else if (failure.empty())
    break_with(ErrorKind::kDeviceError, fmt::format("rank {} of {} has ended, and rank {} waits "
                                                    "for it in {}; all have to make the same calls",
                                                    missing_for_good(gate), size, rank, what));
  return false;
}

/// One thread's end.
class ThreadRank final : public Communicator {
 public:
  using State = ThreadGroup::State;

  ThreadRank(std::shared_ptr<State> state, int rank, const Device& device)
      : state_(std::move(state)), rank_(rank), calls_(device), kept_(std::make_shared<Calls>()) {}
  ~ThreadRank() override {
    const std::lock_guard lock(state_->mutex);
    state_->has_left[rank_idx(rank_)] = true;
    state_->kept_alive.push_back(std::move(kept_));
    state_->changed.notify_all();
  }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return state_->size; }
  bool in_order() const noexcept override { return true; }
  std::string description() const override {
    return fmt::format("rank {} of {} in one process", rank_, size());
  }
  void barrier() override {
    if (!state_->pass(state_->host_gate, rank_, {}, "barrier")) check();
  }
  void synchronize(const Stream& stream) override {
    stream.synchronize();
    check();
  }
  void check() override {
    const std::lock_guard lock(state_->mutex);
    if (state_->failure.empty()) return;
    give_up();
    throw Error(state_->failure_kind, state_->failure);
  }
  void tell_failure(std::string_view reason) noexcept override {
    give_up();
    const std::lock_guard lock(state_->mutex);
    state_->break_with(ErrorKind::kDeviceError,
                       fmt::format("rank {} of {} failed: {}", rank_, size(), reason));
  }

 protected:
  void run(const Exchange& exchange, const void* in, void* out, void* stream) override {
    Call& call = call_for(exchange);
    if (call.in.get() != nullptr)
      calls_.copy_to_host(call.in.get(), in, bytes(in_bytes(exchange, rank_)), stream);
    calls_.call_on_host(&meet, &call, stream);
    if (call.out.get() != nullptr)
      calls_.copy_to_device(out, call.out.get(), bytes(out_bytes(exchange, rank_)), stream);
  }

 private:
  // All calls of one shape: the stream does one at a time.
  struct Call {
    ThreadRank* rank;
    Exchange exchange;
    HostMemory in, out;
  };
  using Calls = std::map<Exchange, std::unique_ptr<Call>>;

  static std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

  Call& call_for(const Exchange& exchange) {
    std::unique_ptr<Call>& call = (*kept_)[exchange];
    if (!call)
      call.reset(new Call{this,
                          exchange,
                          {calls_, in_bytes(exchange, rank_)},
                          {calls_, out_bytes(exchange, rank_)}});
    return *call;
  }

  // On the host, when this rank's stream is there.
  static void meet(void* data) {
    const Call& call = *static_cast<const Call*>(data);
    State& state = *call.rank->state_;
    const int rank = call.rank->rank_;
    const std::string what = to_string(call.exchange);
    if (!state.pass(state.exchange_gate, rank, {&call.exchange, call.in.get()}, what)) return;
    exchange_data(state.offers, rank, call.out.get());
    // Before what was offered is overwritten, all have read it.
    state.pass(state.exchange_gate, rank, {}, what);
  }

  std::shared_ptr<State> state_;
  int rank_;
  DriverCalls calls_;
  std::shared_ptr<Calls> kept_;
};

ThreadGroup::ThreadGroup(int size, std::chrono::milliseconds timeout) {
  require(size >= 1 && size <= 64, ErrorKind::kInvalidArgument,
          "ranks: {} threads; expected from 1 to 64", size);
  state_ = std::make_shared<State>(size, timeout);
}

int ThreadGroup::size() const noexcept {
  return state_->size;
}

std::unique_ptr<Communicator> ThreadGroup::join(int rank, const Device& device) {
  require(rank >= 0 && rank < size(), ErrorKind::kInvalidArgument,
          "ranks: rank {} joins a group of {}; expected a rank from 0 to {}", rank, size(),
          size() - 1);
  auto end = std::make_unique<ThreadRank>(state_, rank, device);
  const std::lock_guard lock(state_->mutex);
  require(!state_->has_joined[rank_idx(rank)], ErrorKind::kInvalidArgument,
          "ranks: rank {} of {} joins for the second time; each is one thread", rank, size());
  state_->has_joined[rank_idx(rank)] = true;
  return end;
}

void ThreadGroup::run(const std::function<void(int rank)>& body) {
  std::mutex mutex;
  std::exception_ptr cause, consequence;  // of a rank's own, of another's failure
  const auto note = [&](std::exception_ptr exception, const char* text) {
    const std::scoped_lock lock(mutex, state_->mutex);
    std::exception_ptr& to = text != nullptr && state_->failure == text ? consequence : cause;
    if (!to) to = std::move(exception);
  };
  const auto run_rank = [&](int rank) {
    try {
      body(rank);
      return;
    } catch (const std::exception& error) {
      note(std::current_exception(), error.what());
    } catch (...) {
      note(std::current_exception(), nullptr);
    }
    const std::lock_guard lock(state_->mutex);
    state_->has_left[rank_idx(rank)] = true;
    state_->changed.notify_all();
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < size(); ++rank) threads.emplace_back(run_rank, rank);
  run_rank(0);
  for (std::thread& thread : threads) thread.join();
  if (!cause) cause = consequence;
  if (cause) std::rethrow_exception(cause);
}

}  // namespace tilewright::comm
