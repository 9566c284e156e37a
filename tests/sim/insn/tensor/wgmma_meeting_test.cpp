// The four warps of a warpgroup wait for each other at every wgmma: shared memory that each of them
// filled in part is read when all have come, without a barrier. The manual wants the barrier, which
// is what `strict` says; FlashMLA's dense decode is without.
#include "sim/event/finding.h"
#include "tests/sim/insn/ptx_run.h"

#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

struct Kernel {
  int late_warp = 3;
  bool has_barrier = false;
  bool is_a_in_registers = false;
  std::string before_wgmma, after_wgmma;
};

constexpr const char* kText = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 in, .param .u64 out) {{
  .reg .pred %p, %late;
  .reg .b32 %t, %x, %q, %w, %n, %one;
  .reg .b64 %o, %a, %ad, %bd;
  .reg .f32 %d<32>;
  .shared .align 1024 .b8 tiles[16384];
  ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x;
  mad.wide.u32 %o, %t, 128, %o;
  shl.b32 %x, %t, 2;
  mov.u32 %q, tiles;
  add.u32 %q, %q, %x;
{fill}  fence.proxy.async.shared::cta;
  bar.sync 0;
  shr.u32 %x, %t, 5;
  setp.eq.u32 %late, %x, {late};
  mov.u32 %w, tiles;
  mad.lo.u32 %w, %x, 512, %w;
  and.b32 %x, %t, 31;
  mad.lo.u32 %w, %x, 4, %w;
  mov.u32 %one, 0x3f803f80;
  mov.u32 %n, 0;
  @!%late bra filling;
spin:
  add.u32 %n, %n, 1;
  setp.lt.u32 %p, %n, 20000;
  @%p bra spin;
filling:
{quarter}  fence.proxy.async.shared::cta;
{barrier}{zeros}  mov.u32 %x, tiles;
  shr.u32 %x, %x, 4;
  cvt.u64.u32 %a, %x;
  or.b64 %a, %a, 0x1000080000;
{before}  wgmma.fence.sync.aligned;
{products}  wgmma.commit_group.sync.aligned;
{after}  wgmma.wait_group.sync.aligned 0;
{stores}  ret;
}}
)";

/// A of 64 x 64 is all ones and B all NaN; each warp writes 2 into its quarter of B, the late one
/// after a while. 128 is right everywhere. Words of `out` are the 32 accumulators, by thread.
std::string text_of(const Kernel& kernel) {
  std::string fill, products, stores, registers;
  for (int at = 0; at < 16384; at += 512) {
    fill +=
        fmt::format("  st.shared.b32 [%q+{}], {};\n", at, at < 8192 ? "0x3f803f80" : "0xffffffff");
  }
  for (int i = 0; i < 32; ++i) {
    registers += fmt::format("{}%d{}", i == 0 ? "" : ", ", i);
    stores += fmt::format("  st.global.f32 [%o+{}], %d{};\n", 4 * i, i);
  }
  for (int step = 0; step < 4; ++step) {
    products += fmt::format(
        "  add.u64 %ad, %a, {};\n  add.u64 %bd, %a, {};\n"
        "  wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{}}}, {}, %bd, 1, 1, 1{}, 0;\n",
        128 * step, 512 + 128 * step, registers,
        kernel.is_a_in_registers ? "{%one, %one, %one, %one}" : "%ad",
        kernel.is_a_in_registers ? "" : ", 0");
  }
  std::string quarter;
  for (int at = 0; at < 8192; at += at % 2048 == 384 ? 1664 : 128) {
    quarter += fmt::format("  st.shared.b32 [%w+{}], 0x40004000;\n", 8192 + at);
  }
  std::string zeros;
  for (int i = 0; i < 32; ++i) zeros += fmt::format("  mov.f32 %d{}, 0f00000000;\n", i);
  return fmt::format(kText, fmt::arg("fill", fill), fmt::arg("late", kernel.late_warp),
                     fmt::arg("quarter", quarter),
                     fmt::arg("barrier", kernel.has_barrier ? "  bar.sync 1, 128;\n" : ""),
                     fmt::arg("zeros", zeros), fmt::arg("before", kernel.before_wgmma),
                     fmt::arg("products", products), fmt::arg("after", kernel.after_wgmma),
                     fmt::arg("stores", stores));
}

struct Outcome {
  std::optional<Fault> fault;
  std::size_t num_wrong = 0;
  std::set<std::string> checks;  ///< that found something
  std::string text;
};

Outcome run(const Kernel& kernel, const char* checks, AsyncTiming timing) {
  Options options;
  options.checks = parse_checks(checks);
  options.async_timing = timing;
  options.seed = timing == AsyncTiming::kRandom ? 7 : 0;
  options.num_threads = 1;
  Outcome out;
  Machine machine(*find_device_model("h200"), options);
  machine.set_output([](std::string_view) {}, [&](std::string_view text) { out.text += text; });
  const std::uint64_t to = machine.memory().allocate(128 * 32 * 4, "out");
  Launch launch;
  launch.module = machine.load(parse_module(text_of(kernel), "meeting.ptx"));
  launch.kernel = "kernel";
  launch.block.x = 128;
  launch.params.resize(16);
  std::memcpy(launch.params.data() + 8, &to, 8);
  out.fault = machine.launch(launch);
  for (const Finding& finding : machine.findings().take_all()) out.checks.insert(finding.check);
  const auto* results = reinterpret_cast<const float*>(to);
  for (int i = 0; i < 128 * 32; ++i) out.num_wrong += results[i] == 128.0F ? 0 : 1;
  return out;
}

class WgmmaMeeting : public testing::TestWithParam<AsyncTiming> {};

TEST_P(WgmmaMeeting, ReadsWhenAllFourWarpsHaveCome) {
  for (const bool is_a_in_registers : {false, true}) {
    for (int late = 0; late < 4; ++late) {
      SCOPED_TRACE(late);
      const Kernel kernel{late, false, is_a_in_registers, "", ""};
      const Outcome unchecked = run(kernel, "none", GetParam());
      EXPECT_EQ(unchecked.num_wrong, 0U);
      const Outcome checked = run(kernel, "all", GetParam());
      EXPECT_EQ(checked.num_wrong, 0U);
      EXPECT_EQ(checked.text, "");
    }
  }
}

TEST_P(WgmmaMeeting, StrictWantsTheBarrier) {
  const Outcome without = run({}, "all,strict", GetParam());
  EXPECT_EQ(without.checks, std::set<std::string>{"strict"}) << without.text;
  EXPECT_NE(without.text.find("barrier of the warpgroup"), std::string::npos) << without.text;
  const Outcome with = run({3, true, false, "", ""}, "all,strict", GetParam());
  EXPECT_EQ(with.text, "");
  EXPECT_EQ(with.num_wrong, 0U);
}

// What a warp writes after it has issued, the product of the warpgroup may still read.
TEST_P(WgmmaMeeting, OrdersNothingThatComesAfter) {
  const std::string spoil = "  st.shared.b32 [%w+8192], 0xffffffff;\n";
  const Outcome early = run({3, false, false, "", spoil}, "all", GetParam());
  EXPECT_EQ(early.checks, std::set<std::string>{"mma"}) << early.text;
}

// A generic read of what another warp wrote has no order from it, whichever warp waited.
TEST_P(WgmmaMeeting, IsNoBarrierForOtherAccesses) {
  const std::string own = "  st.shared.b32 [%q], 0x3f803f80;\n";
  const std::string other =
      "  xor.b32 %x, %t, 32;\n  shl.b32 %x, %x, 2;\n  mov.u32 %n, tiles;\n"
      "  add.u32 %n, %n, %x;\n  ld.shared.b32 %x, [%n];\n";
  const Outcome outcome = run({3, false, true, own, other}, "all", GetParam());
  EXPECT_EQ(outcome.checks, std::set<std::string>{"race"}) << outcome.text;
}

// A warp that waits elsewhere for those that wait at the product.
TEST_P(WgmmaMeeting, DeadlockIsNamed) {
  const std::string split = "  @%late bar.sync 2, 128;\n";
  const Outcome outcome = run({2, false, false, split, ""}, "default", GetParam());
  ASSERT_TRUE(outcome.fault.has_value());
  EXPECT_NE(outcome.text.find("waits at a wgmma for the other warps"), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("waits for barrier 2"), std::string::npos) << outcome.text;
}

// Such a warp delays none; that it went another way is a finding.
TEST_P(WgmmaMeeting, WarpThatHasEndedIsNamed) {
  const Outcome outcome = run({1, false, false, "  @%late exit;\n", ""}, "all", GetParam());
  EXPECT_EQ(outcome.checks, std::set<std::string>{"mma"}) << outcome.text;
  EXPECT_NE(outcome.text.find("not issued by all four"), std::string::npos) << outcome.text;
}

INSTANTIATE_TEST_SUITE_P(Async, WgmmaMeeting,
                         testing::Values(AsyncTiming::kEager, AsyncTiming::kLate,
                                         AsyncTiming::kRandom));

}  // namespace
}  // namespace tilewright::sim
