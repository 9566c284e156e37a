// Seeded matrices for the tests of the block formats.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace tilewright {

/// Uniform in (0, 1]; std::uniform_real_distribution differs between standard libraries.
inline double uniform(std::mt19937_64& random) {
  return std::ldexp(static_cast<double>((random() >> 11) + 1), -53);
}

/// N(0, 1) by Box and Muller.
inline std::vector<float> normal_values(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& x : values) {
    const double radius = std::sqrt(-2 * std::log(uniform(random)));
    x = static_cast<float>(radius * std::cos(2 * 3.14159265358979323846 * uniform(random)));
  }
  return values;
}

/// Values whose size changes from row to row by powers of two between 2^min_log2 and 2^max_log2,
/// with zeros of both signs and exact powers of two among them.
inline std::vector<float> rough_values(int64_t rows, int64_t cols, int min_log2, int max_log2,
                                       uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values = normal_values(rows * cols, seed + 1);
  for (int64_t row = 0; row < rows; ++row) {
    const int log2 = min_log2 + static_cast<int>(random() % (max_log2 - min_log2 + 1));
    for (int64_t col = 0; col < cols; ++col) {
      float& x = values[row * cols + col];
      x = std::ldexp(x, log2);
      const uint64_t kind = random() % 16;
      if (kind == 0) x = std::copysign(0.0f, x);
      if (kind == 1) x = std::copysign(std::ldexp(1.0f, log2 - static_cast<int>(random() % 8)), x);
    }
  }
  return values;
}

/// x moved by up to three steps of float.
inline float nudged(double x, std::mt19937_64& random) {
  auto real = static_cast<float>(x);
  const int steps = static_cast<int>(random() % 7) - 3;
  const float target = steps < 0 ? 0.0f : 2 * real;
  for (int i = 0; i < std::abs(steps); ++i) real = std::nextafter(real, target);
  return real;
}

/// Values for which the order of fp32 operations decides: in every block the first is within three
/// steps of max * s, and the others of t * s, with s = (one of `scales`) / encode_scale and t one
/// of `element_ties`.
inline std::vector<float> near_ties(int64_t rows, int64_t cols, int64_t block_cols,
                                    const std::vector<double>& element_ties,
                                    const std::vector<double>& scales, double max,
                                    double encode_scale, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(rows * cols);
  double scale = 0;
  for (int64_t i = 0; i < rows * cols; ++i) {
    if (i % block_cols == 0) scale = scales[random() % scales.size()] / encode_scale;
    const bool is_amax = i % block_cols == 0;
    const double multiple = is_amax ? max : element_ties[random() % element_ties.size()];
    values[i] = nudged(multiple * scale, random);
    if (random() % 2 == 0) values[i] = -values[i];
  }
  return values;
}

}  // namespace tilewright
