// Experts whose tokens come grouped, [experts, room, hidden] with counts on the device, against the
// float64 reference that rounds x and h where the kernels do, under all checks of the simulator.
#include "device/graph.h"
#include "tests/ops/blackwell_test.h"
#include "tests/ops/moe_case.h"
#include "tests/ops/operator_test.h"
#include "tests/reference/inputs.h"

#include <array>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using reference::message_of;
using ::testing::HasSubstr;

constexpr const char* kTiles[] = {"few", "2cta_n256"};
constexpr NumberFormat kFormats[] = {NumberFormat::kNvfp4, NumberFormat::kMxfp4,
                                     NumberFormat::kFp8};
constexpr std::uint16_t kUntouched = 0xbeef, kNan = 0x7fff;

struct GroupedCase {
  std::vector<std::int32_t> counts;
  std::int64_t room = 0;
  const char* kernel = "auto";
  NumberFormat format = NumberFormat::kMxfp4;
  bool has_weights = true, weight_after_down = false;
  double limit = std::numeric_limits<double>::infinity();
  std::int64_t hidden = 160, inter = 96;
  std::int64_t expected = 0;
  bool is_contiguous = false;
  LinearActivations activations = LinearActivations::kBlockScaled;

  std::int64_t experts() const { return std::ssize(counts); }
  std::int64_t rows() const { return is_contiguous ? room : experts() * room; }
  /// The expert of each row, -1 for none.
  std::vector<std::int32_t> owners() const {
    std::vector<std::int32_t> owners(static_cast<std::size_t>(rows()), -1);
    std::int64_t behind = 0;
    for (std::int64_t e = 0; e < experts(); ++e) {
      const std::int64_t first = is_contiguous ? behind : e * room;
      const std::int64_t free = is_contiguous ? room - behind : room;
      const auto count = std::clamp<std::int64_t>(counts[static_cast<std::size_t>(e)], 0, free);
      std::fill_n(owners.begin() + first, count, static_cast<std::int32_t>(e));
      behind = first + count;
    }
    return owners;
  }
  MoeProblem problem() const {
    return {.tokens = room,
            .topk = 1,
            .routing = is_contiguous ? MoeRouting::kContiguous : MoeRouting::kGrouped,
            .swiglu_limit = limit,
            .weight_after_down = weight_after_down,
            .expected_tokens = expected,
            .kernel = kernel};
  }
  // The same rows as tokens that are routed: each to one expert, or nowhere.
  MoeCase routed() const {
    MoeCase c = {.problem = problem(),
                 .format = format,
                 .activations = activations,
                 .experts = experts(),
                 .hidden = hidden,
                 .inter = inter};
    c.problem.tokens = rows();
    c.problem.routing = MoeRouting::kGiven;
    c.problem.expected_tokens = 0;
    c.ids = owners();
    return c;
  }
};

// Weights, x and the reference are those of the routed case.
class GroupedRun {
 public:
  GroupedRun(const Device& device, GroupedCase c)
      : case_(std::move(c)),
        owners_(case_.owners()),
        inner_(opened(device)),
        routed_(device, case_.routed()) {
    if (!case_.has_weights) routed_.give_all_weights(1);
  }

  const MoeRun& routed() const { return routed_; }

  /// bf16 codes of out. x has NaNs, and out kUntouched, in rows beyond the counts.
  std::vector<std::uint16_t> run(const MoeRun::Enqueue& enqueue = MoeRun::run_once) {
    const Moe moe(routed_.weights(), case_.problem());
    routed_.assume_kernel(moe.plan().kernel);
    std::vector<std::uint16_t> x = routed_.x_codes();
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!has_token(i)) x[i] = kNan;
    const std::vector<std::uint16_t> untouched(x.size(), kUntouched);
    const Buffer in = Buffer::from(inner_, x), out = Buffer::from(inner_, untouched);
    const Buffer counts = Buffer::from(inner_, case_.counts);
    const Buffer weights = Buffer::from(inner_, kernels::to_floats(routed_.route_weights()));
    Buffer workspace(inner_, moe.plan().workspace_bytes);
    workspace.poison();
    const device::Stream stream(inner_);
    const MoeArguments arguments = {
        .x = pointer_to<const void>(in),
        .weights = case_.has_weights ? pointer_to<const float>(weights) : nullptr,
        .counts = pointer_to<const std::int32_t>(counts),
        .out = pointer_to<void>(out),
        .workspace = pointer_to<void>(workspace),
        .stream = stream.handle()};
    enqueue(moe, arguments, stream);
    stream.synchronize();
    message_.clear();
    try {
      moe.check(arguments);
    } catch (const Error& error) {
      message_ = error.what();
    }
    return out.to_vector<std::uint16_t>();
  }

  /// Of Moe::check() after the last run.
  const std::string& message() const { return message_; }

  /// Rows with a token against float64, others as they were.
  void check(const std::vector<std::uint16_t>& out) {
    std::vector<double> numbers, exact = routed_.expected(rounding());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool is_one = has_token(i);
      if (!is_one) {
        ASSERT_EQ(out[i], kUntouched) << "row " << static_cast<std::int64_t>(i) / case_.hidden;
      }
      numbers.push_back(is_one ? decode(kBf16, out[i]) : 0);
      if (!is_one) exact[i] = 0;
    }
    routed_.compare(numbers, exact);
  }
  void check() { check(run()); }

 private:
  bool has_token(std::size_t elem) const {
    return owners_[elem / static_cast<std::size_t>(case_.hidden)] >= 0;
  }
  // y is rounded once, with its weight: the bounds have room for a rounding of out.
  reference::MoeRounding rounding() const {
    reference::MoeRounding rounding = routed_.rounding();
    rounding.y_bf16 = false;
    return rounding;
  }

  GroupedCase case_;
  std::vector<std::int32_t> owners_;
  const device::Device& inner_;
  MoeRun routed_;
  std::string message_;
};

class MoeGroupedTest : public BlackwellTest<MoeGroupedTest> {
 protected:
  static void check(const GroupedCase& c) {
    SCOPED_TRACE(fmt::format("{}, {} experts, room {}, hidden {}, inter {}, kernel {}",
                             to_string(c.format), c.experts(), c.room, c.hidden, c.inter,
                             c.kernel));
    GroupedRun run(*device_, c);
    run.check();
    EXPECT_EQ(run.message(), "");
  }
};

// Empty, one token, a part, full.
TEST_F(MoeGroupedTest, EveryFormatByEveryTile) {
  for (const char* tile : kTiles) {
    for (const NumberFormat format : kFormats)
      check({.counts = {0, 1, 7, 10, 0}, .room = 10, .kernel = tile, .format = format});
  }
}

// Several tiles of rows of an expert, and rooms that are no multiple of one.
TEST_F(MoeGroupedTest, ManyTokensOfAnExpert) {
  for (const char* tile : kTiles) {
    for (const NumberFormat format : {NumberFormat::kNvfp4, NumberFormat::kMxfp4}) {
      check({.counts = {129, 300, 0, 33},
             .room = 300,
             .kernel = tile,
             .format = format,
             .hidden = 64,
             .inter = 32});
    }
  }
}

// Where a row or two are expected they come in small boxes, however many there are in the end.
TEST_F(MoeGroupedTest, MoreRowsThanExpected) {
  for (const NumberFormat format : kFormats) {
    check({.counts = {64, 33, 65, 2},
           .room = 70,
           .kernel = "few",
           .format = format,
           .hidden = 64,
           .inter = 32,
           .expected = 2});
  }
}

TEST_F(MoeGroupedTest, OptionsOfEveryFormat) {
  for (const NumberFormat format : kFormats) {
    check({.counts = {3, 0, 5}, .room = 5, .format = format, .has_weights = false, .limit = 0.5});
    check({.counts = {3, 0, 5}, .room = 5, .format = format, .weight_after_down = true});
  }
}

TEST_F(MoeGroupedTest, OneTokenAndNone) {
  check({.counts = {1}, .room = 1});
  check({.counts = {0, 0, 0}, .room = 2});
  check({.counts = std::vector<std::int32_t>(40, 1), .room = 1, .hidden = 64, .inter = 32});
}

// Counts out of range are taken as the nearest that is not, and check() says so.
TEST_F(MoeGroupedTest, WrongCountsAreClampedAndReported) {
  GroupedCase c = {.counts = {2, -1, 4, 1 << 30, std::numeric_limits<std::int32_t>::min(), 5},
                   .room = 4};
  GroupedRun run(*device_, c);
  run.check();
  EXPECT_THAT(run.message(), HasSubstr("counts[1] is out of range, as 4 in all"));
}

TEST_F(MoeGroupedTest, AGraphReadsTheCountsOfItsLaunch) {
  GroupedCase c = {.counts = {4, 0, 2}, .room = 4};
  GroupedRun run(*device_, c);
  const auto first = run.run();
  const auto later = [](const Moe& moe, const MoeArguments& a, const device::Stream& stream) {
    const device::Device& device = opened(*device_);
    const auto graph = device::Graph::capture(stream, [&] { moe.run(a); });
    const auto at = reinterpret_cast<device::abi::CUdeviceptr>(a.counts);
    const std::array<std::int32_t, 3> none = {}, counts = {4, 0, 2};
    const device::CurrentContext current = device.make_current();
    const auto set = [&](const std::array<std::int32_t, 3>& values) {
      device.check(device.cu().memcpy_htod(at, values.data(), sizeof values), "cuMemcpyHtoD");
    };
    set(none);
    graph.launch(stream);
    stream.synchronize();
    set(counts);
    graph.launch(stream);
  };
  EXPECT_EQ(run.run(later), first);
  const auto one_by_one = [](const Moe& moe, const MoeArguments& a, const device::Stream&) {
    for (std::size_t i = 0; i < moe.plan().launches.size(); ++i) moe.run_launch(i, a);
  };
  EXPECT_EQ(run.run(one_by_one), first);
}

TEST_F(MoeGroupedTest, PlansChooseByWhatIsExpectedAndSayWhyNot) {
  const MoeWeightsInfo flash = {NumberFormat::kMxfp4, LinearActivations::kBlockScaled, 32, 4096,
                                2048};
  MoeProblem p = {.tokens = 1024, .topk = 1, .routing = MoeRouting::kGrouped};
  EXPECT_EQ(plan_moe(*device_, flash, p).kernel, "2cta_n256");
  p.expected_tokens = 4;
  const MoePlan plan = plan_moe(*device_, flash, p);
  EXPECT_EQ(plan.kernel, "few");
  EXPECT_EQ(plan.flops, 6.0 * 4096 * 2048 * 32 * 4);
  MoeWeightsInfo bf16 = flash;
  bf16.activations = LinearActivations::kBf16;
  EXPECT_THAT(message_of([&] { plan_moe(*device_, bf16, p); }),
              HasSubstr("takes the rows of experts behind each other (contiguous)"));
  p.routing = MoeRouting::kContiguous;
  EXPECT_EQ(plan_moe(*device_, flash, p).flops, 6.0 * 4096 * 2048 * 32 * 4);
}

TEST_F(MoeGroupedTest, ProblemsThatMakeNoSenseAreRefused) {
  const MoeWeightsInfo w = {
      NumberFormat::kMxfp4, LinearActivations::kBlockScaled, 32, 256, 128, true};
  MoeProblem p = {.tokens = 65536, .topk = 2, .routing = MoeRouting::kGrouped};
  MoeWeightsInfo many = w;
  many.experts = 64;
  p.out_dtype = DType::kF32;
  p.expected_tokens = 65537;
  reference::expect_invalid(
      [&] { plan_moe(*device_, many, p); },
      {"topk", "at most 2097152", "has_shared", "out_dtype", "expected_tokens"});
  reference::expect_invalid(
      [&] { plan_moe(*device_, w, {.tokens = 4, .topk = 2, .expected_tokens = 1}); },
      {"expected_tokens"});
}

// One behind the other, on both chips: every kernel that they have.
class MoeContiguousTest : public ChipTest<MoeContiguousTest> {
 protected:
  static GroupedCase on(const char* kernel, GroupedCase c) {
    const std::string name = kernel;
    c.kernel = kernel;
    c.is_contiguous = true;
    c.activations = name == "wide8"                    ? LinearActivations::kFp8
                    : name == "band" || name == "wide" ? LinearActivations::kBf16
                                                       : LinearActivations::kBlockScaled;
    return c;
  }
  static std::vector<const char*> kernels() {
    if (is_blackwell()) return {"band", "few", "2cta_n256"};
    return {"band", "wide", "wide8"};
  }
  static void check(const GroupedCase& c) {
    SCOPED_TRACE(fmt::format("{}, {} experts, room {}, kernel {}", to_string(c.format), c.experts(),
                             c.room, c.kernel));
    GroupedRun run(*device_, c);
    run.check();
    EXPECT_EQ(run.message(), "");
  }
};
TILEWRIGHT_ON_EVERY_CHIP(MoeContiguousTest);

TEST_P(MoeContiguousTest, EveryFormatByEveryKernel) {
  for (const char* kernel : kernels()) {
    for (const NumberFormat format : kFormats)
      check(on(kernel, {.counts = {0, 1, 7, 10, 0}, .room = 20, .format = format}));
  }
}

TEST_P(MoeContiguousTest, ManyTokensAndOptions) {
  for (const char* kernel : kernels()) {
    check(on(kernel, {.counts = {70, 150, 0, 33}, .room = 253, .hidden = 64, .inter = 32}));
    check(on(kernel, {.counts = {3, 0, 5}, .room = 9, .has_weights = false, .limit = 0.5}));
    check(on(kernel, {.counts = {0, 0}, .room = 3}));
    GroupedCase after = on(kernel, {.counts = {3, 0, 5}, .room = 9, .weight_after_down = true});
    if (kernel != std::string("band")) {
      check(after);
      continue;
    }
    EXPECT_THAT(message_of([&] { GroupedRun(*device_, after).run(); }),
                HasSubstr("weighs tokens that come grouped before down alone"));
  }
}

TEST_P(MoeContiguousTest, WrongCountsAreClampedAndReported) {
  for (const char* kernel : kernels()) {
    GroupedRun run(*device_, on(kernel, {.counts = {2, -1, 4, 1 << 30, 3, 0}, .room = 8}));
    run.check();
    EXPECT_THAT(run.message(), HasSubstr("counts[1] is out of range, as 3 in all"));
    EXPECT_THAT(run.message(), HasSubstr("0 to 8 in all"));
  }
}

// More experts than a warp has lanes.
TEST_P(MoeContiguousTest, ManyExperts) {
  std::vector<std::int32_t> counts(70);
  for (std::size_t e = 0; e < counts.size(); ++e) counts[e] = e % 3 == 0 ? 1 : 0;
  check(on(kernels()[1], {.counts = counts, .room = 24, .hidden = 64, .inter = 32}));
}

TEST_P(MoeContiguousTest, RoomsAreForBlackwell) {
  GroupedCase c = on("auto", {.counts = {1}, .room = 4});
  c.is_contiguous = false;
  if (is_blackwell()) return check(c);
  c.activations = LinearActivations::kBf16;
  EXPECT_THAT(message_of([&] { GroupedRun(*device_, c).run(); }),
              HasSubstr("takes the rows of experts behind each other (contiguous)"));
}

}  // namespace
}  // namespace tilewright::ops
