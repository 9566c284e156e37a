// The block-scaled GEMMs of Blackwell. Where the tensor core's sums are exact up to the truncation
// after each instruction, results must agree to the bit; on quantised normal numbers they stay
// within the bound of its arithmetic.
#include "tests/kernels/block_scaled_check.h"

namespace tilewright::kernels {
namespace {

constexpr float kAlpha = 0.37f, kEncodeScale = 3.1f;

struct Shape {
  std::int64_t m, n, k;
};

std::vector<BlockScaledVariant> all_variants() {
  std::vector<BlockScaledVariant> variants;
  for (const BlockScaledKind kind :
       {BlockScaledKind::kNvfp4, BlockScaledKind::kMxfp8Mxfp4, BlockScaledKind::kMxfp8}) {
    for (const bool is_requantising : {false, true}) {
      if (kind == BlockScaledKind::kMxfp8 && is_requantising) continue;  // there is none
      for (const BlockScaledVariant& variant : ops::block_scaled_variants(kind, is_requantising))
        variants.push_back(variant);
    }
  }
  return variants;
}

class Sm100BlockScaledGemm : public BlackwellKernelTest {
 protected:
  void TearDown() override {
    kernels_.clear();
    BlackwellKernelTest::TearDown();
  }
  /// Modules stay loaded while somebody has a kernel of theirs.
  void keep_modules() {
    for (const BlockScaledVariant& variant : all_variants())
      kernels_.push_back(device::load_kernel(device(), variant.entry()));
  }

  void check_exact(const BlockScaledVariant& variant, const Shape& p, std::uint32_t clusters) {
    SCOPED_TRACE(fmt::format("{}, m = {}, n = {}, k = {}, {} clusters", variant.entry(), p.m, p.n,
                             p.k, clusters));
    const bool is_nvfp4 = variant.config.is_nvfp4();
    const int block = is_nvfp4 ? 16 : 32;
    const ScaledMatrix a = draw_matrix(1, is_nvfp4 ? kE2m1 : kE4m3, block, p.m, p.k);
    const bool is_e4m3 = variant.config.kind == BlockScaledKind::kMxfp8;
    const ScaledMatrix b = draw_matrix(2, is_e4m3 ? kE4m3 : kE2m1, block, p.n, p.k);
    const BlockScaledOutputs got =
        BlockScaledLaunch(device(), variant, a, b, kAlpha, kEncodeScale).run(clusters);
    std::vector<float> scaled;
    for (const float sum : accumulate(variant.config, a, b)) scaled.push_back(sum * kAlpha);
    if (variant.is_requantising) {
      expect_nvfp4(scaled, p, got);
    } else {
      expect_bf16(scaled, p, got);
    }
  }
  void check_once(const BlockScaledTile& tile, const Shape& p, std::uint32_t clusters) {
    check_exact({{BlockScaledKind::kNvfp4, tile}, false}, p, clusters);
  }
  void check_all_exact(const Shape& p, std::uint32_t clusters) {
    keep_modules();
    for (const BlockScaledVariant& variant : all_variants()) {
      check_exact(variant, p, clusters);
      if (HasFatalFailure()) return;
    }
  }
  /// A step more than there are stages, and the smallest k behind it.
  void check_around_the_ring(const BlockScaledVariant& variant) {
    const BlockScaledConfig& config = variant.config;
    check_exact(variant, {130, 72, (config.stages() + 1) * config.step_k() + 32}, 1);
  }

  /// Quantised normal numbers, bf16 results.
  void check_bound(const BlockScaledConfig& config, const Shape& p) {
    const BlockScaledVariant variant = {config, false};
    SCOPED_TRACE(fmt::format("{}, m = {}, n = {}, k = {}", variant.entry(), p.m, p.n, p.k));
    const ScaledMatrix a = quantize_matrix(1, config.is_nvfp4() ? kNvfp4 : kMxfp8, p.m, p.k);
    const BlockFormat& weights = config.unpacks_weight() ? kMxfp4
                                 : config.is_nvfp4()     ? kNvfp4
                                                         : kMxfp8;
    const ScaledMatrix b = quantize_matrix(2, weights, p.n, p.k);
    const BlockScaledOutputs got = BlockScaledLaunch(device(), variant, a, b, 1, 1).run(2);
    std::vector<double> d;
    for (std::size_t i = 0; i < got.d.size(); i += 2)
      d.push_back(decode(kBf16, static_cast<std::uint32_t>(got.d[i] | got.d[i + 1] << 8)));
    check_gemm({static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k)}, a.values(),
               b.values(), Numbers::kUniform,
               config.is_nvfp4() ? kMxf4nvf4TensorCore : kMxf8f6f4TensorCore, kBf16, d);
  }

 private:
  static void expect_bf16(const std::vector<float>& x, const Shape& p,
                          const BlockScaledOutputs& got) {
    ASSERT_EQ(got.d.size(), x.size() * 2);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const int code = got.d[2 * i] | got.d[2 * i + 1] << 8;
      ASSERT_EQ(code, static_cast<int>(encode(kBf16, x[i])))
          << "row " << i / p.n << ", column " << i % p.n << ": "
          << decode(kBf16, static_cast<std::uint32_t>(code)) << " instead of " << x[i];
    }
  }

  std::vector<device::Kernel> kernels_;

  static void expect_nvfp4(const std::vector<float>& x, const Shape& p,
                           const BlockScaledOutputs& got) {
    const QuantizedTensor expected = quantize(kNvfp4, x, p.m, p.n, {.encode_scale = kEncodeScale});
    const std::vector<std::uint8_t> scales = swizzle_scales(expected.scales, p.m, (p.n + 15) / 16);
    ASSERT_EQ(got.scales.size(), scales.size());
    for (std::size_t i = 0; i < scales.size(); ++i)
      ASSERT_EQ(got.scales[i], scales[i]) << "byte " << i << " of the scales";
    const std::int64_t pitch = (p.n + 1) / 2;
    ASSERT_EQ(got.d.size(), static_cast<std::size_t>(p.m * pitch));
    for (std::int64_t i = 0; i < p.m * pitch; ++i) {
      const std::uint8_t byte = expected.codes[i / pitch * (expected.padded_cols / 2) + i % pitch];
      ASSERT_EQ(got.d[i], byte) << "row " << i / pitch << ", columns from " << i % pitch * 2;
    }
  }
};
TILEWRIGHT_ON_EVERY_BLACKWELL(Sm100BlockScaledGemm);

TEST_P(Sm100BlockScaledGemm, OneTile) {
  check_all_exact({128, 64, 256}, 1);
}
TEST_P(Sm100BlockScaledGemm, MoreStepsThanStages) {
  keep_modules();
  for (const BlockScaledVariant& variant : all_variants()) {
    if (variant.is_requantising) continue;  // results do not know of steps
    check_around_the_ring(variant);
    if (HasFatalFailure()) return;
  }
}
// One launch each, in which every ring goes around: tools/mutate.py runs them with changed kernels.
TEST_P(Sm100BlockScaledGemm, OneLaunchOfOneCta) {
  check_once({1, 128, 1}, {130, 400, 2048}, 1);
}
TEST_P(Sm100BlockScaledGemm, OneLaunchOfTwoCtas) {
  check_once({2, 192, 1}, {130, 400, 2048}, 1);
}
TEST_P(Sm100BlockScaledGemm, OneLaunchOfFourCtas) {
  check_once({2, 256, 2}, {300, 520, 2048}, 1);
}
TEST_P(Sm100BlockScaledGemm, OneLongLaunchOfOneCta) {
  check_once({1, 128, 1}, {260, 1100, 768}, 2);
}
TEST_P(Sm100BlockScaledGemm, OneLongLaunchOfTwoCtas) {
  check_once({2, 192, 1}, {520, 1100, 768}, 2);
}
TEST_P(Sm100BlockScaledGemm, OneLongLaunchOfFourCtas) {
  check_once({2, 256, 2}, {1030, 1100, 768}, 2);
}
// Accumulators used again and again; columns that begin inside of a tile of scales.
TEST_P(Sm100BlockScaledGemm, RaggedAndPersistent) {
  check_all_exact({200, 600, 160}, 1);
}
// Rows of results at odd addresses: written element by element.
TEST_P(Sm100BlockScaledGemm, AnyNumberOfColumns) {
  check_all_exact({130, 77, 96}, 1);
  check_all_exact({3, 1, 32}, 1);
}
TEST_P(Sm100BlockScaledGemm, OneToken) {
  check_all_exact({1, 136, 224}, 2);
}
TEST_P(Sm100BlockScaledGemm, MoreClustersThanTiles) {
  check_all_exact({65, 129, 64}, 5);
}
TEST_P(Sm100BlockScaledGemm, EmptyDimensions) {
  check_all_exact({3, 40, 0}, 1);
  check_all_exact({0, 5, 64}, 1);
  check_all_exact({3, 0, 64}, 1);
}
// Minutes: every variant on every combination of sizes around the edges of tiles, steps and atoms.
TEST_P(Sm100BlockScaledGemm, FullGrid) {
  if (std::getenv("TILEWRIGHT_FULL_GRIDS") == nullptr)
    GTEST_SKIP() << "set TILEWRIGHT_FULL_GRIDS for the grid of sizes";
  for (const std::int64_t m : {1, 65, 300}) {
    for (const std::int64_t n : {24, 264, 520}) {
      for (const std::int64_t k : {32, 288, 1120}) {
        check_all_exact({m, n, k}, 1 + (m + n + k) % 2);
        if (HasFatalFailure()) return;
      }
    }
  }
}
TEST_P(Sm100BlockScaledGemm, QuantisedNormalNumbersStayWithinTheBound) {
  for (const BlockScaledKind kind : {BlockScaledKind::kNvfp4, BlockScaledKind::kMxfp8Mxfp4}) {
    check_bound({kind, {1, 128, 1}}, {96, 72, 544});
    check_bound({kind, {2, 192, 1}}, {96, 72, 544});
  }
}

// Gates of about 1, so that they are not all saturated.
constexpr float kStepAlpha = 0.004f, kStepEncodeScale = 3.1f, kStepLimit = 3;

// Steps in the epilogues: SwiGLU, and a user's own, in every output and with one, two and four
// CTAs, against float64 on the tensor core's sums.
class Sm100BlockScaledSteps : public BlackwellKernelTest {
 protected:
  struct Case {
    const char* name;
    std::size_t tile;
    bool is_requantising, is_folding;
    bool is_mxfp8_out = false;
  };

  /// What the kernel leaves in a result of `columns` columns.
  BlockScaledOutputs run(const Case& c, const ScaledMatrix& a, const ScaledMatrix& b,
                         std::int64_t columns) {
    const BlockScaledVariant variant = {{BlockScaledKind::kNvfp4, kBlockScaledTiles[c.tile]},
                                        c.is_requantising,
                                        c.is_mxfp8_out,
                                        c.is_folding};
    const BlockScaledConfig& config = variant.config;
    const Buffer x = Buffer::from(device(), a.packed(32)), w = Buffer::from(device(), b.packed(32)),
                 x_scales = Buffer::from(device(), a.swizzled_scales()),
                 w_scales = Buffer::from(device(), b.swizzled_scales());
    const std::int64_t row_bytes = variant.out_row_bytes(columns);
    Output<std::uint8_t> d(device(), static_cast<std::size_t>(a.rows * row_bytes)),
        d_scales(device(), static_cast<std::size_t>(variant.out_scale_bytes(a.rows, columns)));
    const ops::BlockScaledMemory memory = {.a = pointer_to<const void>(x),
                                           .b = pointer_to<const void>(w),
                                           .a_scales = pointer_to<const void>(x_scales),
                                           .b_scales = pointer_to<const void>(w_scales),
                                           .d = d.pointer(),
                                           .d_scales = d_scales.pointer(),
                                           .a_row_bytes = variant.x_row_bytes(a.k),
                                           .b_row_bytes = variant.weight_row_bytes(b.k),
                                           .d_row_bytes = row_bytes};
    const BlockScaledGemmParams params =
        ops::bind_block_scaled(device(), variant, {a.rows, b.rows, a.k}, memory,
                               {kStepAlpha, kStepEncodeScale, kStepLimit});
    run_kernel(device(), c.name,
               {.grid = {static_cast<std::uint32_t>(config.tile.cluster())},
                .block = {kBlockScaledThreads},
                .dynamic_shared_bytes = static_cast<std::uint32_t>(config.shared_bytes())},
               params);
    return {d.read(), d_scales.read()};
  }

  static std::vector<double> product(const Case& c, const ScaledMatrix& a, const ScaledMatrix& b) {
    const BlockScaledConfig config = {BlockScaledKind::kNvfp4, kBlockScaledTiles[c.tile]};
    std::vector<double> sums;
    for (const float sum : accumulate(config, a, b)) sums.push_back(double{sum * kStepAlpha});
    return sums;
  }
  static double swiglu(double gate, double up) {
    gate = std::min(gate, double{kStepLimit});
    up = std::clamp(up, -double{kStepLimit}, double{kStepLimit});
    return gate / (1 + std::exp(-gate)) * up;
  }

  static std::vector<double> expect(const Case& c, const ScaledMatrix& a, const ScaledMatrix& b) {
    const std::vector<double> x = product(c, a, b);
    std::vector<double> y;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (std::int64_t j = 0; j < b.rows; ++j) {
        const std::int64_t at = i * b.rows + j;
        if (c.is_folding) {
          if (j % 16 < 8) y.push_back(swiglu(x[std::size_t(at)], x[std::size_t(at + 8)]));
        } else {
          const double positive = std::max(x[std::size_t(at)], 0.0);
          y.push_back(positive * positive + static_cast<double>(i + 2 * j));
        }
      }
    }
    return y;
  }

  void check(const Case& c, std::int64_t m, std::int64_t n, std::int64_t k) {
    SCOPED_TRACE(fmt::format("{}, m = {}, n = {}, k = {}", c.name, m, n, k));
    const ScaledMatrix a = draw_matrix(1, kE2m1, 16, m, k), b = draw_matrix(2, kE2m1, 16, n, k);
    const std::int64_t columns = c.is_folding ? n / 2 : n;
    const BlockScaledOutputs got = run(c, a, b, columns);
    const std::vector<double> wanted = expect(c, a, b);
    if (c.is_requantising) return check_nvfp4(got, wanted, m, columns);
    if (c.is_mxfp8_out) return check_mxfp8(got, wanted, m, columns);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::uint32_t code = got.d[2 * i] | std::uint32_t{got.d[2 * i + 1]} << 8;
      // bf16 rounds by at most 2^-8 of the number; exp and division are within 2^-17 of it.
      ASSERT_NEAR(decode(kBf16, code), wanted[i], std::abs(wanted[i]) * 0x1.01p-8 + 1e-30)
          << "row " << i / std::size_t(columns) << ", column " << i % std::size_t(columns);
    }
  }
  /// A number that exp moved may round to a neighbouring code or its block to another scale: all
  /// are within the format's step, a quarter of the number or the block's least code.
  static void check_nvfp4(const BlockScaledOutputs& got, const std::vector<double>& wanted,
                          std::int64_t m, std::int64_t columns) {
    const std::int64_t blocks = columns / 16;
    const std::vector<std::uint8_t> codes = unpack_codes(got.d, 4, m * columns);
    for (std::int64_t i = 0; i < m * columns; ++i) {
      const std::int64_t row = i / columns, block = i % columns / 16;
      const std::uint8_t scale =
          got.scales[static_cast<std::size_t>(swizzled_scale_offset(row, block, blocks))];
      double largest = 0;
      for (std::int64_t j = 0; j < 16; ++j)
        largest = std::max(largest, std::abs(wanted[std::size_t(row * columns + block * 16 + j)]));
      const double step = decode(kUe4m3, scale) / double{kStepEncodeScale};
      EXPECT_NEAR(step * 6, largest, largest * 0x1.1p-4 + 0x1p-9);  // a scale of three bits
      const double value = decode(kE2m1, codes[std::size_t(i)]) * step;
      const double expected = wanted[std::size_t(i)];
      ASSERT_NEAR(value, expected, std::abs(expected) / 4 * 1.01 + step / 4 * 1.01 + largest / 16)
          << "row " << row << ", column " << i % columns;
    }
  }
  /// Scales are powers of two of the largest of 32 numbers, unless exp moved it over the edge of a
  /// binade (none does here); elements round by 2^-4 of themselves, or half of the least subnormal.
  static void check_mxfp8(const BlockScaledOutputs& got, const std::vector<double>& wanted,
                          std::int64_t m, std::int64_t columns) {
    const std::vector<float> numbers(wanted.begin(), wanted.end());
    const QuantizedTensor expected = quantize(kMxfp8Ceil, numbers, m, columns);
    const std::vector<std::uint8_t> scales =
        swizzle_scales(expected.scales, m, expected.padded_cols / 32);
    ASSERT_EQ(got.scales, scales);  // padding of zeros, too
    ASSERT_EQ(got.d.size(), static_cast<std::size_t>(m * columns));
    for (std::int64_t i = 0; i < m * columns; ++i) {
      const std::int64_t row = i / columns, column = i % columns;
      const double scale = decode(kUe8m0, expected.scales[static_cast<std::size_t>(
                                              row * (expected.padded_cols / 32) + column / 32)]);
      const double value = decode(kE4m3, got.d[static_cast<std::size_t>(i)]) * scale;
      const double x = wanted[static_cast<std::size_t>(i)];
      ASSERT_NEAR(value, x, std::abs(x) * 0x1.01p-4 + 0x1.01p-10 * scale)
          << "row " << row << ", column " << column;
    }
  }
};
TILEWRIGHT_ON_EVERY_BLACKWELL(Sm100BlockScaledSteps);

// The same step behind bf16 operands: multiples of 1/8 below 4, whose sums are exact in fp32.
TEST_P(Sm100BlockScaledSteps, OneOfAUserBehindBf16) {
  constexpr std::int64_t kM = 300, kN = 272, kK = 208;
  constexpr float kFactor = 0.25f;
  Random random(4);
  const auto draw = [&](std::int64_t elems) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < elems; ++i)
      values.push_back(static_cast<double>(random.bits() >> 7 & 63) / 8 - 4);
    return values;
  };
  const auto upload = [&](const std::vector<double>& values) {
    std::vector<std::uint16_t> codes;
    for (const double x : values) codes.push_back(static_cast<std::uint16_t>(encode(kBf16, x)));
    return Buffer::from(device(), codes);
  };
  const std::vector<double> a = draw(kM * kK), b = draw(kN * kK);
  const Buffer x = upload(a), w = upload(b);
  const BlockScaledVariant variant = {{BlockScaledKind::kBf16, kBlockScaledTiles[3]}};
  Output<std::uint8_t> d(device(), std::size_t{2 * kM * kN});
  const BlockScaledGemmParams params = ops::bind_block_scaled(device(), variant, {kM, kN, kK},
                                                              {.a = pointer_to<const void>(x),
                                                               .b = pointer_to<const void>(w),
                                                               .d = d.pointer(),
                                                               .a_row_bytes = 2 * kK,
                                                               .b_row_bytes = 2 * kK,
                                                               .d_row_bytes = 2 * kN},
                                                              {.alpha = kFactor});
  run_kernel(device(), "steps_ramp_dense_2cta_n256",
             {.grid = {2},
              .block = {kBlockScaledThreads},
              .dynamic_shared_bytes = static_cast<std::uint32_t>(variant.config.shared_bytes())},
             params);
  const std::vector<std::uint8_t> got = d.read();
  for (std::int64_t i = 0; i < kM * kN; ++i) {
    const std::int64_t row = i / kN, column = i % kN;
    double sum = 0;
    for (std::int64_t k = 0; k < kK; ++k) sum += a[row * kK + k] * b[column * kK + k];
    const double positive = std::max(sum * double{kFactor}, 0.0);
    const auto wanted =
        static_cast<float>(positive * positive) + static_cast<float>(row + 2 * column);
    const std::uint32_t code = got[2 * i] | std::uint32_t{got[2 * i + 1]} << 8;
    // One fused operation or two in fp32, then bf16.
    ASSERT_NEAR(decode(kBf16, code), double{wanted}, std::abs(double{wanted}) * 0x1.01p-8)
        << "row " << row << ", column " << column;
  }
}

TEST_P(Sm100BlockScaledSteps, Swiglu) {
  const Case one = {"steps_swiglu_bf16_1cta_n128", 1, false, true};
  check(one, 40, 160, 96);
  check(one, 130, 304, 288);
  check({"steps_swiglu_bf16_4cta_n256", 4, false, true}, 300, 544, 96);
}
TEST_P(Sm100BlockScaledSteps, SwigluRequantised) {
  const Case two = {"steps_swiglu_nvfp4_2cta_n256", 3, true, true};
  check(two, 33, 192, 96);
  check(two, 270, 608, 288);
}
// Ends inside of a tile of scales, inside of a block, and at odd rows.
TEST_P(Sm100BlockScaledSteps, SwigluRequantisedToMxfp8) {
  const Case one = {"steps_swiglu_mxfp8_1cta_n128", 1, false, true, true};
  check(one, 40, 160, 96);
  check(one, 130, 96, 288);
  const Case two = {"steps_swiglu_mxfp8_2cta_n256", 3, false, true, true};
  check(two, 33, 192, 96);
  check(two, 270, 608, 288);
}
TEST_P(Sm100BlockScaledSteps, OneOfAUser) {
  check({"steps_ramp_bf16_2cta_n192", 2, false, false}, 260, 400, 96);
}

}  // namespace
}  // namespace tilewright::kernels
