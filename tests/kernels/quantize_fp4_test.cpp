// The quantisers to NVFP4, MXFP4 and FP8 blocks against the rules of formats/, byte for byte.
#include "formats/scale_layout.h"
#include "kernels/quantize/fp4.h"
#include "kernels/quantize/weight_fp8.h"
#include "tests/kernels/quantize_data.h"

namespace tilewright::kernels {
namespace {

struct Case {
  const char* format;
  std::int64_t rows, cols, out_rows, out_cols;
  std::optional<float> encode_scale = std::nullopt;  // NVFP4; found if absent
  ScaleChoice choice = ScaleChoice::kNearest;
  bool is_swizzled = false, has_index = false, is_finite = false;
};

bool compares_errors(ScaleChoice choice) {
  return choice == ScaleChoice::kFourOverSix || choice == ScaleChoice::kExactBest;
}

class QuantizeBlocks : public ChipKernelTest {
 protected:
  struct Run {
    Quantized found;
    float tensor_scale;
  };

  static QuantizeParams numbers(const Case& c, const BlockFormat& format,
                                const SourceFormat& from) {
    QuantizeParams params = {};
    params.in_stride = c.cols;
    params.code_stride_bytes = c.out_cols * format.element.bits() / 8;
    params.scale_row_stride = c.out_cols / format.block_cols;
    params.scale_block_stride = 1;
    params.rows = static_cast<std::int32_t>(c.rows);
    params.cols = static_cast<std::int32_t>(c.cols);
    params.out_rows = static_cast<std::int32_t>(c.out_rows);
    params.out_cols = static_cast<std::int32_t>(c.out_cols);
    params.is_in_aligned = c.cols * from.format.bits() % 128 == 0;
    params.is_pow2 = scale_bytes(format) == 1;
    params.is_floor = format.rule == ScaleRule::kFloorPow2;
    params.encode_scale_value = c.encode_scale.value_or(0);
    params.min_amax = format.min_amax;
    params.scale_order = c.is_swizzled ? ScaleOrder::k128x4 : ScaleOrder::kStrided;
    params.scale_choice = c.choice;
    return params;
  }

  static void launch(const Device& device, const Case& c, const std::string& type,
                     const QuantizeParams& params) {
    const std::string name = c.format;
    const bool best = compares_errors(c.choice);
    device::LaunchConfig config = {.block = {kQuantizeThreads}};
    std::string entry = "quantize_mxfp4_";
    if (name.starts_with("fp8")) {
      entry = "quantize_fp8_tile_";
      config.grid = {static_cast<std::uint32_t>(fp8_tiles(c.out_cols)),
                     static_cast<std::uint32_t>(fp8_tiles(c.out_rows))};
    } else if (name == "nvfp4" && !c.encode_scale) {
      entry = best ? "quantize_nvfp4_amax_best_" : "quantize_nvfp4_amax_";
      config.grid = {nvfp4_amax_ctas(c.out_rows, c.out_cols, 2, best)};  // several rounds a CTA
      config.is_cooperative = true;
    } else {
      if (name == "nvfp4") entry = best ? "quantize_nvfp4_best_" : "quantize_nvfp4_";
      config.grid = {static_cast<std::uint32_t>(fp4_ctas(c.out_rows, c.out_cols))};
    }
    run_kernel(device, entry + type, config, params);
  }

  static Run run(const Device& device, const SourceFormat& from, const Case& c,
                 const SourceMatrix& source, const std::vector<std::int32_t>& index) {
    const BlockFormat format = block_format_by_name(c.format);
    const std::int64_t blocks = c.out_cols / format.block_cols;
    const std::int64_t scales = c.is_swizzled ? swizzled_scale_bytes(c.out_rows, blocks)
                                              : c.out_rows / format.block_rows * blocks;
    const Buffer in = Buffer::from(device, source.bytes), row_index = Buffer::from(device, index);
    const Output<std::uint8_t> codes(device, c.out_rows * c.out_cols * format.element.bits() / 8),
        stored(device, scales * scale_bytes(format));
    const Output<float> tensor_scale(device, 1), partial(device, 16);
    QuantizeParams params = numbers(c, format, from);
    params.in = pointer_to<const void>(in);
    if (c.has_index) params.row_index = pointer_to<const std::int32_t>(row_index);
    params.codes = codes.pointer();
    params.scales = stored.pointer();
    params.tensor_scale = tensor_scale.pointer();
    params.partial_amax = partial.pointer();
    launch(device, c, from.name, params);
    Run out = {{codes.read(), stored.read()}, tensor_scale.read()[0]};
    if (c.is_swizzled) {
      const std::vector<std::uint8_t> plain =
          unswizzle_scales(out.found.scales, c.out_rows, blocks);
      EXPECT_EQ(swizzle_scales(plain, c.out_rows, blocks), out.found.scales) << "padding";
      out.found.scales = plain;
    }
    return out;
  }

  void check(const Case& c) {
    const BlockFormat format = block_format_by_name(c.format);
    for (const SourceFormat& from : kSourceFormats) {
      SCOPED_TRACE(fmt::format("{} of {}, {} x {}, choice {}", c.format, from.name, c.rows, c.cols,
                               static_cast<int>(c.choice)));
      const std::int64_t in_rows = c.has_index ? c.rows / 2 + 1 : c.rows;
      SourceMatrix source = draw_source(from.format, in_rows, c.cols, seed_++, 0, !c.is_finite);
      std::vector<std::int32_t> index;
      Random random(seed_);
      for (std::int64_t row = 0; c.has_index && row < c.rows; ++row)
        index.push_back(static_cast<std::int32_t>(random.bits() % (in_rows + 1)) - 1);
      QuantizeOptions options = {.choice = c.choice};
      if (c.encode_scale) options.encode_scale = c.encode_scale;
      const Quantized expected = expected_of(format, gathered(source, index), c.rows, c.cols,
                                             c.out_rows, c.out_cols, options);
      const Run got = run(device(), from, c, source, index);
      expect_bytes(got.found.codes, expected.codes, "codes",
                   c.out_cols * format.element.bits() / 8);
      expect_bytes(got.found.scales, expected.scales, "scales", c.out_cols / format.block_cols);
      if (format.has_tensor_scale) {
        EXPECT_EQ(got.tensor_scale, expected.tensor_scale);
      }
    }
  }

 private:
  std::uint64_t seed_ = 100;
};
TILEWRIGHT_ON_EVERY_CHIP_OF_KERNELS(QuantizeBlocks);

TEST_P(QuantizeBlocks, Nvfp4UnderAGivenScale) {
  check({.format = "nvfp4",
         .rows = 21,
         .cols = 192,
         .out_rows = 21,
         .out_cols = 192,
         .encode_scale = 1.0f});
  check({.format = "nvfp4",
         .rows = 5,
         .cols = 75,
         .out_rows = 128,
         .out_cols = 128,
         .encode_scale = 0.37f,
         .is_swizzled = true,
         .has_index = true});
}
TEST_P(QuantizeBlocks, Nvfp4FindsItsScaleInTheSameLaunch) {
  check({.format = "nvfp4", .rows = 40, .cols = 416, .out_rows = 40, .out_cols = 416});
  check({.format = "nvfp4", .rows = 3, .cols = 40, .out_rows = 3, .out_cols = 64});
}
TEST_P(QuantizeBlocks, Nvfp4HoldsSomeAndReadsOthersAgain) {
  check({.format = "nvfp4", .rows = 30, .cols = 4096, .out_rows = 30, .out_cols = 4096});
}
TEST_P(QuantizeBlocks, Nvfp4ChoicesOfScales) {
  using enum ScaleChoice;
  for (const ScaleChoice choice : {kFourOverSix, kExactNearest, kExactBest}) {
    check({.format = "nvfp4",
           .rows = 9,
           .cols = 128,
           .out_rows = 9,
           .out_cols = 128,
           .encode_scale = 3.0f,
           .choice = choice});
    check({.format = "nvfp4",
           .rows = 9,
           .cols = 128,
           .out_rows = 9,
           .out_cols = 128,
           .choice = choice});
  }
}
TEST_P(QuantizeBlocks, Mxfp4) {
  check({.format = "mxfp4", .rows = 21, .cols = 160, .out_rows = 21, .out_cols = 160});
  check({.format = "mxfp4_ceil",
         .rows = 19,
         .cols = 100,
         .out_rows = 128,
         .out_cols = 128,
         .is_swizzled = true});
}
TEST_P(QuantizeBlocks, Fp8Tiles) {
  check({.format = "fp8_128x128",
         .rows = 150,
         .cols = 140,
         .out_rows = 256,
         .out_cols = 256,
         .is_finite = true});
  check({.format = "fp8_128x128_ue8m0",
         .rows = 128,
         .cols = 128,
         .out_rows = 128,
         .out_cols = 128,
         .is_finite = true});
  check({.format = "fp8_128x128", .rows = 3, .cols = 128, .out_rows = 128, .out_cols = 128});
}

// A barrier of the whole grid inside: the same bytes every time.
TEST_P(QuantizeBlocks, IsDeterministic) {
  if (is_simulator()) GTEST_SKIP() << "the simulator's order is fixed";
  const Case c = {.format = "nvfp4", .rows = 512, .cols = 2048, .out_rows = 512, .out_cols = 2048};
  const SourceMatrix source = draw_source(kBf16, c.rows, c.cols, 7);
  const Run first = run(device(), kSourceFormats[0], c, source, {});
  for (int i = 0; i < 1000; ++i) {
    const Run again = run(device(), kSourceFormats[0], c, source, {});
    ASSERT_EQ(again.found.codes, first.found.codes) << "run " << i;
    ASSERT_EQ(again.found.scales, first.found.scales) << "run " << i;
  }
}

}  // namespace
}  // namespace tilewright::kernels
