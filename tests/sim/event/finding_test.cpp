#include "sim/event/finding.h"

#include "sim/check/order/access_history.h"
#include "sim/check/order/clock.h"
#include "sim/state/byte_shadow.h"

#include <vector>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

Finding race(const std::string& line, const FindingThreads& who = {{0, 0, 0}, {0}, 1}) {
  Finding out;
  out.check = "race";
  out.kernel = "gemm";
  out.what = "race on shared[0x480..0x48f]";
  out.places = {{"written", "gemm.ptx:" + line, "gemm.cu:41", "st.shared.u32 [%r1], %r2;", who}};
  out.missing = "no barrier orders them";
  return out;
}

TEST(Findings, AreTheSameIfTheInstructionsAre) {
  Findings findings;
  EXPECT_TRUE(findings.add(race("88")));
  EXPECT_FALSE(findings.add(race("88", {{7, 0, 0}, {3}, 0xffffffff})));
  EXPECT_TRUE(findings.add(race("89")));
  ASSERT_EQ(findings.take_all().size(), 2);
  EXPECT_EQ(findings.take_all()[0].count, 2);
  EXPECT_EQ(findings.total(), 3);
  findings.clear();
  EXPECT_EQ(findings.total(), 0);
  EXPECT_TRUE(findings.take_all().empty());
}

TEST(Findings, OfOneCauseAreOne) {
  Findings findings;
  Finding first = race("88"), second = race("89"), other = race("90");
  first.cause = second.cause = "between two barriers";
  other.cause = "between two others";
  Findings::Handle handle = Findings::kNone;
  EXPECT_TRUE(findings.add(first, &handle));
  EXPECT_EQ(handle, 0);
  EXPECT_FALSE(findings.add(second, &handle));
  EXPECT_EQ(handle, 0);
  EXPECT_TRUE(findings.add(other, &handle));
  EXPECT_EQ(handle, 1);
  Finding elsewhere = first;
  elsewhere.places[0].ptx = "other.ptx:88";
  EXPECT_TRUE(findings.add(elsewhere));
  findings.add_again(0);
  findings.add_again(1, "race on shared[0x480..0x4ff]");  // more of the same
  const auto all = findings.take_all();
  ASSERT_EQ(all.size(), 3);
  EXPECT_EQ(all[0].count, 3);
  EXPECT_EQ(all[0].others, std::vector<std::string>{"89"});
  EXPECT_TRUE(
      to_string(all[0]).ends_with("\n     3 times in all, for the same reason also at lines 89"))
      << to_string(all[0]);
  EXPECT_EQ(all[1].count, 1);
  EXPECT_EQ(all[1].what, "race on shared[0x480..0x4ff]");
}

TEST(Findings, AreToldInTheOrderOfTheGrid) {
  Findings findings;
  const auto in_cta = [](const std::string& line, std::uint64_t cta) {
    Finding out = race(line, {{static_cast<std::uint32_t>(cta), 0, 0}, {0}, 1});
    out.places[0].order = cta;
    return out;
  };
  findings.add(race("before"));
  findings.add(in_cta("88", 7));
  findings.add(in_cta("90", 3));
  findings.add(in_cta("88", 2));
  findings.add(in_cta("91", 3));
  findings.add(in_cta("88", 5));
  std::vector<std::string> told;
  for (const Finding& finding : findings.take_from(1)) {
    told.push_back(finding.places[0].ptx + " " + describe(finding.places[0].who));
  }
  EXPECT_EQ(told, (std::vector<std::string>{"gemm.ptx:88 CTA (2,0,0) warp 0 lane 0",
                                            "gemm.ptx:90 CTA (3,0,0) warp 0 lane 0",
                                            "gemm.ptx:91 CTA (3,0,0) warp 0 lane 0"}));
}

TEST(Findings, BeyondTheLimitAreOnlyCounted) {
  Findings findings;
  findings.set_limit(1);
  EXPECT_TRUE(findings.add(race("1")));
  Findings::Handle handle = 0;
  EXPECT_FALSE(findings.add(race("2"), &handle));
  EXPECT_EQ(handle, Findings::kNone);
  EXPECT_FALSE(findings.add(race("2")));
  EXPECT_FALSE(findings.add(race("3")));
  findings.add_again(handle);
  EXPECT_EQ(findings.take_all().size(), 1);
  EXPECT_EQ(findings.total(), 5);
  EXPECT_EQ(findings.num_left_out(), 2);
}

TEST(Findings, ArePrintedWithTheirPlaces) {
  EXPECT_EQ(to_string(race("88")),
            "gemm: race on shared[0x480..0x48f] [race]\n"
            "     written at gemm.ptx:88 (gemm.cu:41) by CTA (0,0,0) warp 0 lane 0\n"
            "       st.shared.u32 [%r1], %r2;\n"
            "     no barrier orders them");
}

TEST(ReadableName, IsDecodedAndCut) {
  EXPECT_EQ(readable_name("attention_k5_bf16_d64"), "attention_k5_bf16_d64");
  EXPECT_EQ(readable_name("_Z4copyPfi"), "copy");
  EXPECT_EQ(readable_name("_ZN6models5layerIiE3runEPi"), "models::layer<int>::run");
  EXPECT_EQ(readable_name("_ZN12_GLOBAL__N_14sumsIfLi4EEEvPT_"), "sums<float, 4>");
  EXPECT_EQ(readable_name("_Zno name"), "_Zno name");
  EXPECT_EQ(readable_name(""), "");
  const std::string longest(80, 'k'), longer(81, 'k');
  EXPECT_EQ(readable_name(longest), longest);
  EXPECT_EQ(readable_name(longer), std::string(77, 'k') + "...");
}

TEST(Clock, JoinsWhatEitherKnows) {
  Clock a, b;
  a.raise(3, 5);
  a.raise(1, 2);
  a.raise(3, 4);  // not lower than it was
  b.raise(2, 7);
  b.raise(3, 9);
  a.join(b);
  EXPECT_EQ(a.of(1), 2);
  EXPECT_EQ(a.of(2), 7);
  EXPECT_EQ(a.of(3), 9);
  EXPECT_EQ(a.of(4), 0);
  EXPECT_EQ(b.of(1), 0);
}

AccessRecord access(Agent agent, std::uint32_t time, AccessKind kind, std::uint16_t bytes) {
  AccessRecord out;
  out.agent = out.issuer = agent;
  out.time = time;
  out.kind = kind;
  out.bytes = bytes;
  return out;
}

/// The agents of the records that a cell compares an access with, all of them ordered.
std::vector<Agent> met(AccessCell& cell, const AccessRecord& now, bool is_ordered = true) {
  std::vector<Agent> out;
  cell.add(now, [&](const AccessRecord& old, auto&&) {
    out.push_back(old.agent);
    return is_ordered;
  });
  return out;
}

TEST(AccessCell, ForgetsWhatAnOrderedWriteCovers) {
  AccessCell cell;
  using Agents = std::vector<Agent>;
  EXPECT_EQ(met(cell, access(1, 1, AccessKind::kWrite, 0x00ff)), Agents{});
  EXPECT_EQ(met(cell, access(2, 1, AccessKind::kRead, 0xff00)), Agents{});  // other bytes
  EXPECT_EQ(met(cell, access(3, 1, AccessKind::kRead, 0x000f)), Agents{1});
  EXPECT_EQ(met(cell, access(4, 1, AccessKind::kRead, 0x000f), false), (Agents{1, 3}));
  EXPECT_EQ(met(cell, access(5, 1, AccessKind::kWrite, 0xffff)), (Agents{1, 2, 3, 4}));
  EXPECT_EQ(met(cell, access(6, 1, AccessKind::kRead, 0x0001)), Agents{5});
}

TEST(AccessCell, KeepsWhatIsNotOrdered) {
  AccessCell cell;
  met(cell, access(1, 1, AccessKind::kWrite, 0xffff));
  met(cell, access(2, 1, AccessKind::kWrite, 0xffff), false);
  EXPECT_EQ(met(cell, access(3, 1, AccessKind::kRead, 0xffff)), (std::vector<Agent>{1, 2}));
}

TEST(ByteShadow, KnowsEachByte) {
  ByteShadow shadow(0x10000, 0x90000);
  EXPECT_FALSE(shadow.is_defined(0x10000, 1));
  shadow.set(0x10003, 17, true);
  EXPECT_TRUE(shadow.is_defined(0x10003, 17));
  EXPECT_FALSE(shadow.is_defined(0x10002, 2));
  EXPECT_FALSE(shadow.is_defined(0x10013, 2));
  shadow.set(0x10010, 1, false);
  EXPECT_FALSE(shadow.is_defined(0x10003, 17));
  EXPECT_TRUE(shadow.is_defined(0x8ffff, 2));  // host memory after the end is
  shadow.copy(0x10100, 0x10000, 32);
  EXPECT_TRUE(shadow.is_defined(0x10103, 13));
  EXPECT_FALSE(shadow.is_defined(0x10103, 14));
  shadow.copy(0x10100, 0x100, 32);  // from the host
  EXPECT_TRUE(shadow.is_defined(0x10100, 32));
  shadow.set(0x0, 0x100000, true);
  EXPECT_TRUE(shadow.is_defined(0x10000, 0x80000));
  shadow.set(0x10801, 0x7f000, false);
  EXPECT_TRUE(shadow.is_defined(0x10000, 0x801));
  EXPECT_FALSE(shadow.is_defined(0x10801, 1));
  EXPECT_FALSE(shadow.is_defined(0x8f800, 1));
  EXPECT_TRUE(shadow.is_defined(0x8f801, 0x7ff));
}

}  // namespace
}  // namespace tilewright::sim
