// Timelines of predicted times: valid for those that read them.
#include "sim/report/timeline_svg.h"
#include "tests/base/scoped_folder.h"
#include "tests/sim/time/timed_machine.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Two warps that compute, load, and meet at a barrier.
std::string meeting_warps() {
  return timed_kernel("ex2.approx.ftz.f32 %g{0}, %f1;\nld.shared.f32 %f2, [%r1];\nbar.sync 0;",
                      "setp.lt.u32 %p, %r0, 32;\n@%p bra BEHIND;\nld.global.b32 %r3, [%rd0];\n"
                      "cvt.rn.f32.u32 %f1, %r3;\nBEHIND:\n");
}

TEST(Timeline, IsATraceWithoutOverlaps) {
  const ScopedFolder folder;
  const std::string path = folder / "timeline.json";
  const std::string kernel = meeting_warps();
  const json predicted = TimedMachine("", 0, path).run(kernel, 64)["predicted"];
  const double whole = predicted["us"].get<double>() - predicted["launch_us"].get<double>();
  const auto num_lines = std::ranges::count(kernel, '\n');
  std::map<int, std::string> rows;
  std::map<int, double> ends;
  int num_spans = 0;
  const json timeline = read_json(path);
  for (const json& event : timeline["traceEvents"]) {
    ASSERT_EQ(event["pid"], 0) << event;
    if (event["ph"] == "M") {
      if (event["name"] == "thread_name") rows[event["tid"]] = event["args"]["name"];
      continue;
    }
    ASSERT_EQ(event["ph"], "X") << event;
    const double begin = event["ts"], clocks = event["dur"];
    const int row = event["tid"];
    ++num_spans;
    EXPECT_GT(clocks, 0) << event;
    EXPECT_GE(begin, ends[row] - 1e-9) << event;
    ends[row] = begin + clocks;
    EXPECT_LE(ends[row], whole + 1e-9) << event;
    EXPECT_TRUE(rows.contains(row)) << event;
    EXPECT_THAT(event["name"].get<std::string>(), Not(testing::IsEmpty()));
    EXPECT_GT(event["args"]["PTX line"], 0) << event;
    EXPECT_LE(event["args"]["PTX line"], num_lines) << event;
  }
  EXPECT_GT(num_spans, 100);
  EXPECT_THAT(rows, testing::Contains(testing::Key(1)));
  EXPECT_THAT(rows, Not(testing::Contains(testing::Key(2))));
}

/// What is wrong with the elements of an XML text; "" if nothing is.
std::string xml_problem(const std::string& text) {
  std::vector<std::string> open;
  std::size_t at = 0;
  for (;;) {
    const std::size_t begin = text.find('<', at);
    const std::string between = text.substr(at, begin - at);
    for (std::size_t i = between.find('&'); i != std::string::npos; i = between.find('&', i + 1)) {
      if (between.find(';', i) > i + 6) return "a bare & in " + between;
    }
    if (begin == std::string::npos) break;
    const std::size_t end = text.find('>', begin);
    if (end == std::string::npos) return "a tag without an end";
    const std::string tag = text.substr(begin + 1, end - begin - 1);
    at = end + 1;
    if (tag.starts_with("!--") || tag.starts_with("?")) continue;
    if (std::ranges::count(tag, '\'') % 2 + std::ranges::count(tag, '"') % 2 != 0) return tag;
    const bool is_end = tag.starts_with("/");
    const std::string inner = tag.substr(is_end ? 1 : 0);
    const std::string name = inner.substr(0, inner.find_first_of(" \n\t/"));
    if (is_end) {
      if (open.empty() || open.back() != name) return "</" + name + "> ends nothing";
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> has no end";
}

TEST(Timeline, ThePictureIsXml) {
  EXPECT_EQ(xml_problem("<a><b x='1'/></a>"), "");
  EXPECT_NE(xml_problem("<a><b></a>"), "");
  EXPECT_NE(xml_problem("<a>1 & 2</a>"), "");
  const ScopedFolder folder;
  const std::string path = folder / "timeline.svg";
  TimedMachine("", 0, path).run(meeting_warps(), 64);
  std::ifstream file(path);
  const std::string svg{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("xmlns='http://www.w3.org/2000/svg'"));
  for (const char* const wrong : {"'nan", "'inf", "'-"}) {
    EXPECT_THAT(svg, Not(HasSubstr(wrong)));
  }
}

// A kernel whose name would be markup, and one that did nothing.
TEST(Timeline, ThePictureOfAnyKernelIsXml) {
  Prediction prediction;
  prediction.clock_hz = 1.98e9;
  EXPECT_EQ(xml_problem(timeline_svg("k<1>&\"x\"", prediction)), "");
}

}  // namespace
}  // namespace tilewright::sim
