#include "base/thread_pool.h"

#include "base/error.h"
#include "tests/base/expect_error.h"
#include "tests/base/scoped_env.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

using Part = std::pair<std::int64_t, std::int64_t>;

/// The parts that a call makes, sorted.
std::vector<Part> parts_of(ThreadPool& pool, std::int64_t begin, std::int64_t end,
                           std::int64_t grain) {
  std::mutex mutex;
  std::vector<Part> parts;
  pool.parallel_for(begin, end, grain, [&](std::int64_t first, std::int64_t last) {
    const std::lock_guard lock(mutex);
    parts.emplace_back(first, last);
  });
  std::ranges::sort(parts);
  return parts;
}

class ThreadPoolSizes : public ::testing::TestWithParam<int> {
 protected:
  ThreadPool pool{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolSizes, ::testing::Values(1, 2, 3, 8));

TEST_P(ThreadPoolSizes, PartsDependOnTheArgumentsAlone) {
  EXPECT_EQ(pool.num_threads(), GetParam());
  EXPECT_THAT(parts_of(pool, 3, 13, 4), ElementsAre(Part(3, 7), Part(7, 11), Part(11, 13)));
  EXPECT_THAT(parts_of(pool, -4, 4, 4), ElementsAre(Part(-4, 0), Part(0, 4)));
  EXPECT_THAT(parts_of(pool, 0, 3, 100), ElementsAre(Part(0, 3)));
  EXPECT_THAT(parts_of(pool, 5, 5, 1), ElementsAre());
  EXPECT_THAT(parts_of(pool, kMin, kMin, 1), ElementsAre());
}

TEST_P(ThreadPoolSizes, PartsNearTheEndsOfTheRangeOfIntegers) {
  EXPECT_THAT(parts_of(pool, kMax - 3, kMax, 2),
              ElementsAre(Part(kMax - 3, kMax - 1), Part(kMax - 1, kMax)));
  EXPECT_THAT(parts_of(pool, kMin, kMin + 3, 2),
              ElementsAre(Part(kMin, kMin + 2), Part(kMin + 2, kMin + 3)));
  EXPECT_THAT(parts_of(pool, 0, kMax, kMax), ElementsAre(Part(0, kMax)));
  EXPECT_THAT(parts_of(pool, 0, kMax, kMax - 1),
              ElementsAre(Part(0, kMax - 1), Part(kMax - 1, kMax)));
}

TEST_P(ThreadPoolSizes, RunsEveryIndexOnce) {
  std::vector<int> counts(100'000);
  pool.parallel_for(0, 100'000, 7, [&](std::int64_t first, std::int64_t last) {
    for (; first < last; ++first) ++counts[static_cast<std::size_t>(first)];
  });
  EXPECT_EQ(std::ranges::count(counts, 1), 100'000);
}

TEST_P(ThreadPoolSizes, ThrowsTheFirstExceptionByIndexEveryTime) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::atomic<int> num_run = 0;
    try {
      pool.parallel_for(0, 1000, 1, [&](std::int64_t i, std::int64_t) {
        ++num_run;
        // Part 20, the first that fails, fails after part 21 in one run and before it in the next.
        const int sleep_us = i < 20 ? 20 : i == 20 ? 200 : repeat % 2 * 400;
        std::this_thread::sleep_for(std::chrono::microseconds(sleep_us));
        if (i >= 20) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "20");
    }
    // Those before the failure, the failure, and at most what was under way on other threads.
    EXPECT_GE(num_run, 21);
    EXPECT_LE(num_run, 21 + GetParam());
  }
}

TEST_P(ThreadPoolSizes, WorksOnAfterAnException) {
  EXPECT_THROW(pool.parallel_for(0, 10, 1, [](auto, auto) { throw 1; }), int);
  EXPECT_EQ(parts_of(pool, 0, 100, 1).size(), 100u);
}

TEST_P(ThreadPoolSizes, NestedCallsAreComplete) {
  std::vector<std::atomic<int>> counts(16 * 50);
  pool.parallel_for(0, 16, 1, [&](std::int64_t outer, auto) {
    pool.parallel_for(0, 50, 8, [&](std::int64_t first, std::int64_t last) {
      for (; first < last; ++first) ++counts[static_cast<std::size_t>(50 * outer + first)];
    });
  });
  for (const auto& count : counts) ASSERT_EQ(count, 1);
}

TEST_P(ThreadPoolSizes, NestedExceptionsComeThrough) {
  const auto nested = [&](std::int64_t outer, auto) {
    pool.parallel_for(0, 4, 1, [outer](std::int64_t inner, auto) {
      if (outer >= 2 && inner >= 1) throw std::runtime_error(fmt::format("{} {}", outer, inner));
    });
  };
  try {
    pool.parallel_for(0, 8, 1, nested);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "2 1");
  }
}

TEST_P(ThreadPoolSizes, ServesSeveralCallersAtOnce) {
  std::array<std::int64_t, 4> sums{};
  std::vector<std::thread> callers;
  for (std::int64_t& sum : sums) {
    callers.emplace_back([&] {
      std::atomic<std::int64_t> total = 0;
      for (int repeat = 0; repeat < 100; ++repeat) {
        pool.parallel_for(0, 100, 3, [&](std::int64_t first, std::int64_t last) {
          for (; first < last; ++first) total += first;
        });
      }
      sum = total;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(sums, ::testing::Each(100 * 4950));
}

TEST_P(ThreadPoolSizes, CanBeDestroyedAtOnceAndAfterWork) {
  for (int repeat = 0; repeat < 100; ++repeat) {
    const ThreadPool idle(GetParam());
    ThreadPool busy(GetParam());
    EXPECT_EQ(parts_of(busy, 0, 5, 1).size(), 5u);
  }
}

/// Waits until as many threads have arrived as were announced; false after ten seconds.
class Meeting {
 public:
  explicit Meeting(int num_threads) : num_missing_(num_threads) {}
  bool arrive_and_wait() {
    std::unique_lock lock(mutex_);
    --num_missing_;
    all_here_.notify_all();
    return all_here_.wait_for(lock, std::chrono::seconds(10), [this] { return num_missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  int num_missing_;
};

TEST(ThreadPool, UsesAllItsThreadsAtOnce) {
  ThreadPool pool(4);
  Meeting meeting(4);
  std::atomic<int> num_met = 0;
  pool.parallel_for(0, 4, 1, [&](auto, auto) { num_met += meeting.arrive_and_wait(); });
  EXPECT_EQ(num_met, 4);
}

TEST(ThreadPool, NestedCallsRunInOrderOnTheirThread) {
  ThreadPool pool(4);
  ThreadPool other(3);
  std::atomic<int> num_wrong = 0;
  pool.parallel_for(0, 16, 1, [&](auto, auto) {
    for (ThreadPool* nested : {&pool, &other}) {
      const auto thread = std::this_thread::get_id();
      std::int64_t next = 0;
      nested->parallel_for(0, 50, 8, [&](std::int64_t first, std::int64_t last) {
        const bool is_part = first == next && last == std::min<std::int64_t>(first + 8, 50);
        num_wrong += !is_part || std::this_thread::get_id() != thread;
        next = last;
        // Time enough for idle threads of the other pool to take a part if they were asked to.
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      });
      num_wrong += next != 50;
    }
  });
  EXPECT_EQ(num_wrong, 0);
}

TEST(ThreadPool, LoopOfOnePartLeavesThreadsToNestedLoops) {
  ThreadPool pool(2);
  Meeting meeting(2);
  std::atomic<int> num_met = 0;
  pool.parallel_for(0, 1, 1, [&](auto, auto) {
    pool.parallel_for(0, 2, 1, [&](auto, auto) { num_met += meeting.arrive_and_wait(); });
  });
  EXPECT_EQ(num_met, 2);
}

TEST(ThreadPool, RefusalsNameTheValue) {
  const auto error = [](auto&& call) { return error_of(ErrorKind::kInvalidArgument, call); };
  EXPECT_EQ(error([] { ThreadPool(0); }), "ThreadPool: num_threads = 0; expected 1 to 1024");
  EXPECT_EQ(error([] { ThreadPool(1025); }), "ThreadPool: num_threads = 1025; expected 1 to 1024");
  const auto loop_error = [&](std::int64_t begin, std::int64_t end, std::int64_t grain) {
    return error([&] { ThreadPool(2).parallel_for(begin, end, grain, [](auto, auto) {}); });
  };
  EXPECT_EQ(loop_error(0, 5, 0), "parallel_for: grain = 0; expected 1 or more");
  EXPECT_EQ(loop_error(0, 5, -1), "parallel_for: grain = -1; expected 1 or more");
  EXPECT_EQ(loop_error(5, 4, 1),
            "parallel_for: the range [5, 4) ends before it begins or holds 2^63 indices or more");
  EXPECT_THAT(loop_error(-1, kMax, 1), HasSubstr("[-1, 9223372036854775807)"));
}

TEST(DefaultNumThreads, FollowsTheEnvironment) {
  EXPECT_EQ((ScopedEnv("TILEWRIGHT_THREADS", "3"), default_num_threads()), 3);
  EXPECT_EQ((ScopedEnv("TILEWRIGHT_THREADS", "3"), ThreadPool().num_threads()), 3);
  EXPECT_EQ((ScopedEnv("TILEWRIGHT_THREADS", "3"), ThreadPool(2).num_threads()), 2);
  const ScopedEnv unset("TILEWRIGHT_THREADS", nullptr);
  EXPECT_EQ(default_num_threads(),
            std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 1024));
}

TEST(DefaultNumThreads, RefusesNonsense) {
  for (const char* value : {"0", "1025", "many"}) {
    const ScopedEnv env("TILEWRIGHT_THREADS", value);
    EXPECT_EQ(error_of(ErrorKind::kInvalidArgument, [] { ThreadPool(); }),
              std::string("environment variable TILEWRIGHT_THREADS is \"") + value +
                  "\"; expected a whole number from 1 to 1024. Correct or unset it");
  }
}

}  // namespace
}  // namespace tilewright
