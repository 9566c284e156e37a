// A weight as the caller gives it: checked, fetched to the host, in one plain order.
#pragma once

#include "tilewright/linear.h"

#include "device/device.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::ops {

/// Out features of a block of kFp8 by in features that share a scale.
inline constexpr std::int64_t kFp8Block = 128;

/// In features that share a one-byte scale: 16, 32; 0 for formats that have none.
std::int64_t scale_group(NumberFormat format) noexcept;

/// A checked weight in host memory.
struct HostWeight {
  HostWeight() = default;
  HostWeight(HostWeight&&) noexcept = default;  // no copies: spans show what is owned
  HostWeight& operator=(HostWeight&&) noexcept = default;

  NumberFormat format = NumberFormat::kBf16;
  std::int64_t n = 0, k = 0;
  std::span<const std::uint8_t> values;  ///< rows of value_row_bytes()
  std::span<const std::uint8_t> scales;  ///< kMxfp4, kNvfp4: row-major [n, k / group]
  std::vector<float> block_scales;       ///< kFp8: row-major [ceil(n / 128), ceil(k / 128)]
  float global_scale = 1;                ///< a factor, never a divisor
  std::uint8_t largest_scale = 0;        ///< code of it: kMxfp4, kNvfp4
  std::uint8_t smallest_scale = 0;       ///< of those whose block has a value other than 0

  std::int64_t value_row_bytes() const noexcept;
  std::int64_t scale_row_bytes() const noexcept;

  /// Rows of one of so many groups, each of whole blocks; refers to this one's memory.
  HostWeight group(std::int64_t index, std::int64_t groups) const;

  std::vector<std::uint8_t> owned_values, owned_scales;  ///< what was fetched or reordered
};

/// Errors   InvalidArgument if the weight has groups, which only linear layers take
void require_one_group(const LinearWeightSource& source);

/// Device memory is fetched if `device` is given. The result refers to the source's memory unless
/// it was fetched or reordered.
/// Errors   InvalidArgument as LinearWeight::prepare
HostWeight check_weight_source(const LinearWeightSource& source,
                               const device::Device* device = nullptr);

}  // namespace tilewright::ops
