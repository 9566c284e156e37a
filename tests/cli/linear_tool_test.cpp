// `tilewright linear` and `tilewright bench linear` as a user runs them, on the simulator.
#include "base/npy.h"
#include "base/safetensors_writer.h"
#include "tests/cli/run_tool.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kLinear = "--device sim:h200 linear ";

class LinearTool : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_tool("info --json").parsed()["kernels"].empty())
      GTEST_SKIP() << "built without kernels";
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  ScopedFolder folder_;
};

TEST_F(LinearTool, ComputesChecksAndWrites) {
  const std::string out = path("out.npy");
  const Outcome run = run_tool(kLinear + std::string("--m 5 --n 48 --k 80 --check --out ") + out);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("m 5, n 48, k 80, weight nvfp4 for bf16 activations"));
  EXPECT_THAT(run.out, HasSubstr("check      correct against dequantised weight (5 rows)"));
  EXPECT_THAT(run.out, HasSubstr("against the weight before it was quantised"));
  EXPECT_EQ(read_npy(out).shape(), (std::vector<std::int64_t>{5, 48}));
}

TEST_F(LinearTool, PlansWithoutRunning) {
  const nlohmann::json report =
      run_tool(kLinear + std::string("--m 8 --n 7168 --k 7168 --plan --json")).parsed();
  EXPECT_FALSE(report["plan"]["kernel"].get<std::string>().empty());
  EXPECT_GT(report["plan"]["candidates"].size(), 5u);
  EXPECT_EQ(report["plan"]["flops"], 2.0 * 8 * 7168 * 7168);
  EXPECT_FALSE(report["plan"]["launches"].empty());
  EXPECT_THAT(report["plan"]["text"].get<std::string>(), HasSubstr("not wide_e4m3"));
  // On a terminal: problem, kernel, launch, workspace, work, three others, and how many more.
  const Outcome small = run_tool(kLinear + std::string("--m 1 --n 256 --k 256 --plan"));
  EXPECT_EQ(std::ranges::count(small.out, '\n'), 9) << small.out;
  EXPECT_THAT(small.out, HasSubstr(" more: --all\n"));
  EXPECT_THAT(small.out, Not(HasSubstr("1.00 times")));
}

// The names that ModelOpt and DeepSeek give the parts of a weight.
TEST_F(LinearTool, FindsTheScalesOfAFile) {
  const std::vector<std::uint8_t> codes(32 * 32, 0x22), scales(32 * 4, 0x38), ue8m0(32 * 2, 127);
  const float factor = 0.25f;
  const auto bytes = [](const auto& x, DType type, std::vector<std::int64_t> shape) {
    return contiguous_view(static_cast<const void*>(x.data()), type, std::move(shape));
  };
  const std::vector<float> factors = {factor};
  write_safetensors(path("w.safetensors"),
                    {{"a.weight", bytes(codes, DType::kU8, {32, 32})},
                     {"a.weight_scale", bytes(scales, DType::kF8_E4M3, {32, 4})},
                     {"a.weight_scale_2", bytes(factors, DType::kF32, {1})},
                     {"b.weight", bytes(codes, DType::kI8, {32, 32})},
                     {"b.scale", bytes(ue8m0, DType::kF8_E8M0, {32, 2})},
                     {"c.weight", bytes(codes, DType::kU8, {32, 32})}});
  const auto check = [&](const std::string& name) {
    return run_tool(kLinear + ("--input " + path("w.safetensors") + " --m 3 --check --weight ") +
                    name);
  };
  EXPECT_THAT(check("a.weight").out, HasSubstr("weight nvfp4"));
  EXPECT_THAT(check("a.weight").out, HasSubstr("correct"));
  EXPECT_THAT(check("b.weight").out, HasSubstr("weight mxfp4"));
  EXPECT_THAT(check("c.weight").err,
              HasSubstr("none of c.weight_scale, c.weight_scale_inv, c.scale"));
}

TEST_F(LinearTool, ReadsWeightAndActivationsOfAFolderOfShards) {
  const std::vector<std::uint16_t> ones(32 * 32, 0x3f80);
  const auto view = [&](std::vector<std::int64_t> shape) {
    return contiguous_view(static_cast<const void*>(ones.data()), DType::kBF16, std::move(shape));
  };
  write_safetensors(path("1.safetensors"), {{"w.weight", view({32, 32})}});
  write_safetensors(path("2.safetensors"), {{"x", view({3, 32})}});
  write_file(path("model.safetensors.index.json"),
             R"({"weight_map": {"w.weight": "1.safetensors", "x": "2.safetensors"}})");
  for (const std::string& input : {path(""), path("model.safetensors.index.json")}) {
    const Outcome run =
        run_tool(kLinear + ("--input " + input) + " --weight w.weight --x x --check");
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("correct"));
  }
}

// CTAs that share 32 tokens, which one of them loads: lanes of a warp release a stage in both, and
// what the other one has done is known by that alone.
TEST_F(LinearTool, ClustersOfRowsThatShareFewTokens) {
  const Outcome run = run_tool(
      kLinear + std::string("--m 8 --n 128 --format bf16 --check --kernel wide_bf16_t128_r2"));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("correct"));
}

TEST_F(LinearTool, BenchmarksNothingOnASimulator) {
  const Outcome run = run_tool("--device sim:h200 bench linear");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("has no times to measure"));
}

TEST_F(LinearTool, DrawsALogWithPeers) {
  write_file(path("log.json"), R"({"schema": 1, "kind": "linear", "device": {"name": "X"},
    "samples": [{"case": "a", "source": "tilewright", "kernel": "w4a16", "samples_us": [8, 9, 10],
                 "floor_us": 6.7, "problem": {"m": 1, "n": 64, "k": 64}, "error": {"ok": true}},
                {"case": "b", "source": "torch", "kernel": "bf16", "samples_us": [20],
                 "floor_us": 24, "problem": {"m": 8, "n": 64, "k": 64}}]})");
  const Outcome run = run_tool("bench linear --from " + path("log.json") + " --peers " +
                               path("log.json") + " --out " + path("page"));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("9.00"));
  const MappedFile page(path("page/linear.html"));
  EXPECT_THAT(std::string(page.text()), HasSubstr("n 64, k 64"));
  EXPECT_THAT(std::string(page.text()), HasSubstr("floor"));
}

// A quantised layer stays as it is stored; its shared expert, in FP8, is a layer of its own.
TEST(MoeTool, RunsALayerThatIsQuantised) {
  if (run_tool("info --json").parsed()["kernels"].empty()) GTEST_SKIP() << "built without kernels";
  const std::string model = std::string(TILEWRIGHT_SOURCE_DIR) + "/examples/models/tiny-dsv4";
  const Outcome run =
      run_tool("--device sim:h200 moe --input " + model + " --layer 1 --tokens 5 --check");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("without its shared expert, which is in fp8"));
  EXPECT_THAT(run.out, HasSubstr("nvfp4"));
  EXPECT_THAT(run.out, HasSubstr("correct"));
}

}  // namespace
}  // namespace tilewright
