#include "base/progress.h"

#include "base/thread_pool.h"
#include "tests/base/scoped_env.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace tilewright {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// A stream whose text can be taken.
class TextStream {
 public:
  ~TextStream() {
    std::fclose(file_);
    std::free(data_);
  }
  std::FILE* file() { return file_; }

  /// What has been written since the last call.
  std::string take() {
    std::fflush(file_);
    std::string text(data_ + taken_, size_ - taken_);
    taken_ = size_;
    return text;
  }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t taken_ = 0;
  std::FILE* file_ = ::open_memstream(&data_, &size_);
};

constexpr ProgressStyle kPlain{.is_shown = true, .has_color = false, .columns = 80};

/// A progress line on a text stream with a clock that is set by hand.
struct Fixture {
  explicit Fixture(std::int64_t total, std::string unit = "tests", ProgressStyle style = kPlain)
      : progress(stream.file(), "run", total, std::move(unit), style, [this] { return now; }) {}

  std::string add_at(Progress::Clock::duration time, std::int64_t num_steps) {
    now = Progress::Clock::time_point() + time;
    progress.add(num_steps);
    return stream.take();
  }
  std::string finish_at(Progress::Clock::duration time) {
    now = Progress::Clock::time_point() + time;
    progress.finish();
    return stream.take();
  }

  Progress::Clock::time_point now;
  TextStream stream;
  Progress progress;
};

TEST(Progress, ShowsAmountRateAndTimeLeft) {
  Fixture run(40);
  EXPECT_EQ(run.add_at(seconds(2), 10), "\rrun  10/40 tests  25%  5.00/s  6.0 s left");
  EXPECT_EQ(run.add_at(seconds(4), 10), "\rrun  20/40 tests  50%  5.00/s  4.0 s left");
}

TEST(Progress, ShowsBytesWithPrefixes) {
  Fixture run(4'900'000'000, "B");
  EXPECT_EQ(run.add_at(seconds(4), 1'225'000'000), "\rrun  1.23/4.90 GB  25%  306 MB/s  12 s left");
  EXPECT_EQ(run.finish_at(seconds(16)),
            "\rrun  1.23 GB in 16 s  76.6 MB/s" + std::string(12, ' ') + "\n");
}

TEST(Progress, ManagesWithoutATotal) {
  Fixture run(0);
  EXPECT_EQ(run.add_at(seconds(1), 1500), "\rrun  1500 tests  1.50 k/s");
}

TEST(Progress, WritesTenTimesASecondAtMost) {
  Fixture run(1000);
  int num_writes = 0;
  for (int ms = 1; ms <= 1000; ++ms) num_writes += !run.add_at(milliseconds(ms), 1).empty();
  EXPECT_EQ(num_writes, 10);
  EXPECT_EQ(run.add_at(milliseconds(1099), 0), "");
  EXPECT_NE(run.add_at(milliseconds(1100), 0), "");
}

TEST(Progress, OverwritesALongerLine) {
  Fixture run(1000);
  const std::string longer = run.add_at(seconds(3600), 1);
  const std::string shorter = run.add_at(seconds(3700), 999);
  ASSERT_EQ(longer, "\rrun  1/1000 tests  0%  0.00/s  more than 99 h left");
  EXPECT_EQ(shorter, "\rrun  1000/1000 tests  100%  0.27/s  0.0 s left" + std::string(4, ' '));
}

TEST(Progress, CutsTheLineToTheTerminal) {
  ProgressStyle style = kPlain;
  style.columns = 21;
  Fixture run(40, "tests", style);
  EXPECT_EQ(run.add_at(seconds(2), 10), "\rrun  10/40 tests  25");
  style.columns = 0;
  Fixture none(40, "tests", style);
  EXPECT_EQ(none.add_at(seconds(2), 10), "\r");
}

TEST(Progress, ColorOnlyDimsRateAndTime) {
  ProgressStyle style = kPlain;
  style.has_color = true;
  Fixture run(40, "tests", style);
  EXPECT_EQ(run.add_at(seconds(2), 10),
            "\rrun  10/40 tests  25%\x1b[2m  5.00/s  6.0 s left\x1b[22m");
}

TEST(Progress, FinishReplacesTheLineBySummaryOnce) {
  Fixture run(40);
  run.add_at(seconds(2), 40);
  EXPECT_EQ(run.finish_at(seconds(4)),
            "\rrun  40 tests in 4.0 s  10.0/s" + std::string(12, ' ') + "\n");
  EXPECT_EQ(run.finish_at(seconds(5)), "");
  EXPECT_EQ(run.add_at(seconds(6), 1), "");
}

TEST(Progress, ShortJobShowsOnlyItsSummary) {
  Fixture run(3);
  EXPECT_EQ(run.add_at(milliseconds(50), 3), "");
  EXPECT_EQ(run.finish_at(milliseconds(60)), "\rrun  3 tests in 0.1 s  50.0/s\n");
}

TEST(Progress, SurvivesAClockThatStandsStill) {
  Fixture run(3);
  EXPECT_EQ(run.finish_at(seconds(0)), "\rrun  0 tests in 0.0 s\n");
}

TEST(Progress, WritesTimeAsPeopleSayIt) {
  const auto time_left = [](Progress::Clock::duration left) {
    Fixture run(2);
    const std::string line = run.add_at(left, 1);  // half done: as much again
    return line.substr(line.find("/s  ") + 4);
  };
  EXPECT_EQ(time_left(milliseconds(9940)), "9.9 s left");
  EXPECT_EQ(time_left(milliseconds(9960)), "10 s left");
  EXPECT_EQ(time_left(milliseconds(59400)), "59 s left");
  EXPECT_EQ(time_left(milliseconds(59600)), "1 min 00 s left");
  EXPECT_EQ(time_left(seconds(185)), "3 min 05 s left");
  EXPECT_EQ(time_left(seconds(2 * 3600 + 7 * 60)), "2 h 07 min left");
  EXPECT_EQ(time_left(hours(99)), "99 h 00 min left");
  EXPECT_EQ(time_left(hours(100)), "more than 99 h left");
}

TEST(Progress, ExceptionEndsTheLine) {
  TextStream stream;
  Progress::Clock::time_point now;
  try {
    Progress progress(stream.file(), "run", 2, "tests", kPlain, [&] { return now; });
    now += seconds(1);
    progress.add();
    throw std::runtime_error("stop");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(stream.take(), "\rrun  1/2 tests  50%  1.00/s  1.0 s left\n");
}

TEST(Progress, IsQuietWhenNotShown) {
  Fixture run(2, "tests", ProgressStyle{.is_shown = false});
  EXPECT_EQ(run.add_at(seconds(1), 1), "");
  EXPECT_EQ(run.finish_at(seconds(2)), "");
}

TEST(Progress, CountsStepsOfAllThreads) {
  TextStream stream;
  Progress progress(stream.file(), "run", 100'000, "tests", kPlain, &Progress::Clock::now);
  ThreadPool(4).parallel_for(0, 100'000, 100, [&](std::int64_t first, std::int64_t last) {
    for (; first < last; ++first) progress.add();
  });
  progress.finish();
  EXPECT_THAT(stream.take(), HasSubstr("run  100000 tests in "));
}

/// Both ends of a terminal that exists only here.
class PseudoTerminal {
 public:
  PseudoTerminal() {
    if (main_fd_ < 0 || ::grantpt(main_fd_) != 0 || ::unlockpt(main_fd_) != 0) return;
    terminal_ = std::fopen(::ptsname(main_fd_), "w");
  }
  ~PseudoTerminal() {
    if (terminal_ != nullptr) std::fclose(terminal_);
    if (main_fd_ >= 0) ::close(main_fd_);
  }
  std::FILE* file() { return terminal_; }

  std::string take() {
    char buffer[1000];
    const ssize_t size = ::read(main_fd_, buffer, sizeof(buffer));
    return {buffer, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

 private:
  int main_fd_ = ::posix_openpt(O_RDWR | O_NOCTTY);
  std::FILE* terminal_ = nullptr;
};

class ProgressStyleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (terminal.file() == nullptr) GTEST_SKIP() << "no pseudo terminal can be opened here";
  }
  PseudoTerminal terminal;
  ScopedEnv term{"TERM", "xterm"};
  ScopedEnv no_color{"NO_COLOR", nullptr};
};

TEST_F(ProgressStyleTest, TerminalShowsColor) {
  EXPECT_TRUE(progress_style(terminal.file()).is_shown);
  EXPECT_TRUE(progress_style(terminal.file()).has_color);
}

TEST_F(ProgressStyleTest, NoColorIsHonoured) {
  const ScopedEnv env("NO_COLOR", "1");
  EXPECT_TRUE(progress_style(terminal.file()).is_shown);
  EXPECT_FALSE(progress_style(terminal.file()).has_color);
}

TEST_F(ProgressStyleTest, EmptyNoColorMeansNothing) {
  const ScopedEnv env("NO_COLOR", "");
  EXPECT_TRUE(progress_style(terminal.file()).has_color);
}

TEST_F(ProgressStyleTest, DumbTerminalIsLeftAlone) {
  EXPECT_FALSE((ScopedEnv("TERM", "dumb"), progress_style(terminal.file()).is_shown));
  EXPECT_FALSE((ScopedEnv("TERM", nullptr), progress_style(terminal.file()).is_shown));
}

TEST_F(ProgressStyleTest, WidthIsThatOfTheTerminal) {
  struct winsize size {};
  size.ws_col = 123;
  size.ws_row = 40;
  ASSERT_EQ(::ioctl(::fileno(terminal.file()), TIOCSWINSZ, &size), 0);
  EXPECT_EQ(progress_style(terminal.file()).columns, 123);
}

TEST_F(ProgressStyleTest, ProgressReachesTheTerminal) {
  Progress progress(terminal.file(), "run", 2, "tests");
  progress.add(2);
  progress.finish();
  EXPECT_THAT(terminal.take(), HasSubstr("run  2 tests in "));
}

TEST(ProgressStyle, FilesAndMemoryStayQuiet) {
  const ScopedEnv term("TERM", "xterm");
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(progress_style(file).is_shown);
  {
    Progress progress(file, "run", 2, "tests");
    progress.add(2);
    progress.finish();
  }
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
  TextStream stream;
  EXPECT_FALSE(progress_style(stream.file()).is_shown);
}

}  // namespace
}  // namespace tilewright
