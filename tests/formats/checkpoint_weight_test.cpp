// Quantised weights of checkpoints: written under both conventions of names, found and read again.
#include "formats/checkpoint_weight.h"

#include "base/safetensors_writer.h"
#include "tests/base/scoped_folder.h"
#include "tests/formats/block_data.h"
#include "tests/formats/expect_invalid.h"

#include <cstring>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

constexpr std::int64_t kRows = 20, kCols = 96;

class CheckpointWeightTest : public ::testing::Test {
 protected:
  // The weight "a.weight" in that format, codes and scales cut to its shape.
  void write(CheckpointNames names, const BlockFormat& format) {
    const QuantizedTensor tensor = quantize(format, normal_values(kRows * kCols, 3), kRows, kCols);
    expected_ = dequantize(format, tensor);
    std::vector<std::uint8_t> codes;
    const std::int64_t bits = format.element.bits();
    for (std::int64_t row = 0; row < kRows; ++row) {
      const auto begin = tensor.codes.begin() + row * tensor.padded_cols * bits / 8;
      codes.insert(codes.end(), begin, begin + kCols * bits / 8);
    }
    parts_ = {codes, tensor.scales, {}};
    parts_[2].resize(4);
    std::memcpy(parts_[2].data(), &tensor.tensor_scale, 4);
    specs_.clear();
    for (const CheckpointPart& part : checkpoint_parts(names, format, "a.weight", kRows, kCols))
      specs_.push_back({part.name, part.dtype, part.shape});
    save();
  }
  void save() {
    SafetensorsWriter writer(path_, specs_);
    for (std::size_t i = 0; i < specs_.size(); ++i)
      writer.append(specs_[i].name, std::as_bytes(std::span(parts_[i])));
    writer.finish();
  }
  CheckpointWeight find() {
    model_.emplace(path_);
    return find_checkpoint_weight(*model_, "a.weight");
  }

  ScopedFolder folder_;
  std::filesystem::path path_ = folder_ / "m.safetensors";
  std::vector<SafetensorsSpec> specs_;
  std::vector<std::vector<std::uint8_t>> parts_;
  std::vector<float> expected_;
  std::optional<SafetensorsModel> model_;
};

TEST_F(CheckpointWeightTest, ComeBackUnderBothNames) {
  using enum CheckpointNames;
  const std::pair<CheckpointNames, const char*> cases[] = {{kModelOpt, "nvfp4"},
                                                           {kModelOpt, "mxfp4"},
                                                           {kModelOpt, "fp8_128x128"},
                                                           {kDeepSeek, "mxfp4"},
                                                           {kDeepSeek, "fp8_128x128"},
                                                           {kDeepSeek, "fp8_128x128_ue8m0"},
                                                           {kModelOpt, "fp8_128x128_ue8m0"}};
  for (const auto& [names, format] : cases) {
    SCOPED_TRACE(format);
    write(names, block_format_by_name(format));
    const CheckpointWeight weight = find();
    EXPECT_EQ(weight.format, format);
    EXPECT_EQ(weight.rows, kRows);
    EXPECT_EQ(weight.cols, kCols);
    EXPECT_EQ(read_checkpoint_rows(weight, 0, kRows), expected_);
    for (const SafetensorsSpec& spec : specs_)
      EXPECT_EQ(is_checkpoint_companion(*model_, spec.name), spec.name != "a.weight") << spec.name;
  }
  EXPECT_THROW(checkpoint_parts(kDeepSeek, kNvfp4, "a.weight", kRows, kCols), Error);
}

TEST_F(CheckpointWeightTest, NamesOfTheParts) {
  using testing::ElementsAre;
  write(CheckpointNames::kModelOpt, kNvfp4);
  EXPECT_EQ(specs_[0].dtype, DType::kU8);
  EXPECT_THAT(specs_[0].shape, ElementsAre(kRows, kCols / 2));
  EXPECT_EQ(specs_[1].name, "a.weight_scale");
  EXPECT_EQ(specs_[1].dtype, DType::kF8_E4M3);
  EXPECT_EQ(specs_[2].name, "a.weight_scale_2");
  EXPECT_THAT(specs_[2].shape, ElementsAre());
  write(CheckpointNames::kDeepSeek, kMxfp4);
  EXPECT_EQ(specs_[0].dtype, DType::kI8);
  EXPECT_EQ(specs_[1].name, "a.scale");
  EXPECT_EQ(specs_[1].dtype, DType::kF8_E8M0);
  write(CheckpointNames::kDeepSeek, kFp8Block128x128);
  EXPECT_EQ(specs_[1].name, "a.weight_scale_inv");
}

TEST_F(CheckpointWeightTest, RefusesWhatCannotBe) {
  const auto refused = [&](const std::string& text) {
    save();
    expect_invalid([&] { find(); }, text.c_str());
  };
  write(CheckpointNames::kModelOpt, kNvfp4);
  parts_[1][7] = 0x7f;
  refused("scale number 7 (row-major) is nan");
  parts_[1][7] = 0x98;
  refused("scale number 7 (row-major) is -");
  parts_[1][7] = 0;
  parts_[2] = {0, 0, 0, 0};
  refused("is 0; expected a finite number above 0");
  parts_[2] = {0, 0, 0x80, 0x7f};
  refused("is inf; expected a finite number above 0");
  specs_.pop_back();
  parts_.pop_back();
  refused("is nvfp4, but its tensor scale \"a.weight_scale_2\" is missing");
  specs_[1].shape = {kCols / 16, kRows};
  refused("whose scales are [20, 6]; \"a.weight_scale\" has [6, 20]");
  specs_[1].dtype = DType::kI8;
  refused("no format that is known has both");
  specs_.pop_back();
  parts_.pop_back();
  refused("its scales are missing");
}

}  // namespace
}  // namespace tilewright
