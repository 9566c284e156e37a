#include "sim/report/report.h"

#include "base/json.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "sim/report/tensor_work.h"
#include "tests/base/scoped_folder.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Line numbers count from the first line of this text.
constexpr const char* kKernel = R"(.version 8.7
.target sm_90a
.address_size 64
.file 1 "demo.cu"
.visible .entry demo(.param .u64 data)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<4>;
  .shared .align 16 .b8 tile[4096];
  .loc 1 7 0
  ld.param.u64 %rd0, [data];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd1, %r0, 32;
  add.s64 %rd1, %rd0, %rd1;
  .loc 1 8 0
  ld.global.f32 %f0, [%rd1];
  mul.wide.u32 %rd2, %r0, 128;
  shl.b32 %r1, %r0, 7;
  mov.u32 %r2, tile;
  add.s32 %r1, %r1, %r2;
  st.shared.f32 [%r1], %f0;
  bar.sync 0;
  setp.lt.u32 %p, %r0, 8;
  @%p ex2.approx.ftz.f32 %f1, %f0;
  fma.rn.f32 %f2, %f0, %f0, %f0;
  fma.rn.f32 %f2, %f2, %f0, %f0;
  atom.shared.add.u32 %r3, [tile], 1;
  ret;
}
.visible .entry bad()
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  mov.u64 %rd0, 16;
  ld.global.u32 %r0, [%rd0];
  ret;
}
)";

struct DemoRun {
  ScopedFolder folder;
  std::optional<Fault> fault;
  std::string table;

  explicit DemoRun(const std::string& kernel, const std::string& path = "report.json",
                   std::uint32_t num_ctas = 2, std::uint32_t num_threads = 0) {
    Options options;
    options.num_threads = num_threads;
    options.checks = parse_checks("none");
    options.report_path = path == "-" ? path : std::string(folder / path);
    Machine machine(device_models().front(), options);
    machine.set_output([](std::string_view) {}, [this](std::string_view text) { table += text; });
    Launch launch;
    launch.module = machine.load(parse_module(kKernel, "demo.ptx"));
    launch.kernel = kernel;
    launch.block.x = 32;
    launch.grid.x = num_ctas;
    const std::uint64_t data = machine.memory().allocate(4096, "data");
    std::memset(reinterpret_cast<void*>(data), 0, 4096);
    if (kernel == "demo") {
      launch.params.resize(8);
      std::memcpy(launch.params.data(), &data, 8);
    }
    fault = machine.launch(launch);
    if (!fault) fault = machine.launch(launch);
  }
  json report() const { return read_json(folder / "report.json"); }
};

// The L2 cache is read once, and each of the two CTAs gets 512 bytes.
TEST(Report, CountsAMulticastOnceAndAtEveryReceiver) {
  const ScopedFolder folder;
  Options options;
  options.report_path = std::string(folder / "report.json");
  Machine machine(device_models().front(), options);
  Launch launch;
  launch.module = machine.load(parse_module(R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data) {
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .b16 %h<2>;
  .shared .align 16 .b8 tile[512];
  .shared .align 8 .b64 full;
  ld.param.u64 %d1, [data]; mov.u32 %r1, tile; mov.u32 %r2, full; mov.u32 %r3, %tid.x;
  mov.u32 %r4, %cluster_ctarank; or.b32 %r5, %r3, %r4; mov.u16 %h1, 3;
  setp.eq.u32 %p1, %r3, 0; setp.eq.u32 %p2, %r5, 0;
  @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
  @%p1 fence.mbarrier_init.release.cluster;
  @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
      [%r1], [%d1], 512, [%r2], %h1;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
  @!%p3 bra WAIT;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ret;
})",
                                            "k.ptx"));
  launch.kernel = "k";
  launch.block.x = 32;
  launch.grid.x = launch.cluster.x = 2;
  const std::uint64_t data = machine.memory().allocate(512, "data");
  machine.mark_defined(data, 512);
  launch.params.resize(8);
  std::memcpy(launch.params.data(), &data, 8);
  const auto fault = machine.launch(launch);
  ASSERT_FALSE(fault.has_value()) << fault->message;
  const json total = read_json(folder / "report.json")["kernels"].at(0)["total"];
  EXPECT_EQ(total["bulk_bytes"], 512);
  EXPECT_EQ(total["bulk_delivered_bytes"], 1024);
  EXPECT_EQ(total["shared_async_bytes"], 1024);
}

TEST(Report, DoesNotDependOnTheNumberOfThreads) {
  constexpr std::uint32_t kNumCtas = 500;
  const json alone = DemoRun("demo", "report.json", kNumCtas, 1).report();
  EXPECT_EQ(alone["kernels"][0]["total"]["warp_instructions"], 17 * 2 * kNumCtas);
  EXPECT_EQ(DemoRun("demo", "report.json", kNumCtas, 8).report(), alone);
}

json line_of(const json& kernel, int number) {
  for (const json& line : kernel["lines"]) {
    if (line["line"] == number) return line;
  }
  return {};
}

TEST(Report, CountsInstructionsByLineClassAndSource) {
  const json report = DemoRun("demo").report();
  EXPECT_EQ(report["device"], "h200");
  const json kernel = report["kernels"].at(0);
  EXPECT_EQ(kernel["kernel"], "demo");
  EXPECT_EQ(kernel["launches"], 2);
  EXPECT_EQ(kernel["grid"], (json{2, 1, 1}));
  constexpr int kWarps = 4;  // two launches of two CTAs of one warp
  EXPECT_EQ(kernel["total"]["warp_instructions"], 17 * kWarps);
  EXPECT_EQ(kernel["total"]["thread_instructions"], (16 * 32 + 8) * kWarps);
  EXPECT_EQ(kernel["by_class"]["float"]["warp_instructions"], 2 * kWarps);
  EXPECT_EQ(kernel["by_class"]["special function"]["thread_instructions"], 8 * kWarps);
  const json guarded = line_of(kernel, 26);
  EXPECT_EQ(guarded["thread_instructions"], 8 * kWarps);
  EXPECT_EQ(guarded["source"], "demo.cu:8");
  EXPECT_THAT(guarded["text"].get<std::string>(), HasSubstr("ex2.approx.ftz.f32 %f1, %f0"));
  ASSERT_EQ(kernel["source_lines"].size(), 2u);
  EXPECT_EQ(kernel["source_lines"][0]["source"], "demo.cu:7");
  EXPECT_EQ(kernel["source_lines"][0]["warp_instructions"], 4 * kWarps);
}

TEST(Report, CountsMemory) {
  const json kernel = DemoRun("demo").report()["kernels"].at(0);
  const json load = line_of(kernel, 18);
  EXPECT_EQ(load["global_sectors"], 32 * 4);
  EXPECT_EQ(load["global_used_bytes"], 128 * 4);
  EXPECT_EQ(kernel["touched_global_bytes"], 2 * 1024)
      << "both CTAs read the same, each launch anew";
  const json store = line_of(kernel, 23);
  EXPECT_EQ(store["shared_wavefronts"], 32 * 4);
  EXPECT_EQ(store["shared_bank_conflicts"], 31 * 4);
  EXPECT_EQ(line_of(kernel, 24)["barrier_waits"], 4);
  EXPECT_EQ(kernel["total"]["atomics"], 32 * 4);
  EXPECT_EQ(kernel["static_shared_bytes"], 4096);
}

TEST(Report, BoundsAreWorkOverPeak) {
  const json kernel = DemoRun("demo").report()["kernels"].at(0);
  const DeviceModel& model = device_models().front();
  const double clocks = 1e3 * model.clock_khz * 2;  // two CTAs: two SMs
  const json seconds = kernel["bounds"]["seconds"];
  EXPECT_NEAR(seconds["FMA"], 8 * 32 / (128 * clocks), 1e-18);
  EXPECT_NEAR(seconds["special function"], 4 * 32 / (16 * clocks), 1e-18);
  EXPECT_NEAR(seconds["L2 bytes"], 4 * 32 * 32 / (64 * clocks), 1e-18);
  EXPECT_EQ(kernel["bounds"]["largest"], "shared memory");
  EXPECT_THAT(kernel["bounds"]["note"].get<std::string>(), HasSubstr("not times"));
}

TEST(Report, IsWrittenAfterAFaultAndSaysWhy) {
  DemoRun run("bad");
  ASSERT_TRUE(run.fault);
  const json kernel = run.report()["kernels"].at(0);
  EXPECT_THAT(kernel["faults"].at(0).get<std::string>(), HasSubstr("demo.ptx:"));
}

TEST(Report, TableNamesTheLargestBoundAndTheBusiestLines) {
  const DemoRun run("demo", "-");
  EXPECT_THAT(run.table, HasSubstr("kernel demo of demo.ptx: 2 launches, grid (2,1,1)"));
  EXPECT_THAT(run.table, HasSubstr("not times"));
  EXPECT_THAT(run.table, HasSubstr("the largest"));
  EXPECT_THAT(run.table, HasSubstr("32.0 wavefronts each"));
}

TEST(TensorWork, ReadsShapeAndTypeFromTheText) {
  const auto work_of = [](const std::string& instruction) {
    const Module module = parse_module(
        ".version 8.7\n.target sm_90a\n.address_size 64\n.entry k() {\n .reg .b32 "
        "%r<9>; .reg .b64 %rd<4>; .reg .pred %p;\n " +
            instruction + "\n}\n",
        "k.ptx");
    const TensorWork work = tensor_work(module.functions.at(0).body.at(0));
    return std::tuple(std::string(work.type), work.flop_per_warp, work.shared_bytes);
  };
  EXPECT_EQ(work_of("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r0,%r1,%r2,%r3}, "
                    "{%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r0,%r1,%r2,%r3};"),
            std::tuple("bf16", 2.0 * 16 * 8 * 16, 0u));
  EXPECT_EQ(work_of("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {%r0,%r1,%r2,%r3}, %rd0, "
                    "%rd1, %p, 1, 1;"),
            std::tuple("e4m3", 2.0 * 16 * 8 * 32, 16 * 32 + 8 * 8u))
      << "a warp's quarter; B's bytes are shared by four warps";
  EXPECT_EQ(work_of("add.s32 %r0, %r1, %r2;"), std::tuple("", 0.0, 0u));
}

}  // namespace
}  // namespace tilewright::sim
