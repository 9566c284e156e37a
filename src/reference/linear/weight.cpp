#include "reference/linear/weight.h"

#include "base/error.h"
#include "formats/block_scale.h"
#include "reference/shape.h"

#include <algorithm>
#include <cmath>

namespace tilewright::reference {

namespace {

constexpr int64_t kBlock = 128;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

int64_t scale_group(const StoredWeight& w) {
  return w.format == "nvfp4" ? 16 : w.format == "mxfp4" ? 32 : 0;
}

void require_arrays(const StoredWeight& w) {
  const char* const where = "dequantize";
  const bool is_bf16 = w.format == "bf16", is_fp8 = w.format == "fp8";
  const int64_t group = scale_group(w);
  require(is_bf16 || is_fp8 || group != 0, ErrorKind::kInvalidArgument,
          "{}: there is no weight format \"{}\"; expected bf16, fp8, mxfp4 or nvfp4", where,
          w.format);
  require_at_least(where, "n", w.n, 0);
  require_at_least(where, "k", w.k, 0);
  require_shape(where, "values", w.values.size(), "[n, bytes of a row]",
                {w.n, is_bf16  ? 2 * w.k
                      : is_fp8 ? w.k
                               : w.k / 2});
  if (group != 0)
    require_shape(where, "scales", w.scales.size(), "[n, k / group]", {w.n, w.k / group});
  if (is_fp8)
    require_shape(where, "block_scales", w.block_scales.size(), "[ceil(n/128), ceil(k/128)]",
                  {ceil_div(w.n, kBlock), ceil_div(w.k, kBlock)});
}

// Element (j, c) without its scale.
double value_at(const StoredWeight& w, int64_t j, int64_t c) {
  const size_t i = static_cast<size_t>(j * w.k + c);
  if (w.format == "bf16")
    return decode(kBf16, w.values[2 * i] | uint32_t{w.values[2 * i + 1]} << 8);
  if (w.format == "fp8") return decode(kE4m3, w.values[i]);
  return decode(kE2m1, w.values[i / 2] >> (4 * (i % 2)) & 15);
}

double scale_at(const StoredWeight& w, int64_t j, int64_t c) {
  if (w.format == "bf16") return 1;
  if (w.format == "fp8")
    return w.block_scales[static_cast<size_t>(j / kBlock * ceil_div(w.k, kBlock) + c / kBlock)];
  const int64_t group = scale_group(w);
  return decode(group == 16 ? kUe4m3 : kUe8m0,
                w.scales[static_cast<size_t>(j * (w.k / group) + c / group)]);
}

template <class Value>
std::vector<double> each(const StoredWeight& w, Value value) {
  std::vector<double> out;
  out.reserve(static_cast<size_t>(w.n * w.k));
  for (int64_t j = 0; j < w.n; ++j)
    for (int64_t c = 0; c < w.k; ++c) out.push_back(value(j, c));
  return out;
}

}  // namespace

std::vector<double> dequantize(const StoredWeight& w) {
  require_arrays(w);
  return each(w, [&](int64_t j, int64_t c) {
    return value_at(w, j, c) * scale_at(w, j, c) * w.global_scale;
  });
}

std::vector<double> dequantize_as_e4m3(const StoredWeight& w) {
  const int64_t group = scale_group(w);
  if (group == 0) return dequantize(w);
  require_arrays(w);
  double largest = w.largest_scale;
  for (const uint8_t code : w.scales)
    largest = std::max(largest, decode(group == 16 ? kUe4m3 : kUe8m0, code));
  const int top = largest > 0 ? std::ilogb(largest) : 0, wanted = group == 16 ? 5 : 6;
  const double factor = std::ldexp(1.0, wanted - top);
  return each(w, [&](int64_t j, int64_t c) {
    return round_to(kE4m3, value_at(w, j, c) * scale_at(w, j, c) * factor) / factor *
           w.global_scale;
  });
}

std::vector<double> round_to_fp8(std::span<const float> x, int64_t m, int64_t k, int64_t block) {
  require_shape("round_to_fp8", "x", x.size(), "[m, k]", {m, k});
  BlockFormat format = kFp8Block1x128;
  format.block_cols = static_cast<int>(block > 0 ? block : std::max<int64_t>(k, 1));
  const std::vector<float> rounded = dequantize(format, quantize(format, x, m, k));
  return {rounded.begin(), rounded.end()};
}

}  // namespace tilewright::reference
