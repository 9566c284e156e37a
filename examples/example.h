// What the examples share: numbers to start from, their way to the device, and the verdict.
#pragma once

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <tilewright/buffer.h>
#include <tilewright/convert.h>
#include <tilewright/error.h>

namespace tw = tilewright;

/// Numbers of -largest to largest that bf16 has, so that host and device start from the same ones.
inline std::vector<float> draw(std::size_t count, unsigned seed, float largest = 1) {
  std::mt19937 random(seed);
  std::vector<float> numbers(count);
  for (float& x : numbers) x = (static_cast<float>(random() % 257) / 128 - 1) * largest;
  return numbers;
}

inline tw::Buffer upload_bf16(const tw::Device& device, const std::vector<float>& numbers) {
  return tw::Buffer::from(device, tw::encode(tw::DType::kBF16, numbers));
}
inline std::vector<float> download_bf16(const tw::Buffer& buffer) {
  return tw::decode(tw::DType::kBF16, buffer.download());
}

/// Memory full of NaN: what a kernel forgets to write is no result, and a workspace that nobody has
/// written is named by checkers of uninitialised memory.
inline tw::Buffer poisoned(const tw::Device& device, std::size_t size_bytes) {
  tw::Buffer buffer(device, size_bytes);
  buffer.poison();
  return buffer;
}

/// Exit status of the example: whether every element is as near as `tolerance`.
inline int verdict(const std::string& kernel, const tw::Device& device,
                   const std::vector<float>& result, const std::vector<double>& expected,
                   double tolerance) {
  double worst = result.size() == expected.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < result.size() && i < expected.size(); ++i) {
    const double error = std::abs(result[i] - expected[i]);
    worst = error <= worst ? worst : error;  // a NaN stays
    if (std::isnan(worst)) break;
  }
  std::printf("%s on %s: largest error %.5f of at most %g\n", kernel.c_str(), device.name().c_str(),
              worst, tolerance);
  return worst <= tolerance ? 0 : 1;
}

/// Exit status of an example that ends with an error: 77, "skipped" to test drivers, if the device
/// has no kernel for it.
inline int failure(const tw::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.kind() == tw::ErrorKind::kUnsupported ? 77 : 1;
}
