// Sampling on every device against its float64 reference: the same random bits, so the same tokens
// but where two scores are closer than fp32 tells apart (with these seeds nowhere); the sets that
// top_k, top_p and min_p leave; and how often tokens come.
#include "tilewright/sample.h"

#include "reference/model/sample.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>
#include <numeric>
#include <set>

namespace tilewright::ops {
namespace {

using device::Buffer;
using kernels::Output;
using kernels::pointer_to;
using kernels::TestDevices;
using reference::SampleOptions;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A row, and how it is drawn from.
struct SampledRow {
  std::vector<float> logits;
  SampleOptions options = {};
  std::uint64_t seed = 0, sequence = 0;
  std::int32_t position = 0;
};

struct Sampled {
  std::vector<std::int32_t> ids;
  std::vector<float> log_probs;
};

std::vector<double> as_doubles(const std::vector<float>& x) {
  return {x.begin(), x.end()};
}

std::vector<float> drawn_logits(std::uint64_t seed, std::int64_t count, double width) {
  return kernels::to_floats(reference::random_doubles(seed, count, -width, width));
}

class SampleTest : public kernels::ChipKernelTest {
 protected:
  Device handle() const { return Device::open(GetParam()); }

  // `parts`: the vocabulary is divided; what lies behind its end would win if it were looked at.
  Sampled run(const std::vector<SampledRow>& rows, DType dtype = DType::kF32,
              std::int64_t parts = 1) const {
    const auto count = std::ssize(rows), vocab = std::ssize(rows[0].logits);
    const std::int64_t cols = vocab / parts, stride = (cols + 3) / 4 * 4 + 4;
    std::vector<float> logits(static_cast<std::size_t>(parts * count * stride), 1e30f);
    std::vector<float> temperature, top_p, min_p;
    std::vector<std::int32_t> top_k, positions;
    std::vector<std::uint64_t> seeds;
    for (std::int64_t r = 0; r < count; ++r) {
      const SampledRow& row = rows[static_cast<std::size_t>(r)];
      for (std::int64_t part = 0; part < parts; ++part)
        std::copy_n(row.logits.begin() + part * cols, cols,
                    logits.begin() + (part * count + r) * stride);
      temperature.push_back(static_cast<float>(row.options.temperature));
      top_p.push_back(static_cast<float>(row.options.top_p));
      min_p.push_back(static_cast<float>(row.options.min_p));
      top_k.push_back(static_cast<std::int32_t>(row.options.top_k));
      positions.push_back(row.position);
      seeds.push_back(row.seed);
      seeds.push_back(row.sequence);
    }
    const Buffer from =
        dtype == DType::kF32
            ? Buffer::from(device(), logits)
            : Buffer::from(device(), kernels::encode_all<std::uint16_t>(kBf16, as_doubles(logits)));
    const Buffer t = Buffer::from(device(), temperature), p = Buffer::from(device(), top_p),
                 m = Buffer::from(device(), min_p), k = Buffer::from(device(), top_k),
                 at = Buffer::from(device(), positions), s = Buffer::from(device(), seeds);
    Output<std::int32_t> ids(device(), rows.size());
    Output<float> log_probs(device(), rows.size());
    const Sample sample(handle(), {.rows = count,
                                   .vocab = vocab,
                                   .logits_dtype = dtype,
                                   .parts = parts,
                                   .row_stride = stride});
    sample.run({.logits = pointer_to<void>(from),
                .temperature = pointer_to<float>(t),
                .top_k = pointer_to<std::int32_t>(k),
                .top_p = pointer_to<float>(p),
                .min_p = pointer_to<float>(m),
                .seeds = pointer_to<std::uint64_t>(s),
                .positions = pointer_to<std::int32_t>(at),
                .ids = ids.pointer(),
                .log_probs = log_probs.pointer()});
    device().synchronize();
    return {ids.read(), log_probs.read()};
  }

  // Scores are off by about 2^-20: logits over temperature and noise, at most 23, in fp32. No two
  // of these draws are so close.
  void check(const std::vector<SampledRow>& rows, std::int64_t parts = 1) const {
    const Sampled got = run(rows, DType::kF32, parts);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const SampledRow& row = rows[r];
      const std::vector<double> logits = as_doubles(row.logits);
      const reference::SampleSeed seed = {row.seed, row.sequence, row.position};
      const std::int32_t want = reference::sample(logits, row.options, seed);
      ASSERT_EQ(got.ids[r], want) << "row " << r;
      // ln of a sum that is off by 2^-21, and fp32 logits.
      ASSERT_NEAR(got.log_probs[r], reference::sample_log_prob(logits, want), 1e-5) << "row " << r;
    }
  }

  static std::int64_t many(std::int64_t simulated, std::int64_t real) {
    return is_simulator() ? simulated : real;
  }
};
TILEWRIGHT_ON_EVERY_CHIP_OF_KERNELS(SampleTest);

TEST(PhiloxTest, KnownAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(reference::philox({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(reference::philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      reference::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST_P(SampleTest, GreedyTakesTheLowestOfTheBest) {
  std::vector<SampledRow> rows(6, {.logits = drawn_logits(1, 77, 4)});
  rows[0].logits[76] = 9;
  rows[1].logits[13] = rows[1].logits[64] = 9;
  rows[2].logits[0] = kNan;
  rows[3].logits[70] = -0.0f, rows[3].logits[71] = 0.0f;
  for (float& x : rows[3].logits) x = x == 0 ? x : -kInfinity;
  rows[4].position = -1;
  for (float& x : rows[5].logits) x = kNan;
  const Sampled got = run(rows);
  EXPECT_EQ(got.ids[0], 76);
  EXPECT_EQ(got.ids[1], 13);
  EXPECT_EQ(got.ids[2], reference::sample(as_doubles(rows[2].logits), {}, {}));
  EXPECT_EQ(got.ids[3], 70);
  EXPECT_EQ(got.ids[4], -1);
  EXPECT_EQ(got.ids[5], -1);
  rows.resize(1);
  rows[0].logits[5] = kInfinity;
  EXPECT_EQ(run(rows).ids[0], -1);
}

// A vocabulary of one CTA, of clusters, of one that no slice divides; whole and in parts.
TEST_P(SampleTest, DrawsWhatTheReferenceDraws) {
  for (const std::int64_t vocab : {3, 77, 2056, 9000}) {
    std::vector<SampledRow> rows;
    for (std::int32_t i = 0; i < many(5, 40); ++i) {
      SampledRow row = {.logits = drawn_logits(static_cast<std::uint64_t>(vocab + i), vocab, 6)};
      row.options.temperature =
          std::array{1.0, 0.7, 0.0, 2.5, 1.0}[static_cast<std::size_t>(i % 5)];
      row.options.top_k = std::array{0, 0, 9, 2, 40}[static_cast<std::size_t>(i % 5)];
      row.options.top_p = std::array{1.0, 0.9, 0.5, 1.0, 0.83}[static_cast<std::size_t>(i % 5)];
      row.options.min_p = std::array{0.0, 0.0, 0.0, 0.1, 0.02}[static_cast<std::size_t>(i % 5)];
      row.seed = 0x123456789abcdefull * static_cast<std::uint64_t>(i);
      row.sequence = 77ull << 30 << i;
      row.position = 1000 * i;
      rows.push_back(std::move(row));
    }
    check(rows);
    if (vocab % 8 == 0) check(rows, 2);
  }
}

// Other rows, other counts of rows, and bf16 logits that are the same numbers change nothing.
TEST_P(SampleTest, ARowDoesNotDependOnOthers) {
  std::vector<SampledRow> rows;
  for (std::int32_t i = 0; i < 4; ++i) {
    SampledRow row = {.logits = drawn_logits(static_cast<std::uint64_t>(i), 500, 2)};
    for (float& x : row.logits) x = static_cast<float>(round_to(kBf16, static_cast<double>(x)));
    row.options = {.temperature = 1.5, .top_k = 60, .top_p = 0.9};
    row.position = i;
    rows.push_back(std::move(row));
  }
  const Sampled all = run(rows);
  EXPECT_EQ(run(rows, DType::kBF16).ids, all.ids);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(run({rows[i]}).ids[0], all.ids[i]) << i;
}

// Draws of one row at many positions.
TEST_P(SampleTest, NothingElseIsDrawnAndAllOfItIs) {
  // 1, 2, 3, 5 and 8 shares of 19, a NaN, an infinity; ties at the end of top_k and of top_p.
  const std::vector<float> logits = {std::log(3.0f), kNan,           std::log(8.0f), std::log(1.0f),
                                     std::log(5.0f), std::log(2.0f), -kInfinity};
  const std::vector<float> ties(12, 0.25f);
  struct Case {
    std::vector<float> logits;
    SampleOptions options;
    std::set<std::int32_t> tokens;
  };
  const std::vector<Case> cases = {
      {logits, {.temperature = 1}, {0, 2, 3, 4, 5}},
      {logits, {.temperature = 1, .top_k = 2}, {2, 4}},
      {logits, {.temperature = 1, .top_k = 6}, {0, 2, 3, 4, 5}},
      {logits, {.temperature = 1, .top_p = 0.4}, {2}},                  // 8 / 19 reaches it
      {logits, {.temperature = 1, .top_p = 0.5}, {2, 4}},               // 13 / 19
      {logits, {.temperature = 1, .top_k = 3, .top_p = 0.75}, {2, 4}},  // 13 / 16
      {logits, {.temperature = 1, .min_p = 0.3}, {0, 2, 4}},            // 3 / 8 and above
      {logits, {.temperature = 0.5, .min_p = 0.3}, {2, 4}},             // 25 / 64
      {logits, {.temperature = 1, .top_k = 1}, {2}},
      {ties, {.temperature = 1, .top_k = 5}, {0, 1, 2, 3, 4}},
      {ties, {.temperature = 1, .top_p = 0.45}, {0, 1, 2, 3, 4, 5}},  // 6 / 12
      {ties, {.temperature = 1, .top_k = 6, .top_p = 0.45}, {0, 1, 2}},
  };
  const std::int64_t draws = many(60, 1000);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const auto candidates = reference::sample_candidates(as_doubles(c.logits), c.options);
    EXPECT_EQ((std::set<std::int32_t>{candidates.begin(), candidates.end()}), c.tokens) << i;
    std::vector<SampledRow> rows;
    for (std::int32_t at = 0; at < draws; ++at)
      rows.push_back({.logits = c.logits, .options = c.options, .seed = 5, .position = at});
    const auto ids = run(rows).ids;
    const std::set<std::int32_t> drawn(ids.begin(), ids.end());
    // The rarest has 1 in 19; that 60 draws, with these seeds, all miss it has been seen not to be.
    EXPECT_EQ(drawn, c.tokens) << i;
  }
}

// Chi square of the draws of a row against its probabilities. 99.99 % of draws stay below the
// bound: of 15 degrees of freedom 44.3.
TEST_P(SampleTest, TokensComeAsOftenAsProbabilitiesSay) {
  constexpr double kMostChiSquare = 44.3;
  const std::vector<float> logits = drawn_logits(3, 16, 1);
  const std::int64_t draws = many(640, 20000);
  for (const double temperature : {1.0, 0.6}) {
    std::vector<SampledRow> rows;
    for (std::int32_t at = 0; at < draws; ++at)
      rows.push_back({.logits = logits,
                      .options = {.temperature = temperature},
                      .seed = 11,
                      .sequence = static_cast<std::uint64_t>(at % 3),
                      .position = at});
    std::vector<double> counts(logits.size(), 0.0), weights;
    for (const std::int32_t id : run(rows).ids) counts.at(static_cast<std::size_t>(id)) += 1;
    for (const float z : logits) weights.push_back(std::exp(static_cast<double>(z) / temperature));
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    double chi_square = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const double expected = static_cast<double>(draws) * weights[i] / sum;
      ASSERT_GT(expected, 5) << "too few draws for the test";
      chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(chi_square, kMostChiSquare) << "temperature " << temperature;
  }
}

TEST_P(SampleTest, GathersRows) {
  constexpr std::int64_t kRows = 7, kCols = 2056;
  std::vector<std::uint16_t> x;
  for (std::int64_t i = 0; i < kRows * kCols; ++i) x.push_back(static_cast<std::uint16_t>(i * 7));
  const std::vector<std::int32_t> index = {3, -1, 0, 6, 7, 3};
  const Buffer from = Buffer::from(device(), x), at = Buffer::from(device(), index);
  Output<std::uint16_t> out(device(), index.size() * kCols);
  const GatherRows gather(handle(), {.rows = std::ssize(index), .x_rows = kRows, .cols = kCols});
  gather.run(
      {.x = pointer_to<void>(from), .index = pointer_to<std::int32_t>(at), .out = out.pointer()});
  device().synchronize();
  const auto got = out.read();
  for (std::size_t r = 0; r < index.size(); ++r)
    for (std::size_t c = 0; c < kCols; ++c) {
      const auto row = static_cast<std::size_t>(index[r]);
      const bool is_there = index[r] >= 0 && index[r] < kRows;
      ASSERT_EQ(got[r * kCols + c], is_there ? x[row * kCols + c] : 0) << r << " " << c;
    }
}

TEST(SamplePlanTest, BadProblemsAndAddresses) {
  const Device device = Device::open("sim:h200");
  const auto refuses = [&](const SampleProblem& problem, const std::vector<std::string>& words) {
    reference::expect_invalid([&] { plan_sample(device, problem); }, words);
  };
  refuses({.rows = -1, .vocab = 8}, {"rows = -1"});
  refuses({.rows = 70000, .vocab = 8}, {"rows = 70000", "65535"});
  refuses({.rows = 1, .vocab = 0}, {"vocab = 0"});
  refuses({.rows = 1, .vocab = 400000}, {"vocab = 400000", "327680"});
  refuses({.rows = 1, .vocab = 8, .logits_dtype = DType::kI32}, {"logits_dtype", "BF16 or F32"});
  refuses({.rows = 1, .vocab = 12, .parts = 2}, {"parts = 2", "vocab = 12"});
  refuses({.rows = 1, .vocab = 9, .row_stride = 9}, {"row_stride = 9", "at least 12"});
  refuses({.rows = 1, .vocab = 8, .parts = 2, .part_stride = 3}, {"part_stride = 3"});
  reference::expect_invalid([&] { plan_gather_rows(device, {.rows = 1, .x_rows = 1, .cols = 4}); },
                            {"cols = 4", "multiple of 8"});
  EXPECT_TRUE(plan_sample(device, {.rows = 0, .vocab = 8}).launches.empty());
  const Sample sample(device, {.rows = 1, .vocab = 8});
  reference::expect_invalid([&] { sample.run({}); }, {"sample", "logits is null"});
}

}  // namespace
}  // namespace tilewright::ops
