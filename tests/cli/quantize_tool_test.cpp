// `tilewright quantize` as a user runs it: on rows of trained weights, on the host and on the
// simulator, and back.
#include "base/safetensors.h"
#include "base/safetensors_writer.h"
#include "tests/cli/run_tool.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::HasSubstr;

constexpr const char* kRows = TILEWRIGHT_TEST_DATA "/quantize/tiny_dsv4_rows.safetensors";
constexpr const char* kW1 = "layers.3.ffn.experts.2.w1.weight";

class QuantizeTool : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static Outcome quantize(const std::string& arguments, const std::string& device = "") {
    return run_tool(device + "quantize " + arguments);
  }
  static std::string bytes_of(const std::string& file) {
    return std::string(MappedFile(file).text());
  }
  ScopedFolder folder_;
};

TEST_F(QuantizeTool, ReportsErrorsAndWritesTheNamesOfModelOpt) {
  const Outcome run =
      quantize(std::string(kRows) + " " + path("out.safetensors") + " --host --json");
  ASSERT_EQ(run.status, 0) << run.err << run.out;
  const nlohmann::json report = run.parsed();
  EXPECT_EQ(report["tensors"].size(), 3u);
  EXPECT_EQ(report["kept"].size(), 2u) << "a norm and a gate";
  EXPECT_EQ(report["names"], "modelopt");
  EXPECT_EQ(report["scales"], "four_over_six") << "the choice with the least error";
  EXPECT_NEAR(report["relative_rms"].get<double>(), 0.087, 0.002);
  EXPECT_NEAR(report["cosine"].get<double>(), 0.9962, 0.0002);
  const SafetensorsFile out(path("out.safetensors"));
  EXPECT_EQ(out.tensor(kW1).dtype, DType::kU8);
  EXPECT_EQ(out.tensor("layers.3.ffn.experts.2.w1.weight_scale").dtype, DType::kF8_E4M3);
  const auto scale_of = [&](const std::string& name) {
    float scale;
    std::memcpy(&scale, out.tensor(name).data, sizeof scale);
    return scale;
  };
  const float shared = scale_of("layers.3.ffn.experts.2.w1.weight_scale_2");
  EXPECT_EQ(shared, scale_of("layers.3.ffn.experts.2.w3.weight_scale_2")) << "gate and up share";
  EXPECT_NE(shared, scale_of("layers.3.ffn.experts.2.w2.weight_scale_2"));
  EXPECT_EQ(out.tensor("layers.3.ffn.gate.weight").dtype, DType::kBF16);
  EXPECT_THAT(out.metadata().at("quantization_config"), HasSubstr("NVFP4"));
}

TEST_F(QuantizeTool, EveryFormatIsTheSameOnTheDeviceAndComesBack) {
  if (run_tool("info --json").parsed()["kernels"].empty()) GTEST_SKIP() << "built without kernels";
  for (const std::string options :
       {"--format nvfp4 --scales four_over_six", "--format mxfp4 --rule ceil", "--format fp8",
        "--format fp8 --fp8-scales fp32 --names modelopt"}) {
    SCOPED_TRACE(options);
    const std::string host = path("host.safetensors"), device = path("device.safetensors");
    const Outcome on_host = quantize(std::string(kRows) + " " + host + " --host " + options);
    EXPECT_EQ(on_host.status, 0) << on_host.err;
    EXPECT_THAT(on_host.out, HasSubstr("3 tensors changed, 2 kept"));
    for (const char* const chip : {"--device sim:h200 ", "--device sim:b200 "}) {
      const Outcome on_device =
          quantize(std::string(kRows) + " " + device + " --no-errors " + options, chip);
      EXPECT_EQ(on_device.status, 0) << on_device.err;
      EXPECT_EQ(bytes_of(host), bytes_of(device)) << chip;
    }
    const std::string back = path("back.safetensors"), again = path("again.safetensors");
    ASSERT_EQ(quantize(host + " " + back + " --dequantize --dtype f32").status, 0);
    EXPECT_EQ(SafetensorsFile(back).tensor(kW1).dtype, DType::kF32);
    EXPECT_EQ(SafetensorsFile(back).entries().size(), 5u);
    // Codes are a source too: FP8 blocks to NVFP4.
    const Outcome next = quantize(host + " " + again + " --host --json");
    EXPECT_EQ(next.status, 0) << next.err;
    EXPECT_TRUE(next.parsed()["tensors"][0].contains("from"));
  }
}

TEST_F(QuantizeTool, TakesAFolderOfShards) {
  const std::filesystem::path in = folder_ / "in", out = folder_ / "out";
  std::filesystem::create_directory(in);
  const SafetensorsFile rows(kRows);
  nlohmann::json places;
  int shard = 0;
  for (const SafetensorsEntry& entry : rows.entries()) {
    const std::string file = "model-" + std::to_string(shard++ % 2) + ".safetensors";
    places[entry.name] = file;
  }
  for (const std::string file : {"model-0.safetensors", "model-1.safetensors"}) {
    std::map<std::string, ConstTensorView> tensors;
    for (const auto& [name, place] : places.items())
      if (place == file) tensors[name] = rows.tensor(name);
    write_safetensors(in / file, tensors);
  }
  write_json(in / "model.safetensors.index.json", {{"weight_map", places}});
  write_json(in / "config.json", {{"hidden_size", 256}});
  const Outcome run = quantize(in.string() + " " + out.string() + " --host");
  ASSERT_EQ(run.status, 0) << run.err;
  const nlohmann::json config = read_json(out / "config.json");
  EXPECT_EQ(config["quantization_config"]["quant_algo"], "NVFP4");
  EXPECT_EQ(config["hidden_size"], 256);
  EXPECT_EQ(read_json(out / "hf_quant_config.json")["quantization"]["group_size"], 16);
  EXPECT_EQ(read_json(out / "model.safetensors.index.json")["weight_map"].size(), 5u + 3 * 2);
  EXPECT_THAT(quantize(in.string() + " " + out.string() + " --host").err, HasSubstr("exists"));
  const Outcome back = quantize(out.string() + " " + path("back") + " --dequantize");
  EXPECT_EQ(back.status, 0) << back.err;
  EXPECT_FALSE(read_json(folder_ / "back" / "config.json").contains("quantization_config"));
}

TEST_F(QuantizeTool, LeavesNothingBehindAfterAnError) {
  std::vector<std::uint16_t> numbers(4 * 64, 0x3f80);
  numbers[64 + 20] = 0x7fc0;
  const auto view =
      contiguous_view(static_cast<const void*>(numbers.data()), DType::kBF16, {4, 64});
  write_safetensors(path("nan.safetensors"), {{"a.weight", view}});
  const std::string out = path("out.safetensors");
  const Outcome run = quantize(path("nan.safetensors") + " " + out + " --host");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("weight \"a.weight\" holds a NaN or an infinity in rows from 1, "
                                 "columns from 16"));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_ / ""))
    ++files;
  EXPECT_EQ(files, 1u) << "the input";
  EXPECT_THAT(quantize(std::string(kRows) + " " + out + " --exclude '*'").err,
              HasSubstr("no tensor of"));
  EXPECT_THAT(quantize(std::string(kRows) + " " + out + " --names deepseek").err,
              HasSubstr("Use those of ModelOpt"));
  EXPECT_THAT(quantize(std::string(kRows) + " " + out + " --format fp8 --scales exact_best").err,
              HasSubstr("is for --format nvfp4"));
}

}  // namespace
}  // namespace tilewright
