// Vectorised instruction functions against plain arithmetic, over all codes or many random ones.
#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c")  // as the library's own files: the headers hold vector code
#endif

#include "formats/minifloat.h"
#include "sim/insn/lanes.h"
#include "sim/insn/scalar/convert_exec.h"
#include "sim/insn/scalar/float_ops.h"
#include "sim/insn/scalar/float_rounding.h"
#include "sim/insn/scalar/half_lanes.h"
#include "sim/insn/scalar/integer_ops.h"
#include "tests/sim/insn/row_file.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

/// Words whose upper halves run through all 65536, with random lower halves.
std::vector<std::uint32_t> all_upper_halves(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> words;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    const std::uint32_t lower[] = {0, 0x8000, 0x7fff, 0x8001,
                                   static_cast<std::uint32_t>(random() & 0xffff)};
    words.push_back(upper << 16 | lower[random() % 5]);
  }
  return words;
}

template <class Get>
void for_each_block(std::span<const std::uint32_t> words, Get get) {
  for (std::size_t at = 0; at < words.size(); at += kLanes) get(words.subspan(at, kLanes));
}

TEST(Lanes, InactiveLanesKeepTheirValues) {
  RowFile rows;
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    rows.values<std::uint32_t>(0)[i] = 1000 + i;
    rows.values<std::uint32_t>(1)[i] = i;
    rows.values<std::uint32_t>(2)[i] = 5;
  }
  const std::uint32_t active = 0x80000105;
  rows.run(lanes<integer::add<std::uint32_t>>, active);
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    EXPECT_EQ(rows.values<std::uint32_t>(0)[i], ((active >> i) & 1) != 0 ? i + 5 : 1000 + i);
  }
}

TEST(Lanes, MayWriteTheRowTheyRead) {
  RowFile rows;
  for (std::uint32_t i = 0; i < kLanes; ++i) rows.values<std::uint32_t>(0)[i] = i;
  Insn insn;
  insn.op = {0, 0, 0};
  Warp warp;
  warp.registers = reinterpret_cast<std::byte*>(rows.values<std::uint32_t>(0));
  lanes<integer::add<std::uint32_t>>(warp, insn, kAllLanes);
  for (std::uint32_t i = 0; i < kLanes; ++i) EXPECT_EQ(rows.values<std::uint32_t>(0)[i], 2 * i);
}

TEST(Lanes, RoundingIsRestored) {
  RowFile rows;
  constexpr auto kExec = lanes<floating::add<float, false, false>>;
  rows.values<float>(1)[0] = 1.0f;
  rows.values<float>(2)[0] = 0x1p-30f;
  const auto run = [&rows](ExecFn exec, FloatRounding rounding) {
    rows.run(exec, kAllLanes, static_cast<std::uint8_t>(rounding));
    return rows.values<float>(0)[0];
  };
  EXPECT_EQ(run(rounded<kExec>, FloatRounding::kUp), std::nextafter(1.0f, 2.0f));
  EXPECT_EQ(run(rounded<kExec>, FloatRounding::kDown), 1.0f);
  EXPECT_EQ(run(kExec, FloatRounding::kNearestEven), 1.0f);
}

TEST(Division, MatchesTheHostFor32Bits) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200000; ++i) {
    const auto a = static_cast<std::uint32_t>(random() >> (random() % 32));
    const auto b =
        std::max<std::uint32_t>(static_cast<std::uint32_t>(random()) >> (random() % 32), 1);
    ASSERT_EQ(integer::div(a, b), a / b) << a << " / " << b;
  }
  EXPECT_EQ(integer::div(0xffffffffu, 1u), 0xffffffffu);
  EXPECT_EQ(integer::div(std::int32_t{-2147483647 - 1}, -1), -2147483647 - 1);
  EXPECT_EQ(integer::div(std::int64_t{7}, std::int64_t{0}), -1);
  EXPECT_EQ(integer::rem(7u, 0u), 0xffffffffu);
}

/// The vectorised conversion equals the plain one.
void compare_conversion(const Conversion& conversion) {
  const ExecFn exec = fast_conversion(conversion);
  ASSERT_NE(exec, nullptr);
  const bool is_16_bits = conversion.to == Type::kF16 || conversion.to == Type::kBf16;
  for_each_block(all_upper_halves(7), [&](std::span<const std::uint32_t> words) {
    RowFile rows;
    std::memcpy(rows.values<std::uint32_t>(1), words.data(), words.size_bytes());
    rows.run(exec);
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t got =
          is_16_bits ? rows.values<std::uint16_t>(0)[i] : rows.values<std::uint32_t>(0)[i];
      ASSERT_EQ(got, convert(conversion, words[i])) << std::hex << words[i];
    }
  });
}

Conversion from_f32(Type to, Rounding rounding = Rounding::kNearestEven, bool relu = false) {
  Conversion conversion;
  conversion.to = to;
  conversion.from = Type::kF32;
  conversion.encode.rounding = rounding;
  conversion.relu = relu;
  return conversion;
}

TEST(Convert, FastF32ToHalvesEqualsThePlainOne) {
  for (const bool relu : {false, true}) {
    compare_conversion(from_f32(Type::kF16, Rounding::kNearestEven, relu));
    compare_conversion(from_f32(Type::kBf16, Rounding::kNearestEven, relu));
  }
  compare_conversion(from_f32(Type::kTf32, Rounding::kNearestAway));
}

TEST(Convert, FastF32ToIntegersEqualsThePlainOne) {
  for (const Type to : {Type::kS32, Type::kU32}) {
    for (const auto integral : {IntegralRounding::kNearest, IntegralRounding::kZero,
                                IntegralRounding::kDown, IntegralRounding::kUp}) {
      Conversion conversion = from_f32(to);
      conversion.integral = integral;
      compare_conversion(conversion);
    }
  }
}

TEST(Convert, Fp8EqualsThePlainOne) {
  for (const std::uint32_t word : all_upper_halves(9)) {
    const auto value = static_cast<double>(std::bit_cast<float>(word));
    const EncodeOptions saturate{.saturation = Saturation::kSaturate};
    ASSERT_EQ(to_fp8<false>(word), encode(kE4m3, value, saturate)) << std::hex << word;
    ASSERT_EQ(to_fp8<true>(word), encode(kE5m2, value, saturate)) << std::hex << word;
  }
}

TEST(Half, SumsAndProductsOfAllCodesAreRoundedOnce) {
  std::mt19937 random(5);
  using half::F16;
  constexpr auto kAdd = [](float a, float b) { return a + b; };
  constexpr auto kFma = half::fma_to_odd;
  constexpr auto kKeep = [](std::uint16_t x) { return x; };
  for (std::uint32_t block = 0; block < 0x10000; block += kLanes) {
    RowFile rows;
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      rows.values<std::uint16_t>(1)[i] = static_cast<std::uint16_t>(block + i);
      rows.values<std::uint16_t>(2)[i] = static_cast<std::uint16_t>(random());
      rows.values<std::uint16_t>(3)[i] = static_cast<std::uint16_t>(random());
    }
    const auto value = [&rows](std::size_t row, std::size_t i) {
      return decode(kFp16, rows.values<std::uint16_t>(row)[i]);
    };
    const auto code = [](double x) -> std::uint32_t {
      return x != x ? kNanHalf : encode(kFp16, x);
    };
    rows.run(half_lanes<F16, kLanes, kAdd, kKeep>);
    for (std::size_t i = 0; i < kLanes; ++i) {
      ASSERT_EQ(rows.values<std::uint16_t>(0)[i], code(value(1, i) + value(2, i)));
    }
    rows.run(half_lanes<F16, kLanes, kFma, kKeep>);
    for (std::size_t i = 0; i < kLanes; ++i) {
      // of three f16 the double sum is exact or far from a tie
      ASSERT_EQ(rows.values<std::uint16_t>(0)[i], code(value(1, i) * value(2, i) + value(3, i)));
    }
  }
}

TEST(Half, Bf16FmaSeesWhatDoubleLoses) {
  const auto fma = [](float a, float b, float c) {
    return half::to_bf16(half::fma_to_odd(a, b, c));
  };
  // 129/128 * 3/2 = 387/256 lies half way between two bf16; 2^-100 decides, though no double holds
  // the sum
  const float a = 1.0f + 0x1p-7f;
  EXPECT_EQ(fma(a, 1.5f, 0x1p-100f), half::to_bf16(388.0f / 256.0f));
  EXPECT_EQ(fma(a, 1.5f, -0x1p-100f), half::to_bf16(386.0f / 256.0f));
  EXPECT_EQ(fma(a, 1.5f, 0.0f), half::to_bf16(388.0f / 256.0f));
}

}  // namespace
}  // namespace tilewright::sim
