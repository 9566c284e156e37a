// Every command of the tool on a simulated B200: it runs, and its results are right.
#include "tests/cli/run_tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kSource = TILEWRIGHT_SOURCE_DIR;

struct BlackwellCommand {
  std::string name, arguments, says;
};
class BlackwellTool : public testing::Test {
 protected:
  // FOLDER in arguments is a folder that goes away.
  static Outcome run(const std::string& device, std::string arguments) {
    const ScopedFolder folder;
    if (const std::size_t at = arguments.find("FOLDER"); at != std::string::npos)
      arguments.replace(at, 6, (folder / "out").string());
    return run_tool("--device " + device + " " + arguments);
  }
};

class BlackwellCommands : public BlackwellTool,
                          public testing::WithParamInterface<BlackwellCommand> {};

TEST_P(BlackwellCommands, Run) {
  if (run_tool("info --json").parsed()["kernels"].empty()) GTEST_SKIP() << "built without kernels";
  const Outcome outcome = run("sim:b200", GetParam().arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr(GetParam().says));
  EXPECT_THAT(outcome.out, Not(HasSubstr("WRONG")));
}

INSTANTIATE_TEST_SUITE_P(
    Tool, BlackwellCommands,
    testing::Values(
        BlackwellCommand{"info", "info", "sim:b200"},
        BlackwellCommand{"attention", "attention --inputs normal --shape 1,2,1,20,30,64 --check",
                         "correct"},
        BlackwellCommand{"ladder",
                         "ladder --head-dims 64 --lengths 64 --tokens 64 --hidden 64 --mask full "
                         "--kernels sm100_c,sm100_e --out FOLDER",
                         "sm100_e"},
        BlackwellCommand{"linear", "linear --m 5 --n 64 --k 128 --check", "correct"},
        BlackwellCommand{"linear_bf16", "linear --format bf16 --m 70 --n 64 --k 128 --check",
                         "correct"},
        BlackwellCommand{"linear_blocks",
                         "linear --activations block_scaled --m 5 --n 64 --k 128 --check",
                         "against NVFP4 x"},
        BlackwellCommand{
            "linear_blocks_fp8",
            "linear --activations block_scaled --format fp8 --m 40 --n 144 --k 160 --check",
            "against MXFP8 x"},
        BlackwellCommand{"linear_fp8",
                         "linear --activations fp8 --format fp8 --m 40 --n 144 --k 160 --check",
                         "against e4m3 operands"},
        BlackwellCommand{"linear_swiglu", "linear --swiglu --m 5 --n 64 --k 128 --check",
                         "SwiGLU of the codes"},
        BlackwellCommand{"linear_swiglu_codes",
                         "linear --swiglu --format mxfp4 --quantised-out --swiglu-limit 2 --m 5 "
                         "--n 64 --k 128 --check",
                         "correct"},
        BlackwellCommand{"linear_accuracy", "linear --m 5 --n 64 --k 128 --accuracy",
                         "fp8 per 128"},
        BlackwellCommand{"moe", "moe --shape 8/2/64/64 --tokens 9 --check", "correct"},
        BlackwellCommand{"moe_fp8_blocks",
                         "moe --shape 2/2/256/128 --tokens 9 --format fp8 --activations "
                         "block_scaled --check",
                         "correct"},
        BlackwellCommand{"quantize",
                         "quantize " + kSource +
                             "/tests/golden/quantize/tiny_dsv4_rows.safetensors FOLDER --no-errors",
                         "tensors changed"},
        BlackwellCommand{"decode", "decode --batch 1 --keys 40 --heads 8 --kv-heads 1 --check",
                         "correct"},
        BlackwellCommand{"decode_no_sequences", "decode --batch 0 --keys 40 --check", "correct"},
        BlackwellCommand{"decode_f16", "decode --batch 1 --keys 40 --dtype f16 --check", "correct"},
        BlackwellCommand{"decode_no_keys", "decode --batch 1 --keys 0 --check", "correct"},
        BlackwellCommand{"sparse_attention",
                         "sparse-attention --heads 3 --window 70 --compressed 9 --check",
                         "correct"},
        BlackwellCommand{"sparse_attention_of_pairs",
                         "sparse-attention --heads 64 --batch 1 --window 70 --compressed 9 "
                         "--format nvfp4 --check",
                         "correct"},
        BlackwellCommand{"indexer", "indexer --heads 9 --keys 80 --topk 20 --check", "correct"},
        BlackwellCommand{"generate", "generate -p ab --max-tokens 3", "NVIDIA B200"},
        BlackwellCommand{"trace",
                         "generate --trace-tokens 6 --trace-run p144.quant --trace " + kSource +
                             "/tests/golden/dsv4/tiny.safetensors",
                         "p144.quant"},
        BlackwellCommand{
            "eval",
            "eval --chunk 6 --chunks 1 " + kSource + "/examples/models/tiny-dsv4/heldout.txt",
            "bits per byte"},
        BlackwellCommand{"bench_sparse", "bench sparse --batch 1 --out FOLDER", "right"},
        BlackwellCommand{"bench_indexer", "bench indexer --out FOLDER", "right"},
        BlackwellCommand{"bench_linear", "bench linear --smoke", "correct"},
        BlackwellCommand{"bench_moe",
                         "bench moe --shape 8/2/64/64 --tokens 3 --samples 3 --shared --out FOLDER",
                         "right"},
        BlackwellCommand{"bench_sim", "bench sim --help", "--seconds"}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(BlackwellTool, WritesTheTextOfAnH200) {
  if (run_tool("info --json").parsed()["kernels"].empty()) GTEST_SKIP() << "built without kernels";
  const auto text = [](const std::string& device) {
    return run(device, "--json generate -p 'int main(' --max-tokens 3").parsed()["sequences"];
  };
  EXPECT_EQ(text("sim:b200"), text("sim:h200"));
}

// A small sample of each operator.
TEST_F(BlackwellTool, AB300IsOfTheFamily) {
  if (run_tool("info --json").parsed()["kernels"].empty()) GTEST_SKIP() << "built without kernels";
  for (const std::string arguments :
       {"attention --inputs normal --shape 1,2,1,20,30,64",
        "attention --inputs normal --dtype e4m3 --shape 1,2,1,20,30,64",
        "decode --batch 1 --keys 40 --heads 8 --kv-heads 1",
        "decode --batch 1 --keys 40 --heads 8 --kv-heads 1 --kv e4m3",
        "linear --m 5 --n 64 --k 128", "linear --format bf16 --m 70 --n 64 --k 128",
        "linear --format fp8 --activations fp8 --m 70 --n 144 --k 160",
        "linear --activations block_scaled --m 5 --n 64 --k 128",
        "linear --swiglu --m 5 --n 64 --k 128", "moe --shape 8/2/64/64 --tokens 9",
        "moe --shape 2/2/256/128 --tokens 9 --format mxfp4 --activations block_scaled",
        "sparse-attention --heads 3 --window 70 --compressed 9",
        "sparse-attention --heads 64 --batch 1",
        "indexer --heads 9 --keys 80 --topk 20 --format mxfp4",
        "indexer --heads 9 --keys 80 --topk 20"}) {
    const Outcome outcome = run("sim:b300", arguments + " --check");
    EXPECT_EQ(outcome.status, 0) << arguments << outcome.err << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr("correct")) << arguments;
  }
}

// The operators of a model one by one, beside float64: norms, caches, compressor, indexer, sparse
// attention, inverse rotation, hyper-connections, routing, experts, linear layers.
TEST_F(BlackwellTool, AB300ComputesEveryStageOfTheModel) {
  if (run_tool("info --json").parsed()["kernels"].empty()) GTEST_SKIP() << "built without kernels";
  const Outcome outcome =
      run("sim:b300", "generate --trace-tokens 4 --trace-run p144.quant --trace " + kSource +
                          "/tests/golden/dsv4/tiny.safetensors");
  EXPECT_EQ(outcome.status, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("p144.quant"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("WRONG")));
}

}  // namespace
}  // namespace tilewright
