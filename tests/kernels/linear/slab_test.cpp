// The slab kernel: both formats, every tile, ragged shapes, units that follow each other, groups.
#include "kernels/linear/slab/slab.h"

#include "tests/kernels/gemm_check.h"
#include "tests/kernels/packed_weight_check.h"

#include <limits>

namespace tilewright::kernels {
namespace {

struct Problem {
  WeightFormat format = WeightFormat::kFp8;
  int m = 1, n = 16, k = 64, matrices = 1;
  int bricks = 1, k_warps = 2, teams = 1, ctas = 1, stages = 2;
  bool is_f32 = false, has_bias = false;

  SlabTile tile() const { return {format, bricks, k_warps, teams, ctas, stages}; }
  int columns() const { return matrices * n; }
};

struct Operands {
  std::vector<TestWeights> weights;  ///< of each matrix
  std::vector<double> x;             ///< [m, matrices * k]
  std::vector<float> bias;

  explicit Operands(const Problem& p)
      : x(draw_many(3, std::int64_t{p.m} * p.matrices * p.k, Numbers::kUniform, kBf16)) {
    for (int e = 0; e < p.matrices; ++e)
      weights.push_back(make_weights({p.format, p.n, p.k}, WordOrder::kBf16,
                                     static_cast<std::uint64_t>(e) + 10, false));
    Random random(5);
    for (int i = 0; i < p.columns(); ++i) bias.push_back(static_cast<float>(random.uniform(-1, 1)));
  }
};

class Slab : public KernelTest {
 protected:
  static std::vector<double> run(const Device& device, const Problem& p, const Operands& in) {
    std::vector<std::uint8_t> bricks;
    std::vector<float> scales;
    for (const TestWeights& w : in.weights) {
      bricks.insert(bricks.end(), w.bricks.begin(), w.bricks.end());
      scales.insert(scales.end(), w.block_scales.begin(), w.block_scales.end());
    }
    const int all_k = p.matrices * p.k, pitch = round_up(all_k, 8) + 8;
    const Buffer weights = Buffer::from(device, bricks);
    const Buffer block_scales = Buffer::from(device, scales);
    const Buffer x =
        Buffer::from(device, pad_rows(encode_all<std::uint16_t>(kBf16, in.x), p.m, all_k, pitch));
    const Buffer bias = Buffer::from(device, in.bias);
    const std::size_t count = static_cast<std::size_t>(p.m) * static_cast<std::size_t>(p.columns());
    const Output<std::uint32_t> y32(device, p.is_f32 ? count : 0);
    const Output<std::uint16_t> y16(device, p.is_f32 ? 0 : count);
    SlabParams params = {};
    params.weights = pointer_to<const std::uint8_t>(weights);
    params.block_scales = pointer_to<const float>(block_scales);
    params.x = pointer_to<const void>(x);
    params.y = p.is_f32 ? static_cast<void*>(y32.pointer()) : y16.pointer();
    params.bias = p.has_bias ? pointer_to<const float>(bias) : nullptr;
    params.x_stride = pitch;
    params.y_stride = p.columns();
    params.matrix_bytes = in.weights[0].shape.bytes();
    params.m = p.m;
    params.n = p.n;
    params.k = p.k;
    params.matrices = p.matrices;
    params.scale_rows = static_cast<std::int32_t>(ceil_div(p.n, 128));
    params.is_y_f32 = p.is_f32;
    params.alpha = static_cast<float>(std::ldexp(1, in.weights[0].bias_exponent));
    const SlabTile tile = p.tile();
    const std::uint32_t shared = tile.cut(params);
    run_kernel(device,
               fmt::format("linear_slab_{}_b{}", p.format == WeightFormat::kFp8 ? "fp8" : "bf16",
                           p.bricks),
               {.grid = {static_cast<std::uint32_t>(p.ctas)},
                .block = {static_cast<std::uint32_t>(tile.threads())},
                .dynamic_shared_bytes = shared},
               params);
    std::vector<double> results;
    for (const std::uint32_t code : y32.read()) results.push_back(decode(kFp32, code));
    for (const std::uint16_t code : y16.read()) results.push_back(decode(kBf16, code));
    return results;
  }

  // A sum goes through the tensor core in parts: two chains of every block of K, whose sums f32
  // additions (and, of FP8, multiplications by scales) join, which lose less than a step of the
  // tensor core does and count as such.
  static void check_results(const Problem& p, const Operands& in, const std::vector<double>& y) {
    const double u = std::ldexp(1, p.is_f32 ? -24 : -8);
    const int steps = round_up(p.k, 64) + 16 * (3 * (round_up(p.k, 64) / 64) + p.k_warps + 2);
    ASSERT_EQ(y.size(), static_cast<std::size_t>(p.m) * static_cast<std::size_t>(p.columns()));
    for (int i = 0; i < p.m; ++i) {
      for (int column = 0; column < p.columns(); ++column) {
        const int matrix = column / p.n, row = column % p.n;
        double value = p.has_bias ? in.bias[static_cast<std::size_t>(column)] : 0;
        double magnitude = std::abs(value);
        for (int c = 0; c < p.k; ++c) {
          const double product =
              in.x[static_cast<std::size_t>((i * p.matrices + matrix) * p.k + c)] *
              in.weights[static_cast<std::size_t>(matrix)]
                  .values[static_cast<std::size_t>(row * p.k + c)];
          value += product;
          magnitude += std::abs(product);
        }
        double bound = tensor_core_bound(kBf16TensorCore, steps, magnitude);
        bound += u * (std::abs(value) + bound);
        const double result = y[static_cast<std::size_t>(i * p.columns() + column)];
        ASSERT_LE(std::abs(result - value), bound)
            << "row " << i << ", column " << column << ": " << result << " for " << value;
      }
    }
  }

  void check(const Problem& p) {
    SCOPED_TRACE(fmt::format("m = {}, n = {} x {}, k = {}, {} bricks, {} x {} warps, {} CTAs", p.m,
                             p.n, p.matrices, p.k, p.bricks, p.k_warps, p.teams, p.ctas));
    const Operands in(p);
    const auto run_on = [&](const Device& where) { return run(where, p, in); };
    const std::vector<double> y = run_on(device());
    check_results(p, in, y);
    expect_same_on_simulator(run_on, y);
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(Slab);

// Rows fill no brick, bricks no unit, K neither a block nor a scale; stages are used again.
TEST_P(Slab, EveryEntryRaggedInEveryDimension) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kBf16}) {
    for (const int bricks : {1, 2, 4}) {
      check({.format = format, .m = 3, .n = 90, .k = 328, .bricks = bricks, .has_bias = true});
      check({.format = format,
             .m = 8,
             .n = 200,
             .k = 720,
             .bricks = bricks,
             .k_warps = 3,
             .stages = 1,
             .is_f32 = true});
    }
  }
}
TEST_P(Slab, UnitsOfATeamFollowEachOther) {
  for (const int teams : {1, 2, 3}) {
    for (const int ctas : {1, 2, 5})
      check({.m = 2,
             .n = 210,
             .k = 208,
             .k_warps = 2,
             .teams = teams,
             .ctas = ctas,
             .stages = 3,
             .is_f32 = true});
  }
}
TEST_P(Slab, EveryMatrixHasColumnsOfItsOwn) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kBf16}) {
    check({.format = format, .m = 2, .n = 48, .k = 136, .matrices = 3, .bricks = 2, .ctas = 2});
    check({.format = format,
           .m = 5,
           .n = 144,
           .k = 64,
           .matrices = 2,
           .k_warps = 1,
           .teams = 2,
           .ctas = 3,
           .has_bias = true});
  }
}
TEST_P(Slab, NonFiniteTokensStayAmongThemselves) {
  const Problem p = {.m = 6, .n = 48, .k = 192, .bricks = 2, .is_f32 = true};
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

}  // namespace
}  // namespace tilewright::kernels
