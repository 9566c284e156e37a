// `tilewright sim` and `bench sim` as a user runs them.

#include "base/npy.h"
#include "tests/cli/run_tool.h"

#include <chrono>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSaxpy = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<6>;
  ld.param.f32 %f0, [a];
  ld.param.u64 %rd0, [x];
  ld.param.u64 %rd1, [y];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p, %r4, %r0;
  @%p bra DONE;
  mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd3, %rd0, %rd2;
  add.s64 %rd4, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  ld.global.f32 %f2, [%rd4];
  fma.rn.f32 %f3, %f0, %f1, %f2;
  st.global.f32 [%rd4], %f3;
DONE:
  ret;
}
)";

json saxpy_launch() {
  return {
      {"grid", 4},
      {"block", {256, 1, 1}},
      {"params", {{{"f32", 2}}, {{"buffer", "x"}}, {{"buffer", "y"}}, {{"u32", 1000}}}},
      {"buffers",
       {{"x", {{"dtype", "f32"}, {"shape", {1000}}, {"fill", "iota"}}},
        {"y",
         {{"dtype", "f32"},
          {"shape", {1000}},
          {"fill", 1},
          {"expect",
           {{"dtype", "f32"}, {"shape", 1000}, {"fill", "iota"}, {"start", 1}, {"step", 2}}}}}}}};
}

struct Files {
  ScopedFolder folder;
  std::string ptx = folder / "saxpy.ptx", spec = folder / "saxpy.json";

  explicit Files(const json& launch = saxpy_launch()) {
    write_file(ptx, kSaxpy);
    write_json(spec, launch);
  }
  Outcome run(const std::string& options = "", const std::string& variables = "") const {
    return run_tool("sim run " + ptx + " --launch " + spec + " " + options, variables);
  }
};

TEST(SimTool, HelpOfAllCommands) {
  for (const char* command : {"sim", "sim exec", "sim run", "sim isa", "bench", "bench sim"}) {
    const Outcome help = run_tool(std::string(command) + " --help");
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("Usage:")) << command;
  }
}

TEST(SimTool, RunComparesAndWrites) {
  json launch = saxpy_launch();
  Files files(launch);
  launch["buffers"]["y"]["output"] = std::string(files.folder / "y.npy");
  write_json(files.spec, launch);
  const Outcome outcome = files.run();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("saxpy  grid (4,1,1) block (256,1,1)"));
  EXPECT_THAT(outcome.out, HasSubstr("1000 of 1000 elements as expected"));
  EXPECT_THAT(outcome.out, HasSubstr("host time"));
  const HostTensor y = read_npy(files.folder / "y.npy");
  EXPECT_EQ(y.elems<float>()[999], 2.0f * 999 + 1);
}

// The variable is of a program that knows nothing of the report; --report is tried out before.
TEST(SimTool, ReportThatCannotBeWrittenFailsNoLaunch) {
  const Files files;
  const std::string file = files.folder / "no/such/report.json";
  EXPECT_EQ(files.run("--report " + file).status, 1);
  const Outcome outcome = files.run("", "TILEWRIGHT_SIM_REPORT=" + file);
  EXPECT_THAT(outcome.out, HasSubstr("1000 of 1000 elements as expected"));
  EXPECT_THAT(outcome.err, HasSubstr("the simulator's report: "));
  EXPECT_EQ(outcome.status, 1);  // what was asked for is lost
}

TEST(SimTool, BoxesOfTensorMapsAreNotCut) {
  for (const char* box : {"4294967300", "4294967296", "-1"}) {
    json launch = saxpy_launch();
    launch["params"][3] = {{"tensor_map", {{"buffer", "x"}, {"box", {json::parse(box)}}}}};
    const Outcome outcome = Files(launch).run();
    EXPECT_NE(outcome.status, 0);
    EXPECT_THAT(outcome.err, HasSubstr("/params/3/tensor_map/box/0: ")) << box;
  }
}

TEST(SimTool, IsaMeetsTheLimitOfInlinedCallsAtOnce) {
  std::string ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.func f0() { ret; }\n";
  for (int i = 1; i < 60; ++i) {
    ptx += fmt::format(".func f{}() {{ call f{}; call f{}; ret; }}\n", i, i - 1, i - 1);
  }
  const Files files;
  write_file(files.ptx, ptx + ".visible .entry k() { call f59; ret; }\n");
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = run_tool("sim isa " + files.ptx);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_THAT(outcome.out + outcome.err,
              HasSubstr("k has more than 4000000 instructions once all calls are inlined"));
}

TEST(SimTool, RunSaysWhatDiffers) {
  json launch = saxpy_launch();
  launch["params"][0] = {{"f32", 3}};
  const Files files(launch);
  const Outcome outcome = files.run();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.out, HasSubstr("1 of 1000 elements as expected"));
  EXPECT_THAT(outcome.out, HasSubstr("first difference: y[1] is 4, expected 3"));
  const json parsed = files.run("--json").parsed();
  EXPECT_EQ(parsed["buffers"][1]["wrong"], 999);
}

TEST(SimTool, RunToleratesWhatItIsToldTo) {
  json launch = saxpy_launch();
  launch["buffers"]["y"]["expect"]["start"] = 1.5;
  EXPECT_EQ(Files(launch).run().status, 1);
  launch["buffers"]["y"]["expect"]["abs"] = 0.5;
  EXPECT_EQ(Files(launch).run().status, 0);
  launch["buffers"]["y"]["expect"]["rel"] = 1;
  launch["buffers"]["y"]["expect"]["start"] = 1e300;  // infinite in f32
  EXPECT_EQ(Files(launch).run().status, 1);
}

TEST(SimTool, RunStopsAtAFault) {
  json launch = saxpy_launch();
  launch["params"][3] = {{"u32", 1024}};
  launch["buffers"]["x"]["shape"] = 4;
  const Files files(launch);
  const Outcome outcome = files.run();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.out, HasSubstr("stopped"));
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("saxpy.ptx:23"));
}

TEST(SimTool, ErrorsOfALaunchNameTheJsonPath) {
  const auto error_with = [](const auto& change) {
    json launch = saxpy_launch();
    change(launch);
    const Outcome outcome = Files(launch).run();
    EXPECT_EQ(outcome.status, 1);
    return outcome.err;
  };
  EXPECT_THAT(error_with([](json& l) { l["buffers"]["x"]["dtype"] = "f31"; }),
              HasSubstr("/buffers/x/dtype: there is no type \"f31\""));
  EXPECT_THAT(error_with([](json& l) {
                l["params"][1] = {{"buffer", "z"}};
              }),
              HasSubstr("/params/1/buffer: there is no buffer of that name; \"buffers\" has: x y"));
  EXPECT_THAT(error_with([](json& l) {
                l["params"][3] = {{"u64", 1}};
              }),
              HasSubstr("/params/3: has 8 bytes, but parameter 3 of saxpy has 4"));
  EXPECT_THAT(error_with([](json& l) { l["params"].erase(3); }),
              HasSubstr("expected 4 parameters"));
  EXPECT_THAT(error_with([](json& l) {
                l["params"][3] = {{"u31", 1}};
              }),
              HasSubstr("/params/3: there is no type \"u31\""));
  EXPECT_THAT(error_with([](json& l) { l["gird"] = 4; }),
              HasSubstr("/gird: there is no such member"));
  EXPECT_THAT(error_with([](json& l) { l["kernel"] = "daxpy"; }),
              HasSubstr("has no kernel daxpy; it has: saxpy"));
  EXPECT_THAT(error_with([](json& l) { l["buffers"]["x"]["fill"] = "random"; }),
              HasSubstr("/buffers/x/fill: there is no fill \"random\""));
}

TEST(SimTool, RunRefusesLaunchesThatTheDeviceRefuses) {
  const auto error_with = [](const char* key, const json& value) {
    json launch = saxpy_launch();
    launch[key] = value;
    const Outcome outcome = Files(launch).run();
    EXPECT_EQ(outcome.status, 1);
    return outcome.err;
  };
  EXPECT_THAT(error_with("grid", {1, 65536}), HasSubstr("grid.y = 65536; at most 65535"));
  EXPECT_THAT(error_with("grid", {0x7fffffff, 0x7fffffff, 0x7fffffff}), HasSubstr("at most 65535"));
  EXPECT_THAT(error_with("block", 2048), HasSubstr("block.x = 2048; at most 1024"));
  EXPECT_THAT(error_with("cluster", 3), HasSubstr("is no multiple of the cluster (3,1,1)"));
  EXPECT_THAT(error_with("cluster", {0x7fffffff, 0x7fffffff, 0x7fffffff}),
              HasSubstr("= 2147483647; at most"));
  EXPECT_THAT(error_with("dynamic_shared_bytes", 300000), HasSubstr("= 300000; at most 232448"));
}

TEST(SimTool, SeedIsAWholeNumber) {
  EXPECT_THAT(Files().run("--seed -1").err, HasSubstr("expected a whole number, found \"-1\""));
  EXPECT_EQ(Files().run("--seed 7").status, 0);
}

TEST(SimTool, RunTracesAndBreaks) {
  const Files files;
  const Outcome broken = files.run("--break 25:0:0");
  EXPECT_THAT(broken.out, HasSubstr("saxpy.ptx:25  CTA (0,0,0) warp 0 lanes 0-31"));
  EXPECT_THAT(broken.out, HasSubstr("%f3      f32     0:  1  3  5"));
  const Outcome traced = files.run("--trace=0:3");
  EXPECT_THAT(traced.out, HasSubstr("3,0,0 w0  ffffffff    25  fma.rn.f32 %f3, %f0, %f1, %f2"));
  EXPECT_THAT(files.run("--break 3").out,
              HasSubstr("no warp came to a breakpoint; the instructions of saxpy are on lines "));
  EXPECT_THAT(files.run("--break x").err, HasSubstr("expected LINE[:WARP[:CTA]]"));
}

TEST(SimTool, RunReports) {
  const Files files;
  const std::string path = files.folder / "report.json";
  EXPECT_EQ(files.run("--report " + path).status, 0);
  const json report = read_json(path);
  EXPECT_EQ(report["kernels"][0]["kernel"], "saxpy");
  EXPECT_EQ(report["kernels"][0]["by_class"]["float"]["thread_instructions"], 1000);
  EXPECT_THAT(files.run("--report -").err, HasSubstr("simulator report for NVIDIA H200"));
}

TEST(SimTool, IsaListsAndChecksFiles) {
  const Outcome table = run_tool("sim isa --filter fma");
  EXPECT_THAT(table.out, HasSubstr("fma"));
  EXPECT_THAT(table.out, Not(HasSubstr("popc")));
  EXPECT_GT(run_tool("sim isa --json").parsed()["instructions"], 50);
  const Files files;
  const Outcome good = run_tool("sim isa " + files.ptx);
  EXPECT_EQ(good.status, 0);
  EXPECT_THAT(good.out, HasSubstr("instructions are supported"));
  std::string text = kSaxpy;
  text.replace(text.find("fma.rn.f32"), 10, "fna.rn.f32");
  write_file(files.ptx, text);
  const Outcome bad = run_tool("--json sim isa " + files.ptx);
  EXPECT_EQ(bad.status, 1);
  EXPECT_EQ(bad.parsed()["unsupported"], 1);
  EXPECT_EQ(bad.parsed()["instructions"][0]["lines"], json{25});
}

TEST(SimTool, ExecSetsTheEnvironment) {
  const std::filesystem::path library =
      std::filesystem::path(TILEWRIGHT_TOOL).parent_path() / "../lib/sim/libcuda.so.1";
  if (!std::filesystem::exists(library)) {
    const Outcome missing = run_tool("sim exec -- true");
    EXPECT_EQ(missing.status, 1);
    EXPECT_THAT(missing.err, HasSubstr("the simulator's driver is not there"));
    return;
  }
  const Outcome outcome = run_tool(
      "sim exec --check all,-race --seed 7 --async late --report r.json --report-only -- env --",
      "LD_LIBRARY_PATH=/somewhere");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("lib/sim:/somewhere\n"));
  EXPECT_THAT(outcome.out, HasSubstr("TILEWRIGHT_SIM_DEVICE=h200\n"));
  EXPECT_THAT(outcome.out, HasSubstr("TILEWRIGHT_SIM_CHECK=mem,init,sync,proxy,mma,tmem\n"));
  EXPECT_THAT(outcome.out, HasSubstr("TILEWRIGHT_SIM_SEED=7\n"));
  EXPECT_THAT(outcome.out, HasSubstr("TILEWRIGHT_SIM_ASYNC=late\n"));
  EXPECT_THAT(outcome.out, HasSubstr("TILEWRIGHT_SIM_REPORT=/"));
  EXPECT_THAT(outcome.out, HasSubstr("TILEWRIGHT_SIM_REPORT_ONLY=1\n"));
  EXPECT_THAT(outcome.out, HasSubstr("TILEWRIGHT_SIM_SMS=0\n"));
  EXPECT_THAT(run_tool("sim exec -- /nonexistent").err, HasSubstr("cannot run /nonexistent"));
  EXPECT_THAT(run_tool("sim exec --device h100 -- true").err,
              HasSubstr("no simulated device \"h100\"; expected one of h200, b200, b300"));
  EXPECT_EQ(run_tool("sim exec -- sh -c 'exit 3'").status, 3);
}

TEST(SimTool, ExecNamesFilesThatStandIn) {
  const ScopedFolder folder;
  const std::string file = (folder / "edited.ptx").string();
  EXPECT_THAT(run_tool("sim exec --replace kernel=" + file + " -- env").err,
              HasSubstr("--replace kernel=" + file + ": there is no file " + file));
  write_file(file, "");
  const Outcome outcome = run_tool("sim exec --sms 3 --replace kernel=" + file + " -- env");
  EXPECT_THAT(outcome.out, HasSubstr("TILEWRIGHT_SIM_SMS=3\n"));
  EXPECT_THAT(outcome.out, HasSubstr("TILEWRIGHT_SIM_REPLACE=kernel=" + file + "\n"));
  EXPECT_THAT(run_tool("sim exec --replace kernel -- env").err, HasSubstr("expected ENTRY=FILE"));
}

TEST(SimTool, BenchMeasuresEachCheckLevel) {
  const json speeds = run_tool("--json bench sim float --seconds 0.001").parsed();
  ASSERT_EQ(speeds["cases"].size(), 3u);
  EXPECT_EQ(speeds["cases"][1]["checks"], "default");
  for (const json& entry : speeds["cases"]) {
    EXPECT_GT(entry["thread_instructions_per_second"], 1e6);
    EXPECT_FALSE(entry.contains("gflops"));
  }
  // What predictions cost: a column of its own, of every kernel that is timed here.
  const json timed = run_tool("--time --json bench sim copy --seconds 0.001").parsed()["cases"];
  ASSERT_EQ(timed.size(), 8u);
  for (std::size_t i = 0; i < timed.size(); ++i) EXPECT_EQ(timed[i]["is_timed"], i % 4 == 3);
  EXPECT_GT(timed[3]["slowdown"].get<double>(), 1);
  EXPECT_EQ(run_tool("bench sim nonsense").status, 1);
}

}  // namespace
}  // namespace tilewright
