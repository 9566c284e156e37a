#include "base/thread_pool.h"

#include "base/env.h"
#include "base/error.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <system_error>
#include <utility>

namespace tilewright {
namespace {

constexpr int kMaxThreads = 1024;

/// Whether this thread is running a part of a loop that several threads share.
thread_local bool is_in_body = false;

struct InBody {
  bool was_in_body = std::exchange(is_in_body, true);
  ~InBody() { is_in_body = was_in_body; }
};

}  // namespace

int default_num_threads() {
  const auto from_env = env_int("TILEWRIGHT_THREADS", 1, kMaxThreads);
  if (from_env) return static_cast<int>(*from_env);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

/// One call of parallel_for. It lives on the stack of the caller, which stays until all have left.
struct ThreadPool::Loop {
  std::int64_t begin;
  std::int64_t num_indices;
  std::int64_t grain;
  const Body& body;

  std::int64_t num_parts() const { return num_indices / grain + (num_indices % grain != 0); }

  void run_part(std::int64_t part) const {
    const std::int64_t first = part * grain;
    const std::int64_t last = first + std::min(grain, num_indices - first);
    body(begin + first, begin + last);
  }

  /// Takes parts until none is left. Every thread takes them in order, and a failure only keeps
  /// later parts from being run. So the first failure is the same however threads are timed.
  void run_share() {
    const InBody in_body;
    while (true) {
      const std::int64_t part = next_part++;
      if (part >= num_parts() || part > first_failed) return;
      try {
        run_part(part);
      } catch (...) {
        record_failure(part);
      }
    }
  }

  void record_failure(std::int64_t part) {
    const std::lock_guard lock(error_mutex);
    if (part > first_failed) return;
    first_failed = part;
    error = std::current_exception();
  }

  std::atomic<std::int64_t> next_part{0};
  std::atomic<std::int64_t> first_failed{std::numeric_limits<std::int64_t>::max()};
  std::mutex error_mutex{};
  std::exception_ptr error{};  // that of first_failed
  int num_workers = 0;         // in run_share(), without the caller
};

ThreadPool::ThreadPool(int num_threads) {
  require(num_threads >= 1 && num_threads <= kMaxThreads, ErrorKind::kInvalidArgument,
          "ThreadPool: num_threads = {}; expected 1 to {}", num_threads, kMaxThreads);
  try {
    start_workers(num_threads - 1);
  } catch (const std::system_error& error) {
    const std::size_t num_started = workers_.size();
    stop_workers();
    fail(ErrorKind::kOutOfMemory, "ThreadPool: the system starts only {} of {} threads: {}",
         num_started, num_threads - 1, error.what());
  }
}

ThreadPool::~ThreadPool() {
  stop_workers();
}

void ThreadPool::start_workers(int num_workers) {
  workers_.reserve(static_cast<std::size_t>(num_workers));
  for (int i = 0; i < num_workers; ++i) workers_.emplace_back([this] { work(); });
}

void ThreadPool::stop_workers() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  has_work_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(lock, [this] { return is_stopping_ || !loops_.empty(); });
    if (loops_.empty()) return;
    Loop& loop = *loops_.front();
    ++loop.num_workers;
    lock.unlock();
    loop.run_share();
    lock.lock();
    std::erase(loops_, &loop);
    if (--loop.num_workers == 0) has_left_.notify_all();
  }
}

void ThreadPool::parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                              const Body& body) {
  require(grain >= 1, ErrorKind::kInvalidArgument, "parallel_for: grain = {}; expected 1 or more",
          grain);
  std::int64_t num_indices = 0;
  const bool is_overflow = __builtin_sub_overflow(end, begin, &num_indices);
  require(begin <= end && !is_overflow, ErrorKind::kInvalidArgument,
          "parallel_for: the range [{}, {}) ends before it begins or holds 2^63 indices or more",
          begin, end);
  Loop loop{begin, num_indices, grain, body};
  if (is_in_body || workers_.empty() || loop.num_parts() <= 1) {
    for (std::int64_t part = 0; part < loop.num_parts(); ++part) loop.run_part(part);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    loops_.push_back(&loop);
  }
  has_work_.notify_all();
  loop.run_share();
  {
    std::unique_lock lock(mutex_);
    std::erase(loops_, &loop);
    has_left_.wait(lock, [&loop] { return loop.num_workers == 0; });
  }
  if (loop.error != nullptr) std::rethrow_exception(loop.error);
}

}  // namespace tilewright
