// Experts on Blackwell's block-scaled tensor cores against the float64 reference that rounds x and
// h where the kernels do, under all checks of the simulator.
#include "device/graph.h"
#include "tests/ops/blackwell_test.h"
#include "tests/ops/moe_case.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTiles[] = {"few", "2cta_n256"};
constexpr NumberFormat kFormats[] = {NumberFormat::kNvfp4, NumberFormat::kMxfp4,
                                     NumberFormat::kFp8};

class MoeBlockScaledTest : public BlackwellTest<MoeBlockScaledTest> {
 protected:
  static void check(const MoeCase& c) {
    SCOPED_TRACE(fmt::format("{}, {} tokens, {} of {} experts, hidden {}, inter {}, kernel {}",
                             to_string(c.format), c.problem.tokens, c.problem.topk, c.experts,
                             c.hidden, c.inter, c.problem.kernel));
    MoeRun(*device_, c).check();
  }
};

// hidden and inter are ragged in steps of k, tiles and tiles of scales.
MoeCase small(const char* tile, NumberFormat format = NumberFormat::kMxfp4) {
  return {.problem = {.tokens = 7, .topk = 2, .kernel = tile},
          .format = format,
          .activations = LinearActivations::kBlockScaled,
          .hidden = 288,
          .inter = 96};
}

MoeCase with(MoeCase c, auto change) {
  change(c);
  return c;
}

TEST_F(MoeBlockScaledTest, EveryFormatByEveryTile) {
  for (const char* tile : kTiles)
    for (const NumberFormat format : kFormats) check(small(tile, format));
}

TEST_F(MoeBlockScaledTest, FewAndManyTokensOfManyExperts) {
  for (const char* tile : kTiles) {
    for (const std::int64_t tokens : {0, 1, 40}) {
      check(with(small(tile, NumberFormat::kNvfp4), [&](MoeCase& c) {
        c.experts = 33;
        c.problem.tokens = tokens;
        c.problem.topk = 5;
        c.hidden = 64, c.inter = 32;
      }));
    }
  }
}

// Experts with none, with a part of a tile, with one whole tile and with several: those before and
// behind keep their rows.
TEST_F(MoeBlockScaledTest, RaggedAndEmptyExperts) {
  for (const char* tile : kTiles) {
    for (const NumberFormat format : {NumberFormat::kNvfp4, NumberFormat::kMxfp4}) {
      check(with(small(tile, format), [&](MoeCase& c) {
        c.problem.topk = 1;
        c.hidden = 160, c.inter = 32;
        for (const auto& [expert, rows] : {std::pair{1, 33}, {2, 1}, {4, 260}, {6, 128}})
          c.ids.insert(c.ids.end(), static_cast<std::size_t>(rows), expert);
        c.problem.tokens = std::ssize(c.ids);
      }));
    }
  }
}

TEST_F(MoeBlockScaledTest, OptionsOfEveryFormat) {
  for (const char* tile : kTiles) {
    const bool is_first = tile == kTiles[0];
    for (const NumberFormat format : kFormats) {
      check(with(small(tile, format), [&](MoeCase& c) {
        c.has_shared = true;
        c.problem.routing = is_first ? MoeRouting::kLogits : MoeRouting::kHash;
        c.problem.vocab = is_first ? 0 : 11;
        c.problem.score = is_first ? MoeScore::kSoftmax : MoeScore::kSqrtSoftplus;
        c.problem.normalize = !is_first;
        c.problem.has_bias = is_first;
        c.problem.swiglu_limit = is_first ? 0.5 : 10;
        c.problem.weight_after_down = is_first;
        c.problem.out_dtype = is_first ? DType::kF32 : DType::kBF16;
        c.hidden = 160, c.inter = 96;
      }));
    }
  }
}

// The bounds of compare() hardly feel a rounding too few: here tokens are counted in which
// roundings went otherwise.
TEST_F(MoeBlockScaledTest, NoRoundingIsMissing) {
  using reference::MoeRounding;
  for (const NumberFormat format : kFormats) {
    SCOPED_TRACE(to_string(format));
    MoeRun run(*device_, with(small(kTiles[0], format), [](MoeCase& c) {
      c.problem.tokens = 60;
      c.problem.topk = 1;
      c.problem.out_dtype = DType::kF32;
      c.hidden = 64, c.inter = 32;
    }));
    const auto out = run.run();
    const auto share = [&](const MoeRounding& rounding) {
      return run.share_rounded_otherwise(out, run.expected(rounding));
    };
    EXPECT_LE(share(run.rounding()), 0.15);
    for (bool MoeRounding::*const which :
         {&MoeRounding::x_blocks, &MoeRounding::h_blocks, &MoeRounding::y_bf16}) {
      MoeRounding other = run.rounding();
      other.*which = false;
      EXPECT_GE(share(other), 0.5);
    }
    EXPECT_LE(run.worst_column(out, run.expected()), 0.35);
  }
}

TEST_F(MoeBlockScaledTest, WrongIdsAddNothing) {
  MoeCase c = small(kTiles[0]);
  c.ids = {0, -1, -1, -1, 3, 8, 5, 5, 6, 1 << 30, 2, 1, 7, -9};
  const auto out = MoeRun(*device_, c).run();
  c.ids = {0, -1, -1, -1, 3, -1, 5, -1, 6, -1, 2, 1, 7, -1};
  MoeRun right(*device_, c);
  EXPECT_EQ(out, right.run());
  right.compare(out, right.expected());
}

TEST_F(MoeBlockScaledTest, NonFiniteActivationsStayWithTheirToken) {
  for (const NumberFormat format : kFormats) {
    SCOPED_TRACE(to_string(format));
    MoeCase c = small(kTiles[0], format);
    c.problem.swiglu_limit = 10;
    const auto without = MoeRun(*device_, c).run();
    c.broken_tokens = {2, 6};
    MoeRun broken(*device_, c);
    const auto with = broken.run();
    for (std::size_t i = 0; i < with.size(); ++i) {
      if (broken.is_broken(i)) {
        ASSERT_TRUE(std::isnan(with[i])) << i;
      } else {
        ASSERT_EQ(with[i], without[i]) << i;
      }
    }
  }
}

TEST_F(MoeBlockScaledTest, TilesAGraphAndSingleLaunchesGiveTheSameBits) {
  MoeCase c = small(kTiles[0]);
  c.problem.tokens = 40;
  const auto first = MoeRun(*device_, c).run();
  EXPECT_EQ(first,
            MoeRun(*device_, c)
                .run([](const Moe& moe, const MoeArguments& a, const device::Stream& stream) {
                  const auto graph = device::Graph::capture(stream, [&] { moe.run(a); });
                  graph.launch(stream);
                  graph.launch(stream);
                }));
  c.problem.kernel = kTiles[1];
  EXPECT_EQ(
      first,
      MoeRun(*device_, c).run([](const Moe& moe, const MoeArguments& a, const device::Stream&) {
        for (std::size_t i = 0; i < moe.plan().launches.size(); ++i) moe.run_launch(i, a);
      }));
}

// What the simulator counts of a launch.
nlohmann::json counted(const Device& device, const std::string& kernel,
                       const std::function<void()>& run) {
  using Configure = const char* (*)(int, const char*);
  using TakeReport = const char* (*)(int);
  const auto configure =
      reinterpret_cast<Configure>(device.driver_function("tilewright_simulator_configure"));
  const auto take =
      reinterpret_cast<TakeReport>(device.driver_function("tilewright_simulator_take_report"));
  configure(device.ordinal(), R"({"report": true})");
  run();
  const auto report = nlohmann::json::parse(take(device.ordinal()));
  configure(device.ordinal(), R"({"report": false})");
  for (const auto& launch : report["kernels"]) {
    if (launch["kernel"].get<std::string>().find(kernel) != std::string::npos) return launch;
  }
  ADD_FAILURE() << "no launch of " << kernel;
  return {};
}

// Bytes of global memory that a launch touches: with a cold L2 those that HBM moves.
double touched_bytes(const Device& device, const std::string& kernel,
                     const std::function<void()>& run) {
  return counted(device, kernel, run).at("touched_global_bytes").get<double>();
}

// Few tokens move the weights of the experts that they visit, and little else. Rows of h padded to
// 128 for each expert would be a quarter more.
TEST_F(MoeBlockScaledTest, FewTokensMoveLittleMoreThanTheWeightsOfTheirExperts) {
  for (const NumberFormat format : kFormats) {
    SCOPED_TRACE(to_string(format));
    MoeRun run(*device_, with(small(kTiles[0], format), [](MoeCase& c) {
      c.experts = 3;
      c.problem.tokens = 3;
      c.problem.topk = 1;
      c.ids = {0, 2, 2};
      c.hidden = 1024, c.inter = 512;
    }));
    const double visited = static_cast<double>(run.weights().bytes()) * 2 / 3;
    for (const auto& [step, share] : {std::pair{"_gate_up_", 2.0 / 3}, {"_down_", 1.0 / 3}}) {
      const double bytes = touched_bytes(*device_, step, [&] { run.run(); });
      EXPECT_GE(bytes, 0.99 * visited * share) << step;
      EXPECT_LE(bytes, 1.05 * visited * share) << step;
    }
  }
}

// Cycles of shared memory of a step of few rows: each byte of the weight's 128 rows, of as many
// rows of x as there are and of the scales is written once and read once, at 128 bytes a cycle.
// What a tile does once drops out between two k.
TEST_F(MoeBlockScaledTest, FewRowsReadLittleMoreSharedMemoryThanTheirWeights) {
  for (const NumberFormat format : kFormats) {
    SCOPED_TRACE(to_string(format));
    const auto cycles = [&](std::int64_t hidden) {
      MoeRun run(*device_, with(small("few", format), [&](MoeCase& c) {
        c.experts = 1;
        c.problem.tokens = 8;
        c.problem.topk = 1;
        c.hidden = hidden, c.inter = 64;
      }));
      const auto total = counted(*device_, "_gate_up_few", [&] { run.run(); }).at("total");
      return total.at("shared_wavefronts").get<double>() +
             total.at("shared_async_bytes").get<double>() / 128;
    };
    const bool is_nvfp4 = format == NumberFormat::kNvfp4;
    const double scales = is_nvfp4 ? 4 * 512 : 512;
    const double bytes = 2 * ((128 + 8) * 128 + 2 * scales);
    EXPECT_EQ(cycles(1024) - cycles(512), (is_nvfp4 ? 2 : 4) * bytes / 128);
  }
}

// Few tokens take tiles of one CTA, which more CTAs share; many the tile that moves fewer bytes.
TEST_F(MoeBlockScaledTest, PlansChooseByCountAndSayWhyNot) {
  const MoeWeightsInfo flash = {NumberFormat::kMxfp4, LinearActivations::kBlockScaled, 256, 4096,
                                2048};
  const auto planned = [&](std::int64_t tokens, const char* device = "sim:b200") {
    return plan_moe(Device::open(device), flash, {.tokens = tokens, .topk = 6});
  };
  EXPECT_EQ(planned(8).kernel, "few");
  EXPECT_EQ(planned(8192).kernel, "2cta_n256");
  for (const auto& candidate : planned(8).candidates) {
    if (candidate.name != "band") continue;
    EXPECT_THAT(candidate.reason, HasSubstr("these are for block_scaled"));
  }
  try {
    planned(8, "sim:h200");
    FAIL() << "a plan for Hopper";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("sm_100"));
  }
}

TEST_F(MoeBlockScaledTest, WeightsThatDoNotFitAreRefused) {
  const auto refused = [&](MoeCase c, std::initializer_list<const char*> what) {
    std::string message;
    try {
      MoeRun(*device_, c).run();
    } catch (const Error& error) {
      message = error.what();
    }
    for (const char* part : what) EXPECT_THAT(message, HasSubstr(part));
  };
  refused(small(kTiles[0], NumberFormat::kBf16), {"moe: format = bf16", "Quantise"});
  refused(with(small(kTiles[0], NumberFormat::kNvfp4), [](MoeCase& c) { c.inter = 48; }),
          {"inter = 48", "multiple of 32"});
  const RandomExpertWeight odd(1, NumberFormat::kFp8, LinearActivations::kBf16, 32, 32);
  const MoeWeightsSource source = {{odd.source()}, {odd.source()}, {odd.source()}};
  reference::expect_invalid(
      [&] { MoeWeights::prepare(*device_, source, LinearActivations::kBlockScaled); },
      {"moe: gate of expert 0", "power of two"});
  reference::expect_invalid(
      [&] { LinearWeight::prepare(*device_, odd.source(), LinearActivations::kBlockScaled); },
      {"power of two", "bf16 or fp8 activations"});
}

}  // namespace
}  // namespace tilewright::ops
