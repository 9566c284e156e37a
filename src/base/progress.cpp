#include "base/progress.h"

#include "base/env.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace tilewright {
namespace {

constexpr auto kWriteInterval = std::chrono::milliseconds(100);

struct Prefix {
  double factor;
  const char* name;
};

/// The decimal prefix that leaves at most three digits before the point.
Prefix prefix_for(double value) {
  constexpr std::array<Prefix, 5> kPrefixes = {
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}};
  return *std::ranges::find_if(kPrefixes, [value](const Prefix& prefix) {
    return value >= prefix.factor || prefix.factor == 1;
  });
}

std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

/// "3.21/4.90 GB", "12/40 tensors", "12 tensors".
std::string amount_text(std::int64_t done, std::int64_t total, const std::string& unit) {
  if (unit != "B") {
    return total > 0 ? fmt::format("{}/{} {}", done, total, unit)
                     : fmt::format("{} {}", done, unit);
  }
  const Prefix prefix = prefix_for(static_cast<double>(std::max(done, total)));
  const std::string done_text = three_digits(static_cast<double>(done) / prefix.factor);
  if (total <= 0) return fmt::format("{} {}B", done_text, prefix.name);
  return fmt::format("{}/{} {}B", done_text,
                     three_digits(static_cast<double>(total) / prefix.factor), prefix.name);
}

/// "312 MB/s", "4.20/s".
std::string rate_text(double per_second, const std::string& unit) {
  const Prefix prefix = prefix_for(per_second);
  const std::string scaled_unit = prefix.name + (unit == "B" ? unit : "");
  return fmt::format("{}{}{}/s", three_digits(per_second / prefix.factor),
                     scaled_unit.empty() ? "" : " ", scaled_unit);
}

/// "12 s", "3 min 05 s", "2 h 07 min".
std::string duration_text(double seconds) {
  constexpr double kLongest = 100 * 3600.0;
  if (!(seconds < kLongest)) return "more than 99 h";
  if (seconds < 9.95) return fmt::format("{:.1f} s", std::max(seconds, 0.0));
  const int whole = static_cast<int>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

ProgressStyle progress_style(std::FILE* stream) {
  ProgressStyle style;
  const int fd = ::fileno(stream);
  const std::string term = env_text("TERM");
  const bool is_dumb = term.empty() || term == "dumb";
  style.is_shown = fd >= 0 && ::isatty(fd) == 1 && !is_dumb;
  style.has_color = style.is_shown && env_text("NO_COLOR").empty();
  struct winsize size {};
  if (style.is_shown && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    style.columns = size.ws_col;
  }
  return style;
}

Progress::Progress(std::FILE* stream, std::string label, std::int64_t total, std::string unit)
    : Progress(stream, std::move(label), total, std::move(unit), progress_style(stream),
               &Clock::now) {}

Progress::Progress(std::FILE* stream, std::string label, std::int64_t total, std::string unit,
                   ProgressStyle style, std::function<Clock::time_point()> now)
    : stream_(stream),
      label_(std::move(label)),
      total_(total),
      unit_(std::move(unit)),
      style_(style),
      now_(std::move(now)),
      begin_(now_()),
      next_write_(begin_ + kWriteInterval) {}

Progress::~Progress() {
  if (!is_finished_ && line_columns_ > 0) std::fputc('\n', stream_);
}

void Progress::add(std::int64_t num_steps) {
  done_ += num_steps;
  if (!style_.is_shown) return;
  // Another thread that is writing just now shows this step, or the next one does.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  const auto now = now_();
  if (is_finished_ || now < next_write_) return;
  next_write_ = now + kWriteInterval;
  write_state(elapsed_s(now));
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(is_finished_, true) || !style_.is_shown) return;
  const double elapsed = elapsed_s(now_());
  const auto done = done_.load();
  const std::string rate =
      elapsed > 0 ? "  " + rate_text(static_cast<double>(done) / elapsed, unit_) : "";
  write_line(
      fmt::format("{}  {} in {}", label_, amount_text(done, 0, unit_), duration_text(elapsed)),
      rate, "\n");
}

/// Label, amount and percentage; then, less prominent, rate and time left as far as they are known.
void Progress::write_state(double elapsed) {
  const auto done = static_cast<double>(done_);
  const auto total = static_cast<double>(total_);
  std::string text = fmt::format("{}  {}", label_, amount_text(done_, total_, unit_));
  if (total > 0) text += fmt::format("  {:.0f}%", 100 * done / total);
  std::string faint_text;
  if (done > 0 && elapsed > 0) {
    faint_text = "  " + rate_text(done / elapsed, unit_);
    if (total > 0) {
      faint_text += fmt::format("  {} left", duration_text((total - done) * elapsed / done));
    }
  }
  write_line(text, faint_text, "");
}

/// Overwrites the line: back to its beginning, the text, spaces over what is left of the old one.
/// The last column stays free; some terminals wrap as soon as it is written.
void Progress::write_line(std::string text, std::string faint_text, const char* end) {
  const auto columns = static_cast<std::size_t>(std::max(style_.columns - 1, 0));
  text.resize(std::min(text.size(), columns));
  faint_text.resize(std::min(faint_text.size(), columns - text.size()));
  const std::size_t num_columns = text.size() + faint_text.size();
  const std::size_t num_spaces = line_columns_ - std::min(line_columns_, num_columns);
  const bool has_color = style_.has_color && !faint_text.empty();
  const std::string line =
      fmt::format("\r{}{}{}{}{:{}}{}", text, has_color ? "\x1b[2m" : "", faint_text,
                  has_color ? "\x1b[22m" : "", "", num_spaces, end);
  std::fwrite(line.data(), 1, line.size(), stream_);
  std::fflush(stream_);
  line_columns_ = num_columns;
}

double Progress::elapsed_s(Clock::time_point now) const {
  return std::chrono::duration<double>(now - begin_).count();
}

}  // namespace tilewright
