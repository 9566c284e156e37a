// What orders two accesses and what does not, in every form: the pairs of tests/ptx/bad and good
// hold one of each. All with several orders of warps and CTAs.
#include "sim/event/finding.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"

#include <cstring>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Launched {
  std::uint32_t ctas = 1, threads = 32, cluster = 1;
};

constexpr const char* kHead = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 data_param)
{
  .reg .pred %p<8>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<16>;
  .shared .align 8 .b64 ready;
  .shared .align 8 .b64 value;
  ld.param.u64 %rd1, [data_param];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, ready;
  mov.u32 %r4, value;
)";

/// "race strict": what was found by any of the checks; `text` gets all that was printed.
std::string found(const std::string& body, Launched how, const std::string& checks,
                  AsyncTiming timing, std::uint64_t seed, std::string* text = nullptr) {
  Options options;
  options.checks = parse_checks(checks);
  options.async_timing = timing;
  options.seed = seed;
  options.num_threads = 1;
  Machine machine(*find_device_model("h200"), options);
  std::string printed;
  machine.set_output([](std::string_view) {}, [&](std::string_view more) { printed += more; });
  constexpr std::uint64_t kBytes = 4096;
  const std::uint64_t data = machine.memory().allocate(kBytes, "data");
  std::memset(reinterpret_cast<void*>(data), 0, kBytes);
  machine.mark_defined(data, kBytes);
  Launch launch;
  launch.module = machine.load(parse_module(kHead + body + "DONE:\n  ret;\n}\n", "test.ptx"));
  launch.kernel = "kernel";
  launch.grid.x = how.ctas;
  launch.block.x = how.threads;
  launch.cluster.x = how.cluster;
  launch.params.resize(8);
  std::memcpy(launch.params.data(), &data, 8);
  machine.launch(launch);
  std::set<std::string> kinds;
  for (const Finding& finding : machine.findings().take_all()) kinds.insert(finding.check);
  if (text != nullptr) *text += printed;
  return fmt::format("{}", fmt::join(kinds, " "));
}

/// The same in any order, or "... and ..." if not.
std::string found_always(const std::string& body, Launched how, const std::string& checks = "all",
                         std::string* text = nullptr) {
  std::set<std::string> results;
  for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5}) {
    for (const AsyncTiming timing :
         {AsyncTiming::kEager, AsyncTiming::kLate, AsyncTiming::kRandom}) {
      results.insert(found(body, how, checks, timing, seed, text));
    }
  }
  return fmt::format("{}", fmt::join(results, " and "));
}

// --- Flags -------------------------------------------------------------------------------------

constexpr const char* kSets[] = {
    "st.release.gpu.global.u32 [%rd1], 1;",
    "fence.acq_rel.gpu;\n st.relaxed.gpu.global.u32 [%rd1], 1;",
    "fence.acq_rel.gpu;\n red.relaxed.gpu.global.add.u32 [%rd1], 1;",
    "red.release.gpu.global.add.u32 [%rd1], 1;",
    "atom.acq_rel.gpu.global.add.u32 %r5, [%rd1], 1;",
    "membar.gl;\n atom.global.add.u32 %r5, [%rd1], 1;",
    "membar.gl;\n st.volatile.global.u32 [%rd1], 1;",
    "atom.relaxed.gpu.global.exch.b32 %r5, [%rd1], 1;",
};

constexpr const char* kSpin = "SPIN:\n {}\n setp.eq.u32 %p3, %r6, 0;\n @%p3 bra SPIN;\n";

/// CTA 0 sets a flag and CTA 1 resets it, after it has run `seen`.
std::string flag(const std::string& set, const std::string& seen, const std::string& reset) {
  return fmt::format(
      "setp.ne.u32 %p1, %r1, 0;\n @%p1 bra DONE;\n setp.eq.u32 %p2, %r2, 1;\n @%p2 bra SECOND;\n"
      "{}\n bra.uni DONE;\nSECOND:\n{}{}\n",
      set, seen, reset);
}

std::string spin(const char* load) {
  return fmt::format(fmt::runtime(kSpin), load);
}

TEST(OrderOfFlags, ResetByAPlainStoreIsCleanAfterTheFlagWasSeen) {
  for (const char* set : kSets) {
    for (const char* load : {"ld.acquire.gpu.global.u32 %r6, [%rd1];",
                             "ld.volatile.global.u32 %r6, [%rd1];\n membar.gl;",
                             "atom.acquire.gpu.global.cas.b32 %r6, [%rd1], 1, 1;"}) {
      SCOPED_TRACE(fmt::format("{} / {}", set, load));
      EXPECT_EQ(found_always(flag(set, spin(load), "st.global.u32 [%rd1], 0;"), {2}), "");
    }
  }
}

TEST(OrderOfFlags, ResetIsARaceIfNobodySawTheFlag) {
  const std::string reset = "st.global.u32 [%rd1], 0;";
  for (const char* set : kSets) {
    SCOPED_TRACE(set);
    EXPECT_EQ(found_always(flag(set, "", reset), {2}), "race");
    // Somewhere else, by nobody who can, or not at all.
    EXPECT_EQ(found_always(flag(set, "ld.acquire.gpu.global.u32 %r6, [%rd1+4];\n", reset), {2}),
              "race");
    EXPECT_EQ(found_always(flag(set, spin("ld.global.u32 %r6, [%rd1];"), reset), {2}), "race");
    EXPECT_EQ(found_always(flag(set, spin("ld.acquire.cta.global.u32 %r6, [%rd1];"), reset), {2}),
              "race");
    EXPECT_EQ(found_always(flag(set, "red.acquire.gpu.global.add.u32 [%rd1], 1;\n", reset), {2}),
              "race");
  }
}

TEST(OrderOfFlags, AnotherThreadMayResetBehindABarrier) {
  const std::string wait = spin("ld.acquire.gpu.global.u32 %r6, [%rd1];");
  const char* const frame =
      "setp.eq.u32 %p2, %r2, 1;\n @%p2 bra SECOND;\n setp.ne.u32 %p1, %r1, 0;\n @%p1 bra DONE;\n"
      "st.release.gpu.global.u32 [%rd1], 1;\n bra.uni DONE;\nSECOND:\n setp.ne.u32 %p1, %r1, 0;\n"
      "@%p1 bra MEET;\n{}MEET:\n{}\n setp.ne.u32 %p1, %r1, 32;\n @%p1 bra DONE;\n"
      "st.global.u32 [%rd1], 0;\n";
  EXPECT_EQ(found_always(fmt::format(fmt::runtime(frame), wait, "bar.sync 0;"), {2, 64}), "");
  // If it is reset too early, CTA 1 also waits for ever.
  EXPECT_THAT(found_always(fmt::format(fmt::runtime(frame), wait, "bar.warp.sync -1;"), {2, 64}),
              StartsWith("race"));
}

// A flag that is seen passes on itself, not what its writer did .relaxed elsewhere.
TEST(OrderOfFlags, WhatWasStoredElsewhereIsNotSeen) {
  const std::string set =
      "red.relaxed.gpu.global.add.u32 [%rd1+64], 1;\n st.relaxed.gpu.global.u32 [%rd1], 1;";
  const std::string wait = spin("ld.acquire.gpu.global.u32 %r6, [%rd1];");
  EXPECT_EQ(found_always(flag(set, wait, "ld.global.u32 %r7, [%rd1+64];"), {2}), "race");
  EXPECT_EQ(found_always(flag(set, wait, "st.global.u32 [%rd1], 0;"), {2}), "");
}

// --- Barriers ----------------------------------------------------------------------------------

TEST(OrderOfBarriers, AWarpMayArriveAndWaitInOnePhase) {
  const char* const frame =
      "shr.u32 %r5, %r1, 5;\n setp.lt.u32 %p1, %r5, {0};\n @%p1 bra DONE;\n {1}"
      "mul.wide.u32 %rd2, %r1, 4;\n add.s64 %rd2, %rd1, %rd2;\n st.global.u32 [%rd2], %r1;\n"
      "bar.arrive 1, 288;\n setp.ne.u32 %p2, %r5, {0};\n @%p2 bra DONE;\n {2}"
      "ld.global.u32 %r6, [%rd2+128];\n";
  for (const int ended : {0, 4}) {
    for (const char* first : {"", "bar.sync 1, 256;\n"}) {
      const Launched how{1, 256 + 32 * static_cast<std::uint32_t>(ended)};
      EXPECT_EQ(
          found_always(fmt::format(fmt::runtime(frame), ended, first, "bar.sync 1, 288;\n"), how),
          "");
      EXPECT_EQ(found_always(fmt::format(fmt::runtime(frame), ended, first, ""), how), "race");
    }
  }
}

// Warps 2 and 3 may meet again, and complete the next phase, before warp 0 runs on.
TEST(OrderOfBarriers, WhoWaitsLearnsOfItsOwnPhase) {
  const std::string body =
      "shr.u32 %r5, %r1, 5;\n shl.b32 %r6, %r1, 2;\n setp.eq.u32 %p1, %r5, 0;\n"
      "@%p1 bra WAIT;\n setp.ge.u32 %p2, %r5, 2;\n @%p2 bra OTHERS;\n"
      "st.shared.u32 [%r4], 7;\n bar.arrive 1, 64;\n bar.arrive 2, 96;\n bra.uni DONE;\n"
      "WAIT:\n bar.sync 1, 64;\n ld.shared.u32 %r7, [%r4];\n bra.uni DONE;\n"
      "OTHERS:\n bar.sync 2, 96;\n bar.sync 1, 64;\n";
  std::set<std::string> results;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    results.insert(found(body, {1, 128}, "all", AsyncTiming::kRandom, seed));
  }
  EXPECT_EQ(results.count("race"), 0u);
}

// --- mbarriers ---------------------------------------------------------------------------------

/// CTA 1 does `work` and arrives at CTA 0's mbarrier; CTA 0 waits and does `rest`.
std::string across_ctas(const char* work, const char* arrive, const char* wait, const char* rest) {
  return fmt::format(
      "setp.ne.u32 %p1, %r1, 0;\n @%p1 bra MEET;\n mbarrier.init.shared::cta.b64 [%r3], 1;\n"
      "fence.mbarrier_init.release.cluster;\n st.shared.u32 [%r4], 1;\nMEET:\n"
      "barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n @%p1 bra LEAVE;\n"
      "mapa.shared::cluster.u32 %r5, %r4, 0;\n mapa.shared::cluster.u32 %r6, %r3, 0;\n"
      "mapa.shared::cluster.u32 %r7, %r4, 1;\n"
      "setp.eq.u32 %p2, %r2, 0;\n @%p2 bra TAKE;\n {}\n mbarrier.arrive{}.shared::cluster.b64 _, "
      "[%r6];\n bra.uni LEAVE;\nTAKE:\n mbarrier.try_wait.parity{}.shared::cta.b64 %p3, [%r3], 0;\n"
      "@!%p3 bra TAKE;\n {}\nLEAVE:\n barrier.cluster.arrive.aligned;\n "
      "barrier.cluster.wait.aligned;\n",
      work, arrive, wait, rest);
}

TEST(OrderOfMbarriers, WritesGoToOtherCtasAtClusterScopeOnly) {
  const Launched how{2, 32, 2};
  const char* const kWrite[] = {"st.shared::cluster.u32 [%r5], 7;", "st.global.u32 [%rd1], 7;",
                                "red.global.add.u32 [%rd1], 7;"};
  const char* const kRead[] = {"ld.shared.u32 %r8, [%r4];", "ld.global.u32 %r8, [%rd1];",
                               "ld.global.u32 %r8, [%rd1];"};
  for (std::size_t i = 0; i < std::size(kWrite); ++i) {
    SCOPED_TRACE(kWrite[i]);
    const auto result = [&](const char* arrive, const char* wait) {
      return found_always(across_ctas(kWrite[i], arrive, wait, kRead[i]), how);
    };
    EXPECT_EQ(result(".release.cluster", ".acquire.cluster"), "");
    EXPECT_EQ(result("", ".acquire.cluster"), "race");
    EXPECT_EQ(result(".release.cluster", ""), "race");
    EXPECT_EQ(result(".release.cta", ".acquire.cta"), "race");
    EXPECT_EQ(result(".release.cluster", ".relaxed.cluster"), "race");
    EXPECT_EQ(result(".relaxed.cluster", ".acquire.cluster"), "race");
  }
}

TEST(OrderOfMbarriers, ReadsAreOverAtAnyScope) {
  const Launched how{2, 32, 2};
  const auto result = [&](const char* arrive, const char* wait) {
    return found_always(across_ctas("ld.shared::cluster.u32 %r8, [%r7];", arrive, wait,
                                    "st.shared::cluster.u32 [%r7], 9;"),
                        how);
  };
  EXPECT_EQ(result(".release.cluster", ".acquire.cluster"), "");
  EXPECT_EQ(result("", ""), "");
  EXPECT_EQ(result("", ".relaxed.cluster"), "race");
}

TEST(OrderOfMbarriers, FencesMakeUpForRelaxedOperations) {
  const Launched how{2, 32, 2};
  const auto result = [&](const char* before, const char* after) {
    const std::string write = fmt::format("st.shared::cluster.u32 [%r5], 7;\n{}", before);
    const std::string read = fmt::format("{}\n ld.shared.u32 %r8, [%r4];", after);
    return found_always(
        across_ctas(write.c_str(), ".relaxed.cluster", ".relaxed.cluster", read.c_str()), how);
  };
  EXPECT_EQ(result("fence.acq_rel.cluster;", "fence.acq_rel.cluster;"), "");
  EXPECT_EQ(result("", "fence.acq_rel.cluster;"), "race");
  EXPECT_EQ(result("fence.acq_rel.cluster;", ""), "race");
  EXPECT_EQ(result("fence.acq_rel.cluster;", "fence.acq_rel.cta;"), "race");
}

TEST(OrderOfMbarriers, TheFindingNamesWhatIsTooWeak) {
  const Launched how{2, 32, 2};
  const auto text = [&](const char* arrive, const char* wait) {
    std::string out;
    found_always(
        across_ctas("st.shared::cluster.u32 [%r5], 7;", arrive, wait, "ld.shared.u32 %r8, [%r4];"),
        how, "all", &out);
    return out;
  };
  EXPECT_THAT(text("", ""), HasSubstr("only if both the arrival is .release.cluster"));
  EXPECT_THAT(text(".release.cluster", ".relaxed.cluster"), HasSubstr("its wait is .relaxed"));
  EXPECT_THAT(text(".relaxed.cluster", ".acquire.cluster"), HasSubstr("its arrival"));
}

// --- Stores of one value -----------------------------------------------------------------------

TEST(OrderOfStores, EqualValuesAreNoRace) {
  const auto result = [](const char* first, const char* second, const char* checks) {
    return found_always(fmt::format("shr.u32 %r5, %r1, 5;\n mov.b64 %rd3, {{%r5, 5}};\n"
                                    "setp.eq.u32 %p1, %r5, 0;\n @%p1 {};\n @!%p1 {};\n",
                                    first, second),
                        {1, 64}, checks);
  };
  const char* const five = "st.shared.u32 [value], 5";
  EXPECT_EQ(result(five, five, "all"), "");
  EXPECT_EQ(result(five, five, "all,strict"), "strict");
  EXPECT_EQ(result(five, "st.shared.u32 [value], %r1", "all"), "race");
  EXPECT_EQ(result(five, "st.shared.u32 [value], 6", "all"), "race");
  EXPECT_EQ(result("st.global.u32 [%rd1], 5", "st.global.u32 [%rd1], 5", "all"), "");
  EXPECT_EQ(result("st.global.u32 [%rd1], 5", "st.global.u32 [%rd1], 6", "all"), "race");
  EXPECT_EQ(result("st.global.u8 [%rd1+2], 0", "st.global.v2.u32 [%rd1], {0, 9}", "all"), "");
  EXPECT_EQ(result("st.global.u32 [%rd1+4], 9", "st.global.v2.u32 [%rd1], {0, 8}", "all"), "race");
  EXPECT_EQ(result("st.shared.u32 [value+4], 5", "st.shared.u64 [value], %rd3", "all"), "");
  // Not for a load, whatever is stored.
  EXPECT_EQ(result("st.global.u32 [%rd1], 0", "ld.global.u32 %r6, [%rd1]", "all"), "race");
}

// Two that stored the same stay known: what comes later must be ordered after both.
TEST(OrderOfStores, BothAreRemembered) {
  const std::string body =
      "shr.u32 %r5, %r1, 5;\n setp.lt.u32 %p1, %r5, 2;\n @%p1 st.shared.u32 [value], 5;\n"
      "setp.eq.u32 %p2, %r5, 0;\n @%p2 bra DONE;\n bar.sync 1, 64;\n"
      "setp.eq.u32 %p3, %r5, 2;\n @%p3 ld.shared.u32 %r6, [value];\n";
  EXPECT_EQ(found_always(body, {1, 96}), "race");
}

}  // namespace
}  // namespace tilewright::sim
