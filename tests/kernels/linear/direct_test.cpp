// The direct kernel: both formats, ragged shapes, clusters and groups of warps.
#include "kernels/linear/direct/direct.h"

#include "tests/kernels/gemm_check.h"
#include "tests/kernels/packed_weight_check.h"

#include <limits>

namespace tilewright::kernels {
namespace {

struct Problem {
  WeightFormat format = WeightFormat::kNvfp4;
  int m = 1, n = 16, k = 64;
  DirectTile tile = {8, false, 2, 2, 1};
  bool is_f32 = false, has_bias = false;
};

struct Operands {
  TestWeights weights;
  std::vector<double> x;  ///< [m, k]
  std::vector<float> bias;

  explicit Operands(const Problem& p)
      : weights(make_weights({p.format, p.n, p.k}, WordOrder::kBf16, 10, false)),
        x(draw_many(3, std::int64_t{p.m} * p.k, Numbers::kUniform, kBf16)) {
    Random random(5);
    for (int i = 0; i < p.n; ++i) bias.push_back(static_cast<float>(random.uniform(-1, 1)));
  }
};

class Direct : public ChipKernelTest {
 protected:
  static std::vector<double> run(const Device& device, const Problem& p, const Operands& in) {
    const int pitch = std::max(8, round_up(p.k, 8)) + 8;
    const Buffer weights = Buffer::from(device, in.weights.bricks);
    const Buffer x =
        Buffer::from(device, pad_rows(encode_all<std::uint16_t>(kBf16, in.x), p.m, p.k, pitch));
    const Buffer bias = Buffer::from(device, in.bias);
    const std::size_t count = static_cast<std::size_t>(p.m) * static_cast<std::size_t>(p.n);
    const Output<std::uint32_t> y32(device, p.is_f32 ? count : 0);
    const Output<std::uint16_t> y16(device, p.is_f32 ? 0 : count);
    const DirectTile& tile = p.tile;
    EXPECT_TRUE(tile.is_possible());
    DirectParams params = {};
    params.weights = pointer_to<const std::uint8_t>(weights);
    params.x = pointer_to<const std::uint16_t>(x);
    params.y = p.is_f32 ? static_cast<void*>(y32.pointer()) : y16.pointer();
    params.bias = p.has_bias ? pointer_to<const float>(bias) : nullptr;
    params.x_stride = pitch;
    params.y_stride = p.n;
    params.m = p.m;
    params.n = p.n;
    params.k = p.k;
    params.warps = tile.warps;
    params.k_groups = tile.k_groups;
    params.cluster = tile.cluster;
    params.token_bytes = tile.token_bytes(p.k);
    params.sums_at = tile.sums_at(p.k);
    params.is_y_f32 = p.is_f32;
    params.alpha = static_cast<float>(std::ldexp(1, in.weights.bias_exponent));
    const auto cluster = static_cast<std::uint32_t>(tile.cluster);
    run_kernel(
        device,
        fmt::format("linear_direct_{}_n{}{}", p.format == WeightFormat::kNvfp4 ? "nvfp4" : "mxfp4",
                    tile.tokens, tile.is_deep ? "_deep" : ""),
        {.grid = {static_cast<std::uint32_t>(tile.clusters(p.n)) * cluster},
         .block = {static_cast<std::uint32_t>(tile.threads())},
         .cluster = device::Dim3{cluster},
         .dynamic_shared_bytes = tile.shared_bytes(p.k)},
        params);
    std::vector<double> results;
    for (const std::uint32_t code : y32.read()) results.push_back(decode(kFp32, code));
    for (const std::uint16_t code : y16.read()) results.push_back(decode(kBf16, code));
    return results;
  }

  // A sum goes through the tensor core in parts: four chains of a warp, warps, CTAs. The f32
  // additions that join them lose less than a step of the tensor core does and count as such.
  static void check_results(const Problem& p, const Operands& in, const std::vector<double>& y) {
    const FormatSpec& output = p.is_f32 ? kFp32 : kBf16;
    const double u = std::ldexp(1, -output.mantissa_bits - 1);
    const reference::LinearShape shape = {p.m, p.n, p.k};
    const std::vector<double> exact = reference::linear(shape, in.x, in.weights.values);
    const std::vector<double> magnitude =
        reference::linear_magnitude(shape, in.x, in.weights.values);
    ASSERT_EQ(y.size(), exact.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double bias = p.has_bias ? in.bias[i % static_cast<std::size_t>(p.n)] : 0;
      const double value = exact[i] + bias;
      double bound = tensor_core_bound(kBf16TensorCore,
                                       round_up(p.k, 64) + 16 * (p.tile.parts() + 6), magnitude[i]);
      bound += std::ldexp(1, -22) * (std::abs(value) + std::abs(bias));
      bound += u * (std::abs(value) + bound);
      ASSERT_LE(std::abs(y[i] - value), bound) << "result " << i << " of " << value;
    }
  }

  void check(const Problem& p) {
    SCOPED_TRACE(fmt::format("m = {}, n = {}, k = {}, {} tokens, {} x {} warps, cluster {}", p.m,
                             p.n, p.k, p.tile.tokens, p.tile.warps, p.tile.k_groups,
                             p.tile.cluster));
    const Operands in(p);
    const auto run_on = [&](const Device& where) { return run(where, p, in); };
    const std::vector<double> y = run_on(device());
    check_results(p, in, y);
    expect_same_on_simulator(run_on, y);
  }
};
TILEWRIGHT_ON_EVERY_CHIP_OF_KERNELS(Direct);

TEST_P(Direct, EveryEntryRaggedInEveryDimension) {
  for (const WeightFormat format : {WeightFormat::kNvfp4, WeightFormat::kMxfp4}) {
    check({.format = format, .m = 3, .n = 90, .k = 208, .has_bias = true});
    check({.format = format, .m = 8, .n = 70, .k = 720, .tile = {8, true, 3, 2, 2}});
    check({.format = format, .m = 13, .n = 104, .k = 136, .tile = {16, false, 2, 1, 2}});
    check({.format = format,
           .m = 31,
           .n = 40,
           .k = 336,
           .tile = {32, false, 2, 2, 1},
           .is_f32 = true});
  }
}
TEST_P(Direct, ClustersAndGroupsOfWarps) {
  for (const int cluster : {1, 2, 4, 8}) {
    for (const int groups : {1, 3})
      check({.m = 5, .n = 100, .k = 1360, .tile = {8, false, 3, groups, cluster}, .is_f32 = true});
  }
}
// More parts than blocks of K, more warps than rows, more loads ahead than blocks.
TEST_P(Direct, FewBlocks) {
  check({.m = 2, .n = 16, .k = 64, .tile = {8, false, 3, 5, 4}});
  check({.m = 1, .n = 8, .k = 8, .tile = {8, true, 15, 1, 1}});
  check({.m = 3, .n = 16, .k = 0, .has_bias = true});
}
TEST_P(Direct, NonFiniteTokensStayAmongThemselves) {
  const Problem p = {.m = 6, .n = 48, .k = 192, .is_f32 = true};
  Operands in(p);
  const std::vector<double> finite = run(device(), p, in);
  in.x[static_cast<std::size_t>(2 * p.k + 70)] = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> mixed = run(device(), p, in);
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    if (i / 48 == 2) {
      EXPECT_TRUE(std::isnan(mixed[i]));
    } else {
      ASSERT_EQ(mixed[i], finite[i]);
    }
  }
}
TEST_P(Direct, ResultsRepeat) {
  const Problem p = {.m = 13, .n = 200, .k = 448, .tile = {16, false, 4, 2, 2}};
  const Operands in(p);
  const std::vector<double> first = run(device(), p, in);
  for (int i = 0; i < (is_simulator() ? 2 : 1000); ++i)
    ASSERT_EQ(run(device(), p, in), first) << "run " << i;
}

}  // namespace
}  // namespace tilewright::kernels
