#include "model/config.h"

#include "base/file.h"
#include "tests/model/tiny.h"

namespace tilewright::model {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Config parse(const std::function<void(json&)>& change) {
  json config = read_json(kTinyModel + "/config.json");
  change(config);
  return parse_config(config.dump(), "config.json");
}

void expect_refused(ErrorKind kind, const std::string& key, const json& value,
                    const std::vector<std::string>& parts) {
  try {
    parse([&](json& config) { config[key] = value; });
    ADD_FAILURE() << key << " was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(Config, OfTheBundledModel) {
  const Config config = read_config(kTinyModel);
  EXPECT_EQ(config.hidden, 256);
  EXPECT_EQ(config.layers,
            (std::vector<LayerKind>{LayerKind::kWindow, LayerKind::kCsa, LayerKind::kHca,
                                    LayerKind::kCsa, LayerKind::kHca, LayerKind::kCsa}));
  EXPECT_EQ(config.routed_scale, 1.5);
  EXPECT_TRUE(config.is_hash_routed(0));
  EXPECT_FALSE(config.is_hash_routed(1));
  EXPECT_THAT(config_text(config), HasSubstr("6 layers (1 window, 3 CSA, 2 HCA)"));
}

TEST(Config, DraftLayersAfterTheMainOnesAreLeftOut) {
  const Config config =
      parse([](json& c) { c["compress_ratios"] = {0, 4, 128, 4, 128, 4, 0, 0, 0}; });
  EXPECT_EQ(config.num_layers(), 6);
}

TEST(Config, EndsAreATokenAListOrNothing) {
  using Ends = std::vector<std::int32_t>;
  EXPECT_EQ(read_config(kTinyModel).ends, Ends{});
  EXPECT_EQ(parse([](json& c) { c.erase("eos_token_id"); }).ends, Ends{});
  EXPECT_EQ(parse([](json& c) { c["eos_token_id"] = 1; }).ends, Ends{1});
  EXPECT_EQ(parse([](json& c) { c["eos_token_id"] = {1, 255}; }).ends, (Ends{1, 255}));
  expect_refused(ErrorKind::kParseError, "eos_token_id", 256, {"eos_token_id", "from 0 to 255"});
  expect_refused(ErrorKind::kParseError, "eos_token_id", {1, -1}, {"/eos_token_id/1", "0 to 255"});
  expect_refused(ErrorKind::kParseError, "eos_token_id", "end", {"whole number", "end"});
}

TEST(Config, LayerTypesByNameAsTransformersWritesThem) {
  const json names = {
      "sliding_attention",           "compressed_sparse_attention",  "heavily_compressed_attention",
      "compressed_sparse_attention", "heavily_compressed_attention", "compressed_sparse_attention"};
  const auto named = [&](json& c) {
    c.erase("compress_ratios");
    c["layer_types"] = names;
    c["num_nextn_predict_layers"] = 2;
  };
  EXPECT_EQ(parse(named).layers, read_config(kTinyModel).layers);
  EXPECT_EQ(parse(named).draft_layers, 2);
  const auto wrong = [&](json& c) {
    named(c);
    c["layer_types"][1] = "full_attention";
  };
  EXPECT_THROW(parse(wrong), Error);
  const auto both = [](json& c) { c["layer_types"] = {"full_attention"}; };
  EXPECT_EQ(parse(both).layers, read_config(kTinyModel).layers) << "the ratios are the truth";
}

TEST(Config, ScalesOfOtherBlocksAreRefused) {
  const json fp8 = {{"quant_method", "fp8"}, {"fmt", "e4m3"}, {"weight_block_size", {128, 128}}};
  EXPECT_NO_THROW(parse([&](json& c) { c["quantization_config"] = fp8; }));
  json other = fp8;
  other["weight_block_size"] = {1, 128};
  expect_refused(ErrorKind::kUnsupported, "quantization_config", other, {"128 x 128"});
  other = fp8;
  other["fmt"] = "e5m2";
  expect_refused(ErrorKind::kUnsupported, "quantization_config", other, {"e5m2", "e4m3"});
}

TEST(Config, WhatIsNotDeepSeekV4IsRefused) {
  expect_refused(ErrorKind::kUnsupported, "compress_ratios", {0, 1, 2, 0, 1, 2},
                 {"/compress_ratios/1", "is 1", "V4.1"});
  expect_refused(ErrorKind::kUnsupported, "model_type", "llama", {"llama", "deepseek_v4"});
  expect_refused(ErrorKind::kUnsupported, "head_dim", 128, {"head_dim", "128", "expected 512"});
  expect_refused(ErrorKind::kUnsupported, "num_key_value_heads", 2, {"expected 1"});
  expect_refused(ErrorKind::kUnsupported, "scoring_func", "softmax", {"sqrtsoftplus"});
  expect_refused(ErrorKind::kUnsupported, "norm_topk_prob", false, {"normalised"});
}

TEST(Config, MissingAndWrongValues) {
  expect_refused(ErrorKind::kParseError, "hidden_size", "big", {"hidden_size", "whole number"});
  expect_refused(ErrorKind::kParseError, "compress_ratios", {0, 4}, {"has 2 entries", "6 layers"});
  expect_refused(ErrorKind::kParseError, "o_groups", 3, {"does not divide"});
  expect_refused(ErrorKind::kParseError, "num_experts_per_tok", 9, {"1 to 8"});
  EXPECT_THROW(parse([](json& c) { c.erase("swiglu_limit"); }), Error);
}

// Whatever stands in the file, it is read or refused.
TEST(Config, MutatedTextIsReadOrRefused) {
  const MappedFile file(kTinyModel + "/config.json");
  std::uint64_t state = 1;
  int taken = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text(file.text());
    for (int change = 0; change <= i % 3; ++change) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const std::size_t at = (state >> 33) % text.size();
      text[at] = "0123456789-.,:[]{}\"ae"[(state >> 20) % 21];
    }
    try {
      const Config config = parse_config(text, "mutated");
      EXPECT_GE(config.num_layers(), 1);
      EXPECT_EQ(config.head_dim, 512);
      ++taken;
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what();
    }
  }
  EXPECT_GT(taken, 20);
}

}  // namespace
}  // namespace tilewright::model
