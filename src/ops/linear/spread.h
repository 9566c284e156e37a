// How products of some tens of tokens are cut for kernels/linear/wide/sm90_wide_spread.h, of linear
// layers and of a single expert.
#pragma once

#include "tilewright/plan.h"

#include "device/device.h"
#include "formats/packed_matrix.h"
#include "kernels/linear/wide/sm90_wide_spread.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace tilewright::ops {

/// A product x [m, k groups] by w [n groups, k].
struct SpreadProduct {
  kernels::WeightFormat format;
  std::int64_t m, n, k, groups = 1;
  bool is_swiglu = false;
};

/// Its units, and the CTAs that divide k of each.
struct Spread {
  kernels::WideSpreadTile tile;
  std::int64_t units = 0, rows = 0, steps = 0;
  int splits = 1;

  /// Beyond so many rows wider tiles read weights less often.
  static constexpr std::int64_t kMostRows = 2 * kernels::WideSpreadTile::kTokens;

  static bool has_entry(kernels::WeightFormat format) noexcept {
    return format == kernels::WeightFormat::kFp8 || format == kernels::WeightFormat::kBf16;
  }
  /// Parts of k where units are at most half of the SMs; taller tiles where they save a turn.
  Spread(const device::DeviceInfo& device, const SpreadProduct& product);

  Launch launch(const device::DeviceInfo& device, const char* step) const;
  device::LaunchConfig config(const Launch& launch) const;
  std::size_t workspace_bytes() const noexcept;  ///< of sums
  /// What bind_wide() leaves open but for factors and the form of results.
  void bind(void* sums, kernels::WideBf16Params& params) const noexcept;
  /// Of steps and the exchange, not of bytes.
  double model_us(const device::DeviceInfo& device) const noexcept;
};

/// Whether scales are such that a weight's product with its scale is exact in bf16.
bool are_power_scales(std::span<const float> scales) noexcept;

}  // namespace tilewright::ops
