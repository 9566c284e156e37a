// Operands of wgmma that are written in part, under `strict`: a row of A or a column of B that was
// never written makes a row or column of D without a value, and that matters where it is used. A
// row that is written in part is a finding at once.
#include "sim/event/finding.h"
#include "tests/sim/insn/ptx_run.h"

#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

/// m64n8k16. Thread t writes 16 bytes of A: of row t / 16 * 8 + t % 8 the half t / 8 % 2 of k. The
/// first 16 threads write B likewise, by column; if it is MN-major, thread t has k = t.
struct Kernel {
  std::string skip_a = "999", skip_b = "999";  ///< threads that do not, modulo 8 alike
  bool skips_half = true;                      ///< of k: one of two such threads
  bool is_b_mn = false;
  bool leaves_column7 = false;  ///< of B, MN-major
  bool is_half = false;         ///< D
  int stored = 0;               ///< register of D
};

std::string text_of(const Kernel& kernel) {
  const char* const d = kernel.is_half ? "{%d0, %d1}" : "{%d0, %d1, %d2, %d3}";
  const char* const types = kernel.is_half ? "f16.f16.f16" : "f32.bf16.bf16";
  const auto skip = [&](const char* predicate, const std::string& thread) {
    const std::string mask = kernel.skips_half ? "0xffffffff" : "0xfffffff7";
    return fmt::format("  and.b32 %m, %t, {};\n  setp.ne.u32 {}, %m, {};\n", mask, predicate,
                       thread);
  };
  const char* const last = kernel.leaves_column7 ? "" : "  @%pb st.shared.b16 [%b+14], %h;\n";
  return fmt::format(R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 in, .param .u64 out) {{
  .reg .pred %pa, %pb, %first;
  .reg .b16 %h;
  .reg .b32 %t, %m, %a, %b, %x, %v, %d<4>;
  .reg .b64 %o, %ad, %bd;
  .shared .align 1024 .b8 tiles[4096];
  ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x;
  mad.wide.u32 %o, %t, 4, %o;
  mov.u32 %v, 0x3f803f80;
  mov.u16 %h, 0x3f80;
  mov.u32 %x, tiles;
  mad.lo.u32 %a, %t, 16, %x;
  add.u32 %b, %a, 2048;
{skip_a}{skip_b}  setp.lt.u32 %first, %t, 16;
  and.pred %pb, %pb, %first;
  @%pa st.shared.v4.b32 [%a], {{%v, %v, %v, %v}};
  @%pb st.shared.v2.b32 [%b], {{%v, %v}};
  @%pb st.shared.b32 [%b+8], %v;
  @%pb st.shared.b16 [%b+12], %h;
{last}  fence.proxy.async.shared::cta;
  bar.sync 0;
  shr.u32 %x, %x, 4;
  cvt.u64.u32 %ad, %x;
  or.b64 %ad, %ad, 0x1000080000;
  add.u64 %bd, %ad, 128;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.{types} {d}, %ad, %bd, 0, 1, 1, 0, {is_b_mn};
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  st.global.b32 [%o], %d{stored};
  ret;
}}
)",
                     fmt::arg("skip_a", skip("%pa", kernel.skip_a)),
                     fmt::arg("skip_b", skip("%pb", kernel.skip_b)), fmt::arg("last", last),
                     fmt::arg("types", types), fmt::arg("d", d),
                     fmt::arg("is_b_mn", kernel.is_b_mn ? 1 : 0),
                     fmt::arg("stored", kernel.stored));
}

struct Outcome {
  std::set<std::string> checks;  ///< that found something
  std::string text;
};

Outcome run(const Kernel& kernel, const char* checks = "all,strict") {
  Options options;
  options.checks = parse_checks(checks);
  options.num_threads = 1;
  Outcome out;
  Machine machine(*find_device_model("h200"), options);
  machine.set_output([](std::string_view) {}, [&](std::string_view text) { out.text += text; });
  const std::uint64_t to = machine.memory().allocate(128 * 4, "out");
  machine.mark_defined(to, 128 * 4);  // and from now on the host is known to say what it writes
  Launch launch;
  launch.module = machine.load(parse_module(text_of(kernel), "rows.ptx"));
  launch.kernel = "kernel";
  launch.block.x = 128;
  launch.params.resize(16);
  std::memcpy(launch.params.data() + 8, &to, 8);
  machine.launch(launch);
  for (const Finding& finding : machine.findings().take_all()) out.checks.insert(finding.check);
  return out;
}

const std::set<std::string> kNone, kInit{"init"}, kStrict{"strict"};

TEST(OperandRows, WrittenInFullAreClean) {
  for (const bool is_half : {false, true}) {
    for (int stored = 0; stored < (is_half ? 2 : 4); ++stored) {
      EXPECT_EQ(run({.is_half = is_half, .stored = stored}).text, "");
    }
  }
  EXPECT_EQ(run({.is_b_mn = true}).text, "");
}

// Threads 116 and 124 have row 60: row 12 of warp 3, lanes 16 to 19, the second rows of D.
TEST(OperandRows, AMissingRowOfAIsFollowedToItsUse) {
  for (const bool is_half : {false, true}) {
    const int first = 0, second = is_half ? 1 : 2;
    const Kernel kernel{.skip_a = "116", .skips_half = false, .is_half = is_half, .stored = first};
    EXPECT_EQ(run(kernel).text, "");
    Kernel used = kernel;
    used.stored = second;
    const Outcome outcome = run(used);
    EXPECT_EQ(outcome.checks, kInit) << outcome.text;
    EXPECT_NE(outcome.text.find("warp 3 lanes 16-19"), std::string::npos) << outcome.text;
    EXPECT_EQ(run(used, "all").checks, kNone);
  }
}

// Threads 3 and 11 have column 3: lanes 1, 5, ... 29, every second register.
TEST(OperandRows, AMissingColumnOfBIsFollowedToItsUse) {
  for (const int stored : {0, 1, 2, 3}) {
    const Outcome outcome = run({.skip_b = "3", .skips_half = false, .stored = stored});
    EXPECT_EQ(outcome.checks, stored % 2 == 0 ? kNone : kInit) << outcome.text;
    if (stored % 2 == 0) continue;
    EXPECT_NE(outcome.text.find("lanes 1,5,9,13,17,21,25,29"), std::string::npos) << outcome.text;
  }
}

TEST(OperandRows, AMissingColumnOfAnMnMajorBIsToo) {
  for (const int stored : {0, 1}) {
    const Outcome outcome = run({.is_b_mn = true, .leaves_column7 = true, .stored = stored});
    EXPECT_EQ(outcome.checks, stored == 0 ? kNone : kInit) << outcome.text;
  }
}

TEST(OperandRows, WrittenInPartAreAFinding) {
  const Kernel kernels[] = {{.skip_a = "116"}, {.skip_b = "3"}, {.skip_b = "3", .is_b_mn = true}};
  for (const Kernel& kernel : kernels) {
    const Outcome outcome = run(kernel);
    EXPECT_EQ(outcome.checks, kStrict) << outcome.text;
    EXPECT_NE(outcome.text.find("in shared memory that was never written"), std::string::npos);
    EXPECT_EQ(run(kernel, "all").checks, kNone);
  }
}

}  // namespace
}  // namespace tilewright::sim
