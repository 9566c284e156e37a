// A cosine of results against data that were never quantised, as five documents give them.
#pragma once

#include "tilewright/device.h"

#include "device/internal.h"
#include "device/memory.h"
#include "formats/minifloat.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::ops {

struct DocumentFigure {
  std::string what, kernel;
  double document = 0;  ///< cosine in the document
  double float64 = 0;   ///< of float64 arithmetic over the codes that the kernel has
  double reached = 0;
  /// Codes of N(0,1) numbers can have the document's figure at all.
  bool is_within_format = true;
};

using device::Buffer;
using kernels::pointer_to;
using Doubles = std::vector<double>;
using Bf16s = std::vector<std::uint16_t>;

inline double cosine(const Doubles& a, const Doubles& b) {
  double dot = 0, aa = 0, bb = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    dot += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return dot / std::sqrt(aa * bb);
}

// N(0,1) times `unit`, in bf16.
inline Doubles draw_normal(std::uint64_t seed, std::int64_t count, double unit = 1) {
  reference::Random random(seed);
  Doubles values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double radius = std::sqrt(-2 * std::log(random.uniform(1e-12, 1)));
    const double angle = 2 * std::numbers::pi * random.uniform(0, 1);
    values.push_back(round_to(kBf16, radius * std::cos(angle) * unit));
  }
  return values;
}

inline Bf16s codes_of(const Doubles& values) {
  return kernels::encode_all<std::uint16_t>(kBf16, values);
}
inline Doubles numbers_of(const Bf16s& codes) {
  Doubles values;
  for (const std::uint16_t code : codes) values.push_back(decode(kBf16, code));
  return values;
}

}  // namespace tilewright::ops
