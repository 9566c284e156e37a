// Hyper-connections, the embedding into the streams and the norm of rows on every device against
// the float64 references, step by step: each step is compared on the inputs that the device had.
#include "tilewright/hyper_connection.h"

#include "kernels/model/hyper_connection.h"
#include "reference/model/hyper_connection.h"
#include "reference/model/rms_norm.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>

namespace tilewright::ops {
namespace {

using device::Buffer;
using kernels::Output;
using kernels::pointer_to;
using kernels::TestDevices;
using reference::HyperMix;
using reference::HyperParams;
using reference::random_doubles;

// Half a unit in the last place of bf16, and what f32 sums may add to it.
constexpr double kBf16Half = 0x1p-8;
constexpr double kF32Sums = 2e-6;

class HyperConnectionTest : public kernels::ChipKernelTest {
 protected:
  // What operators take.
  Device handle() const { return Device::open(GetParam()); }
};
TILEWRIGHT_ON_EVERY_CHIP_OF_KERNELS(HyperConnectionTest);

// Whatever ran before: where there is no GPU, a simulator that is loaded stands in for its driver.
TEST(TestDevicesTest, TheSimulatorIsNoGpu) {
  TestDevices devices;
  ASSERT_NE(devices.find(TestDevices::kSimulator), nullptr);
  const device::Device* const gpu = devices.find(TestDevices::kGpu);
  EXPECT_TRUE(gpu == nullptr || !gpu->is_simulated());
}

// Numbers of a type on the device, and what they are after rounding.
struct Numbers {
  Numbers(const device::Device& device, DType dtype, std::vector<double> wanted)
      : values(std::move(wanted)), buffer(device, 0) {
    if (dtype == DType::kBF16) {
      for (double& x : values) x = round_to(kBf16, x);
      buffer = Buffer::from(device, kernels::encode_all<std::uint16_t>(kBf16, values));
    } else {
      for (double& x : values) x = static_cast<double>(static_cast<float>(x));
      buffer = Buffer::from(device, kernels::to_floats(values));
    }
  }
  std::vector<double> values;
  Buffer buffer;
  const void* pointer() const { return pointer_to<void>(buffer); }
  const float* floats() const { return pointer_to<float>(buffer); }
};

std::vector<double> read(const Output<std::uint16_t>& out, std::int64_t count, DType dtype) {
  const auto words = out.read();
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (dtype == DType::kBF16) {
      values.push_back(decode(kBf16, words[at]));
    } else {
      const std::uint32_t bits = words[2 * at] | std::uint32_t{words[2 * at + 1]} << 16;
      values.push_back(static_cast<double>(std::bit_cast<float>(bits)));
    }
  }
  return values;
}

void expect_close(const std::vector<double>& got, const std::vector<double>& want, double relative,
                  double absolute, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], relative * std::abs(want[i]) + absolute) << what << " " << i;
}

std::vector<double> doubles(const std::vector<float>& x) {
  return {x.begin(), x.end()};
}

HyperParams params_of(const HyperConnectionProblem& p) {
  return {.tokens = p.tokens,
          .hidden = p.hidden,
          .sinkhorn_iters = p.iterations,
          .eps = p.eps,
          .norm_eps = p.norm_eps};
}

struct Inputs {
  Numbers x, f, g, fn, base, scale, weight, mix_before;
};
Inputs draw_inputs(const device::Device& device, const HyperConnectionProblem& p) {
  const std::int64_t n = p.tokens, h = p.hidden, rows = p.is_head ? 4 : 24;
  return {.x = {device, p.stream_dtype, random_doubles(1, n * 4 * h)},
          .f = {device, p.result_dtype, random_doubles(2, n * h)},
          .g = {device, p.second_dtype, random_doubles(3, n * h)},
          .fn = {device, DType::kF32, random_doubles(4, rows * 4 * h, -0.2, 0.2)},
          .base = {device, DType::kF32, random_doubles(5, rows, -4, 4)},
          .scale = {device, DType::kF32, random_doubles(6, p.is_head ? 1 : 3, 0.5, 2)},
          .weight = {device, DType::kBF16, random_doubles(7, h)},
          .mix_before = {device, DType::kF32, random_doubles(8, n * 24, 0, 1)}};
}

// Streams with the sum of results in them, by what was mixed for the sub-layer before.
std::vector<double> merged_streams(const HyperConnectionProblem& p, const HyperParams& params,
                                   const std::vector<double>& streams, std::vector<double> sum,
                                   const std::vector<double>& second,
                                   const std::vector<double>& mix_before) {
  HyperMix before;
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const auto row = mix_before.begin() + t * 24;
    before.post.insert(before.post.end(), row + 4, row + 8);
    before.comb.insert(before.comb.end(), row + 8, row + 24);
  }
  if (p.has_second)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += second[i];
  return reference::hyper_post(params, streams, sum, before);
}

struct WantedMix {
  std::vector<double> all, pre;
};
WantedMix wanted_mix(const HyperConnectionProblem& p, const HyperParams& params,
                     const std::vector<double>& streams, const std::vector<double>& fn,
                     const std::vector<double>& base, const std::vector<double>& scale) {
  WantedMix want;
  if (p.is_head) {
    want.all = want.pre = reference::hyper_head_mix(params, streams, fn, base, scale);
    return want;
  }
  const HyperMix m = reference::hyper_mix(params, streams, fn, base, scale);
  want.pre = m.pre;
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    want.all.insert(want.all.end(), m.pre.begin() + t * 4, m.pre.begin() + t * 4 + 4);
    want.all.insert(want.all.end(), m.post.begin() + t * 4, m.post.begin() + t * 4 + 4);
    want.all.insert(want.all.end(), m.comb.begin() + t * 16, m.comb.begin() + t * 16 + 16);
  }
  return want;
}

// Hopper's kernels read packed bf16 weights, Blackwell's rows.
bool keeps_packed(const Device& device) {
  return device.compute_capability() < 100;
}

// Weights as in a trained model: some streams dominate, so that Sinkhorn has work to do.
// In place: merged over the streams, mix over the one before.
void check_step(const device::Device& device, const Device& handle, const HyperConnectionProblem& p,
                bool is_in_place = false) {
  const std::int64_t n = p.tokens, h = p.hidden, rows = p.is_head ? 4 : 24;
  SCOPED_TRACE(fmt::format("{} tokens of {}, {}, merge {}, second {}, head {}", n, h,
                           to_string(p.stream_dtype), p.has_merge, p.has_second, p.is_head));
  const HyperParams params = params_of(p);
  const auto [x, f, g, fn, base, scale, weight, mix_before] = draw_inputs(device, p);

  const HyperConnection step(handle, p);
  const std::int64_t words = p.stream_dtype == DType::kBF16 ? 1 : 2;
  Output<std::uint16_t> merged(device, static_cast<std::size_t>(n * 4 * h * words));
  Output<float> mix(device, static_cast<std::size_t>(n * rows));
  Output<std::uint16_t> out(device, static_cast<std::size_t>(n * h));
  Buffer workspace(device, step.workspace_bytes());
  workspace.poison();
  const auto run = [&](void* to, float* mixed) {
    step.run({.streams = x.pointer(),
              .merged = to,
              .mix_before = mix_before.floats(),
              .result = f.pointer(),
              .second_result = g.pointer(),
              .mix_weight = fn.floats(),
              .mix_bias = base.floats(),
              .mix_scale = scale.floats(),
              .norm_weight = weight.pointer(),
              .mix = mixed,
              .out = out.pointer(),
              .workspace = pointer_to<void>(workspace)});
    device.synchronize();
  };
  run(merged.pointer(), mix.pointer());

  std::vector<double> streams = x.values;
  if (p.has_merge) {
    streams = read(merged, n * 4 * h, p.stream_dtype);
    // Up to six terms of up to 4.
    expect_close(streams,
                 merged_streams(p, params, x.values, f.values, g.values, mix_before.values),
                 p.stream_dtype == DType::kBF16 ? kBf16Half : 0, kF32Sums * 4, "merged");
  }
  if (!p.has_mix) return;
  const auto [want, pre] = wanted_mix(p, params, streams, fn.values, base.values, scale.values);
  // Sums of 4 hidden products.
  expect_close(doubles(mix.read()), want, h > 1024 ? 1e-4 : 2e-5, 1e-6, "mix");
  const auto y = reference::hyper_pre(params, streams, pre);
  expect_close(read(out, n * h, DType::kBF16),
               reference::rms_norm({.rows = n, .dim = h, .eps = p.norm_eps}, y, weight.values),
               kBf16Half + 2e-5, 1e-5, "out");
  const auto first = out.read();
  const auto first_merged = merged.read();
  const auto first_mix = mix.read();
  run(merged.pointer(), mix.pointer());
  EXPECT_EQ(out.read(), first);
  if (!is_in_place) return;
  run(const_cast<void*>(x.pointer()), const_cast<float*>(mix_before.floats()));
  EXPECT_EQ(out.read(), first) << "in place";
  EXPECT_EQ(x.buffer.to_vector<std::uint16_t>(), first_merged) << "in place";
  EXPECT_EQ(mix_before.buffer.to_vector<float>(), first_mix) << "in place";
}

TEST_P(HyperConnectionTest, FirstSubLayerHasNothingToMerge) {
  check_step(device(), handle(), {.tokens = 5, .hidden = 256});
}
TEST_P(HyperConnectionTest, MergesAndMixes) {
  for (const std::int64_t tokens : {1, 4, 7})
    check_step(device(), handle(), {.tokens = tokens, .hidden = 256, .has_merge = true});
}
TEST_P(HyperConnectionTest, RaggedColumnsAndEveryType) {
  for (const DType streams : {DType::kBF16, DType::kF32}) {
    check_step(device(), handle(),
               {.tokens = 3,
                .hidden = 208,
                .stream_dtype = streams,
                .has_merge = true,
                .has_second = true,
                .second_dtype = DType::kF32});
    check_step(device(), handle(),
               {.tokens = 3,
                .hidden = 144,
                .stream_dtype = streams,
                .has_merge = true,
                .result_dtype = DType::kF32,
                .iterations = 1});
  }
}
TEST_P(HyperConnectionTest, HeadAndMergeAlone) {
  check_step(device(), handle(), {.tokens = 3, .hidden = 144, .has_merge = true, .is_head = true});
  check_step(device(), handle(), {.tokens = 3, .hidden = 144, .has_merge = true, .has_mix = false});
}
// Columns that registers hold from one pass to the next, and more than those.
TEST_P(HyperConnectionTest, LargeSizesInPlace) {
  for (const DType streams : {DType::kBF16, DType::kF32}) {
    for (const std::int64_t hidden : {1040, 4112, 8192}) {
      check_step(device(), handle(),
                 {.tokens = 2,
                  .hidden = hidden,
                  .stream_dtype = streams,
                  .has_merge = true,
                  .has_second = streams == DType::kF32,
                  .second_dtype = DType::kF32},
                 true);
    }
  }
  check_step(device(), handle(), {.tokens = 2, .hidden = 4112, .has_merge = true, .is_head = true});
}
// One launch: every number of tokens, both types of results, the head, a CTA with fewer columns.
TEST_P(HyperConnectionTest, OneLaunchForOneOrTwoTokens) {
  const HyperConnectionProblem p = {.tokens = 2,
                                    .hidden = 2064,
                                    .has_merge = true,
                                    .has_second = true,
                                    .result_dtype = DType::kF32};
  EXPECT_EQ(plan_hyper_connection(handle(), p).launches.size(), 1U);
  EXPECT_EQ(plan_hyper_connection(handle(), {.tokens = 3, .hidden = 2064}).launches.size(), 2U);
  EXPECT_EQ(plan_hyper_connection(handle(), {.tokens = 1, .hidden = 2032}).launches.size(), 2U);
  check_step(device(), handle(), p, true);
  check_step(device(), handle(), {.tokens = 1, .hidden = 2048});
  check_step(device(), handle(), {.tokens = 2, .hidden = 4096, .has_merge = true, .is_head = true});
  check_step(device(), handle(), {.tokens = 2, .hidden = 4176, .has_merge = true}, true);
  check_step(device(), handle(), {.tokens = 1, .hidden = 7168, .has_merge = true});
}
// In one launch the square of y is made of products of streams: of no use where it is 2^-20 of
// them, as it is for the first token here. Gates are halves, and one column in 16 does not vanish.
TEST_P(HyperConnectionTest, StreamsThatCancel) {
  for (const std::int64_t tokens : {1, 2}) {
    const HyperConnectionProblem p = {
        .tokens = tokens, .hidden = 2064, .eps = 1e-30, .norm_eps = 0};
    const std::int64_t h = p.hidden;
    std::vector<double> streams = random_doubles(1, tokens * 4 * h, 1, 2);
    for (std::int64_t c = 0; c < h; ++c) {
      const auto at = [&](std::int64_t j) -> double& {
        return streams[static_cast<std::size_t>(j * h + c)];
      };
      for (const std::int64_t j : {0, 2}) {
        at(j) = round_to(kBf16, at(j));
        at(j + 1) = -at(j);
      }
      if (c % 16 == 3) at(3) -= 0x1p-7;
    }
    const Numbers x(device(), DType::kBF16, streams);
    const Numbers fn(device(), DType::kF32, std::vector<double>(static_cast<std::size_t>(96 * h)));
    const Numbers base(device(), DType::kF32, std::vector<double>(24));
    const Numbers scale(device(), DType::kF32, {1, 1, 1});
    const Numbers weight(device(), DType::kBF16, random_doubles(7, h));
    Output<float> mix(device(), static_cast<std::size_t>(tokens * 24));
    Output<std::uint16_t> out(device(), static_cast<std::size_t>(tokens * h));
    HyperConnection(handle(), p)
        .run({.streams = x.pointer(),
              .mix_weight = fn.floats(),
              .mix_bias = base.floats(),
              .mix_scale = scale.floats(),
              .norm_weight = weight.pointer(),
              .mix = mix.pointer(),
              .out = out.pointer()});
    device().synchronize();
    const auto y = reference::hyper_pre(
        params_of(p), x.values, std::vector<double>(static_cast<std::size_t>(tokens * 4), 0.5));
    expect_close(
        read(out, tokens * h, DType::kBF16),
        reference::rms_norm({.rows = tokens, .dim = h, .eps = p.norm_eps}, y, weight.values),
        kBf16Half + 2e-5, 1e-5, "out");
  }
}
// The router's product of what is written, in the same launch.
void check_router(const device::Device& device, const Device& handle,
                  const HyperConnectionProblem& p, std::int64_t experts) {
  SCOPED_TRACE(fmt::format("{} tokens of {}, {} experts", p.tokens, p.hidden, experts));
  const std::int64_t n = p.tokens, h = p.hidden;
  const auto [x, f, g, fn, base, scale, weight, mix_before] = draw_inputs(device, p);
  const Numbers rows = {device, DType::kBF16, random_doubles(11, experts * h, -0.2, 0.2)};
  const auto codes = kernels::encode_all<std::uint16_t>(kBf16, rows.values);
  const LinearWeight router = LinearWeight::prepare(
      handle, {.format = NumberFormat::kBf16,
               .values = contiguous_view(codes.data(), DType::kBF16, {experts, h})});
  const HyperConnection step(handle, p);
  const std::int64_t stride = experts + 4;
  Output<std::uint16_t> merged(device, static_cast<std::size_t>(n * 4 * h)),
      out(device, static_cast<std::size_t>(n * h)), plain(device, static_cast<std::size_t>(n * h));
  Output<float> mix(device, static_cast<std::size_t>(n * 24)),
      logits(device, static_cast<std::size_t>((n - 1) * stride + experts));
  const auto arguments = [&](Output<std::uint16_t>& to) -> HyperConnectionArguments {
    return {.streams = x.pointer(),
            .merged = merged.pointer(),
            .mix_before = mix_before.floats(),
            .result = f.pointer(),
            .mix_weight = fn.floats(),
            .mix_bias = base.floats(),
            .mix_scale = scale.floats(),
            .norm_weight = weight.pointer(),
            .mix = mix.pointer(),
            .out = to.pointer()};
  };
  const HyperConnectionRouter routed = {&router, logits.pointer(), stride};
  if (!step.routes(router.info())) {
    EXPECT_FALSE(keeps_packed(handle));
    EXPECT_THROW(step.run(arguments(out), nullptr, routed), Error);
    return;
  }
  EXPECT_TRUE(keeps_packed(handle));
  step.run(arguments(plain));
  step.run(arguments(out), nullptr, routed);
  device.synchronize();
  EXPECT_EQ(out.read(), plain.read());
  const std::vector<double> in = read(out, n * h, DType::kBF16);
  const std::vector<float> found = logits.read();
  for (std::int64_t t = 0; t < n; ++t) {
    for (std::int64_t e = 0; e < experts; ++e) {
      double want = 0, sizes = 0;
      for (std::int64_t c = 0; c < h; ++c) {
        const double term = in[static_cast<std::size_t>(t * h + c)] *
                            rows.values[static_cast<std::size_t>(e * h + c)];
        want += term, sizes += std::abs(term);
      }
      // Terms are exact in fp32, and their sums rounded a few times for each part of the columns.
      ASSERT_NEAR(found[static_cast<std::size_t>(t * stride + e)], want, 0x1p-20 * sizes)
          << "token " << t << ", expert " << e;
    }
  }
}

TEST_P(HyperConnectionTest, RoutesInTheSameLaunch) {
  for (const std::int64_t tokens : {1, 2})
    check_router(device(), handle(), {.tokens = tokens, .hidden = 2048, .has_merge = true}, 48);
  check_router(device(), handle(), {.tokens = 1, .hidden = 4096, .has_merge = true}, 384);
}
TEST_P(HyperConnectionTest, RoutesOnlyWhatItCan) {
  const LinearWeightInfo router = {.format = NumberFormat::kBf16, .n = 64, .k = 2048};
  const auto routes = [&](HyperConnectionProblem p, LinearWeightInfo weight) {
    return HyperConnection(handle(), p).routes(weight);
  };
  const HyperConnectionProblem p = {.tokens = 2, .hidden = 2048};
  EXPECT_EQ(routes(p, router), keeps_packed(handle()));
  LinearWeightInfo other = router;
  other.n = 400;
  EXPECT_FALSE(routes(p, other));
  other = router, other.k = 4096;
  EXPECT_FALSE(routes(p, other));
  other = router, other.format = NumberFormat::kFp8;
  EXPECT_FALSE(routes(p, other));
  EXPECT_FALSE(routes({.tokens = 3, .hidden = 2048}, router));
  other = router, other.k = 2064;
  EXPECT_FALSE(routes({.tokens = 2, .hidden = 2064}, other));
}

// Every rank in turn, alone: what others send lies in its memory before it asks for it, from ranks
// before it by their own calls.
// Results of ranks are added in their order, what is sent is what was to be sent, and a call with
// fewer tokens finds nothing of the one that had that buffer before.
class HyperRanks {
 public:
  HyperRanks(const device::Device& device, const Device& handle, int ranks, std::int64_t hidden)
      : device_(device), handle_(handle), hidden_(hidden), ranks_(ranks) {
    for (int r = 0; r < ranks; ++r)
      memory_.push_back(HyperConnection::memory(handle, ranks, hidden));
  }

  void check_call(std::int64_t tokens, std::uint64_t seed) {
    SCOPED_TRACE(fmt::format("call {}, {} tokens", calls_, tokens));
    const HyperConnectionProblem p = {.tokens = tokens,
                                      .hidden = hidden_,
                                      .has_merge = true,
                                      .has_second = true,
                                      .result_dtype = DType::kF32,
                                      .second_dtype = DType::kF32};
    const Inputs in = draw_inputs(device_, p);
    std::vector<Numbers> f, g;
    std::vector<float> sums(static_cast<std::size_t>(tokens * hidden_));
    for (int r = 0; r < ranks_; ++r) {
      const auto drawn = [&](std::uint64_t which) {
        return Numbers(
            device_, DType::kF32,
            random_doubles(seed + 10 * static_cast<std::uint64_t>(r) + which, tokens * hidden_));
      };
      f.push_back(drawn(0));
      g.push_back(drawn(1));
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part(f.back(), g.back(), i);
    }
    // The same in one device: f holds the sums, and there is nothing to add.
    const Numbers total(device_, DType::kF32, {sums.begin(), sums.end()});
    const Numbers none(device_, DType::kF32, std::vector<double>(sums.size()));
    const HyperConnection step(handle_, p);
    ASSERT_TRUE(step.sums_ranks());
    const Result want = run(step, in, total, none, nullptr);
    for (int r = 0; r < ranks_; ++r) {
      for (int from = r + 1; from < ranks_; ++from)
        expect_empty_then_fill(r, from, tokens, f[idx(from)], g[idx(from)]);
      HyperConnectionRanks ranks = {.rank = r, .ranks = ranks_};
      for (int k = 0; k < ranks_; ++k) ranks.memory.at(idx(k)) = memory_[idx(k)].data();
      EXPECT_EQ(run(step, in, f[idx(r)], g[idx(r)], &ranks), want) << "rank " << r;
      for (int to = 0; to < ranks_; ++to)
        if (to != r) expect_sent(r, to, tokens, f[idx(r)], g[idx(r)]);
    }
    ++calls_;
  }

 private:
  using Result =
      std::tuple<std::vector<std::uint16_t>, std::vector<std::uint16_t>, std::vector<float>>;

  static std::size_t idx(int rank) { return static_cast<std::size_t>(rank); }
  static float part(const Numbers& f, const Numbers& g, std::size_t i) {
    return static_cast<float>(f.values[i]) + static_cast<float>(g.values[i]);
  }

  Result run(const HyperConnection& step, const Inputs& in, const Numbers& f, const Numbers& g,
             const HyperConnectionRanks* ranks) {
    const auto n = static_cast<std::size_t>(step.problem().tokens);
    const auto h = static_cast<std::size_t>(hidden_);
    Output<std::uint16_t> merged(device_, n * 4 * h), out(device_, n * h);
    Output<float> mix(device_, n * 24);
    const HyperConnectionArguments a = {.streams = in.x.pointer(),
                                        .merged = merged.pointer(),
                                        .mix_before = in.mix_before.floats(),
                                        .result = f.pointer(),
                                        .second_result = g.pointer(),
                                        .mix_weight = in.fn.floats(),
                                        .mix_bias = in.base.floats(),
                                        .mix_scale = in.scale.floats(),
                                        .norm_weight = in.weight.pointer(),
                                        .mix = mix.pointer(),
                                        .out = out.pointer()};
    ranks == nullptr ? step.run(a) : step.run(a, *ranks);
    device_.synchronize();
    return {merged.read(), out.read(), mix.read()};
  }

  // Words of a call in the memory of `rank`, from another one.
  std::size_t first_word(int from) const {
    const std::int64_t slot = calls_ % kernels::kPeerBuffers * ranks_ + from;
    return static_cast<std::size_t>(slot * kernels::kHyperConnectTokens * hidden_);
  }
  std::vector<std::uint32_t> words(int rank) const {
    return memory_[idx(rank)].to_vector<std::uint32_t>();
  }

  void expect_empty_then_fill(int rank, int from, std::int64_t tokens, const Numbers& f,
                              const Numbers& g) {
    std::vector<std::uint32_t> all = words(rank);
    const std::size_t first = first_word(from);
    for (std::size_t i = 0; i < static_cast<std::size_t>(kernels::kHyperConnectTokens * hidden_);
         ++i)
      ASSERT_EQ(all[first + i], kernels::kPeerEmpty) << "left of a call before, number " << i;
    for (std::size_t i = 0; i < static_cast<std::size_t>(tokens * hidden_); ++i)
      all[first + i] = std::bit_cast<std::uint32_t>(part(f, g, i));
    memory_[idx(rank)].upload(std::as_bytes(std::span(all)));
  }
  void expect_sent(int from, int to, std::int64_t tokens, const Numbers& f,
                   const Numbers& g) const {
    const std::vector<std::uint32_t> all = words(to);
    for (std::size_t i = 0; i < static_cast<std::size_t>(tokens * hidden_); ++i)
      ASSERT_EQ(all[first_word(from) + i], std::bit_cast<std::uint32_t>(part(f, g, i)));
  }

  const device::Device& device_;
  const Device& handle_;
  std::int64_t hidden_;
  int ranks_, calls_ = 0;
  std::vector<tilewright::Buffer> memory_;
};

TEST_P(HyperConnectionTest, AddsUpResultsOfRanks) {
  const Device device = handle();
  HyperRanks two(this->device(), device, 2, 2064);
  for (const std::int64_t tokens : {2, 2, 1, 2, 1}) two.check_call(tokens, 100 + tokens);
  HyperRanks three(this->device(), device, 3, 4176);
  three.check_call(2, 300);
}

TEST_P(HyperConnectionTest, RefusesRanksOfManyTokens) {
  const HyperConnection step(handle(), {.tokens = 3, .hidden = 2048, .has_merge = true});
  EXPECT_FALSE(step.sums_ranks());
  EXPECT_FALSE(HyperConnection(handle(), {.tokens = 1, .hidden = 2048}).sums_ranks());
  try {
    step.run({}, HyperConnectionRanks{});
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("at most 2 tokens"));
  }
}

TEST_P(HyperConnectionTest, AnyEpsAndIterations) {
  for (const int iterations : {2, 3, 50}) {
    check_step(device(), handle(),
               {.tokens = iterations == 50 ? 65 : 8,
                .hidden = 144,
                .has_merge = true,
                .iterations = iterations,
                .eps = iterations == 2 ? 1e-3 : 1e-20,
                .norm_eps = iterations == 3 ? 0 : 0.25});
  }
}
// The sizes of V4-Flash and V4-Pro.
TEST_P(HyperConnectionTest, ManyTokensOfAGpu) {
  if (is_simulator()) GTEST_SKIP() << "a minute of simulation";
  for (const std::int64_t hidden : {4096, 7168})
    for (const std::int64_t tokens : {1, 130, 2049})
      check_step(device(), handle(), {.tokens = tokens, .hidden = hidden, .has_merge = true});
}

// What tokens are beside one changes no bit of its result.
TEST_P(HyperConnectionTest, TokensAreIndependent) {
  constexpr std::int32_t kTokens = 19, kHidden = 144, kSlices = 2;
  const Numbers x(device(), DType::kBF16, random_doubles(1, kTokens * 4 * kHidden));
  const Numbers f(device(), DType::kBF16, random_doubles(2, kTokens * kHidden));
  const Numbers mix(device(), DType::kF32, random_doubles(3, kTokens * 24));
  const Numbers fn(device(), DType::kF32, random_doubles(4, 24 * 4 * kHidden));
  // Parts and streams of some of the tokens, each token's beside each other.
  const auto run = [&](std::int32_t first, std::int32_t count, std::int32_t tiles) {
    Output<float> part(device(),
                       static_cast<std::size_t>(kSlices * count) * kernels::kHyperPartStride);
    Output<std::uint16_t> to(device(), static_cast<std::size_t>(count * 4 * kHidden));
    const kernels::HyperMergeParams params = {
        .streams = static_cast<const std::uint16_t*>(x.pointer()) + first * 4 * kHidden,
        .merged = to.pointer(),
        .f = static_cast<const std::uint16_t*>(f.pointer()) + first * kHidden,
        .g = nullptr,
        .mix = mix.floats() + first * 24,
        .fn = fn.floats(),
        .parts = part.pointer(),
        .f_stride = kHidden,
        .g_stride = kHidden,
        .tokens = count,
        .hidden = kHidden,
        .rows = 24,
        .tiles = tiles,
        .is_f_f32 = false,
        .is_g_f32 = false};
    kernels::run_kernel(
        device(), "hyper_merge_bf16",
        {.grid = {static_cast<std::uint32_t>(
             kSlices * kernels::ceil_div(count, tiles * kernels::kHyperMergeTokens))},
         .block = {kernels::kHyperMergeThreads}},
        params);
    std::vector<std::vector<double>> of_tokens;
    const auto parts = part.read();
    const auto merged = to.read();
    for (std::int32_t t = 0; t < count; ++t) {
      std::vector<double> all(merged.begin() + t * 4 * kHidden,
                              merged.begin() + (t + 1) * 4 * kHidden);
      for (std::int32_t slice = 0; slice < kSlices; ++slice)
        for (int i = 0; i < kernels::kHyperPartStride; ++i)
          all.push_back(
              parts[static_cast<std::size_t>((slice * count + t) * kernels::kHyperPartStride + i)]);
      of_tokens.push_back(std::move(all));
    }
    return of_tokens;
  };
  const auto together = run(0, kTokens, 1);
  EXPECT_EQ(run(0, kTokens, 3), together);
  for (const auto& [first, count] : {std::pair{0, 1}, {3, 5}, {16, 3}}) {
    const auto alone = run(first, count, 1);
    for (std::int32_t t = 0; t < count; ++t)
      EXPECT_EQ(alone[static_cast<std::size_t>(t)], together[static_cast<std::size_t>(first + t)])
          << "token " << first + t << " of " << count;
  }
}

TEST_P(HyperConnectionTest, EmbedsIntoFourStreams) {
  constexpr std::int64_t kHidden = 144, kVocab = 5;
  const Numbers table(device(), DType::kBF16, random_doubles(1, kVocab * kHidden));
  const std::vector<std::int32_t> ids = {4, 0, -1, 5, 3};
  const Buffer id_buffer = Buffer::from(device(), ids);
  const auto tokens = static_cast<std::int64_t>(ids.size());
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    const std::int64_t count = tokens * 4 * kHidden;
    Output<std::uint16_t> out(device(),
                              static_cast<std::size_t>(count * (dtype == DType::kF32 ? 2 : 1)));
    HyperEmbedding(handle(), {tokens, kHidden, kVocab, dtype})
        .run({.table = table.pointer(),
              .ids = pointer_to<std::int32_t>(id_buffer),
              .streams = out.pointer()});
    device().synchronize();
    const auto got = read(out, count, dtype);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t id = ids[static_cast<std::size_t>(i / (4 * kHidden))];
      const bool is_known = id >= 0 && id < kVocab;
      const double want =
          is_known ? table.values[static_cast<std::size_t>(id * kHidden + i % kHidden)] : 0.0;
      ASSERT_EQ(got[static_cast<std::size_t>(i)], want) << i;
    }
  }
}

TEST_P(HyperConnectionTest, NormalisesRows) {
  constexpr std::int64_t kRows = 6, kCols = 136, kStride = 160, kOutStride = 152;
  const Numbers weight(device(), DType::kBF16, random_doubles(2, kCols));
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const bool has_weight : {false, true}) {
      const Numbers x(device(), dtype, random_doubles(1, kRows * kStride));
      Output<std::uint16_t> out(device(), kRows * kOutStride);
      RmsNorm(handle(), {.rows = kRows,
                         .cols = kCols,
                         .x_dtype = dtype,
                         .x_stride = kStride,
                         .out_stride = kOutStride,
                         .has_weight = has_weight,
                         .eps = has_weight ? 0.5 : 1e-6})
          .run({.x = x.pointer(), .weight = weight.pointer(), .out = out.pointer()});
      device().synchronize();
      std::vector<double> rows;
      for (std::int64_t r = 0; r < kRows; ++r)
        rows.insert(rows.end(), x.values.begin() + r * kStride,
                    x.values.begin() + r * kStride + kCols);
      const std::vector<double> weights = has_weight ? weight.values : std::vector<double>();
      std::vector<double> got;
      for (const std::uint16_t code : out.read()) {
        const std::int64_t column = std::ssize(got) % kOutStride;
        if (column >= kCols) {
          EXPECT_EQ(code, 0xffff) << "between the rows";
        }
        got.push_back(decode(kBf16, code));
      }
      for (std::int64_t r = kRows; r-- > 0;)
        got.erase(got.begin() + r * kOutStride + kCols, got.begin() + (r + 1) * kOutStride);
      expect_close(
          got,
          reference::rms_norm({.rows = kRows, .dim = kCols, .eps = has_weight ? 0.5 : 1e-6}, rows,
                              weights),
          kBf16Half + 1e-6, 1e-7, "norm");
    }
  }
}

TEST_P(HyperConnectionTest, RefusesWhatMakesNoSense) {
  reference::expect_invalid([&] { HyperConnection(handle(), {.tokens = 1, .hidden = 100}); },
                            {"hidden = 100", "multiple of 16"});
  reference::expect_invalid(
      [&] { HyperConnection(handle(), {.tokens = 1, .hidden = 128, .has_second = true}); },
      {"has_second = true", "without has_merge"});
  // A column of weights that vanish would be divided by 0.
  for (const double eps : {0.0, -1e-6, 1e-320, 1e300, double{NAN}}) {
    reference::expect_invalid(
        [&] { HyperConnection(handle(), {.tokens = 1, .hidden = 128, .eps = eps}); },
        {"eps = ", "expected a number of fp32 from 1e-36"});
  }
  reference::expect_invalid(
      [&] { HyperConnection(handle(), {.tokens = 1, .hidden = 128, .norm_eps = 1e300}); },
      {"norm_eps = 1e+300"});
  const HyperConnection step(handle(), {.tokens = 1, .hidden = 128});
  reference::expect_invalid([&] { step.run({}); }, {"the address of streams is null"});
  const RmsNormProblem narrow = {.rows = 1, .cols = 64, .x_stride = 32};
  reference::expect_invalid([&] { RmsNorm(handle(), narrow); }, {"x_stride = 32"});
  const RmsNormProblem wraps = {.rows = 3, .cols = 64, .out_stride = std::int64_t{1} << 62};
  reference::expect_invalid([&] { RmsNorm(handle(), wraps); },
                            {"out_stride = 4611686018427387904", "2^60 elements"});
}

}  // namespace
}  // namespace tilewright::ops
