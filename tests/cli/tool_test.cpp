// The tool as a user runs it: text, JSON, exit codes, files.

#include "tests/cli/run_tool.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

Outcome run(const std::string& arguments) {
  return run_tool(arguments);
}

std::string golden(const std::string& path) {
  return std::string(TILEWRIGHT_TEST_DATA) + "/" + path;
}

TEST(Tool, HelpAndVersion) {
  EXPECT_THAT(run("--help").out, HasSubstr("Subcommands:"));
  EXPECT_THAT(run("--version").out, HasSubstr("tilewright 0."));
  for (const char* command :
       {"info", "demo", "kernels", "formats show", "formats table", "formats round", "layout eval",
        "layout draw", "layout check", "layout atoms", "layout banks", "layout handoff"}) {
    const Outcome help = run(std::string(command) + " --help");
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("Usage:")) << command;
  }
}

TEST(Tool, WrongUsageIsStatus2AndFailuresAreStatus1) {
  EXPECT_EQ(run("layout nonsense").status, 2);
  EXPECT_EQ(run("--nonsense").status, 2);
  EXPECT_EQ(run("layout eval").status, 2);
  const Outcome broken = run("layout eval composition '(6,4):(1,10)' 3:4");
  EXPECT_EQ(broken.status, 1);
  EXPECT_EQ(broken.out, "");
  EXPECT_THAT(broken.err, HasSubstr("a stride of B must divide the extents of A"));
  const Outcome as_json = run("--json layout eval composition '(6,4):(1,10)' 3:4");
  EXPECT_EQ(as_json.status, 1);
  EXPECT_EQ(as_json.parsed()["error"]["kind"], "InvalidArgument");
}

TEST(Tool, LayoutCheckCountsAndFails) {
  const Outcome good = run("layout check " + golden("layout/layout_algebra.json"));
  EXPECT_EQ(good.status, 0);
  EXPECT_THAT(good.out, EndsWith("\n1800 passed, 0 failed\n"));
  EXPECT_EQ(run("layout check --json").parsed()["passed"], 1800)
      << "without a file: the reference cases";

  const ScopedFolder folder;
  const std::string path = folder / "cases.json";
  write_file(path, R"json([{"op":"coalesce","a":"(2,3)","values":[0,1,2,3,4,5]},
                           {"op":"coalesce","a":"(2,3)","values":[0,1,2,3,4,9]}])json");
  const Outcome bad = run("layout check " + path);
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.out, HasSubstr("case 1, coalesce: 6:1 maps 5 to 5, expected 9"));
  EXPECT_THAT(bad.out, EndsWith("\n1 passed, 1 failed\n"));
  write_file(path, "[]");
  EXPECT_EQ(run("layout check " + path).status, 1) << "an empty file checks nothing";
  write_file(path, "[{]");
  EXPECT_THAT(run("layout check " + path).err, HasSubstr("cases.json:1:"));
  EXPECT_EQ(run("layout check /nonexistent.json").status, 2);
}

TEST(Tool, LayoutEval) {
  EXPECT_THAT(run("layout eval '(4,8):(8,1)'").out, HasSubstr("size      32, cosize 32"));
  const json divided = run("layout eval zipped_divide '(8,8):(8,1)' '<4,2>' --json").parsed();
  EXPECT_EQ(divided["text"], "((4,2),(2,4)):((8,1),(32,2))");
  EXPECT_EQ(divided["values"].size(), 64u);
  EXPECT_EQ(run("layout eval max_common_vector '(8,4):(4,1)' '(8,4):(8,1)'").out, "4\n");
  EXPECT_EQ(run("layout eval slice '(4,8):(8,1)' '(2,_)' --json").parsed()["text"], "16 o (8):(1)");
  EXPECT_EQ(run("layout eval wgmma.m64n64.C --json").parsed()["text"],
            "((4,8,4),(2,2,8)):((128,1,16),(64,8,512))");
}

TEST(Tool, LayoutDraw) {
  const Outcome text = run("layout draw '(2,4):(4,1)'");
  EXPECT_THAT(text.out, HasSubstr("0 |  0   1   2   3 "));
  EXPECT_THAT(text.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(run("--color always layout draw '(2,4):(4,1)'").out, HasSubstr("\x1b[30;48;"));
  const json fragment = run("--json layout draw wgmma.m64n64.C --rows 8:10 --cols 4").parsed();
  EXPECT_EQ(fragment["cells"][0][0], "T0\nV2");
  EXPECT_EQ(fragment["row_headers"], (json{"8", "9"}));
  const ScopedFolder folder;
  const std::string path = folder / "drawing.svg";
  EXPECT_EQ(run("layout draw smem.K.128B.16bit --svg " + path).status, 0);
  EXPECT_THAT(std::string(MappedFile(path).text()), HasSubstr("smem.K.128B.16bit"));
  EXPECT_THAT(run("layout draw wgmma.m64n6.C").err, HasSubstr("wgmma.m64n64.C"));
  EXPECT_EQ(run("layout draw '(4,4)' --rows 9:12").status, 1);
  EXPECT_EQ(run("layout draw '(4,4)' --rows 1:x").status, 1);
}

TEST(Tool, LayoutBanksAndHandoff) {
  EXPECT_EQ(run("--json layout banks '(32,8):(64,1)' --vector 8").parsed()["passes"], 32);
  EXPECT_EQ(
      run("--json layout banks 'Sw<3,3,3> o 0 o (32,8):(64,1)' --vector 8").parsed()["passes"], 4);
  EXPECT_EQ(
      run("--json layout handoff --from wgmma.m64n64.C --to wgmma.m64k16.A").parsed()["verdict"],
      "as they are");
  const json fp8 = run("--json layout handoff --from wgmma.m64n64.C --to wgmma.m64k32.A").parsed();
  EXPECT_EQ(fp8["verdict"], "permute keys");
  EXPECT_EQ(fp8["key_period"], 16);
  const ScopedFolder folder;
  const std::string path = folder / "handoff.svg";
  const Outcome tmem =
      run("layout handoff --from tmem.C.m128.n64 --to tmem.A.m128.k64.16bit --svg " + path);
  EXPECT_THAT(tmem.out, HasSubstr("pack within the lane"));
  EXPECT_THAT(std::string(MappedFile(path).text()), HasSubstr("as written: tmem.C.m128.n64"));
  EXPECT_EQ(run("layout handoff --from wgmma.m64n64.C --to tmem.A.m128.k64.16bit").status, 1);
}

TEST(Tool, Formats) {
  EXPECT_EQ(run("--json formats show e4m3").parsed()["max"], 448);
  EXPECT_THAT(run("formats show").out, HasSubstr("nvfp4"));
  EXPECT_EQ(run("--json formats table e2m1").parsed()["codes"].size(), 16u);
  EXPECT_EQ(run("formats table bf16").status, 1);
  const json rounded = run("--json formats round e4m3 17").parsed();
  EXPECT_EQ(rounded["results"][0]["result"], 16) << "17 is a tie; 16 has the even mantissa";
  EXPECT_EQ(rounded["results"][3]["result"], 18) << "up";
  EXPECT_EQ(run("--json formats round e5m2 1e6 --no-saturation").parsed()["results"][0]["result"],
            "inf");
  EXPECT_THAT(run("formats round e4m3 12x").err, HasSubstr("\"12x\" is no number"));
  EXPECT_THAT(run("formats show e4m4").err, HasSubstr("e4m3"));
}

TEST(Tool, InfoAndKernels) {
  const json info = run("--json info").parsed();
  EXPECT_TRUE(info.contains("kernels"));
  EXPECT_TRUE(info.contains("commit"));
  EXPECT_TRUE(info["cuda_driver"].contains("devices"));
  if (info["device"].is_null()) {
    EXPECT_THAT(info["device_problem"].get<std::string>(), HasSubstr("no usable GPU"));
  }
  EXPECT_THAT(run("info").out, HasSubstr("device "));
  const json kernels = run("--json kernels").parsed();
  if (kernels["kernels"].empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_THAT(run("kernels rms_norm_rows").out, HasSubstr("sm_90a"));
  EXPECT_THAT(run("kernels --ptx rms_norm_rows.sm_90a").out, HasSubstr(".entry rms_norm_rows("));
  EXPECT_THAT(run("kernels --ptx nonsense").err, HasSubstr("does not exist"));
}

TEST(Tool, TheGalleryInTheDocumentsIsWhatTheToolDraws) {
  const ScopedFolder fresh;
  ASSERT_EQ(run("demo --pictures-only --out " + fresh.path().string()).status, 0);
  int pictures = 0;
  for (const auto& entry : std::filesystem::directory_iterator(fresh.path())) {
    const std::filesystem::path committed =
        std::filesystem::path(TILEWRIGHT_SOURCE_DIR) / "docs/01-layouts" / entry.path().filename();
    ASSERT_TRUE(std::filesystem::exists(committed))
        << committed << ": run tilewright demo --pictures-only";
    EXPECT_EQ(MappedFile(entry.path()).text(), MappedFile(committed).text())
        << committed << " is stale";
    ++pictures;
  }
  EXPECT_GE(pictures, 12);
}

TEST(Tool, DemoReportsAndWritesThePictures) {
  const ScopedFolder folder;
  const std::string out = folder / "demo";
  const json report = run("--json demo --out " + out).parsed();
  EXPECT_EQ(report["algebra"]["failed"], 0);
  EXPECT_EQ(report["algebra"]["passed"], 1800);
  EXPECT_TRUE(std::filesystem::exists(out + "/index.html"));
}

TEST(Tool, WrongUsageIsNamedWithTheCommandThatHelps) {
  const std::pair<const char*, const char*> cases[] = {
      {"frobnicate", "there is no command \"frobnicate\"; expected one of demo, info, layout"},
      {"moe --rows 7", "moe: there is no option --rows\n`tilewright moe --help` says more."},
      {"formats", "formats: name what to do: show, "},
      {"layout banks", "layout banks: access is required\n`tilewright layout banks --help`"},
      {"info more", "info: \"more\" is one argument too many"},
      {"decode --kv e5m2", "decode: --kv: e5m2 not in {bf16,f16,e4m3}"}};
  for (const auto& [arguments, message] : cases) {
    const Outcome result = run_tool(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(message));
    const Outcome with_json = run_tool(std::string(arguments) + " --json");
    EXPECT_EQ(with_json.status, 2) << arguments;
    EXPECT_EQ(with_json.parsed()["error"]["kind"], "Usage");
  }
  EXPECT_THAT(run_tool("attention").err, HasSubstr("there are no operands; give --q, --k and --v"));
  EXPECT_THAT(run_tool("attention --q q.npy --k k.npy").err,
              HasSubstr("attention: --v is missing; expected the .npy file of each"));
  EXPECT_THAT(run_tool("attention --inputs normal --shape 1,2,2,64,64").err,
              HasSubstr("--shape 1,2,2,64,64 has 5 numbers; expected B,H,HKV,NQ,NK,D[,DV]"));
  EXPECT_THAT(run_tool("generate -p a --max-tokens -3").err,
              HasSubstr("--max-tokens: -3; expected 0 or more"));
  EXPECT_THAT(run_tool("generate -p a --sequences 0").err,
              HasSubstr("--sequences: 0; expected a number above 0"));
}

TEST(Tool, FormerWordsAreRefusedWithTheRightOnes) {
  const std::pair<const char*, const char*> cases[] = {
      {"eval nothing --index fp4", "--index: fp4 is called mxfp4"},
      {"attention --accumulation one", "--accumulation: one is called one_level"},
      {"attention --accumulation two", "--accumulation: two is called two_level"},
      {"linear --activation-scales 128", "--activation-scales: 128 is called block"},
      {"linear --activation-scales 64", "--activation-scales: 64 not in {auto,row,block}"},
      {"sparse-attention --lengths query", "--lengths: query is called per_query"}};
  for (const auto& [arguments, message] : cases) {
    const Outcome result = run_tool(arguments);
    EXPECT_NE(result.status, 0) << arguments;
    EXPECT_THAT(result.err, testing::HasSubstr(message));
  }
}

}  // namespace
}  // namespace tilewright
