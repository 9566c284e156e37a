// Random weights in a checkpoint's order, for the tests of linear layers.
#pragma once

#include "tilewright/linear.h"

#include "formats/scale_layout.h"
#include "ops/linear/source.h"
#include "reference/linear/weight.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <cstring>
#include <vector>

namespace tilewright::ops {

/// Owns what a LinearWeightSource shows.
struct RandomWeight {
  NumberFormat format;
  std::int64_t n, k;
  std::vector<std::uint8_t> values, scales;
  LinearWeightSource source;

  RandomWeight(NumberFormat of, std::int64_t rows, std::int64_t cols, std::uint64_t seed = 1,
               bool has_power_scales = false)
      : format(of), n(rows), k(cols) {
    reference::Random random(seed);
    const auto byte = [&] { return static_cast<std::uint8_t>(random.bits()); };
    const bool is_fp4 = scale_group(format) != 0;
    values.resize(static_cast<std::size_t>(is_fp4                         ? n * k / 2
                                           : format == NumberFormat::kFp8 ? n * k
                                                                          : 2 * n * k));
    for (std::uint8_t& x : values) x = byte();
    if (format == NumberFormat::kFp8) {
      for (std::uint8_t& x : values)  // no NaN, and no range that hides small ones
        x = static_cast<std::uint8_t>((x & 0x80) | (0x28 + x % 32));
    }
    if (format == NumberFormat::kBf16) {
      for (std::size_t i = 1; i < values.size(); i += 2)
        values[i] = static_cast<std::uint8_t>((values[i] & 0x80) | 0x3f);
    }
    fill_scales(byte);
    if (has_power_scales) make_scales_powers_of_two();
    source.format = format;
    source.values = contiguous_view(static_cast<const void*>(values.data()), value_type(), {n, k});
    if (format == NumberFormat::kFp8) {
      source.scales = contiguous_view(static_cast<const void*>(scales.data()), DType::kF32,
                                      {(n + 127) / 128, (k + 127) / 128});
    } else if (is_fp4) {
      const bool is_nvfp4 = format == NumberFormat::kNvfp4;
      source.scales = contiguous_view(static_cast<const void*>(scales.data()),
                                      is_nvfp4 ? DType::kF8_E4M3 : DType::kF8_E8M0,
                                      {n, k / (is_nvfp4 ? 16 : 32)});
      if (is_nvfp4) source.global_scale = 0.0123f;
    }
  }
  RandomWeight(const RandomWeight&) = delete;
  RandomWeight& operator=(const RandomWeight&) = delete;

  /// The same with its scales in 128x4 order.
  void swizzle() {
    const std::int64_t cols = source.scales.shape[1];
    scales = swizzle_scales(scales, n, cols);
    source.scales = contiguous_view(static_cast<const void*>(scales.data()), source.scales.dtype,
                                    {(n + 127) / 128 * 128, (cols + 3) / 4 * 4});
    source.scale_order = ScaleOrder::k128x4;
  }

  /// Those of kFp8.
  void make_scales_powers_of_two() {
    if (format != NumberFormat::kFp8) return;
    for (std::size_t i = 0; i < scales.size(); i += 4) {
      float scale;
      std::memcpy(&scale, &scales[i], 4);
      scale = std::exp2(std::round(std::log2(scale)));
      std::memcpy(&scales[i], &scale, 4);
    }
  }

 private:
  DType value_type() const {
    return format == NumberFormat::kBf16  ? DType::kBF16
           : format == NumberFormat::kFp8 ? DType::kF8_E4M3
                                          : DType::kF4;
  }
  template <class Byte>
  void fill_scales(Byte byte) {
    if (format == NumberFormat::kNvfp4) {
      scales.resize(static_cast<std::size_t>(n * k / 16));
      // Every mantissa, some subnormal ones, some zeros: 2^-9 to 2^1.9.
      for (std::uint8_t& x : scales) x = static_cast<std::uint8_t>(byte() % 80);
    } else if (format == NumberFormat::kMxfp4) {
      scales.resize(static_cast<std::size_t>(n * k / 32));
      for (std::uint8_t& x : scales) x = static_cast<std::uint8_t>(120 + byte() % 10);
    } else if (format == NumberFormat::kFp8) {
      const std::int64_t blocks = ((n + 127) / 128) * ((k + 127) / 128);
      for (std::int64_t i = 0; i < blocks; ++i) {
        const float scale = 0.01f + static_cast<float>(byte()) / 256;
        std::uint8_t bytes[4];
        std::memcpy(bytes, &scale, 4);
        scales.insert(scales.end(), bytes, bytes + 4);
      }
    }
  }
};

/// For the reference.
inline reference::StoredWeight stored(const HostWeight& w) {
  return {to_string(w.format),
          w.n,
          w.k,
          w.values,
          w.scales,
          w.block_scales,
          static_cast<double>(w.global_scale)};
}

inline constexpr NumberFormat kEveryFormat[] = {NumberFormat::kBf16, NumberFormat::kFp8,
                                                NumberFormat::kMxfp4, NumberFormat::kNvfp4};

}  // namespace tilewright::ops
