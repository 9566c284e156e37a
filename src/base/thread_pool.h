// A fixed number of threads that share loops.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tilewright {

/// Threads to use when the caller does not say: the environment variable TILEWRIGHT_THREADS if it
/// is set, else as many as this process may run at once.
/// Errors   InvalidArgument if TILEWRIGHT_THREADS is not a number from 1 to 1024
int default_num_threads();

/// Threads that wait for loops to run. The thread that calls parallel_for works too, so a pool of n
/// starts n - 1 threads, and a pool of one none.
/// Thread   parallel_for from any thread, also from several at once; the pool must not be destroyed
///          before all calls have returned, which also rules out destroying it from within one
class ThreadPool {
 public:
  /// A part of a loop: the indices first .. last - 1.
  using Body = std::function<void(std::int64_t first, std::int64_t last)>;

  /// Errors   InvalidArgument unless num_threads is from 1 to 1024; OutOfMemory if the system
  ///          refuses to start a thread
  explicit ThreadPool(int num_threads = default_num_threads());
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const noexcept { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body for consecutive parts of [begin, end), each of `grain` indices but for the last,
  /// which may be shorter, and returns when all have been run. The parts depend on the arguments
  /// alone, never on the number of threads or on timing: results stored per part are reproducible.
  /// Only which thread runs a part and in which order parts run is open.
  ///
  /// Exceptions: if bodies throw, the exception of the first of those parts is thrown here, the
  /// same one in every run; later parts that have not begun are not run.
  ///
  /// A call from within a body whose loop is spread over threads, by this pool or another, runs its
  /// parts in order on the calling thread: the other threads are busy already.
  /// Errors   InvalidArgument if grain < 1, end < begin or end - begin >= 2^63; what body throws
  void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, const Body& body);

 private:
  struct Loop;

  void start_workers(int num_workers);
  void stop_workers();
  void work();

  std::mutex mutex_;  // of loops_, is_stopping_ and Loop::num_workers
  std::condition_variable has_work_;
  std::condition_variable has_left_;
  std::deque<Loop*> loops_;  // that may have parts left, oldest first
  bool is_stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace tilewright
