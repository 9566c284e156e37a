// Linear layers for many tokens in bf16: every format, width of tile and kind of cluster against
// float64 sums of the weights that the bricks stand for.
#include "kernels/linear/wide/sm90_wide_bf16.h"

#include "formats/packed_matrix.h"
#include "kernels/linear/wide/sm90_wide_spread.h"
#include "tests/kernels/gemm_check.h"
#include "tests/kernels/packed_weight_check.h"

#include <array>
#include <cmath>
#include <limits>

namespace tilewright::kernels {
namespace {

constexpr const char* kFormatNames[] = {"nvfp4", "mxfp4", "fp8", "bf16"};
constexpr WeightFormat kFormats[] = {WeightFormat::kNvfp4, WeightFormat::kMxfp4, WeightFormat::kFp8,
                                     WeightFormat::kBf16};

struct Problem {
  WeightFormat format;
  int m, n, k;
  std::vector<std::int32_t> segments = {};  ///< empty: one matrix
  bool is_swiglu = false, is_f32 = false;
  float limit = std::numeric_limits<float>::infinity();
  int nan_token = -1;
  WordOrder order = WordOrder::kBf16;

  int halves() const { return is_swiglu ? 2 : 1; }  ///< gate and up have factors of their own
  int matrices() const { return segments.empty() ? 1 : static_cast<int>(segments.size()) - 1; }
  int matrix_of(int token) const {
    int e = 0;
    while (!segments.empty() && token >= segments[static_cast<std::size_t>(e) + 1]) ++e;
    return e;
  }
  int width() const { return is_swiglu ? n / 2 : n; }
};

struct Cut {
  int tile_tokens, cluster_rows, splits, clusters;
  bool is_tall = false;
  bool is_shared = false;  ///< the last units are cut along k, over all clusters
  /// Of the entries that divide k over the grid: `clusters` units at a time, of `splits` CTAs each.
  int warpgroups = 0;

  bool is_spread() const { return warpgroups > 0; }
  int rows() const {
    return is_spread() ? warpgroups * 64 : is_tall ? kWideBf16TallRows : kWideBf16Rows;
  }
  int threads(WeightFormat format) const {
    return is_spread() ? WideSpreadTile{format, warpgroups}.threads()
           : is_tall   ? kWideBf16TallThreads
                       : kWideBf16Threads;
  }
  std::string entry(const Problem& p) const {
    return is_spread()
               ? fmt::format("linear_wide_spread_{}{}", kFormatNames[static_cast<int>(p.format)],
                             warpgroups == 5 ? "_w5" : "")
               : fmt::format("linear_wide_bf16_{}{}{}", is_tall ? "tall_" : "",
                             kFormatNames[static_cast<int>(p.format)],
                             p.order == WordOrder::kE4m3 ? "_braided" : "");
  }
  std::int64_t sum_bytes(const Problem& p) const {
    const int ctas = clusters * cluster_rows * splits;
    return is_spread() ? WideSpreadTile{p.format, warpgroups}.sum_bytes(clusters, splits)
                       : WideParts{ctas, rows(), tile_tokens}.sum_bytes();
  }
};

struct Data {
  std::vector<double> x;
  std::vector<TestWeights> weights;
  std::vector<float> alphas, bias, row_weights;
};

std::vector<float> draw_floats(std::uint64_t seed, int count) {
  Random random(seed);
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(random.uniform(0.5, 2)));
  return values;
}

Data make_data(const Problem& p) {
  Data data;
  data.x = draw_many(1, std::int64_t{p.m} * p.k, Numbers::kUniform, kBf16);
  for (int e = 0; e < p.matrices(); ++e) {
    data.weights.push_back(make_weights({p.format, p.n, p.k}, p.order,
                                        static_cast<std::uint64_t>(10 + e), p.is_swiglu));
  }
  data.alphas = draw_floats(2, p.matrices() * p.halves());
  data.bias = draw_floats(3, p.matrices() * p.n);
  data.row_weights = draw_floats(4, p.m);
  return data;
}

/// A sum before SwiGLU and rounding, and how far off the kernel's may be: the tensor core's own
/// bound; a rounding for each split and two for each change of the unit of FP8's sums; four of the
/// epilogue.
struct Sum {
  double value = 0, bound = 0;
};
Sum sum_of(const Problem& p, const Data& data, int token, int row) {
  const int e = p.matrix_of(token);
  const TestWeights& w = data.weights[static_cast<std::size_t>(e)];
  double sum = 0, magnitude = 0;
  for (int i = 0; i < p.k; ++i) {
    const double product = data.x[static_cast<std::size_t>(token * p.k + i)] *
                           w.values[static_cast<std::size_t>(row * p.k + i)];
    sum += product;
    magnitude += std::abs(product);
  }
  const double alpha =
      data.alphas[static_cast<std::size_t>(e * p.halves() + row % 16 / 8 % p.halves())];
  const double bias = data.bias[static_cast<std::size_t>(e * p.n + row)];
  const double roundings = 8 + 2 * std::ceil(p.k / 128.0) + 4;
  const double bound = tensor_core_bound(kBf16TensorCore, p.k, magnitude) +
                       roundings * std::ldexp(1, -24) * magnitude;
  return {sum * alpha + bias, bound * alpha + std::ldexp(1, -23) * std::abs(bias)};
}

void check_results(const Problem& p, const Data& data, const std::vector<double>& y) {
  const FormatSpec& output = p.is_f32 ? kFp32 : kBf16;
  const double u = std::ldexp(1, -output.mantissa_bits - 1);
  ASSERT_EQ(y.size(), static_cast<std::size_t>(p.m * p.width()));
  for (int token = 0; token < p.m; ++token) {
    const double weight = data.row_weights[static_cast<std::size_t>(token)];
    for (int column = 0; column < p.width(); ++column) {
      const double got = y[static_cast<std::size_t>(token * p.width() + column)];
      if (token == p.nan_token) {
        ASSERT_TRUE(std::isnan(got)) << "column " << column;
        continue;
      }
      Sum sum = sum_of(p, data, token, p.is_swiglu ? swiglu_row(column, false) : column);
      if (p.is_swiglu) {
        const Sum up = sum_of(p, data, token, swiglu_row(column, true));
        const double limit = p.limit, gate = std::min(sum.value, limit);
        const double clamped = std::clamp(up.value, -limit, limit);
        const double silu = gate / (1 + std::exp(-gate));
        // |silu'| <= 1.1; exponential and quotient of the special-function unit err by < 2^-19
        sum.bound = 1.1 * sum.bound * (std::abs(clamped) + up.bound) + std::abs(silu) * up.bound +
                    std::ldexp(1, -19) * std::abs(silu * clamped);
        sum.value = silu * clamped;
      }
      const double want = sum.value * weight;
      const double bound = sum.bound * weight + std::ldexp(1, -23) * std::abs(want);
      ASSERT_LE(std::abs(got - want), bound + u * (std::abs(want) + bound))
          << "token " << token << ", column " << column << ": " << got << ", not " << want;
    }
  }
}

// What a launch is given besides addresses.
WideBf16Params params_of(const Problem& p, const Cut& cut, const WideBf16Layout& layout) {
  WideBf16Params params = {};
  params.box_tokens = cut.is_spread() ? cut.tile_tokens : std::min(cut.tile_tokens, kWideGranule);
  params.y_pitch = p.width();
  params.tokens = p.m;
  params.n = p.n;
  params.k = p.k;
  params.matrices = p.matrices();
  params.tile_tokens = cut.tile_tokens;
  params.cluster_rows = cut.cluster_rows;
  params.splits = cut.splits;
  params.token_group = 2;
  params.stages = layout.stages();
  params.alpha = 1;
  params.swiglu_limit = p.limit;
  params.is_swiglu = p.is_swiglu;
  params.is_f32 = p.is_f32;
  return params;
}

// All experts' weights, one behind the other.
struct JoinedWeights {
  std::vector<std::uint8_t> bricks;
  std::vector<float> scales, alphas;
};
JoinedWeights join_weights(const Data& data) {
  JoinedWeights all = {.bricks = {}, .scales = {}, .alphas = data.alphas};
  const std::size_t halves = all.alphas.size() / data.weights.size();
  for (std::size_t e = 0; e < data.weights.size(); ++e) {
    const TestWeights& w = data.weights[e];
    all.bricks.insert(all.bricks.end(), w.bricks.begin(), w.bricks.end());
    all.scales.insert(all.scales.end(), w.block_scales.begin(), w.block_scales.end());
    for (std::size_t i = e * halves; i < (e + 1) * halves; ++i)
      all.alphas[i] = std::ldexp(all.alphas[i], w.bias_exponent);
  }
  return all;
}

void store_x_map(const Device& device, const Problem& p, const Buffer& x, WideBf16Params& params) {
  store_map(params.x_map,
            device::encode_tensor_map(
                device, {.name = "x",
                         .type = device::TensorMapType::kBfloat16,
                         .address = x.address(),
                         .dims = {static_cast<std::uint64_t>(p.k), static_cast<std::uint64_t>(p.m)},
                         .strides_bytes = {static_cast<std::uint64_t>(p.k) * 2},
                         .box = {kWideBf16Step, static_cast<std::uint32_t>(params.box_tokens)},
                         .swizzle = device::TensorMapSwizzle::k128B}));
}

class WideBf16 : public KernelTest {
 protected:
  static std::vector<double> run(const Device& device, const Problem& p, const Cut& cut,
                                 const Data& data, int repetitions = 1) {
    const auto [bricks, scales, alphas] = join_weights(data);
    std::vector<std::uint16_t> codes = encode_all<std::uint16_t>(kBf16, data.x);
    for (int i = 0; p.nan_token >= 0 && i < p.k; i += 7)
      codes[static_cast<std::size_t>(p.nan_token * p.k + i)] = 0x7fc0;
    const Buffer x = Buffer::from(device, codes), weights = Buffer::from(device, bricks);
    const Buffer block_scales = Buffer::from(device, scales),
                 factors = Buffer::from(device, alphas);
    const Buffer bias = Buffer::from(device, data.bias);
    const Buffer row_weights = Buffer::from(device, data.row_weights);
    const Buffer segments = Buffer::from(device, p.segments);
    const Output<std::uint8_t> y(device,
                                 static_cast<std::size_t>(p.m * p.width() * (p.is_f32 ? 4 : 2)));
    const WideBf16Layout layout = {brick_bytes(p.format), cut.tile_tokens, p.matrices(),
                                   cut.rows()};
    WideBf16Params params = params_of(p, cut, layout);
    store_x_map(device, p, x, params);
    params.weights = pointer_to<const std::uint8_t>(weights);
    params.block_scales = scales.empty() ? nullptr : pointer_to<const float>(block_scales);
    params.alphas = pointer_to<const float>(factors);
    params.bias = pointer_to<const float>(bias);
    params.row_weights = pointer_to<const float>(row_weights);
    params.segments = p.segments.empty() ? nullptr : pointer_to<const std::int32_t>(segments);
    params.y = y.pointer();
    params.matrix_bytes = data.weights[0].shape.bytes();
    const auto ctas = static_cast<std::uint32_t>(cut.cluster_rows * cut.splits);
    const std::uint32_t cluster = cut.is_spread() ? 1 : ctas;
    const WideParts parts = {cut.clusters * static_cast<int>(ctas), cut.rows(), cut.tile_tokens};
    const Buffer sums(device, static_cast<std::size_t>(cut.sum_bytes(p)));
    const Buffer flags = Buffer::from(
        device, std::vector<std::uint8_t>(static_cast<std::size_t>(parts.flag_bytes()), 0xa5));
    if (cut.is_shared) {
      params.parts = pointer_to<float>(sums);
      params.part_flags = pointer_to<std::uint64_t>(flags);
      params.part_key = 0x1234567890abcdef;
    }
    if (cut.is_spread()) params.parts = pointer_to<float>(sums);
    std::vector<std::uint8_t> first;
    for (int i = 0; i < repetitions; ++i) {
      run_kernel(device, cut.entry(p),
                 {.grid = {static_cast<std::uint32_t>(cut.clusters) * ctas},
                  .block = {static_cast<std::uint32_t>(cut.threads(p.format))},
                  .cluster = device::Dim3{cluster, 1, 1},
                  .dynamic_shared_bytes = static_cast<std::uint32_t>(layout.shared_bytes()),
                  .is_cooperative = cut.is_spread() && cut.splits > 1},
                 params);
      if (repetitions == 1) break;
      const std::vector<std::uint8_t> bytes = y.read();
      if (i == 0) first = bytes;
      EXPECT_EQ(bytes, first) << "repetition " << i;
    }
    return decode_results(p, y.read());
  }

  static std::vector<double> decode_results(const Problem& p,
                                            const std::vector<std::uint8_t>& bytes) {
    const FormatSpec& format = p.is_f32 ? kFp32 : kBf16;
    const std::size_t size = p.is_f32 ? 4 : 2;
    std::vector<double> values;
    for (std::size_t i = 0; i < bytes.size(); i += size) {
      std::uint32_t code = 0;
      std::memcpy(&code, &bytes[i], size);
      values.push_back(decode(format, code));
    }
    return values;
  }

  void check(const Problem& p, const Cut& cut) {
    SCOPED_TRACE(fmt::format(
        "{}{} [{}, {}, {}], {} matrices, swiglu {}, f32 {}; {} tokens, cluster "
        "{} x {}, tall {}, shared {}",
        kFormatNames[static_cast<int>(p.format)], p.order == WordOrder::kE4m3 ? " braided" : "",
        p.m, p.n, p.k, p.matrices(), p.is_swiglu, p.is_f32, cut.tile_tokens, cut.cluster_rows,
        cut.splits, cut.is_tall, cut.is_shared));
    check_results(p, make_data(p), run(device(), p, cut, make_data(p)));
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(WideBf16);

TEST_P(WideBf16, EveryFormat) {
  for (const WeightFormat format : kFormats) check({format, 37, 48, 208}, {64, 1, 1, 1});
}
TEST_P(WideBf16, EveryFormatTall) {
  for (const WeightFormat format : kFormats) check({format, 37, 48, 208}, {64, 1, 1, 1, true});
}
// Codes in the order for FP8 tokens, of experts: with edges, and with gate and up.
TEST_P(WideBf16, Braided) {
  const std::vector<std::int32_t> segments = {0, 0, 1, 41, 41, 50};
  for (const WeightFormat format : {WeightFormat::kNvfp4, WeightFormat::kMxfp4}) {
    for (const bool is_tall : {false, true}) {
      Problem p = {.format = format, .m = 37, .n = 48, .k = 208, .order = WordOrder::kE4m3};
      check(p, {64, 1, 1, 1, is_tall});
      p.m = 50;
      p.segments = segments;
      p.is_swiglu = true;
      p.limit = 2.5f;
      check(p, {32, 1, 1, 2, is_tall});
    }
  }
}
// One CTA, tiles of 32 to 256 tokens, each by products as wide.
TEST_P(WideBf16, EveryWidth) {
  for (int tokens = 27; tokens <= 256; tokens += 32)
    check({WeightFormat::kNvfp4, tokens, 16, 48, {}, false, tokens % 64 == 27}, {256, 1, 1, 1});
}
// More tiles than CTAs.
TEST_P(WideBf16, Persistent) {
  check({WeightFormat::kMxfp4, 150, 272, 80}, {64, 1, 1, 2});
}
TEST_P(WideBf16, MoreStepsThanStages) {
  check({WeightFormat::kBf16, 33, 16, 1104}, {64, 1, 1, 1});
  check({WeightFormat::kNvfp4, 20, 16, 1296}, {32, 1, 1, 1, true});
}
TEST_P(WideBf16, ClustersShareTokens) {
  check({WeightFormat::kNvfp4, 70, 272, 144}, {128, 2, 1, 1});
  check({WeightFormat::kNvfp4, 70, 272, 80}, {128, 4, 1, 1});
}
TEST_P(WideBf16, ClustersSplitK) {
  check({WeightFormat::kMxfp4, 40, 48, 272}, {64, 1, 2, 1});
  check({WeightFormat::kFp8, 40, 48, 400}, {64, 1, 4, 1, true});
}
// Twice, so that the ring is filled again where sums have been.
TEST_P(WideBf16, ClustersDoBoth) {
  check({WeightFormat::kNvfp4, 70, 144, 144, {}, true, true}, {64, 2, 2, 1});
}
// Fewer units than clusters, and more; in pieces of a tile, and of two; the same memory again.
TEST_P(WideBf16, ClustersShareUnits) {
  check({WeightFormat::kNvfp4, 40, 144, 720}, {64, 1, 1, 3, false, true});
  check({WeightFormat::kFp8, 70, 144, 272}, {64, 2, 1, 4, false, true});
  check({WeightFormat::kMxfp4, 50, 272, 272, {}, true}, {32, 1, 1, 3, true, true});
}
// k over CTAs of the grid: parts that all add up tokens, and more parts than eights of tokens; more
// units than CTAs; tiles of five warpgroups; gate and up.
TEST_P(WideBf16, SpreadOverTheGrid) {
  const auto spread = [](int splits, int units, int warpgroups) {
    return Cut{64, 1, splits, units, false, false, warpgroups};
  };
  check({WeightFormat::kFp8, 40, 272, 400}, spread(3, 2, 4));
  check({WeightFormat::kFp8, 17, 336, 720, {}, false, true}, spread(5, 2, 5));
  check({WeightFormat::kFp8, 70, 656, 208}, spread(1, 2, 5));
  check({WeightFormat::kBf16, 70, 272, 144, {}, false, true}, spread(1, 3, 4));
  check({WeightFormat::kFp8, 33, 288, 272, {}, true, false, 2.5f}, spread(2, 2, 4));
}
// Experts without tokens, with one, with more than a tile.
TEST_P(WideBf16, Experts) {
  const std::vector<std::int32_t> segments = {0, 0, 1, 75, 75, 80};
  check({WeightFormat::kNvfp4, 80, 48, 80, segments}, {64, 1, 1, 3});
  check({WeightFormat::kFp8, 80, 144, 144, segments, true, false, 2.5f}, {96, 2, 1, 1});
}
TEST_P(WideBf16, ExpertsTall) {
  const std::vector<std::int32_t> segments = {0, 0, 1, 41, 41, 50};
  check({WeightFormat::kMxfp4, 50, 48, 80, segments, true, false, 2.5f}, {32, 1, 1, 2, true});
  check({WeightFormat::kBf16, 50, 48, 80, segments}, {32, 1, 1, 2, true});
}
TEST_P(WideBf16, NanOfOneTokenStaysThere) {
  check({WeightFormat::kNvfp4, 40, 48, 80, {}, false, false, 1, 17}, {64, 1, 1, 1});
}
TEST_P(WideBf16, SameBitsEveryTime) {
  const Problem p = {WeightFormat::kNvfp4, 40, 48, 144};
  run(device(), p, {64, 2, 2, 1}, make_data(p), is_simulator() ? 2 : 1000);
  run(device(), p, {64, 1, 1, 3, false, true}, make_data(p), is_simulator() ? 2 : 1000);
  const Problem wider = {WeightFormat::kFp8, 40, 48, 272};
  run(device(), wider, {64, 1, 4, 1, false, false, 4}, make_data(wider), is_simulator() ? 2 : 1000);
}

}  // namespace
}  // namespace tilewright::kernels
