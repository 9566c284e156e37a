// The special functions against tests/golden/hardware/special_functions.json, which
// tools/ptx/record_special_functions.py made on an H200: sums of mixed (argument, result) pairs
// over samples and blocks of 2^20 arguments; with TILEWRIGHT_SIM_EXHAUSTIVE set, over all 2^32.
#include "base/json.h"
#include "sim/insn/scalar/special_function_ops.h"
#include "tests/sim/insn/kernel_run.h"
#include "tests/sim/insn/ptx_sweep.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using namespace special;

const nlohmann::json& golden() {
  static const nlohmann::json json = read_json(std::string(TILEWRIGHT_SOURCE_DIR) +
                                               "/tests/golden/hardware/special_functions.json");
  return json;
}

using Function = std::uint32_t (*)(std::uint32_t);

template <class Op>
std::uint32_t of_one(std::uint32_t word) {
  const float a = from_bits(word);
  return bits(Op::after(a, unit<typename Op::Unit>(Op::before(a))));
}

/// The divisor is made from the dividend, as in the recorder.
template <class Op>
std::uint32_t of_two(std::uint32_t word) {
  std::uint32_t other = word * 0x9e3779b1;
  other = (other ^ (other >> 15)) * 0x85ebca6b;
  other ^= other >> 13;
  const float a = from_bits(word), b = from_bits(other);
  return bits(Op::after(a, b, unit<UnitReciprocal>(Op::before(b))));
}

/// The word is the high one; the result's are folded.
template <double (*kFunction)(double)>
std::uint32_t of_double(std::uint32_t word) {
  const std::uint64_t low = word * 0x9e3779b1;
  const std::uint64_t result = bits(kFunction(from_bits(std::uint64_t{word} << 32 | low)));
  return static_cast<std::uint32_t>(result ^ (result >> 32));
}

struct NamedFunction {
  const char* name;
  Function function;
};

constexpr NamedFunction kFunctions[] = {
    {"rcp_ftz", of_one<Alone<UnitReciprocal>>},
    {"rsqrt_ftz", of_one<Alone<UnitReciprocalRoot>>},
    {"sqrt_ftz", of_one<Alone<UnitRoot>>},
    {"lg2_ftz", of_one<Alone<UnitLogarithm>>},
    {"ex2_ftz", of_one<Alone<UnitExponential>>},
    {"sin_ftz", of_one<Wave<UnitSine>>},
    {"cos_ftz", of_one<Wave<UnitCosine>>},
    {"tanh", of_one<Alone<UnitTanh>>},
    {"rcp", of_one<Reciprocal>},
    {"rsqrt", of_one<Scaled<UnitReciprocalRoot, mend_reciprocal_root>>},
    {"sqrt", of_one<Scaled<UnitRoot, mend_root>>},
    {"lg2", of_one<Scaled<UnitLogarithm, mend_logarithm>>},
    {"ex2", of_one<Exponential>},
    {"sin", of_one<Wave<UnitSine>>},
    {"cos", of_one<Wave<UnitCosine>>},
    {"div_approx", of_two<Quotient<false, false>>},
    {"div_approx_ftz", of_two<Quotient<true, false>>},
    {"div_full", of_two<Quotient<false, true>>},
    {"div_full_ftz", of_two<Quotient<true, true>>},
    {"rcp_f64", of_double<unit64<UnitReciprocal>>},
    {"rsqrt_f64_ftz", of_double<unit64<UnitReciprocalRoot>>},
    {"rsqrt_f64", of_double<rsqrt64>},
};

std::uint64_t pair_of(std::uint32_t argument, std::uint32_t result) {
  return mix(std::uint64_t{result} << 32 | argument);
}

std::string block_sum(Function function, std::uint64_t first, std::uint64_t count) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = first; i < first + count; ++i) {
    const auto word = static_cast<std::uint32_t>(i);
    sum += pair_of(word, function(word));
  }
  return fmt::format("{:016x}", sum);
}

/// As samples() of the recorder.
std::uint32_t sample(std::uint32_t index) {
  constexpr std::uint32_t kSpecial[] = {0,          1,          2,          0x7fffff,   0x800000,
                                        0x800001,   0x3f7fffff, 0x3f800000, 0x3f800001, 0x7e800000,
                                        0x7e800001, 0x7f000000, 0x7f7fffff, 0x7f800000, 0x7f800001,
                                        0x7fc00000, 0x7fffffff, 0x42fc0000, 0x43000000};
  constexpr auto kCount = static_cast<std::uint32_t>(std::size(kSpecial));
  if (index < kCount) return kSpecial[index];
  if (index < 2 * kCount) return kSpecial[index - kCount] | kSign;
  std::uint64_t state = index * 0x9e3779b97f4a7c15;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  const auto word = static_cast<std::uint32_t>(state >> 32);
  return index % 2 == 0 ? word : (word & 0x807fffff) | (97 + (word >> 23) % 61) << 23;
}

class SpecialFunction : public testing::TestWithParam<NamedFunction> {
 protected:
  const nlohmann::json& recorded() const { return golden().at("functions").at(GetParam().name); }
};

TEST_P(SpecialFunction, EqualsTheDeviceOnSamples) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < 1 << 16; ++i) {
    sum += pair_of(sample(i), GetParam().function(sample(i)));
  }
  EXPECT_EQ(fmt::format("{:016x}", sum), recorded().at("samples").get<std::string>());
}

TEST_P(SpecialFunction, EqualsTheDeviceForEveryArgument) {
  const Function function = GetParam().function;
  if (std::getenv("TILEWRIGHT_SIM_EXHAUSTIVE") != nullptr) {
    for (std::uint64_t i = 0; i < 64; ++i) {
      EXPECT_EQ(block_sum(function, i << 26, 1 << 26), recorded().at("all").at(i)) << i;
    }
    return;
  }
  for (std::size_t i = 0; i < golden().at("blocks").size(); ++i) {
    const std::uint64_t first = golden().at("blocks").at(i).get<std::uint64_t>() << 20;
    EXPECT_EQ(block_sum(function, first, 1 << 20), recorded().at("blocks").at(i)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Simulator, SpecialFunction, testing::ValuesIn(kFunctions),
                         [](const auto& named) { return std::string(named.param.name); });

TEST(SpecialFunctionHalf, EqualsTheDeviceForEveryArgument) {
  for (const auto& [name, instruction] :
       {std::pair{"ex2_f16", "ex2.approx.f16"}, std::pair{"ex2_bf16", "ex2.approx.ftz.bf16"},
        std::pair{"tanh_f16", "tanh.approx.f16"}, std::pair{"tanh_bf16", "tanh.approx.bf16"}}) {
    KernelRun run(
        fmt::format("AGAIN: cvt.u16.u32 %h0, %r0; {} %h1, %h0; mul.wide.u32 %rd3, %r0, 2; "
                    "add.u64 %rd3, %rd0, %rd3; st.global.u16 [%rd3], %h1; "
                    "add.u32 %r0, %r0, 1024; setp.lt.u32 %p0, %r0, 65536; @%p0 bra AGAIN;",
                    instruction));
    auto* const results = run.allocate<std::uint16_t>(1 << 16);
    run.run_well(results, nullptr, nullptr, 1024);
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < 1 << 16; ++i) sum += pair_of(i, results[i]);
    EXPECT_EQ(fmt::format("{:016x}", sum),
              golden().at("functions").at(name).at("samples").get<std::string>())
        << name;
  }
}

/// The largest error over 100 000 arguments, relative if the function is.
template <class Op>
double largest_error(double (*exact)(double), float low, float high, bool is_relative) {
  double largest = 0;
  for (int i = 0; i <= 100000; ++i) {
    const float x = low + (high - low) * static_cast<float>(i) * 1e-5f;
    const double value = exact(static_cast<double>(x));
    const double error = std::fabs(static_cast<double>(from_bits(of_one<Op>(bits(x)))) - value);
    largest = std::max(largest, is_relative ? error / std::fabs(value) : error);
  }
  return largest;
}

/// The bounds of the manual, which know nothing of tables.
TEST(SpecialFunctionUnit, StaysWithinTheDocumentedErrors) {
  const auto reciprocal = [](double x) { return 1 / x; };
  const auto reciprocal_root = [](double x) { return 1 / std::sqrt(x); };
  const auto root = [](double x) { return std::sqrt(x); };
  const auto exp2 = [](double x) { return std::exp2(x); };
  const auto log2 = [](double x) { return std::log2(x); };
  const auto sine = [](double x) { return std::sin(x); };
  const auto cosine = [](double x) { return std::cos(x); };
  const auto tanh = [](double x) { return std::tanh(x); };
  using RootOf = Alone<UnitRoot>;
  EXPECT_LT(largest_error<Reciprocal>(reciprocal, 1.0f, 2.0f, true), 0x1p-23);
  EXPECT_LT(largest_error<Alone<UnitReciprocalRoot>>(reciprocal_root, 1.0f, 4.0f, true),
            std::exp2(-22.9));
  EXPECT_LT(largest_error<RootOf>(root, 1.0f, 4.0f, true), std::exp2(-22.9));
  EXPECT_LT(largest_error<Exponential>(exp2, -9.0f, 9.0f, true), 0x1p-22);
  EXPECT_LT(largest_error<Alone<UnitLogarithm>>(log2, 0.5f, 2.0f, false), 0x1p-22);
  EXPECT_LT(largest_error<Wave<UnitSine>>(sine, -3.14f, 3.14f, false), std::exp2(-20.5));
  EXPECT_LT(largest_error<Wave<UnitCosine>>(cosine, -3.14f, 3.14f, false), std::exp2(-20.5));
  EXPECT_LT(largest_error<Alone<UnitTanh>>(tanh, 0.01f, 9.0f, true), 0x1p-10);
}

}  // namespace
}  // namespace tilewright::sim
