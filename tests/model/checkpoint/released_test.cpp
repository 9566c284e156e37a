#include "model/checkpoint/released.h"

#include "base/error.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::model {
namespace {

std::int64_t total_bytes(const std::vector<StoredTensor>& tensors) {
  return std::accumulate(
      tensors.begin(), tensors.end(), std::int64_t{0},
      [](std::int64_t sum, const StoredTensor& tensor) { return sum + tensor.bytes(); });
}

// The published index of V4-Flash says 159,609,485,896 bytes of 69,187 tensors in 46 files, 1,575
// tensors of the draft layer; V4-Pro has 64 files.
TEST(Released, FlashIsThePublishedCheckpointToTheByte) {
  const Config config = released_config("flash").value();
  const auto tensors = released_tensors(config);
  EXPECT_EQ(tensors.size(), 69187u);
  EXPECT_EQ(total_bytes(tensors), 159'609'485'896);
  EXPECT_EQ(num_shards(config), 46);
  EXPECT_EQ(std::ranges::count_if(tensors,
                                  [](const StoredTensor& t) { return t.name.starts_with("mtp."); }),
            1575);
  std::set<std::string> names;
  for (const StoredTensor& t : tensors) names.insert(t.name);
  EXPECT_EQ(names.size(), tensors.size());
}

TEST(Released, ProHasItsPublishedFirstShard) {
  const Config config = released_config("pro").value();
  const auto tensors = released_tensors(config);
  EXPECT_EQ(num_shards(config), 64);
  EXPECT_EQ(total_bytes(tensors), 864'704'792'696);
  // The file has a header before the embedding.
  EXPECT_EQ(tensors[0].name, "embed.weight");
  EXPECT_NEAR(static_cast<double>(tensors[0].bytes()), 1'853'358'176, 200);
  EXPECT_EQ(std::ranges::count(config.layers, LayerKind::kHca), 31);
  EXPECT_EQ(std::ranges::count(config.layers, LayerKind::kCsa), 30);
}

TEST(Released, NamesTypesAndShapes) {
  const Config config = released_config("flash").value();
  std::map<std::string, StoredTensor> by_name;
  for (const StoredTensor& t : released_tensors(config)) by_name[t.name] = t;
  const auto expect = [&](const char* name, DType dtype, std::vector<std::int64_t> shape) {
    ASSERT_TRUE(by_name.contains(name)) << name;
    EXPECT_EQ(by_name[name].dtype, dtype) << name;
    EXPECT_EQ(by_name[name].shape, shape) << name;
  };
  expect("layers.0.attn.attn_sink", DType::kF32, {64});
  expect("layers.0.attn.wq_b.weight", DType::kF8_E4M3, {32768, 1024});
  expect("layers.0.attn.wq_b.scale", DType::kF8_E8M0, {256, 8});
  expect("layers.2.attn.compressor.wkv.weight", DType::kBF16, {1024, 4096});
  expect("layers.3.attn.compressor.ape", DType::kF32, {128, 512});
  expect("layers.2.attn.indexer.weights_proj.weight", DType::kBF16, {64, 4096});
  expect("layers.0.ffn.gate.tid2eid", DType::kI64, {129280, 6});
  expect("layers.3.ffn.gate.bias", DType::kF32, {256});
  expect("layers.42.ffn.experts.255.w1.weight", DType::kI8, {2048, 2048});
  expect("layers.42.ffn.experts.255.w1.scale", DType::kF8_E8M0, {2048, 128});
  expect("layers.42.ffn.experts.255.w2.scale", DType::kF8_E8M0, {4096, 64});
  expect("mtp.0.e_proj.weight", DType::kF8_E4M3, {4096, 4096});
  expect("mtp.0.hc_head_fn", DType::kF32, {4, 16384});
  EXPECT_FALSE(by_name.contains("layers.1.attn.compressor.ape"));
  EXPECT_FALSE(by_name.contains("layers.3.ffn.gate.tid2eid"));
  EXPECT_EQ(shard_of(config, by_name["layers.42.attn_norm.weight"]), 44);
  EXPECT_EQ(shard_of(config, by_name["norm.weight"]), 45);
  EXPECT_EQ(shard_of(config, by_name["mtp.0.enorm.weight"]), 46);
  EXPECT_EQ(shard_name(3, 46), "model-00003-of-00046.safetensors");
}

TEST(Released, ExpertsOfModelOpt) {
  const Config config = released_config("flash").value();
  const auto tensors = released_tensors(config, NumberFormat::kNvfp4);
  const auto scale =
      std::ranges::find(tensors, "layers.0.ffn.experts.0.w2.weight_scale", &StoredTensor::name);
  ASSERT_NE(scale, tensors.end());
  EXPECT_EQ(scale->dtype, DType::kF8_E4M3);
  EXPECT_EQ(scale->shape, (std::vector<std::int64_t>{4096, 128}));
  EXPECT_THROW(released_tensors(config, NumberFormat::kFp8), Error);
}

TEST(Released, ConfigIsReadBackAsItIs) {
  for (const char* name : {"flash", "pro"}) {
    const Config config = released_config(name).value();
    EXPECT_EQ(parse_config(config_json(config).dump(), name), config);
  }
  EXPECT_FALSE(released_config("nano").has_value());
}

class SharesTile : public testing::TestWithParam<std::tuple<const char*, Scheme, int>> {};

TEST_P(SharesTile, EveryElementBelongsToOneRankOrToAll) {
  const auto& [name, scheme, world] = GetParam();
  const Config config = released_config(name).value();
  std::int64_t shared = 0;
  for (const StoredTensor& t : released_tensors(config)) {
    const MatrixRange whole = {{0, t.rows()}, {0, t.cols()}};
    std::vector<MatrixRange> parts;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const MatrixRange part = stored_share({scheme, rank, world}, t, config.experts);
      if (part.rows.count > 0) parts.push_back(part);
    }
    if (std::ssize(parts) == world && std::ranges::count(parts, whole) == world) continue;
    ++shared;
    // All of them cross the matrix in the same direction, one behind the other.
    const bool is_by_rows = parts[0].cols == whole.cols;
    std::int64_t next = 0;
    for (const MatrixRange& part : parts) {
      const Range& split = is_by_rows ? part.rows : part.cols;
      EXPECT_EQ(split.first, next) << t.name;
      EXPECT_EQ(is_by_rows ? part.cols : part.rows, is_by_rows ? whole.cols : whole.rows) << t.name;
      next = split.first + split.count;
    }
    EXPECT_EQ(next, is_by_rows ? t.rows() : t.cols()) << t.name;
  }
  EXPECT_GT(shared, 0);
}

INSTANTIATE_TEST_SUITE_P(Released, SharesTile,
                         testing::Values(std::tuple{"flash", Scheme::kExpertParallel, 2},
                                         std::tuple{"flash", Scheme::kExpertParallel, 3},
                                         std::tuple{"flash", Scheme::kTensorParallel, 2},
                                         std::tuple{"flash", Scheme::kTensorParallel, 8},
                                         std::tuple{"pro", Scheme::kExpertParallel, 8},
                                         std::tuple{"pro", Scheme::kTensorParallel, 8}));

// 3072 columns of an expert are 192 for each of 16 ranks: one and a half blocks.
TEST(Released, ProIsNotForSixteenRanks) {
  const Config config = released_config("pro").value();
  try {
    check_share({Scheme::kTensorParallel, 0, 16}, config);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("in blocks of 128; expected 1, 2, 4, 8 ranks"));
  }
  EXPECT_NO_THROW(check_share({Scheme::kExpertParallel, 15, 16}, config));
}

}  // namespace
}  // namespace tilewright::model
