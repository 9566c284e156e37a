// The FP8 quantisers of activations against the rules of formats/, byte for byte.
#include "formats/packed_matrix.h"
#include "formats/scale_layout.h"
#include "kernels/quantize/activation_fp8.h"
#include "tests/kernels/quantize_data.h"

namespace tilewright::kernels {
namespace {

struct Case {
  const char* format;  // of formats/block_format.h, or "token", "token_pow2"
  std::int64_t rows, cols, out_rows, out_cols;
  CodeOrder order = CodeOrder::kPlain;
  bool has_index = false, is_swizzled = false, is_block_major = false;
  std::int64_t stride = 0;
};

BlockFormat format_of(const Case& c) {
  const std::string name = c.format;
  if (!name.starts_with("token")) return block_format_by_name(name);
  BlockFormat format = name == "token" ? kFp8Block1x128 : kFp8Block1x128Ue8m0;
  format.block_cols = static_cast<int>(c.out_cols);
  return format;
}

class QuantizeFp8 : public ChipKernelTest {
 protected:
  static Quantized run(const Device& device, const SourceFormat& from, const Case& c,
                       const SourceMatrix& source, const std::vector<std::int32_t>& index) {
    const BlockFormat format = format_of(c);
    const bool is_token = std::string(c.format).starts_with("token");
    const std::int64_t blocks = c.out_cols / format.block_cols;
    const std::int64_t scales =
        c.is_swizzled ? swizzled_scale_bytes(c.out_rows, blocks) : c.out_rows * blocks;
    const Buffer in = Buffer::from(device, source.bytes), row_index = Buffer::from(device, index);
    const Output<std::uint8_t> codes(device, c.out_rows * c.out_cols),
        stored(device, scales * scale_bytes(format));
    QuantizeParams params = {};
    params.in = pointer_to<const void>(in);
    if (c.has_index) params.row_index = pointer_to<const std::int32_t>(row_index);
    params.codes = codes.pointer();
    params.scales = stored.pointer();
    params.in_stride = source.stride;
    params.code_stride_bytes = c.out_cols;
    params.scale_row_stride = c.is_block_major ? 1 : blocks;
    params.scale_block_stride = c.is_block_major ? c.out_rows : 1;
    params.rows = static_cast<std::int32_t>(c.rows);
    params.cols = static_cast<std::int32_t>(c.cols);
    params.out_rows = static_cast<std::int32_t>(c.out_rows);
    params.out_cols = static_cast<std::int32_t>(c.out_cols);
    params.block_cols = format.block_cols;
    params.is_in_aligned = source.stride * from.format.bits() % 128 == 0;
    params.is_pow2 = scale_bytes(format) == 1;
    params.is_floor = format.rule == ScaleRule::kFloorPow2;
    params.min_amax = format.min_amax;
    params.scale_order = c.is_swizzled ? ScaleOrder::k128x4 : ScaleOrder::kStrided;
    params.code_order = c.order;
    const std::uint32_t grid =
        is_token ? static_cast<std::uint32_t>(c.out_rows) : fp8_block_ctas(c.out_rows, c.out_cols);
    const std::uint32_t threads = is_token ? fp8_token_threads(c.out_cols) : kQuantizeThreads;
    run_kernel(device, fmt::format("quantize_fp8_{}_{}", is_token ? "token" : "block", from.name),
               {.grid = {grid}, .block = {threads}}, params);
    return {codes.read(), stored.read()};
  }

  // From the orders of the case to plain ones.
  static Quantized in_order(const Case& c, const Quantized& found) {
    const BlockFormat format = format_of(c);
    const std::int64_t blocks = c.out_cols / format.block_cols;
    Quantized plain = found;
    if (c.order == CodeOrder::kOperand) {
      for (std::size_t i = 0; i < found.codes.size(); ++i)
        plain.codes[i / 64 * 64 + operand_order(static_cast<int>(i % 64))] = found.codes[i];
    }
    if (c.is_swizzled) plain.scales = unswizzle_scales(found.scales, c.out_rows, blocks);
    if (c.is_block_major) {
      const int bytes = scale_bytes(format);
      for (std::int64_t row = 0; row < c.out_rows; ++row)
        for (std::int64_t block = 0; block < blocks; ++block)
          std::memcpy(&plain.scales[(row * blocks + block) * bytes],
                      &found.scales[(block * c.out_rows + row) * bytes], bytes);
    }
    return plain;
  }

  void check(const Case& c) {
    for (const SourceFormat& from : kSourceFormats) {
      SCOPED_TRACE(fmt::format("{} of {}, {} x {}", c.format, from.name, c.rows, c.cols));
      const std::int64_t in_rows = c.has_index ? c.rows / 2 + 1 : c.rows;
      const SourceMatrix source = draw_source(from.format, in_rows, c.cols, seed_++, c.stride);
      std::vector<std::int32_t> index;
      Random random(seed_);
      for (std::int64_t row = 0; c.has_index && row < c.rows; ++row)
        index.push_back(static_cast<std::int32_t>(random.bits() % (in_rows + 1)) - 1);
      const Quantized found = in_order(c, run(device(), from, c, source, index));
      const Quantized expected = expected_of(format_of(c), gathered(source, index), c.rows, c.cols,
                                             c.out_rows, c.out_cols);
      expect_bytes(found.codes, expected.codes, "codes", c.out_cols);
      expect_bytes(found.scales, expected.scales, "scales", 1);
    }
  }

 private:
  std::uint64_t seed_ = 1;
};
TILEWRIGHT_ON_EVERY_CHIP_OF_KERNELS(QuantizeFp8);

TEST_P(QuantizeFp8, BlocksOf128) {
  check({.format = "fp8_1x128", .rows = 19, .cols = 256, .out_rows = 19, .out_cols = 256});
  check({.format = "fp8_1x128_ue8m0", .rows = 16, .cols = 384, .out_rows = 16, .out_cols = 384});
}
TEST_P(QuantizeFp8, OperandOrderAndGather) {
  check({.format = "fp8_1x128",
         .rows = 13,
         .cols = 256,
         .out_rows = 16,
         .out_cols = 256,
         .order = CodeOrder::kOperand,
         .has_index = true,
         .is_block_major = true});
  check({.format = "token",
         .rows = 7,
         .cols = 448,
         .out_rows = 8,
         .out_cols = 448,
         .order = CodeOrder::kOperand,
         .has_index = true});
}
TEST_P(QuantizeFp8, RaggedAndStrided) {
  check({.format = "fp8_1x128", .rows = 5, .cols = 133, .out_rows = 7, .out_cols = 384});
  check({.format = "fp8_1x128_ue8m0",
         .rows = 6,
         .cols = 100,
         .out_rows = 6,
         .out_cols = 128,
         .is_block_major = true,
         .stride = 136});
  check({.format = "token_pow2", .rows = 3, .cols = 75, .out_rows = 4, .out_cols = 128});
}
TEST_P(QuantizeFp8, RowsThatNoThreadHoldsWhole) {
  check({.format = "token", .rows = 2, .cols = 17000, .out_rows = 2, .out_cols = 17024});
}
TEST_P(QuantizeFp8, NarrowBlocks) {
  check({.format = "fp8_64_pow2", .rows = 9, .cols = 192, .out_rows = 9, .out_cols = 192});
  check({.format = "mxfp8",
         .rows = 130,
         .cols = 96,
         .out_rows = 130,
         .out_cols = 96,
         .is_swizzled = true});
  check({.format = "mxfp8_ceil", .rows = 9, .cols = 64, .out_rows = 9, .out_cols = 64});
}

}  // namespace
}  // namespace tilewright::kernels
