#include "sim/report/timeline_svg.h"

#include "base/markup.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr double kMostClocks = 12000;  ///< that are shown
constexpr int kColumns = 500;          ///< of two pixels; a column has one colour
constexpr int kColumnWidth = 2, kLeft = 108, kTop = 62, kRowHeight = 17, kRowStep = 20;
constexpr int kWarpgroupGap = 6, kLegendHeight = 66;
constexpr double kLongWait = 100;  ///< clocks; ends of shorter ones have no line

/// What a row shows at a moment. Causes that look alike share a colour.
enum class Shade : std::uint8_t {
  kNothing,
  kWork,
  kOperand,
  kUnit,
  kMemory,
  kTensor,
  kMbarrier,
  kBarrier,
  kProduct,
};
struct ShadeText {
  const char *name, *words, *light, *dark;
};
constexpr std::array<ShadeText, 9> kShades = {{
    {"none", "", "#f1f0ec", "#222c37"},
    {"work", "issues", "#bfe3c6", "#2c6140"},
    {"operand", "waits for a result", "#e7e2c4", "#57522b"},
    {"unit", "for a busy unit or its turn to issue", "#f2cf97", "#7d5a1f"},
    {"memory", "for data or copies", "#a9dbdf", "#25626a"},
    {"tensor", "for products", "#a9c9ea", "#2b5683"},
    {"mbarrier", "at an mbarrier", "#d5b8e6", "#653d80"},
    {"barrier", "at a barrier", "#f0aebb", "#8a3a4b"},
    {"product", "product", "#2f7fc1", "#2f7fc1"},
}};

Shade shade_of(WaitCause cause) {
  switch (cause) {
    case WaitCause::kOperand:
    case WaitCause::kOwn:
      return Shade::kOperand;
    case WaitCause::kPipe:
    case WaitCause::kIssue:
    case WaitCause::kTensorQueue:
    case WaitCause::kCode:
      return Shade::kUnit;
    case WaitCause::kSharedData:
    case WaitCause::kGlobalData:
    case WaitCause::kCopies:
      return Shade::kMemory;
    case WaitCause::kTensor:
      return Shade::kTensor;
    case WaitCause::kMbarrier:
      return Shade::kMbarrier;
    case WaitCause::kNamedBarrier:
    case WaitCause::kClusterBarrier:
    case WaitCause::kGridBarrier:
      return Shade::kBarrier;
  }
  return Shade::kWork;
}

using Columns = std::array<std::array<double, kShades.size()>, kColumns>;

class TimelinePicture {
 public:
  explicit TimelinePicture(const Prediction& prediction) : prediction_(prediction) {
    double end = 1;
    for (const TimelineSpan& span : prediction.timeline) end = std::max(end, span.end);
    clocks_ = std::min(end, kMostClocks);
    fill_rows();
    place_rows();
  }

  std::string svg(const std::string& kernel) const {
    const int bottom = kTop + height_ + 22;
    const int width = kLeft + kColumns * kColumnWidth + 20, height = bottom + kLegendHeight;
    std::string out = fmt::format(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
        "role='img'>\n<style>\ntext{{font-family:system-ui,'DejaVu Sans',Helvetica,Arial,"
        "sans-serif;font-size:12px}}\n.heading{{font-size:16px;font-weight:600}} "
        ".note{{font-size:11.5px}} .wakes{{stroke-width:1.3;fill:none}}\n{2}"
        "@media (prefers-color-scheme: dark){{\n{3}}}\n</style>\n"
        "<rect class='page' width='{0}' height='{1}'/>\n",
        width, height, style(false), style(true));
    out += text(20, 30, "heading", kernel + ": who waits for whom, predicted");
    out += text(20, 50, "note",
                fmt::format("one CTA, its first {:.0f} clocks ({:.2f} us at {:.0f} MHz)", clocks_,
                            clocks_ / prediction_.clock_hz * 1e6, prediction_.clock_hz * 1e-6));
    for (const auto& [warp, y] : places_) out += row(warp, y);
    return out + wakes() + axis(kTop + height_) + legend(bottom + 24) + "</svg>\n";
  }

 private:
  static std::string style(bool is_dark) {
    std::string out = is_dark ? ".page{fill:#182029} text{fill:#e8edf2} .note{fill:#97a6b5} "
                                ".wakes{stroke:#e8edf2} .tip{fill:#e8edf2}\n"
                              : ".page{fill:#ffffff} text{fill:#1d2733} .note{fill:#5d6b7a} "
                                ".wakes{stroke:#1d2733} .tip{fill:#1d2733}\n";
    for (const ShadeText& shade : kShades) {
      out += fmt::format(".{}{{fill:{}}}\n", shade.name, is_dark ? shade.dark : shade.light);
    }
    return out;
  }
  static std::string text(double x, double y, const char* kind, const std::string& words,
                          const char* anchor = "start") {
    return fmt::format("<text class='{}' x='{:g}' y='{:g}' text-anchor='{}'>{}</text>\n", kind, x,
                       y, anchor, escape_markup(words));
  }
  double x_of(double clock) const { return kLeft + clock / clocks_ * kColumns * kColumnWidth; }

  /// How much of each column each shade takes.
  void fill_rows() {
    for (const TimelineSpan& span : prediction_.timeline) {
      if (span.begin >= clocks_) continue;
      Columns& columns = rows_.try_emplace(span.warp, Columns{}).first->second;
      const Shade shade = span.warp < 0 ? Shade::kProduct : shade_of(span.cause);
      const double end = std::min(span.end, clocks_), to_columns = kColumns / clocks_;
      ends_[span.warp] = std::max(ends_[span.warp], end);
      for (double at = span.begin * to_columns; at < end * to_columns;) {
        const double next = std::min(end * to_columns, std::floor(at) + 1);
        const auto column = std::min<std::size_t>(kColumns - 1, static_cast<std::size_t>(at));
        columns[column][static_cast<std::size_t>(shade)] += next - at;
        at = next;
      }
    }
  }

  /// Warps that end at once have no row.
  void place_rows() {
    int y = 0;
    std::int32_t last = -1;
    for (const auto& [warp, columns] : rows_) {
      if (warp >= 0 && ends_.at(warp) < 0.1 * clocks_) continue;
      if (y != 0 && (last < 0 || warp / 4 != last / 4)) y += kWarpgroupGap;
      places_[warp] = kTop + y;
      y += kRowStep;
      last = warp;
    }
    height_ = y;
  }

  Shade shade_at(std::int32_t warp, std::size_t column) const {
    const auto& parts = rows_.at(warp)[column];
    const double end = ends_.at(warp) * kColumns / clocks_;
    const double rest = warp < 0 || static_cast<double>(column) >= end ? 0.5 : 0;
    const auto* const most = std::ranges::max_element(parts);
    double sum = 0;
    for (const double part : parts) sum += part;
    if (rest == 0 && 1 - sum > *most) return Shade::kWork;
    return *most > rest ? static_cast<Shade>(most - parts.begin()) : Shade::kNothing;
  }

  std::string row(std::int32_t warp, int y) const {
    std::string out = text(kLeft - 10, y + 13, "",
                           warp < 0 ? "tensor cores" : fmt::format("warp {}", warp), "end");
    for (std::size_t begin = 0; begin < kColumns;) {
      const Shade shade = shade_at(warp, begin);
      std::size_t end = begin + 1;
      while (end < kColumns && shade_at(warp, end) == shade) ++end;
      out += fmt::format("<rect class='{}' x='{}' y='{}' width='{}' height='{}'/>\n",
                         kShades[static_cast<std::size_t>(shade)].name,
                         kLeft + kColumnWidth * static_cast<int>(begin), y,
                         kColumnWidth * static_cast<int>(end - begin), kRowHeight);
      begin = end;
    }
    return out;
  }

  /// Of waits that end together and by the same warp, one line.
  std::string wakes() const {
    struct Wake {
      double clock = 0;
      std::set<std::int32_t> warps;
    };
    std::map<std::pair<std::int32_t, int>, Wake> wakes;  // by whom, and the column
    for (const TimelineSpan& span : prediction_.timeline) {
      const bool is_shown = span.end < clocks_ && span.end - span.begin >= kLongWait &&
                            places_.contains(span.warp) && places_.contains(span.ended_by) &&
                            span.ended_by >= 0 && span.ended_by != span.warp;
      if (!is_shown) continue;
      Wake& wake = wakes[{span.ended_by, static_cast<int>(x_of(span.end)) / 8}];
      wake.clock = std::max(wake.clock, span.end);
      wake.warps.insert(span.warp);
    }
    std::string out;
    for (const auto& [by, wake] : wakes) {
      const double x = x_of(wake.clock), from = places_.at(by.first) + kRowHeight / 2.0;
      double top = from, bottom = from;
      for (const std::int32_t warp : wake.warps) {
        const double y = places_.at(warp) + kRowHeight / 2.0;
        top = std::min(top, y), bottom = std::max(bottom, y);
        out += fmt::format("<path class='tip' d='M{:.1f} {:g} l-5 -3.5 v7z'/>\n", x + 4, y);
      }
      out += fmt::format(
          "<path class='wakes' d='M{0:.1f} {1:g}V{2:g}'/>\n<circle class='tip' cx='{0:.1f}' "
          "cy='{3:g}' r='2.6'/>\n",
          x, top, bottom, from);
    }
    return out;
  }

  std::string axis(int y) const {
    const double step = clocks_ > 4000 ? 1000 : clocks_ > 800 ? 200 : 50;
    std::string out;
    for (double clock = 0; clock <= clocks_; clock += step) {
      out += text(x_of(clock), y + 14, "note", fmt::format("{:.0f}", clock), "middle");
    }
    return out;
  }

  static std::string legend(int y) {
    std::string out;
    double x = kLeft;
    for (std::size_t i = 1; i < kShades.size(); ++i) {
      const ShadeText& shade = kShades[i];
      const std::string words = shade.words;
      const double width = 34 + 6.4 * static_cast<double>(words.size());
      if (x + width > kLeft + kColumns * kColumnWidth) x = kLeft, y += 22;
      out += fmt::format("<rect class='{}' x='{:g}' y='{}' width='14' height='12'/>\n", shade.name,
                         x, y - 10);
      out += text(x + 20, y, "note", words);
      x += width;
    }
    return out + text(x, y, "note", "line: from who ended a wait to who goes on");
  }

  const Prediction& prediction_;
  double clocks_ = 0;
  std::map<std::int32_t, Columns> rows_;  ///< by warp; -1: the tensor cores
  std::map<std::int32_t, double> ends_;
  std::map<std::int32_t, int> places_;  ///< y of those that are shown
  int height_ = 0;
};

}  // namespace

std::string timeline_svg(const std::string& kernel, const Prediction& prediction) {
  return TimelinePicture(prediction).svg(kernel);
}

}  // namespace tilewright::sim
