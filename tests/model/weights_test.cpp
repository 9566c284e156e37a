#include "model/weights.h"

#include "formats/block_scale.h"
#include "tests/model/tiny.h"

#include <cmath>
#include <numeric>

namespace tilewright::model {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string refusal(const std::function<void(json&)>& change) {
  const ChangedModel model(change);
  try {
    const Weights weights(model.path());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.what();
    return error.what();
  }
  return "";
}

TEST(Weights, OfTheBundledModel) {
  const Weights weights(kTinyModel);
  EXPECT_EQ(weights.expert_format(), "nvfp4");
  EXPECT_EQ(weights.layers.size(), 6u);
  EXPECT_LT(weights.num_bytes(), 20'000'000);
  EXPECT_EQ(weights.layers[0].attn.wq_b.format, "fp8_128x128_ue8m0");
  EXPECT_EQ(weights.layers[0].ffn.tid2eid.size(), 512u);
  EXPECT_TRUE(weights.layers[0].ffn.bias.empty());
  EXPECT_FALSE(weights.layers[0].attn.compressor.has_value());
  EXPECT_TRUE(weights.layers[1].attn.indexer.has_value());
  EXPECT_EQ(weights.layers[2].attn.compressor->ape.size(), 128u * 512);
  EXPECT_FALSE(weights.layers[2].attn.indexer.has_value());
}

TEST(Weights, ShapesThatDoNotFitAreNamed) {
  const std::string text = refusal([](json& c) { c["q_lora_rank"] = 64; });
  EXPECT_THAT(text, HasSubstr("\"layers.0.attn.wq_a.weight\" is [128, 256]; expected [q_lora_rank, "
                              "hidden_size] = [64, 256]"));
  EXPECT_THAT(text, HasSubstr("\"layers.0.attn.q_norm.weight\" is BF16 [128]"));
  EXPECT_THAT(text, HasSubstr("; ...")) << "there are more than ten";
}

TEST(Weights, MissingTensorsAndThoseThatBelongToNothingAreNamed) {
  EXPECT_THAT(refusal([](json& c) { c["n_routed_experts"] = 9; }),
              HasSubstr("\"layers.0.ffn.experts.8.w1.weight\" is missing"));
  EXPECT_THAT(refusal([](json& c) { c["compress_ratios"] = {0, 4, 128, 4, 128, 0}; }),
              HasSubstr("\"layers.5.attn.compressor.ape\" does not belong to the model"));
  EXPECT_THAT(refusal([](json& c) { c["num_hash_layers"] = 0; }),
              HasSubstr("\"layers.0.ffn.gate.bias\" is missing"));
}

TEST(Weights, ExpertsInOtherFormats) {
  const Weights stored(kTinyModel);
  const Matrix& matrix = stored.layers[3].ffn.experts[5].down;
  const auto before = read_matrix(matrix);
  for (const char* name : {"bf16", "fp8", "mxfp4", "nvfp4"}) {
    SCOPED_TRACE(name);
    const Weights converted(kTinyModel, expert_format_by_name(name).value());
    EXPECT_EQ(converted.expert_format(), name);
    const auto after = read_matrix(converted.layers[3].ffn.experts[5].down);
    double sum = 0, error = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      sum += double{before[i]} * before[i];
      error += (double{before[i]} - after[i]) * (double{before[i]} - after[i]);
    }
    const std::string_view format = name;
    // Half a unit of 2, 4 and 8 significant bits, and blocks that do not coincide.
    const double limit = format == "nvfp4"  ? 0
                         : format == "bf16" ? 0x1p-8
                         : format == "fp8"  ? 0x1p-4
                                            : 0.25;
    EXPECT_LE(std::sqrt(error / sum), limit);
  }
  EXPECT_FALSE(expert_format_by_name("int4").has_value());
}

}  // namespace
}  // namespace tilewright::model
