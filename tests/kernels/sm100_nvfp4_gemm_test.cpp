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
    const BlockFormat& weights = config.unpacks_b() ? kMxfp4 : config.is_nvfp4() ? kNvfp4 : kMxfp8;
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

}  // namespace
}  // namespace tilewright::kernels
