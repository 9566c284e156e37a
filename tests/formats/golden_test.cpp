// Codes and values as numpy and ml_dtypes have them (tools/golden/make_format_golden.py).
#include "formats/minifloat.h"
#include "tests/formats/format_param.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

class Golden : public testing::TestWithParam<FormatSpec> {
 protected:
  nlohmann::json read() const {
    const std::string path =
        std::string(TILEWRIGHT_TEST_DATA) + "/formats/" + GetParam().name + ".json";
    std::ifstream file(path);
    EXPECT_TRUE(file.is_open()) << "no golden file " << path;
    return nlohmann::json::parse(file);
  }

  static double value_of(const nlohmann::json& text) {
    return std::strtod(text.get<std::string>().c_str(), nullptr);
  }
  static uint32_t code_of(const nlohmann::json& text) {
    return static_cast<uint32_t>(std::stoul(text.get<std::string>(), nullptr, 16));
  }
};

TEST_P(Golden, Decode) {
  const FormatSpec format = GetParam();
  const nlohmann::json pairs = read().at("decode");
  const bool is_exhaustive = format.bits() <= 8;
  ASSERT_GE(pairs.size(), is_exhaustive ? format.num_codes() : 250);
  for (const auto& pair : pairs) {
    const double expected = value_of(pair[1]);
    const double actual = decode(format, code_of(pair[0]));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(actual)) << pair;
    } else {
      EXPECT_EQ(actual, expected) << pair;
      EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << pair;
    }
  }
}

TEST_P(Golden, EncodeNearestEven) {
  const FormatSpec format = GetParam();
  const nlohmann::json pairs = read().at("encode");
  ASSERT_GE(pairs.size(), size_t{3} << (format.bits() <= 8 ? format.bits() - 2 : 8));
  for (const auto& pair : pairs) {
    EXPECT_EQ(encode(format, value_of(pair[0]), {.saturation = Saturation::kNone}),
              code_of(pair[1]))
        << pair;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Golden, testing::ValuesIn(kFormats), format_test_name);

}  // namespace
}  // namespace tilewright
