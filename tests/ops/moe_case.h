// One call of the Mixture-of-Experts operator on random tensors, compared with the float64
// reference that rounds where the operator does.
#pragma once

#include "tilewright/moe.h"

#include "device/internal.h"
#include "formats/e4m3_magnitudes.h"
#include "formats/minifloat.h"
#include "formats/packed_matrix.h"
#include "formats/packed_weight.h"
#include "ops/moe/grouped.h"
#include "reference/moe/moe.h"
#include "reference/moe/router.h"
#include "tests/kernels/kernel_test.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

namespace tilewright::ops {

using device::Buffer;
using kernels::pointer_to;
using reference::Random;

/// A random matrix in a checkpoint's format, and what it stands for.
class RandomExpertWeight {
 public:
  RandomExpertWeight(std::uint64_t seed, NumberFormat format, LinearActivations activations,
                     std::int64_t n, std::int64_t k, bool has_power_scales = false)
      : format_(format), n_(n), k_(k) {
    Random random(seed);
    const std::int64_t group = format == NumberFormat::kNvfp4 ? 16 : 32;
    const double unit = 1 / std::sqrt(static_cast<double>(k));
    if (format == NumberFormat::kBf16 || format == NumberFormat::kFp8) {
      const bool is_bf16 = format == NumberFormat::kBf16;
      blocks_k_ = (k + 127) / 128;
      for (std::int64_t i = 0; i < (n + 127) / 128 * blocks_k_; ++i) {
        const double factor =
            activations == LinearActivations::kBlockScaled || has_power_scales
                ? std::exp2(std::round(std::log2(unit)) +
                            static_cast<double>((static_cast<std::uint64_t>(i) + seed) % 3))
                : unit * (1 + static_cast<double>(i % 7) / 8);
        block_scales_.push_back(static_cast<float>(factor));
      }
      for (std::int64_t i = 0; i < n * k; ++i) {
        const double x = random.uniform(-2, 2) * (is_bf16 ? unit : 1);
        const std::uint32_t code = encode(is_bf16 ? kBf16 : kE4m3, x);
        values_.push_back(static_cast<std::uint8_t>(code));
        if (is_bf16) values_.push_back(static_cast<std::uint8_t>(code >> 8));
      }
      return;
    }
    global_ = static_cast<float>(unit / 16 * random.uniform(0.8, 1.2));
    for (std::int64_t i = 0; i < n * k / 2; ++i)
      values_.push_back(static_cast<std::uint8_t>(random.bits()));
    for (std::int64_t i = 0; i < n * k / group; ++i) {
      const double scale = std::exp2(random.uniform(1, 5));
      if (format == NumberFormat::kNvfp4) {
        scales_.push_back(static_cast<std::uint8_t>(i % 37 == 0 ? 0 : encode(kUe4m3, scale)));
      } else {
        scales_.push_back(static_cast<std::uint8_t>(encode(kUe8m0, scale * unit / 16)));
      }
    }
  }

  LinearWeightSource source() const {
    LinearWeightSource s = {.format = format_};
    if (format_ == NumberFormat::kBf16)
      s.values = contiguous_view(pointer(values_), DType::kBF16, {n_, k_});
    else if (format_ == NumberFormat::kFp8)
      s.values = contiguous_view(pointer(values_), DType::kF8_E4M3, {n_, k_});
    else
      s.values = contiguous_view(pointer(values_), DType::kU8, {n_, k_ / 2});
    if (format_ == NumberFormat::kFp8)
      s.scales = contiguous_view(static_cast<const void*>(block_scales_.data()), DType::kF32,
                                 {(n_ + 127) / 128, blocks_k_});
    if (format_ == NumberFormat::kNvfp4) {
      s.scales = contiguous_view(pointer(scales_), DType::kF8_E4M3, {n_, k_ / 16});
      s.global_scale = global_;
    }
    if (format_ == NumberFormat::kMxfp4)
      s.scales = contiguous_view(pointer(scales_), DType::kF8_E8M0, {n_, k_ / 32});
    return s;
  }

  std::uint8_t largest_scale() const {
    return scales_.empty() ? std::uint8_t{0} : *std::ranges::max_element(scales_);
  }

  /// The numbers; with `is_e4m3` what FP8 products make of 4-bit ones, where `largest` is the
  /// largest scale of the packed matrix.
  std::vector<double> numbers(bool is_e4m3, std::uint8_t largest) const {
    std::vector<double> out;
    for (std::int64_t i = 0; i < n_ * k_; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (format_ == NumberFormat::kBf16) {
        out.push_back(decode(kBf16, values_[2 * at] | std::uint32_t{values_[2 * at + 1]} << 8));
      } else if (format_ == NumberFormat::kFp8) {
        const std::int64_t block = i / k_ / 128 * blocks_k_ + i % k_ / 128;
        out.push_back(decode(kE4m3, values_[at]) *
                      static_cast<double>(block_scales_[static_cast<std::size_t>(block)]));
      } else {
        const std::uint32_t code = values_[at / 2] >> 4 * (at % 2) & 15u;
        out.push_back(is_e4m3 ? folded(i, code, largest) : exact(i, code));
      }
    }
    return out;
  }

 private:
  static const void* pointer(const std::vector<std::uint8_t>& bytes) { return bytes.data(); }
  std::uint8_t scale_of(std::int64_t i) const {
    return scales_[static_cast<std::size_t>(i / (format_ == NumberFormat::kNvfp4 ? 16 : 32))];
  }
  double exact(std::int64_t i, std::uint32_t code) const {
    if (format_ == NumberFormat::kMxfp4) return decode(kE2m1, code) * decode(kUe8m0, scale_of(i));
    return decode(kE2m1, code) * decode(kUe4m3, scale_of(i)) * static_cast<double>(global_);
  }
  double folded(std::int64_t i, std::uint32_t code, std::uint8_t largest) const {
    using kernels::WordOrder;
    const std::uint8_t scale = scale_of(i);
    if (format_ == NumberFormat::kMxfp4) {
      const int top = int{largest} - 127;
      const auto table = e4m3_magnitudes(kernels::WeightFormat::kMxfp4,
                                         kernels::mxfp4_scale_byte(int{scale} - 127, top));
      return signed_value(table, code) *
             std::exp2(kernels::mxfp4_bias_exponent(WordOrder::kE4m3, top));
    }
    if (scale == 0) return 0;
    const int shift = kernels::nvfp4_shift(kernels::split_ue4m3(largest).exponent);
    const auto table =
        e4m3_magnitudes(kernels::WeightFormat::kNvfp4,
                        kernels::nvfp4_scale_byte(kernels::split_ue4m3(scale), shift));
    return signed_value(table, code) *
           std::exp2(kernels::nvfp4_bias_exponent(WordOrder::kE4m3, shift)) *
           static_cast<double>(global_);
  }
  static double signed_value(std::uint64_t table, std::uint32_t code) {
    const double value = decode(kE4m3, table >> 8 * (code & 7) & 0xff);
    return (code & 8) != 0 ? -value : value;
  }

  NumberFormat format_;
  std::int64_t n_, k_, blocks_k_ = 0;
  std::vector<std::uint8_t> values_, scales_;
  std::vector<float> block_scales_;
  float global_ = 1;
};

struct MoeCase {
  MoeProblem problem;
  NumberFormat format = NumberFormat::kNvfp4;
  LinearActivations activations = LinearActivations::kBf16;
  std::int64_t experts = 8, hidden = 208, inter = 80;
  bool has_shared = false;
  bool has_power_scales = false;       ///< of kFp8
  std::vector<std::int32_t> ids = {};  ///< drawn if empty
  /// Tokens whose row of x is infinite: theirs alone is not compared.
  std::set<std::int64_t> broken_tokens = {};
};

/// Experts, tokens and routing of a case, and the device's copies.
class MoeRun {
 public:
  MoeRun(const Device& device, MoeCase c) : case_(std::move(c)), inner_(opened(device)) {
    std::uint64_t seed = 100;
    const auto add = [&](std::vector<RandomExpertWeight>& to, std::int64_t n, std::int64_t k,
                         std::int64_t count) {
      for (std::int64_t e = 0; e < count; ++e)
        to.emplace_back(++seed, case_.format, case_.activations, n, k, case_.has_power_scales);
    };
    const std::int64_t matrices = case_.experts + (case_.has_shared ? 1 : 0);
    add(gate_, case_.inter, case_.hidden, matrices);
    add(up_, case_.inter, case_.hidden, matrices);
    add(down_, case_.hidden, case_.inter, matrices);
    weights_.emplace(MoeWeights::prepare(device, source(), case_.activations));
    draw_tokens();
  }

  const MoeWeights& weights() const { return *weights_; }
  const MoeCase& test_case() const { return case_; }
  const std::vector<std::uint16_t>& x_codes() const { return x_codes_; }
  const std::vector<double>& route_weights() const { return route_weights_; }
  /// Of a run that another made.
  void assume_kernel(const std::string& kernel) { kernel_ = kernel; }
  void give_all_weights(double weight) { std::ranges::fill(route_weights_, weight); }

  MoeWeightsSource source() const {
    MoeWeightsSource s;
    const auto routed = static_cast<std::size_t>(case_.experts);
    for (std::size_t e = 0; e < gate_.size(); ++e) {
      (e < routed ? s.gate : s.shared_gate).push_back(gate_[e].source());
      (e < routed ? s.up : s.shared_up).push_back(up_[e].source());
      (e < routed ? s.down : s.shared_down).push_back(down_[e].source());
    }
    return s;
  }

  using Enqueue = std::function<void(const Moe&, const MoeArguments&, const device::Stream&)>;
  static void run_once(const Moe& moe, const MoeArguments& arguments, const device::Stream&) {
    moe.run(arguments);
  }

  /// Runs, and returns out as numbers. The plan's kernel is left in kernel().
  std::vector<double> run(const Enqueue& enqueue = run_once) {
    const Moe moe(*weights_, case_.problem);
    kernel_ = moe.plan().kernel;
    const Buffer x = Buffer::from(inner_, x_codes_), ids = Buffer::from(inner_, case_.ids);
    const Buffer route_weights = Buffer::from(inner_, kernels::to_floats(route_weights_));
    const Buffer logits = Buffer::from(inner_, spread_logits());
    const Buffer bias = Buffer::from(inner_, kernels::to_floats(bias_));
    const Buffer token_ids = Buffer::from(inner_, token_ids_), table = Buffer::from(inner_, table_);
    Buffer workspace(inner_, moe.plan().workspace_bytes);
    workspace.poison();
    const bool is_f32 = case_.problem.out_dtype == DType::kF32;
    const auto elems = static_cast<std::size_t>(case_.problem.tokens * case_.hidden);
    const kernels::Output<std::uint16_t> bf16(inner_, is_f32 ? 0 : elems);
    const kernels::Output<float> f32(inner_, is_f32 ? elems : 0);
    const device::Stream stream(inner_);
    const MoeArguments arguments = {
        .x = pointer_to<const void>(x),
        .ids = pointer_to<const std::int32_t>(ids),
        .weights = pointer_to<const float>(route_weights),
        .logits = pointer_to<const float>(logits),
        .bias = pointer_to<const float>(bias),
        .token_ids = pointer_to<const std::int32_t>(token_ids),
        .table = pointer_to<const std::int32_t>(table),
        .out = is_f32 ? static_cast<void*>(f32.pointer()) : bf16.pointer(),
        .workspace = pointer_to<void>(workspace),
        .stream = stream.handle()};
    enqueue(moe, arguments, stream);
    stream.synchronize();
    std::vector<double> out;
    for (const float v : f32.read()) out.push_back(v);
    for (const std::uint16_t code : bf16.read()) out.push_back(decode(kBf16, code));
    return out;
  }

  /// Of the last run.
  const std::string& kernel() const { return kernel_; }

  /// What the kernel of the last run rounds.
  reference::MoeRounding rounding() const {
    if (is_block_scaled()) {
      const bool is_nvfp4 = case_.format == NumberFormat::kNvfp4;
      return {.y_bf16 = true,
              .x_blocks = true,
              .h_blocks = true,
              .blocks = is_nvfp4 ? formats::kNvfp4 : formats::kMxfp8Ceil,
              .h_encode_scale = kHiddenEncodeScale};
    }
    const bool is_e4m3 = kernel_ == "wide8";
    const bool is_fp4 =
        case_.format == NumberFormat::kNvfp4 || case_.format == NumberFormat::kMxfp4;
    return {.x_e4m3 = is_e4m3,
            .h_bf16 = true,
            .h_e4m3 = is_e4m3,
            .y_bf16 = case_.problem.routing != MoeRouting::kSingle ||
                      case_.problem.out_dtype == DType::kBF16,
            .e4m3_columns = is_fp4 ? 0 : 128};
  }

  std::vector<double> expected() const { return expected(rounding()); }
  std::vector<double> expected(const reference::MoeRounding& rounding) const {
    const MoeProblem& p = case_.problem;
    const bool is_e4m3 = kernel_ == "wide8";
    const reference::MoeParams params = {
        .tokens = p.tokens,
        .hidden = case_.hidden,
        .inter = case_.inter,
        .experts = case_.experts,
        .topk = p.topk,
        .shared_inter = case_.has_shared ? case_.inter : 0,
        .activation = {.limit = p.swiglu_limit},
        .route_weight_place = p.weight_after_down ? reference::RouteWeightPlace::kAfterDown
                                                  : reference::RouteWeightPlace::kBeforeDown,
        .rounding = rounding};
    std::vector<double> gate, up, down;
    for (std::size_t e = 0; e < gate_.size(); ++e) {
      const std::uint8_t largest = std::max(gate_[e].largest_scale(), up_[e].largest_scale());
      append(gate, gate_[e].numbers(is_e4m3, largest));
      append(up, up_[e].numbers(is_e4m3, largest));
      append(down, down_[e].numbers(is_e4m3, down_[e].largest_scale()));
    }
    const auto routed = static_cast<std::size_t>(case_.experts * case_.inter * case_.hidden);
    const auto first = [&](const std::vector<double>& all) { return std::span(all).first(routed); };
    const auto rest = [&](const std::vector<double>& all) {
      return std::span(all).subspan(routed);
    };
    const auto [ids, route_weights] = routing();
    return reference::moe(params, x_, ids, route_weights, {first(gate), first(up), first(down)},
                          {rest(gate), rest(up), rest(down)});
  }

  /// Relative rms and largest error, tokens of broken_tokens left out. Where a sum lies near a tie,
  /// h is rounded the other way: one of `inter` terms then differs by 2^-8, in e4m3 by 2^-4, and
  /// with the largest term of a row its scale and all others.
  void compare(const std::vector<double>& out, const std::vector<double>& exact) const {
    ASSERT_EQ(out.size(), exact.size());
    const bool is_e4m3 = kernel_ == "wide8" || is_block_scaled();
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      if (is_broken(i)) continue;
      error += (out[i] - exact[i]) * (out[i] - exact[i]);
      norm += exact[i] * exact[i];
    }
    const double rms = std::sqrt(norm / std::max<double>(1, static_cast<double>(exact.size())));
    EXPECT_LE(std::sqrt(error), (is_e4m3 ? 0.02 : 0.003) * std::sqrt(norm));
    for (std::size_t i = 0; i < exact.size(); ++i) {
      if (is_broken(i)) continue;
      ASSERT_LE(std::abs(out[i] - exact[i]),
                0x1p-7 * std::abs(exact[i]) + (is_e4m3 ? 0.5 : 0.02) * rms)
          << "token " << static_cast<std::int64_t>(i) / case_.hidden << ", column "
          << static_cast<std::int64_t>(i) % case_.hidden << ": " << out[i] << " for " << exact[i];
    }
  }

  /// The share of tokens of which more than a fifth of the elements are not `exact` up to what fp32
  /// sums of y may differ by: there a number of x or h was rounded otherwise, or y was not rounded.
  /// Sums near a tie of y are few, and of single elements.
  double share_rounded_otherwise(const std::vector<double>& out,
                                 const std::vector<double>& exact) const {
    std::int64_t tokens = 0;
    for (std::int64_t t = 0; t < case_.problem.tokens; ++t) {
      std::int64_t elems = 0;
      for (std::int64_t i = t * case_.hidden; i < (t + 1) * case_.hidden; ++i) {
        const auto at = static_cast<std::size_t>(i);
        elems += std::abs(out[at] - exact[at]) > 0x1p-20 * std::abs(exact[at]) ? 1 : 0;
      }
      tokens += 5 * elems > case_.hidden ? 1 : 0;
    }
    return static_cast<double>(tokens) / static_cast<double>(case_.problem.tokens);
  }

  /// The largest share of tokens, over all columns, whose element is off by 2^-10 of the token's
  /// rms: ties move a token's row as a whole, a column that is wrong is so in every token.
  double worst_column(const std::vector<double>& out, const std::vector<double>& exact) const {
    const std::int64_t tokens = case_.problem.tokens;
    std::vector<std::int64_t> wrong(static_cast<std::size_t>(case_.hidden));
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto row = std::span(exact).subspan(static_cast<std::size_t>(t * case_.hidden),
                                                static_cast<std::size_t>(case_.hidden));
      const double norm = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
      const double bound = 0x1p-10 * std::sqrt(norm / static_cast<double>(case_.hidden));
      for (std::size_t c = 0; c < wrong.size(); ++c) {
        const double got = out[static_cast<std::size_t>(t * case_.hidden) + c];
        wrong[c] += std::abs(got - row[c]) > std::max(bound, 0x1p-8 * std::abs(row[c])) ? 1 : 0;
      }
    }
    return static_cast<double>(*std::ranges::max_element(wrong)) / static_cast<double>(tokens);
  }

  void check() {
    const auto out = run();
    compare(out, expected());
  }

  bool is_block_scaled() const { return case_.activations == LinearActivations::kBlockScaled; }
  bool is_broken(std::size_t i) const {
    return case_.broken_tokens.contains(static_cast<std::int64_t>(i) / case_.hidden);
  }

 private:
  static void append(std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  void draw_tokens() {
    MoeProblem& p = case_.problem;
    x_ = kernels::draw_many(1, p.tokens * case_.hidden, kernels::Numbers::kUniform, kBf16);
    x_codes_ = kernels::encode_all<std::uint16_t>(kBf16, x_);
    for (const std::int64_t t : case_.broken_tokens) {
      x_codes_[static_cast<std::size_t>(t * case_.hidden + 3)] = 0x7f80;
      x_codes_[static_cast<std::size_t>(t * case_.hidden + 50)] = 0x7fc0;
    }
    Random random(9);
    const bool is_single = p.routing == MoeRouting::kSingle;
    if (p.routing == MoeRouting::kGiven || is_single) {
      if (case_.ids.empty()) draw_ids(random);
      for (std::int64_t i = 0; i < p.tokens * p.topk; ++i)
        route_weights_.push_back(static_cast<float>(is_single ? 1 : random.uniform(0.1, 1)));
      return;
    }
    for (std::int64_t i = 0; i < p.tokens * case_.experts; ++i)
      logits_.push_back(static_cast<float>(random.uniform(-3, 3)));
    if (p.has_bias)
      for (std::int64_t e = 0; e < case_.experts; ++e)
        bias_.push_back(static_cast<float>(random.uniform(-0.5, 0.5)));
    for (std::int64_t i = 0; i < p.vocab * p.topk; ++i)
      table_.push_back(static_cast<std::int32_t>((i * 5 + i / p.topk) % case_.experts));
    if (p.vocab > 0)
      for (std::int64_t t = 0; t < p.tokens; ++t)
        token_ids_.push_back(static_cast<std::int32_t>(t * 3 % p.vocab));
  }

  void draw_ids(Random& random) {
    for (std::int64_t t = 0; t < case_.problem.tokens; ++t) {
      std::set<std::int32_t> chosen;
      while (std::ssize(chosen) < case_.problem.topk) {
        const auto id =
            static_cast<std::int32_t>(random.bits() % static_cast<std::uint64_t>(case_.experts));
        if (chosen.insert(id).second) case_.ids.push_back(id);
      }
    }
  }

  // At their stride, NaN between them.
  std::vector<float> spread_logits() const {
    const std::int64_t stride =
        case_.problem.logits_stride != 0 ? case_.problem.logits_stride : case_.experts;
    std::vector<float> apart(
        logits_.size() / static_cast<std::size_t>(case_.experts) * static_cast<std::size_t>(stride),
        std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t i = 0; i < std::ssize(logits_); ++i)
      apart[static_cast<std::size_t>(i / case_.experts * stride + i % case_.experts)] =
          static_cast<float>(logits_[static_cast<std::size_t>(i)]);
    return apart;
  }

  std::pair<std::vector<std::int32_t>, std::vector<double>> routing() const {
    const MoeProblem& p = case_.problem;
    if (p.routing == MoeRouting::kGiven || p.routing == MoeRouting::kSingle)
      return {case_.ids, route_weights_};
    const reference::RouterParams params = {.tokens = p.tokens,
                                            .experts = case_.experts,
                                            .topk = p.topk,
                                            .score = p.score == MoeScore::kSoftmax
                                                         ? reference::RouterScore::kSoftmax
                                                         : reference::RouterScore::kSqrtSoftplus,
                                            .normalize = p.normalize,
                                            .scale = p.route_scale};
    const reference::Routing r = p.routing == MoeRouting::kHash
                                     ? reference::route_by_hash(params, logits_, token_ids_, table_)
                                     : reference::route_by_score(params, logits_, bias_);
    return {r.ids, r.weights};
  }

  MoeCase case_;
  const device::Device& inner_;
  std::vector<RandomExpertWeight> gate_, up_, down_;
  std::optional<MoeWeights> weights_;
  std::vector<double> x_, route_weights_, logits_, bias_;
  std::vector<std::uint16_t> x_codes_;
  std::vector<std::int32_t> token_ids_, table_;
  std::string kernel_;
};

inline std::string to_text(const MoeCase& c) {
  return fmt::format("{} {}, {} tokens, {} of {} experts, hidden {}, inter {}, kernel {}",
                     to_string(c.format), to_string(c.activations), c.problem.tokens,
                     c.problem.topk, c.experts, c.hidden, c.inter, c.problem.kernel);
}

/// Of a case with 7 tokens of two out of 8 experts: dropped slots, and what check() says of wrong
/// ones.
inline void expect_wrong_ids_reported(const Device& device, MoeCase c) {
  c.ids = {0, -1, -1, -1, 3, 8, 5, 5, 6, 1 << 30, 2, 1, 7, -9};
  MoeRun run(device, c);
  std::string message;
  const auto out = run.run([&](const Moe& moe, const MoeArguments& a, const device::Stream&) {
    moe.run(a);
    try {
      moe.check(a);
    } catch (const Error& error) {
      message = error.what();
    }
  });
  EXPECT_EQ(message,
            "moe: ids[2, 1] = 8 is no expert; 3 such ids added nothing. Expected 2 different "
            "experts of 0 to 7, or -1 for none. Check the router.");
  c.ids = {0, -1, -1, -1, 3, -1, 5, -1, 6, -1, 2, 1, 7, -1};
  MoeRun right(device, c);
  const auto exact = right.run([&](const Moe& moe, const MoeArguments& a, const device::Stream&) {
    moe.run(a);
    moe.check(a);
  });
  EXPECT_EQ(out, exact);
  right.compare(out, right.expected());
  c.ids = {0, 1, 2, 3, 4, 5, 5, 5, 6, 7, 2, 1, 7, 0};
  MoeRun twice(device, c);
  twice.run([&](const Moe& moe, const MoeArguments& a, const device::Stream&) {
    moe.run(a);
    EXPECT_THROW(moe.check(a), Error);
  });
}

/// An infinity and a NaN in the row of a token: its results are not finite, all others the same.
inline void expect_broken_tokens_alone(const Device& device, MoeCase c) {
  c.problem.swiglu_limit = 10;
  MoeRun clean(device, c);
  const auto without = clean.run();
  c.broken_tokens = {2, 6};
  MoeRun broken(device, c);
  const auto with = broken.run();
  for (std::size_t i = 0; i < with.size(); ++i) {
    if (broken.is_broken(i)) {
      ASSERT_TRUE(std::isnan(with[i])) << i;
    } else {
      ASSERT_EQ(with[i], without[i]) << i;
    }
  }
}

/// What a rank with `count` of the experts, from `first` on, makes of the call `a` of the whole
/// layer, in fp32.
inline std::vector<float> run_share(const Device& device, const MoeRun& run, MoeArguments a,
                                    const device::Stream& stream, std::int64_t first,
                                    std::int64_t count) {
  const auto part = [&](const std::vector<LinearWeightSource>& from) {
    return std::vector<LinearWeightSource>(from.begin() + first, from.begin() + first + count);
  };
  const MoeWeightsSource all = run.source();
  const MoeWeights weights = MoeWeights::prepare(
      device, {.gate = part(all.gate), .up = part(all.up), .down = part(all.down)});
  MoeProblem problem = run.test_case().problem;
  problem.all_experts = run.test_case().experts;
  problem.first_expert = first;
  const Moe moe(weights, problem);
  EXPECT_EQ(std::ranges::count(moe.plan().launches, "share", &Launch::step),
            moe.plan().kernel != "direct" && problem.routing == MoeRouting::kGiven ? 1 : 0);
  Buffer workspace(opened(device), moe.plan().workspace_bytes);
  workspace.poison();
  const kernels::Output<float> out(
      opened(device), static_cast<std::size_t>(problem.tokens * run.test_case().hidden));
  a.out = out.pointer();
  a.workspace = pointer_to<void>(workspace);
  moe.run(a);
  stream.synchronize();
  moe.check(a);  // experts of others are no error
  return out.read();
}

/// Of tokens with two experts each, in fp32: ranks with the first expert and with the others add
/// one, both or none, and in any order make the same sums of the same two numbers.
inline void expect_shares_add_up(const Device& device, const MoeCase& c) {
  MoeRun run(device, c);
  std::vector<double> sum(static_cast<std::size_t>(c.problem.tokens * c.hidden));
  const std::vector<double> whole =
      run.run([&](const Moe& moe, const MoeArguments& a, const device::Stream& stream) {
        moe.run(a);
        for (const auto& [first, count] : {std::pair{std::int64_t{0}, std::int64_t{1}},
                                           std::pair{std::int64_t{1}, c.experts - 1}}) {
          const auto part = run_share(device, run, a, stream, first, count);
          for (std::size_t i = 0; i < sum.size(); ++i)
            sum[i] = static_cast<float>(sum[i] + static_cast<double>(part[i]));
        }
      });
  EXPECT_EQ(sum, whole);
}

}  // namespace tilewright::ops
