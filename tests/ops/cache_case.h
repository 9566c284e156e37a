// What the tests of cache operators share: devices, bf16 data, pages as bytes.
#pragma once

#include "tilewright/cache_writer.h"

// clang-format off: GCC takes enumerators of KvFormat for a shadow of formats it already knows
#include "formats/kv_layout.h"
// clang-format on

#include "device/internal.h"
#include "formats/block_scale.h"
#include "reference/model/rms_norm.h"
#include "reference/rotation/rope.h"
#include "tests/kernels/kernel_test.h"
#include "tests/ops/operator_test.h"

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::ops {

using device::Buffer;
using kernels::pointer_to;
using reference::Random;

/// Tests of what runs on both chips.
class CacheTest : public ChipTest<CacheTest> {
 protected:
  static const Device& device() { return *device_; }
  template <class T>
  static Buffer upload(const std::vector<T>& values) {
    return Buffer::from(opened(*device_), values);
  }
  static Buffer poisoned(std::size_t bytes) {
    Buffer buffer(opened(*device_), bytes);
    buffer.poison();
    return buffer;
  }
  template <class T>
  static std::vector<T> download(const Buffer& buffer) {
    device_->synchronize();
    return buffer.to_vector<T>();
  }
};

using Bf16s = std::vector<std::uint16_t>;

inline Bf16s to_bf16(const std::vector<double>& values) {
  return kernels::encode_all<std::uint16_t>(kBf16, values);
}
inline float bf16_value(std::uint16_t code) {
  return static_cast<float>(decode(kBf16, code));
}
/// Rows of `count` values so far apart, `wrong` between and behind them.
template <class T>
std::vector<T> spread_rows(const std::vector<T>& values, std::int64_t count, std::int64_t stride,
                           T wrong) {
  std::vector<T> apart(
      values.size() / static_cast<std::size_t>(count) * static_cast<std::size_t>(stride), wrong);
  for (std::int64_t i = 0; i < std::ssize(values); ++i)
    apart[static_cast<std::size_t>(i / count * stride + i % count)] =
        values[static_cast<std::size_t>(i)];
  return apart;
}
/// The rows again; what lies between them is as it was.
template <class T>
std::vector<T> gather_rows(const std::vector<T>& apart, std::int64_t count, std::int64_t stride,
                           T wrong) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < std::ssize(apart); ++i) {
    const T value = apart[static_cast<std::size_t>(i)];
    if (i % stride < count) {
      values.push_back(value);
    } else {
      EXPECT_EQ(value, wrong) << "between rows: element " << i % stride << " of " << i / stride;
    }
  }
  return values;
}
inline constexpr std::uint16_t kNanCode = 0xffff;  ///< and what poison() leaves

inline std::vector<double> bf16_values(const Bf16s& codes) {
  std::vector<double> values;
  for (const std::uint16_t code : codes) values.push_back(decode(kBf16, code));
  return values;
}
inline Bf16s random_bf16(std::uint64_t seed, std::int64_t count, double low = -2, double high = 2) {
  return to_bf16(reference::random_doubles(seed, count, low, high));
}

/// Half a step of bf16, and what fp32 may be off by against fp64, `slack` of the row's magnitude.
inline void expect_near_bf16(const Bf16s& found, const std::vector<double>& expected,
                             double slack = 1e-6) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double bound = spacing(kBf16, expected[i]) / 2 + slack * (std::abs(expected[i]) + 1);
    ASSERT_NEAR(decode(kBf16, found[i]), expected[i], bound) << "element " << i;
  }
}

/// A row as its page holds it: 448 numbers in codes and 64 bf16, then scales with zeros behind.
struct RowBytes {
  std::vector<std::uint8_t> data, scales;
};

inline RowBytes encode_row(KvFormat format, const std::uint16_t* row) {
  RowBytes bytes;
  const auto append = [&](int from) {
    for (int i = from; i < kKvDims; ++i) {
      bytes.data.push_back(static_cast<std::uint8_t>(row[i]));
      bytes.data.push_back(static_cast<std::uint8_t>(row[i] >> 8));
    }
  };
  if (format == KvFormat::kBf16) {
    append(0);
    return bytes;
  }
  std::vector<float> plain;
  for (int i = 0; i < kKvPlainDims; ++i) plain.push_back(bf16_value(row[i]));
  const bool is_fp8 = format == KvFormat::kFp8;
  const QuantizedTensor tensor = is_fp8 ? quantize(kFp8Block64Pow2, plain, 1, kKvPlainDims)
                                        : quantize(block_format_by_name("nvfp4"), plain, 1,
                                                   kKvPlainDims, {.encode_scale = 1.0f});
  bytes.data = tensor.codes;
  bytes.scales = tensor.scales;
  bytes.scales.resize(static_cast<std::size_t>(kv_scale_bytes(format)), 0);
  append(kKvPlainDims);
  return bytes;
}

/// What reading an encoded row gives, in bf16.
inline Bf16s decode_row(KvFormat format, const std::uint16_t* row) {
  Bf16s back(row, row + kKvDims);
  if (format == KvFormat::kBf16) return back;
  std::vector<float> plain;
  for (int i = 0; i < kKvPlainDims; ++i) plain.push_back(bf16_value(row[i]));
  const BlockFormat& block =
      format == KvFormat::kFp8 ? kFp8Block64Pow2 : block_format_by_name("nvfp4");
  QuantizeOptions options;
  if (block.has_tensor_scale) options.encode_scale = 1.0f;
  const auto values = dequantize(block, quantize(block, plain, 1, kKvPlainDims, options));
  for (std::size_t i = 0; i < values.size(); ++i)
    back[i] = static_cast<std::uint16_t>(encode(kBf16, values[i]));
  return back;
}

/// Puts an encoded row where the layout has it.
inline void place_row(std::vector<std::uint8_t>& pages, const KvCacheLayout& layout,
                      KvFormat format, std::int64_t row, const RowBytes& bytes) {
  const KvPageLayout at = {format, static_cast<std::int32_t>(layout.page_size),
                           layout.page_stride_bytes};
  const std::int64_t page = row / layout.page_size, slot = row % layout.page_size;
  std::copy(bytes.data.begin(), bytes.data.end(), pages.begin() + at.data_offset(page, slot));
  std::copy(bytes.scales.begin(), bytes.scales.end(), pages.begin() + at.scale_offset(page, slot));
}

inline void expect_same_bytes(const std::vector<std::uint8_t>& found,
                              const std::vector<std::uint8_t>& expected, std::int64_t stride) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i], expected[i]) << "byte " << i % static_cast<std::size_t>(stride)
                                     << " of page " << i / static_cast<std::size_t>(stride);
  }
}

inline const std::vector<double>& plain_frequencies() {
  static const std::vector<double> f = reference::rope_frequencies(kKvRopeDims, 10000);
  return f;
}

}  // namespace tilewright::ops
