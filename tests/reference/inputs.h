// Deterministic test inputs, the same on every platform, and checks of errors.
#pragma once

#include "tilewright/error.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::reference {

/// splitmix64 (public domain, Vigna): the standard library's distributions differ by platform.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// Uniform in [low, high).
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

inline std::vector<double> random_doubles(uint64_t seed, int64_t count, double low = -2,
                                          double high = 2) {
  Random random(seed);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(random.uniform(low, high));
  return values;
}

/// Expects `call` to throw InvalidArgument with a message that contains every one of `parts`.
template <class Call>
void expect_invalid(Call call, const std::vector<std::string>& parts) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown; expected a message with "
                  << testing::PrintToString(parts);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    for (const auto& part : parts) EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
}

/// Of the error that work() throws.
template <class Work>
std::string message_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was wrong";
}

}  // namespace tilewright::reference
