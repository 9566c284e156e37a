// The bandwidth kernel: every format, ragged shapes, clusters and groups of warps, experts.
#include "kernels/linear/band/band.h"

#include "formats/packed_matrix.h"
#include "tests/kernels/gemm_check.h"
#include "tests/kernels/packed_weight_check.h"

#include <limits>

namespace tilewright::kernels {
namespace {

struct Format {
  const char* name;
  WeightFormat format;
  WordOrder order;
};
constexpr Format kNvfp4 = {"nvfp4", WeightFormat::kNvfp4, WordOrder::kBf16};
constexpr Format kFp8Weights = {"fp8", WeightFormat::kFp8, WordOrder::kBf16};
constexpr Format kBraided[] = {{"nvfp4_braided", WeightFormat::kNvfp4, WordOrder::kE4m3},
                               {"mxfp4_braided", WeightFormat::kMxfp4, WordOrder::kE4m3}};
constexpr Format kAllFormats[] = {
    kNvfp4,      kBraided[0], {"mxfp4", WeightFormat::kMxfp4, WordOrder::kBf16},
    kBraided[1], kFp8Weights, {"bf16", WeightFormat::kBf16, WordOrder::kBf16},
};

/// A launch. Expert e has the rows offsets[e] to offsets[e + 1]; without offsets dense.
struct Problem {
  Format format = kNvfp4;
  int m = 1, n = 16, k = 64;  ///< m tokens
  int tokens = 8, warps = 2, k_groups = 1, cluster = 1, stages = 2;
  int clusters = 2;  ///< in the grid
  bool is_f32 = false, has_bias = false, is_swiglu = false;
  std::vector<std::int32_t> offsets = {}, row_token = {};
  float limit = std::numeric_limits<float>::infinity();
  bool is_narrow = false;

  int experts() const { return offsets.empty() ? 1 : static_cast<int>(offsets.size()) - 1; }
  int rows() const { return offsets.empty() ? m : offsets.back(); }
  int columns() const { return is_swiglu ? n / 2 : n; }
  int begin(int e) const { return offsets.empty() ? 0 : offsets[static_cast<std::size_t>(e)]; }
  int end(int e) const { return offsets.empty() ? m : offsets[static_cast<std::size_t>(e) + 1]; }
  int token(int row) const {
    return row_token.empty() ? row : row_token[static_cast<std::size_t>(row)];
  }
  BandTile tile() const {
    return {format.format, tokens, warps, k_groups, cluster, stages, !offsets.empty(), is_narrow};
  }
};

/// Operands, and what comes of them.
struct Operands {
  std::vector<TestWeights> weights;  ///< of each expert
  std::vector<double> x;             ///< [m, k]
  std::vector<float> bias, alphas, row_weight;

  explicit Operands(const Problem& p)
      : x(draw_many(3, std::int64_t{p.m} * p.k, Numbers::kUniform, kBf16)) {
    Random random(5);
    for (int e = 0; e < p.experts(); ++e) {
      weights.push_back(make_weights({p.format.format, p.n, p.k}, p.format.order,
                                     static_cast<std::uint64_t>(e) + 10, p.is_swiglu));
      for (int h = 0; h < (p.is_swiglu ? 2 : 1); ++h)
        alphas.push_back(static_cast<float>(random.uniform(0.01, 0.1)));
      for (int i = 0; i < p.n; ++i) bias.push_back(static_cast<float>(random.uniform(-1, 1)));
    }
    for (int i = 0; i < p.rows(); ++i)
      row_weight.push_back(static_cast<float>(random.uniform(0.1, 1)));
  }
};

double swiglu(double gate, double up, float limit) {
  gate = std::min(gate, double{limit});
  up = std::clamp(up, -double{limit}, double{limit});
  return gate / (1 + std::exp(-gate)) * up;
}

class Band : public ChipKernelTest {
 protected:
  // Results as doubles, of the format they were stored in.
  static std::vector<double> run(const Device& device, const Problem& p, const Operands& in) {
    std::vector<std::uint8_t> bricks;
    std::vector<float> scales;
    for (const TestWeights& w : in.weights) {
      bricks.insert(bricks.end(), w.bricks.begin(), w.bricks.end());
      scales.insert(scales.end(), w.block_scales.begin(), w.block_scales.end());
    }
    const int pitch = std::max(8, round_up(p.k, 8)) + 8;
    const Buffer weights = Buffer::from(device, bricks),
                 block_scales = Buffer::from(device, scales);
    const Buffer x =
        Buffer::from(device, pad_rows(encode_all<std::uint16_t>(kBf16, in.x), p.m, p.k, pitch));
    const Buffer bias = Buffer::from(device, in.bias), alphas = Buffer::from(device, in.alphas);
    const Buffer row_weight = Buffer::from(device, in.row_weight);
    const Buffer offsets = Buffer::from(device, p.offsets);
    const Buffer row_token = Buffer::from(device, p.row_token);
    const std::size_t count = static_cast<std::size_t>(p.rows()) * p.columns();
    const Output<std::uint32_t> y32(device, p.is_f32 ? count : 0);
    const Output<std::uint16_t> y16(device, p.is_f32 ? 0 : count);
    BandParams params = {};
    params.weights = pointer_to<const std::uint8_t>(weights);
    params.block_scales = pointer_to<const float>(block_scales);
    params.x = pointer_to<const std::uint16_t>(x);
    params.y = p.is_f32 ? static_cast<void*>(y32.pointer()) : y16.pointer();
    params.bias = p.has_bias ? pointer_to<const float>(bias) : nullptr;
    params.alphas = pointer_to<const float>(alphas);
    if (!p.offsets.empty()) params.expert_offsets = pointer_to<const std::int32_t>(offsets);
    if (!p.row_token.empty()) params.row_token = pointer_to<const std::int32_t>(row_token);
    params.row_weight = pointer_to<const float>(row_weight);
    params.x_stride = pitch;
    params.y_stride = p.columns();
    params.matrix_bytes = in.weights[0].shape.bytes();
    params.m = p.m;
    params.n = p.n;
    params.k = p.k;
    params.experts = p.experts();
    params.scale_halves = p.is_swiglu ? 2 : 1;
    params.scale_rows = static_cast<std::int32_t>(ceil_div(p.n, 128 * params.scale_halves));
    params.is_y_f32 = p.is_f32;
    params.is_swiglu = p.is_swiglu;
    params.alpha = static_cast<float>(std::ldexp(1, in.weights[0].bias_exponent));
    params.limit = p.limit;
    params.gate_slope = 1;
    const BandTile tile = p.tile();
    EXPECT_TRUE(tile.is_possible());
    params.cut = tile.cut(p.n, p.k);
    run_kernel(device, fmt::format("linear_band_{}_n{}", p.format.name, tile.entry_tokens()),
               {.grid = {static_cast<std::uint32_t>(p.clusters * p.cluster)},
                .block = {static_cast<std::uint32_t>(tile.threads())},
                .cluster = device::Dim3{static_cast<std::uint32_t>(p.cluster)},
                .dynamic_shared_bytes = static_cast<std::uint32_t>(tile.shared_bytes())},
               params);
    std::vector<double> results;
    for (const std::uint32_t code : y32.read()) results.push_back(decode(kFp32, code));
    for (const std::uint16_t code : y16.read()) results.push_back(decode(kBf16, code));
    return results;
  }

  // A sum of products goes through the tensor core in several parts, which f32 additions (and, of
  // FP8, block scales) join: each of them loses less than a step of the tensor core does, so they
  // count as such steps. Then a factor and a bias, two roundings.
  static double sum_bound(const Problem& p, double magnitude) {
    const int joins = p.cluster * p.k_groups + 2 + 2 * (p.k / 128 + 1);
    return tensor_core_bound(kBf16TensorCore, round_up(p.k, 64) + 16 * joins, magnitude);
  }

  static void check_results(const Problem& p, const Operands& in, const std::vector<double>& y) {
    const FormatSpec& output = p.is_f32 ? kFp32 : kBf16;
    const double u = std::ldexp(1, -output.mantissa_bits - 1);
    ASSERT_EQ(y.size(), static_cast<std::size_t>(p.rows()) * p.columns());
    for (int e = 0; e < p.experts(); ++e) {
      std::vector<double> x;
      for (int row = p.begin(e); row < p.end(e); ++row) {
        const auto from = in.x.begin() + static_cast<std::ptrdiff_t>(p.token(row)) * p.k;
        x.insert(x.end(), from, from + p.k);
      }
      const reference::LinearShape shape = {p.end(e) - p.begin(e), p.n, p.k};
      const std::vector<double>& w = in.weights[static_cast<std::size_t>(e)].values;
      const std::vector<double> exact = reference::linear(shape, x, w);
      const std::vector<double> magnitude = reference::linear_magnitude(shape, x, w);
      const auto sum = [&](int row, int packed) {
        const std::size_t at = static_cast<std::size_t>(row) * p.n + packed;
        const int half = p.is_swiglu ? packed % 16 / 8 : 0, halves = p.is_swiglu ? 2 : 1;
        const double alpha = in.alphas[static_cast<std::size_t>(e * halves + half)];
        const double bias = p.has_bias ? in.bias[static_cast<std::size_t>(e) * p.n + packed] : 0;
        const double value = alpha * exact[at] + bias;
        const double bound = alpha * sum_bound(p, magnitude[at]) +
                             std::ldexp(1, -22) * (std::abs(value) + std::abs(bias));
        return std::pair(value, bound);
      };
      for (int row = 0; row < shape.m; ++row) {
        for (int column = 0; column < p.columns(); ++column) {
          double value, bound;
          if (p.is_swiglu) {
            const auto [gate, gate_bound] = sum(row, swiglu_row(column, false));
            const auto [up, up_bound] = sum(row, swiglu_row(column, true));
            const double weight = in.row_weight[static_cast<std::size_t>(p.begin(e) + row)];
            value = swiglu(gate, up, p.limit) * weight;
            // |silu'| < 1.1; the exponential and the division of f32, some units in the last place.
            bound = weight * (1.1 * gate_bound * (std::abs(up) + up_bound) +
                              (std::abs(gate) + gate_bound) * up_bound) +
                    std::ldexp(1, -19) * (1 + std::abs(gate)) * std::abs(value);
          } else {
            std::tie(value, bound) = sum(row, column);
          }
          bound += u * (std::abs(value) + bound);
          const std::size_t at = static_cast<std::size_t>(p.begin(e) + row) * p.columns() + column;
          ASSERT_LE(std::abs(y[at] - value), bound)
              << "expert " << e << ", row " << row << ", column " << column;
        }
      }
    }
  }

  void check(const Problem& p) {
    SCOPED_TRACE(fmt::format("{}, m = {}, n = {}, k = {}, {} tokens, {} x {} warps, cluster {}{}",
                             p.format.name, p.m, p.n, p.k, p.tokens, p.warps, p.k_groups, p.cluster,
                             p.is_narrow ? ", narrow" : ""));
    const Operands in(p);
    const auto run_on = [&](const Device& where) { return run(where, p, in); };
    const std::vector<double> y = run_on(device());
    check_results(p, in, y);
    // exp of the GPU is not that of the simulator to the bit.
    if (!p.is_swiglu) expect_same_on_simulator(run_on, y);
  }
};
TILEWRIGHT_ON_EVERY_CHIP_OF_KERNELS(Band);

TEST_P(Band, EveryFormatRaggedInEveryDimension) {
  for (const Format& format : kAllFormats) {
    check({.format = format, .m = 3, .n = 90, .k = 208, .has_bias = true});
    check({.format = format, .m = 19, .n = 40, .k = 136, .tokens = 64, .is_f32 = true});
  }
}
TEST_P(Band, EveryNumberOfTokens) {
  for (const int m : {1, 8, 9, 16, 17, 32}) {
    check({.m = m, .n = 32, .k = 128, .tokens = m <= 8 ? 8 : m <= 16 ? 16 : 32, .is_f32 = true});
    check({.format = kFp8Weights, .m = 2 * m, .n = 32, .k = 128, .tokens = 64, .is_f32 = true});
  }
}
TEST_P(Band, ManyBlocksOfTokens) {
  check({.m = 37, .n = 70, .k = 192, .tokens = 8, .clusters = 3});
  check({.m = 37, .n = 70, .k = 192, .tokens = 16, .cluster = 2, .clusters = 1});
}
TEST_P(Band, ClustersAndGroupsOfWarps) {
  for (const int cluster : {1, 2, 4, 8}) {
    for (const int groups : {1, 2}) {
      check({.m = 5,
             .n = 100,
             .k = 720,
             .k_groups = groups,
             .cluster = cluster,
             .stages = 4,
             .clusters = 1,
             .is_f32 = true});
    }
  }
}
// More CTAs in a cluster than steps of K; one warp row more than rows.
TEST_P(Band, FewStepsOfK) {
  check({.m = 2, .n = 16, .k = 64, .warps = 3, .k_groups = 2, .cluster = 4, .clusters = 1});
  check({.m = 2, .n = 16, .k = 16, .warps = 7, .clusters = 1});
}
TEST_P(Band, EmptyDimensions) {
  check({.m = 0, .n = 16, .k = 64});
  check({.m = 3, .n = 16, .k = 0, .has_bias = true});
}
TEST_P(Band, Experts) {
  Problem p = {.m = 7,
               .n = 70,
               .k = 144,
               .clusters = 3,
               .has_bias = true,
               .offsets = {0, 3, 3, 13, 14, 14},
               .row_token = {0, 2, 6, 5, 4, 3, 2, 1, 0, 6, 6, 1, 2, 3}};
  check(p);
  p.cluster = 2;
  p.k_groups = 2;
  p.clusters = 1;
  p.is_f32 = true;
  check(p);
  p.offsets = {0, 0, 0};
  p.row_token = {};
  check(p);
}
TEST_P(Band, ManyExpertsMostOfThemEmpty) {
  Problem p = {.m = 6, .n = 16, .k = 32, .is_f32 = true, .offsets = std::vector(301, 0)};
  for (std::size_t e = 41; e < p.offsets.size(); ++e) p.offsets[e] = e > 299 ? 6 : e > 200 ? 5 : 2;
  check(p);
}
// The entries of 8 tokens: more of them, edges, experts with more, clusters and groups of warps.
TEST_P(Band, Narrow) {
  for (const Format& format : kBraided) {
    Problem p = {.format = format, .m = 3, .n = 90, .k = 208, .has_bias = true, .is_narrow = true};
    check(p);
    p.m = 21;
    p.clusters = 3;
    p.stages = 4;
    check(p);
    p.warps = 3;
    p.k_groups = 2;
    p.cluster = 2;
    p.clusters = 1;
    check(p);
  }
}
TEST_P(Band, NarrowExperts) {
  for (const Format& format : kBraided) {
    Problem p = {.format = format,
                 .m = 7,
                 .n = 80,
                 .k = 144,
                 .warps = 8,
                 .clusters = 3,
                 .is_f32 = true,
                 .is_swiglu = true,
                 .offsets = {0, 3, 3, 13, 14, 14},
                 .row_token = {0, 2, 6, 5, 4, 3, 2, 1, 0, 6, 6, 1, 2, 3},
                 .is_narrow = true};
    check(p);
    p.is_swiglu = false;
    check(p);
  }
}
TEST_P(Band, GateAndUp) {
  for (const Format& format : {kNvfp4, kFp8Weights}) {
    check({.format = format, .m = 4, .n = 80, .k = 128, .is_f32 = true, .is_swiglu = true});
    check({.format = format,
           .m = 9,
           .n = 288,
           .k = 144,
           .k_groups = 2,
           .is_swiglu = true,
           .offsets = {0, 1, 9},
           .limit = 0.5f});
  }
}

TEST_P(Band, NonFiniteTokensStayAmongThemselves) {
  const Problem p = {.m = 9, .n = 48, .k = 192, .tokens = 16, .is_f32 = true};
  Operands in(p);
  const std::vector<double> finite = run(device(), p, in);
  in.x[static_cast<std::size_t>(2 * p.k + 70)] = std::numeric_limits<double>::quiet_NaN();
  in.x[static_cast<std::size_t>(7 * p.k)] = std::numeric_limits<double>::infinity();
  const std::vector<double> mixed = run(device(), p, in);
  for (int row = 0; row < p.m; ++row) {
    for (int column = 0; column < p.n; ++column) {
      const std::size_t at = static_cast<std::size_t>(row) * p.n + column;
      if (row == 2 || row == 7) continue;
      ASSERT_EQ(mixed[at], finite[at]) << "row " << row << ", column " << column;
    }
    const std::size_t first = static_cast<std::size_t>(row) * p.n;
    if (row == 2) {
      EXPECT_TRUE(std::isnan(mixed[first]));
    }
  }
}

TEST_P(Band, ResultsRepeatWhateverTheGrid) {
  Problem p = {.m = 13, .n = 200, .k = 448, .tokens = 16, .k_groups = 2, .cluster = 2};
  const Operands in(p);
  const std::vector<double> first = run(device(), p, in);
  for (const int clusters : {1, 3, 8}) {
    p.clusters = clusters;
    EXPECT_EQ(run(device(), p, in), first);
  }
  if (is_simulator()) return;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(run(device(), p, in), first) << "run " << i;
}

}  // namespace
}  // namespace tilewright::kernels
