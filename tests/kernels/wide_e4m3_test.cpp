// The large-M kernel for FP8 tokens in all its entries against float64 with the same roundings of
// the weights (element by element), and against the weights as they are (cosine).
#include "formats/packed_matrix.h"
#include "tests/kernels/wide_e4m3_check.h"

namespace tilewright::kernels {
namespace {

using device::TensorMapSwizzle;
using device::TensorMapType;

const WideE4m3Variant& variant_named(const std::string& name) {
  for (const WideE4m3Variant& variant : kWideE4m3Variants) {
    if (name == variant.name) return variant;
  }
  ADD_FAILURE() << "no variant " << name;
  return kWideE4m3Variants[0];
}

constexpr float kAlpha = 0.75f;

class WideE4m3 : public KernelTest {
 protected:
  // Everything on the device; y comes back as numbers.
  static std::vector<double> run(const Device& device, const WideE4m3Variant& variant,
                                 const WideProblem& p, const WideData& data, std::uint32_t ctas,
                                 int splits = 1) {
    const Buffer weights = Buffer::from(device, data.weights), x = Buffer::from(device, data.x);
    const Buffer block_scales = Buffer::from(device, data.block_scales);
    const Buffer x_scales = Buffer::from(device, data.x_scales);
    const Buffer alphas = Buffer::from(device, data.alphas);
    const Buffer bias = Buffer::from(device, data.bias);
    const Buffer row_weights = Buffer::from(device, data.row_weights);
    const Buffer segments = Buffer::from(device, p.segments);
    const std::int32_t columns = p.is_swiglu ? p.n / 2 : p.n, bytes = p.is_f32 ? 4 : 2;
    const Output<std::uint8_t> y(device, std::size_t(p.tokens) * columns * bytes);
    WideE4m3Params params = {};
    store_map(params.x_map,
              device::encode_tensor_map(
                  device, {.name = "x",
                           .type = TensorMapType::kUint8,
                           .address = x.address(),
                           .dims = {static_cast<std::uint64_t>(p.x_pitch()),
                                    static_cast<std::uint64_t>(p.tokens)},
                           .strides_bytes = {static_cast<std::uint64_t>(p.x_pitch())},
                           .box = {128, static_cast<std::uint32_t>(variant.box_tokens())},
                           .swizzle = TensorMapSwizzle::k128B}));
    params.weights = pointer_to<const std::uint8_t>(weights);
    params.block_scales = pointer_to<const float>(block_scales);
    params.x_scales = pointer_to<const float>(x_scales);
    params.alphas = pointer_to<const float>(alphas);
    params.bias = pointer_to<const float>(bias);
    if (p.is_swiglu) params.row_weights = pointer_to<const float>(row_weights);
    if (!p.segments.empty()) params.segments = pointer_to<const std::int32_t>(segments);
    params.y = y.pointer();
    params.y_pitch = columns;
    params.matrix_bytes = p.shape().bytes();
    params.tokens = p.tokens, params.n = p.n, params.k = p.k;
    params.matrices = p.matrices();
    params.x_scale_pitch = p.scale_pitch();
    params.tile_tokens = variant.tokens;
    params.token_group = 1;
    params.splits = splits;
    params.format = p.format;
    params.alpha = kAlpha;
    params.swiglu_limit = p.limit;
    params.is_swiglu = p.is_swiglu, params.is_f32 = p.is_f32;
    device::LaunchConfig config = {.grid = {ctas},
                                   .block = {WideE4m3Variant::kThreads},
                                   .dynamic_shared_bytes = variant.shared_bytes()};
    if (splits > 1) config.cluster = {static_cast<std::uint32_t>(splits)};
    run_kernel(device, fmt::format("linear_wide_e4m3_{}", variant.name), config, params);
    const std::vector<std::uint8_t> codes = y.read();
    std::vector<double> values;
    for (std::size_t i = 0; i < codes.size(); i += bytes) {
      std::uint32_t code = 0;
      std::memcpy(&code, codes.data() + i, bytes);
      values.push_back(decode(p.is_f32 ? kFp32 : kBf16, code));
    }
    return values;
  }

  static double silu(double x) { return x / (1 + std::exp(-x)); }

  // h of a row of sums; the gate of column c is at packed row swiglu_row(c, false).
  static double swiglu(const WideProblem& p, const WideData& data, const std::vector<double>& sums,
                       std::int32_t token, std::int32_t column) {
    const double* row = sums.data() + std::size_t(token) * p.n;
    const double gate = std::min(row[swiglu_row(column, false)], double{p.limit});
    const double up = std::clamp(row[swiglu_row(column, true)], -double{p.limit}, double{p.limit});
    return silu(gate) * up * data.row_weights[token];
  }
  static std::vector<double> finish(const WideProblem& p, const WideData& data,
                                    const std::vector<double>& sums) {
    if (!p.is_swiglu) return sums;
    std::vector<double> h;
    for (std::int32_t token = 0; token < p.tokens; ++token) {
      for (std::int32_t c = 0; c < p.n / 2; ++c) h.push_back(swiglu(p, data, sums, token, c));
    }
    return h;
  }

  // |silu'| < 1.1 and |silu(x)| <= |x|; the fast exponential and division err by a few 2^-22.
  static double bound_of(const WideE4m3Variant& variant, const WideProblem& p, const WideData& data,
                         const WideSums& sums, std::size_t i) {
    if (!p.is_swiglu) return wide_bound(variant, p.k, sums.magnitude[i]);
    const auto token = static_cast<std::int32_t>(i / (p.n / 2));
    const auto column = static_cast<std::int32_t>(i % (p.n / 2));
    const std::size_t g = std::size_t(token) * p.n + swiglu_row(column, false);
    const std::size_t u = std::size_t(token) * p.n + swiglu_row(column, true);
    const double gate_error = wide_bound(variant, p.k, sums.magnitude[g]);
    const double up_error = wide_bound(variant, p.k, sums.magnitude[u]);
    const double gate = std::abs(sums.y[g]), up = std::abs(sums.y[u]);
    return data.row_weights[token] *
           (1.1 * gate_error * (up + up_error) + gate * up_error + 0x1p-20 * gate * up);
  }

  void check(const std::string& name, const WideProblem& p, std::uint32_t ctas, int splits = 1) {
    SCOPED_TRACE(fmt::format("{}, {} tokens, n = {}, k = {}, {} matrices", name, p.tokens, p.n, p.k,
                             p.matrices()));
    const WideE4m3Variant& variant = variant_named(name);
    const WideData data = make_wide_data(p);
    const auto go = [&](const Device& where) { return run(where, variant, p, data, ctas, splits); };
    const std::vector<double> y = go(device());
    const WideSums sums = wide_reference(p, data, kAlpha, data.folded);
    const std::vector<double> want = finish(p, data, sums.y);
    ASSERT_EQ(y.size(), want.size());
    const double u = p.is_f32 ? 0x1p-24 : 0x1p-9;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double bound = bound_of(variant, p, data, sums, i);
      ASSERT_LE(std::abs(y[i] - want[i]), bound + u * (std::abs(want[i]) + bound))
          << "token " << i / (y.size() / p.tokens) << ", column " << i % (y.size() / p.tokens)
          << ": " << y[i] << ", not " << want[i];
    }
    const Closeness same = compare(y, want);
    EXPECT_GE(same.cosine, 0.99999);
    EXPECT_LE(same.rel_rms, 0.003);
    const WideSums plain = wide_reference(p, data, kAlpha, data.plain);
    EXPECT_GE(compare(y, finish(p, data, plain.y)).cosine, 0.9992);
    expect_same_on_simulator(go, y);
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(WideE4m3);

// Rows, tokens and k that no tile divides; more steps than stages, more tiles than CTAs.
TEST_P(WideE4m3, Nvfp4) {
  check("fp4_t128",
        {.format = WeightFormat::kNvfp4, .tokens = 131, .n = 144, .k = 720, .is_f32 = true}, 2);
}
// A tile of the full width and a narrow one.
TEST_P(WideE4m3, Nvfp4InOneLevel) {
  check(
      "fp4_t256",
      {.format = WeightFormat::kNvfp4, .tokens = 300, .n = 80, .k = 208, .segments = {0, 190, 300}},
      2);
}
// Two CTAs a tile, the second one's sums added to the first one's.
TEST_P(WideE4m3, TwoPartsOfK) {
  check("fp4_t256", {.format = WeightFormat::kMxfp4, .tokens = 21, .n = 144, .k = 336}, 4, 2);
  check("fp8_g128",
        {.format = WeightFormat::kFp8, .tokens = 9, .n = 16, .k = 272, .has_k_scales = true}, 2, 2);
}
TEST_P(WideE4m3, Mxfp4OfExpertsWithSwiglu) {
  check("fp4_t128",
        {.format = WeightFormat::kMxfp4,
         .tokens = 90,
         .n = 160,
         .k = 160,
         .segments = {0, 0, 5, 71, 71, 90},
         .is_swiglu = true,
         .limit = 3},
        3);
}
TEST_P(WideE4m3, Nvfp4OfExpertsWithScalesAlongK) {
  check("fp4_g128",
        {.format = WeightFormat::kNvfp4,
         .tokens = 77,
         .n = 80,
         .k = 208,
         .segments = {0, 9, 9, 50, 77},
         .has_k_scales = true},
        2);
}
TEST_P(WideE4m3, Fp8OfExpertsWithSwiglu) {
  check("fp8_t128",
        {.format = WeightFormat::kFp8,
         .tokens = 60,
         .n = 288,
         .k = 272,
         .segments = {0, 31, 60},
         .is_swiglu = true},
        2);
}
TEST_P(WideE4m3, Fp8WithScalesAlongK) {
  check("fp8_g128",
        {.format = WeightFormat::kFp8, .tokens = 133, .n = 144, .k = 336, .has_k_scales = true}, 1);
}

// The content of a token changes no other token.
TEST_P(WideE4m3, NanOfATokenStaysThere) {
  const WideProblem p = {
      .format = WeightFormat::kNvfp4, .tokens = 24, .n = 48, .k = 128, .segments = {0, 11, 24}};
  WideData data = make_wide_data(p);
  const WideE4m3Variant& variant = variant_named("fp4_t128");
  const std::vector<double> before = run(device(), variant, p, data, 1);
  constexpr std::int32_t kBad = 10;  // the last token of its expert
  for (std::int32_t k = 0; k < p.x_pitch(); ++k) data.x[kBad * p.x_pitch() + k] = 0x7f;
  data.x_scales[kBad] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<double> after = run(device(), variant, p, data, 1);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (i / p.n == kBad) {
      EXPECT_TRUE(std::isnan(after[i])) << i;
    } else {
      EXPECT_EQ(after[i], before[i]) << "token " << i / p.n;
    }
  }
}

}  // namespace
}  // namespace tilewright::kernels
