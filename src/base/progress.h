// A line on the terminal that says how far a long job is, how fast, and how long it still takes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>

namespace tilewright {

/// Where and how progress is shown. The default for a stream is made by progress_style(stream).
struct ProgressStyle {
  bool is_shown = false;   ///< false: nothing at all is written
  bool has_color = false;  ///< dims what is less important
  int columns = 80;        ///< the line is cut to fit; a wrapped line cannot be overwritten
};

/// Shown if the stream is a terminal and TERM is neither unset nor "dumb"; in color unless NO_COLOR
/// is set to something (no-color.org); as wide as the terminal.
ProgressStyle progress_style(std::FILE* stream);

/// Shows, at most ten times a second, one line that overwrites itself:
///
///     quantize  1.2/4.9 GB  24%  312 MB/s  12 s left
///
/// Rate and time left are those of the whole job so far. Writing errors are ignored.
/// Thread   add() from any thread; construction, finish() and destruction by one
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `total` is the number of steps, 0 if it is not known. `unit` is what is counted, e.g.
  /// "tensors"; "B", bytes, is shown with decimal prefixes. Label and unit are ASCII.
  Progress(std::FILE* stream, std::string label, std::int64_t total, std::string unit);

  /// The same with everything from outside given, for tests.
  Progress(std::FILE* stream, std::string label, std::int64_t total, std::string unit,
           ProgressStyle style, std::function<Clock::time_point()> now);

  /// Without finish(), e.g. after an exception: ends the line as it is.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// That many more steps are done.
  void add(std::int64_t num_steps = 1);

  /// Replaces the line by the summary "quantize  4.9 GB in 16 s  306 MB/s".
  void finish();

 private:
  void write_state(double elapsed);
  void write_line(std::string text, std::string faint_text, const char* end);
  double elapsed_s(Clock::time_point now) const;

  std::FILE* stream_;
  std::string label_;
  std::int64_t total_;
  std::string unit_;
  ProgressStyle style_;
  std::function<Clock::time_point()> now_;
  Clock::time_point begin_;

  std::atomic<std::int64_t> done_{0};
  std::mutex mutex_;              // of what follows
  Clock::time_point next_write_;  // not before
  std::size_t line_columns_ = 0;  // of the line that stands on the terminal
  bool is_finished_ = false;
};

}  // namespace tilewright
