// Reads the files of tools/golden/make_reference_golden.py and compares arrays of doubles.
#pragma once

#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::reference {

/// The cases of one operator.
inline nlohmann::json golden_cases(const std::string& name) {
  std::ifstream file(std::string(TILEWRIGHT_TEST_DATA) + "/reference/" + name + ".json");
  nlohmann::json cases = nlohmann::json::parse(file);
  EXPECT_FALSE(cases.empty()) << name;
  return cases;
}

/// A number; the file spells infinities and NaN as strings.
inline double golden_number(const nlohmann::json& value) {
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}

/// The array `key` of a case; empty if the case has none.
inline std::vector<double> golden_doubles(const nlohmann::json& test, const char* key) {
  std::vector<double> values;
  for (const auto& value : test.value(key, nlohmann::json::array())) {
    values.push_back(golden_number(value));
  }
  return values;
}

inline std::vector<int32_t> golden_ints(const nlohmann::json& test, const char* key) {
  return test.value(key, std::vector<int32_t>());
}

/// Expects |actual - expected| <= relative * |expected| + absolute for every element. Infinities
/// must be equal. Say what limits the accuracy where `absolute` is not 0.
inline void expect_close(std::span<const double> actual, std::span<const double> expected,
                         double relative = 1e-12, double absolute = 0) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    ASSERT_TRUE(std::isfinite(actual[i]) && std::isfinite(expected[i]))
        << "element " << i << ": " << actual[i] << " instead of " << expected[i];
    ASSERT_NEAR(actual[i], expected[i], relative * std::abs(expected[i]) + absolute)
        << "element " << i << " of " << actual.size();
  }
}

}  // namespace tilewright::reference
