// Checkpoints with random weights in the form of released ones: read whole and in shares, run, and
// damaged.
#include "model/checkpoint/make_checkpoint.h"

#include "base/error.h"
#include "base/json.h"
#include "base/safetensors_writer.h"
#include "model/checkpoint/draw.h"
#include "model/checkpoint/released.h"
#include "tests/base/mutator.h"
#include "tests/base/safetensors_bytes.h"
#include "tests/base/scoped_folder.h"
#include "tests/model/checkpoint/narrow.h"
#include "tests/ops/operator_test.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <set>

#include <gmock/gmock.h>

namespace tilewright::model {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct MadeCheckpoint {
  explicit MadeCheckpoint(const Config& c, NumberFormat experts = NumberFormat::kMxfp4)
      : config(c) {
    make_checkpoint(folder.path(), {.config = c, .experts = experts});
  }
  fs::path shard(std::int64_t number) const {
    return folder / shard_name(number, num_shards(config));
  }
  Config config;
  ScopedFolder folder;
};

std::string refusal(const fs::path& folder) {
  try {
    const Weights weights(folder, WeightsOptions{.has_drafts = true});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(MakeCheckpoint, HasTheFilesAndBytesOfARelease) {
  const MadeCheckpoint made(small_config("flash"));
  EXPECT_TRUE(fs::exists(made.folder / "model-00001-of-00008.safetensors"));
  EXPECT_TRUE(fs::exists(made.folder / "model-00008-of-00008.safetensors"));
  EXPECT_EQ(read_config(made.folder.path()), made.config);
  std::int64_t bytes = 0;
  for (const StoredTensor& t : released_tensors(made.config)) bytes += t.bytes();
  const auto index = read_json(made.folder / "model.safetensors.index.json");
  EXPECT_EQ(index["metadata"]["total_size"], bytes);
  const SafetensorsFile layer(made.shard(4));
  EXPECT_EQ(layer.tensor("layers.2.ffn.experts.7.w2.weight").dtype, DType::kI8);
  const Weights whole(made.folder.path(), WeightsOptions{.has_drafts = true});
  EXPECT_EQ(whole.num_bytes(), bytes);
  EXPECT_EQ(whole.expert_format(), "mxfp4");
  ASSERT_EQ(whole.drafts.size(), 1u);
  EXPECT_EQ(whole.drafts[0].e_proj.format, "fp8_128x128_ue8m0");
}

TEST(MakeCheckpoint, SharesReadTheirBytesAlone) {
  const MadeCheckpoint made(small_config("pro"));
  for (const Scheme scheme : {Scheme::kExpertParallel, Scheme::kTensorParallel}) {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      const Share share = {scheme, rank, 2};
      std::int64_t bytes = 0;
      for (const StoredTensor& t : released_tensors(made.config))
        bytes += stored_share_bytes(share, t, made.config.experts);
      const Weights weights(made.folder.path(), WeightsOptions{.share = share, .has_drafts = true});
      EXPECT_EQ(weights.num_bytes(), bytes) << to_string(scheme) << " " << rank;
    }
  }
}

// All matrices of a rank.
std::vector<const Matrix*> matrices_of(const Weights& weights) {
  std::vector<const Matrix*> all = {&weights.embed, &weights.head};
  const auto add_expert = [&](const ExpertWeights& expert) {
    all.insert(all.end(), {&expert.gate, &expert.up, &expert.down});
  };
  for (const LayerWeights& layer : weights.layers) {
    const AttentionWeights& attn = layer.attn;
    all.insert(all.end(), {&attn.wq_a, &attn.wq_b, &attn.wkv, &attn.wo_a, &attn.wo_b});
    if (attn.indexer) all.insert(all.end(), {&attn.indexer->wq_b, &attn.indexer->weights_proj});
    all.push_back(&layer.ffn.gate);
    for (const ExpertWeights& expert : layer.ffn.experts) add_expert(expert);
    add_expert(*layer.ffn.shared);
  }
  return all;
}

// All bytes of a file that are not the rank's become 0xff: NaN as scale, as e4m3 and as bf16.
void poison_other_ranks(const MadeCheckpoint& made, std::int64_t shard, const Share& share) {
  const SafetensorsFile file(made.shard(shard));
  std::map<std::string, std::vector<std::uint8_t>> copies;
  std::map<std::string, ConstTensorView> views;
  for (const StoredTensor& t : released_tensors(made.config)) {
    if (shard_of(made.config, t) != shard) continue;
    ConstTensorView& view = views[t.name] = file.tensor(t.name);
    const auto* const from = static_cast<const std::uint8_t*>(view.data);
    const MatrixRange part = stored_share(share, t, made.config.experts);
    const std::int64_t bytes = bits_per_elem(t.dtype) / 8;
    std::vector<std::uint8_t>& copy = copies[t.name];
    copy.assign(static_cast<std::size_t>(t.bytes()), 0xff);
    for (std::int64_t row = part.rows.first; row < part.rows.first + part.rows.count; ++row) {
      const std::int64_t first = (row * t.cols() + part.cols.first) * bytes;
      std::copy_n(from + first, part.cols.count * bytes, copy.begin() + first);
    }
    view.data = copy.data();
  }
  write_safetensors(made.shard(shard), views);
}

TEST(MakeCheckpoint, ARankDependsOnItsOwnBytesAlone) {
  Config config = narrow_config();
  config.experts = 4;
  for (const Scheme scheme : {Scheme::kExpertParallel, Scheme::kTensorParallel}) {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      SCOPED_TRACE(fmt::format("{} {}", to_string(scheme), rank));
      const Share share = {scheme, rank, 2};
      const MadeCheckpoint made(config), poisoned(config);
      for (std::int64_t shard = 1; shard <= num_shards(config); ++shard)
        poison_other_ranks(poisoned, shard, share);
      const Weights expected(made.folder.path(), WeightsOptions{.share = share});
      const Weights weights(poisoned.folder.path(), WeightsOptions{.share = share});
      const auto of_made = matrices_of(expected), of_poisoned = matrices_of(weights);
      ASSERT_EQ(of_made.size(), of_poisoned.size());
      for (std::size_t i = 0; i < of_made.size(); ++i)
        EXPECT_EQ(read_matrix(*of_made[i]), read_matrix(*of_poisoned[i])) << of_made[i]->name;
      EXPECT_EQ(expected.layers[1].attn.sink, weights.layers[1].attn.sink);
      // The test would see it: the other rank's bytes are gone.
      const Weights other(poisoned.folder.path(), WeightsOptions{.share = {scheme, 1 - rank, 2}});
      EXPECT_THROW(read_matrix(other.layers[1].ffn.experts[0].gate), Error);
    }
  }
}

TEST(MakeCheckpoint, WeightsHaveTheDeviationThatWasAskedFor) {
  for (const char* format : {"", "fp8_128x128_ue8m0", "mxfp4", "nvfp4"}) {
    SCOPED_TRACE(format);
    constexpr std::int64_t kRows = 256, kCols = 384;
    const double deviation = 1 / std::sqrt(384.0);
    DrawnMatrix drawn = draw_matrix(format, kRows, kCols, deviation, NamedRandom(1, "w"));
    std::vector<float> values;
    if (*format == '\0') {
      for (std::size_t i = 0; i < drawn.codes.size(); i += 2)
        values.push_back(static_cast<float>(
            decode(kBf16, drawn.codes[i] | static_cast<std::uint32_t>(drawn.codes[i + 1]) << 8)));
    } else {
      values = dequantize_rows(block_format_by_name(format), drawn.codes.data(),
                               drawn.scales.data(), drawn.tensor_scale, kRows, kCols);
    }
    double sum = 0, squares = 0;
    for (const float x : values) {
      ASSERT_TRUE(std::isfinite(x));
      sum += x;
      squares += double{x} * x;
    }
    const auto count = static_cast<double>(values.size());
    // 98304 values of excess kurtosis below 6: a standard error of the deviation of 0.5 %. FP8 has
    // six scales alone, each of which moves the mean square by up to a factor of 4.
    const double tolerance = std::string_view(format).starts_with("fp8") ? 0.5 : 0.03;
    EXPECT_NEAR(std::sqrt(squares / count) / deviation, 1, tolerance);
    EXPECT_NEAR(sum / count / deviation, 0, 0.05);
  }
}

class MadeCheckpointTest : public ChipTest<MadeCheckpointTest, false> {};
INSTANTIATE_TEST_SUITE_P(SimTest, MadeCheckpointTest, ::testing::Values("sim:h200"),
                         [](const auto&) { return "h200"; });

TEST_P(MadeCheckpointTest, KernelsAndFloat64Agree) {
  const MadeCheckpoint made(narrow_config());
  EXPECT_LT(kl_of(*device_, std::make_shared<const Weights>(made.folder.path())), kLargestKl);
}

TEST(MakeCheckpoint, AFolderWithFilesIsLeftAlone) {
  const ScopedFolder folder;
  std::ofstream(folder / "notes.txt") << "mine";
  try {
    make_checkpoint(folder.path(), {.config = narrow_config()});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected a name that is free, or an empty folder"));
  }
}

TEST(DamagedCheckpoint, MissingAndShortFilesAreNamed) {
  const MadeCheckpoint made(narrow_config());
  EXPECT_EQ(refusal(made.folder.path()), "");
  fs::resize_file(made.shard(3), fs::file_size(made.shard(3)) - 1);
  EXPECT_THAT(refusal(made.folder.path()), HasSubstr("the file is cut off. Fetch it again"));
  fs::remove(made.shard(3));
  fs::remove(made.shard(5));
  EXPECT_THAT(refusal(made.folder.path()), HasSubstr("2 of 6 files are missing"));
  EXPECT_THAT(refusal(made.folder.path()), HasSubstr("\"model-00003-of-00006.safetensors\""));
}

// Writes a shard again with one tensor changed.
void rewrite(const fs::path& shard, const std::string& name,
             const std::function<void(ConstTensorView&)>& change, const std::string& as = "") {
  std::map<std::string, ConstTensorView> views;
  const SafetensorsFile file(shard);
  for (const SafetensorsEntry& entry : file.entries()) {
    ConstTensorView view = file.tensor(entry.name);
    if (entry.name == name) change(view);
    views[entry.name == name && !as.empty() ? as : entry.name] = view;
  }
  write_safetensors(shard, views);
}

TEST(DamagedCheckpoint, TensorsOfAnotherTypeOrShapeOrNameAreNamed) {
  const MadeCheckpoint made(narrow_config());
  const std::string weight = "layers.0.attn.wkv.weight";
  rewrite(made.shard(2), weight, [](ConstTensorView& view) { view.dtype = DType::kF8_E5M2; });
  EXPECT_THAT(refusal(made.folder.path()), HasSubstr("is F8_E5M2; expected BF16, F16 or F32, or"));
  rewrite(made.shard(2), weight, [](ConstTensorView& view) { view.dtype = DType::kF8_E4M3; });
  EXPECT_EQ(refusal(made.folder.path()), "");
  rewrite(made.shard(2), "layers.0.attn.attn_sink", [](ConstTensorView& view) {
    view = contiguous_view(view.data, DType::kF32, {1, 2});
  });
  EXPECT_THAT(refusal(made.folder.path()), HasSubstr("\"layers.0.attn.attn_sink\" is F32 [1, 2]"));
  rewrite(
      made.shard(2), "layers.0.attn.attn_sink",
      [](ConstTensorView& view) { view = contiguous_view(view.data, DType::kF32, {2}); },
      "layers.0.attn.sinks");
  EXPECT_THAT(refusal(made.folder.path()),
              HasSubstr("tensor \"layers.0.attn.attn_sink\" should be in "
                        "\"model-00002-of-00006.safetensors\", which lacks it"));
  auto index = read_json(made.folder / "model.safetensors.index.json");
  index["weight_map"].erase("layers.0.attn.attn_sink");
  index["weight_map"]["layers.0.attn.sinks"] = "model-00002-of-00006.safetensors";
  write_json(made.folder / "model.safetensors.index.json", index);
  EXPECT_THAT(refusal(made.folder.path()), HasSubstr("\"layers.0.attn.attn_sink\" is missing"));
  EXPECT_THAT(refusal(made.folder.path()),
              HasSubstr("\"layers.0.attn.sinks\" does not belong to the model"));
}

TEST(DamagedCheckpoint, DraftTensorsAreCheckedIfTheyAreRead) {
  const MadeCheckpoint made(narrow_config());
  rewrite(
      made.shard(6), "mtp.0.enorm.weight", [](ConstTensorView&) {}, "mtp.0.enorm.bias");
  auto index = read_json(made.folder / "model.safetensors.index.json");
  index["weight_map"]["mtp.0.enorm.bias"] = index["weight_map"]["mtp.0.enorm.weight"];
  index["weight_map"].erase("mtp.0.enorm.weight");
  write_json(made.folder / "model.safetensors.index.json", index);
  EXPECT_NO_THROW(Weights(made.folder.path()));
  EXPECT_THAT(refusal(made.folder.path()), HasSubstr("\"mtp.0.enorm.weight\" is missing"));
  EXPECT_THAT(refusal(made.folder.path()), HasSubstr("\"mtp.0.enorm.bias\" does not belong"));
}

// A scale that is no number is found when the weight is read, with its name.
TEST(DamagedCheckpoint, ScalesAreCheckedWhenAWeightIsUsed) {
  const MadeCheckpoint made(narrow_config());
  std::vector<std::uint8_t> scales;
  rewrite(made.shard(2), "layers.0.ffn.experts.1.w2.scale", [&](ConstTensorView& view) {
    const auto* from = static_cast<const std::uint8_t*>(view.data);
    scales.assign(from, from + view.shape[0] * view.shape[1]);
    scales[5] = 0xff;  // NaN
    view.data = scales.data();
  });
  const Weights weights(made.folder.path());
  EXPECT_NO_THROW(read_matrix(weights.layers[0].ffn.experts[0].down));
  try {
    read_matrix(weights.layers[0].ffn.experts[1].down);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"layers.0.ffn.experts.1.w2.weight\": scale number 5"));
  }
}

const std::vector<std::string> kWords = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         ":",
                                         ",",
                                         "\"",
                                         "\"F32\"",
                                         "\"I8\"",
                                         "\"shape\":[",
                                         "\"data_offsets\":[0,",
                                         "\"__metadata__\":{",
                                         "9223372036854775807",
                                         "18446744073709551615",
                                         "-1"};

// A checkpoint whose index or header is damaged opens with all tensors in place, or is refused in
// one sentence: offsets that overlap, leave gaps, wrap around or leave the file, shapes that do not
// fit, JSON that is none.
class MutatedCheckpoint : public testing::Test {
 protected:
  static Config config() {
    Config c = narrow_config();
    c.layers = {LayerKind::kWindow};
    c.draft_layers = 0;
    return c;
  }
  void open() {
    ++opened_;
    try {
      const Weights weights(made_.folder.path());
      ++taken_;
      const SafetensorsFile file(made_.shard(3));
      for (const SafetensorsEntry& entry : file.entries())
        EXPECT_LE(entry.begin_bytes, entry.end_bytes);
      EXPECT_FALSE(read_matrix(weights.head).empty());
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what();
      EXPECT_LT(std::strlen(error.what()), 4000u);
    }
  }
  void expect_both() const {
    EXPECT_GT(taken_, 0);
    EXPECT_LT(taken_, opened_ * 9 / 10);
  }

  MadeCheckpoint made_{config()};
  int opened_ = 0, taken_ = 0;
};

TEST_F(MutatedCheckpoint, IndexIsReadOrRefused) {
  Mutator mutator(7, kWords);
  const fs::path path = made_.folder / "model.safetensors.index.json";
  const std::string text(MappedFile(path).text());
  for (int i = 0; i < 400; ++i) {
    std::ofstream(path, std::ios::trunc) << mutator.mutate(text);
    open();
  }
  expect_both();
}

TEST_F(MutatedCheckpoint, HeaderOfAShardIsReadOrRefused) {
  Mutator mutator(8, kWords);
  const fs::path path = made_.shard(3);  // head, norm, hc_head_*
  const std::string file(MappedFile(path).text());
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  for (int i = 0; i < 400; ++i) {
    const std::string header = mutator.mutate(file.substr(8, length));
    std::ofstream(path, std::ios::trunc | std::ios::binary)
        << safetensors_file(header, file.substr(8 + length));
    open();
  }
  expect_both();
}

}  // namespace
}  // namespace tilewright::model
