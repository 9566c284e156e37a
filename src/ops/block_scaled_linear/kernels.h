// The block-scaled GEMMs of Blackwell by name, and what each of them costs by count.
#pragma once

#include "device/device.h"
#include "kernels/linear/block_scaled/sm100_block_scaled.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::ops {

struct BlockScaledSizes {
  std::int64_t m, n, k;
};

/// A kernel: operands, tile, and what becomes of the result.
struct BlockScaledVariant {
  kernels::BlockScaledConfig config;
  bool is_requantising = false;  ///< results are NVFP4
  bool is_mxfp8_out = false;     ///< results are MXFP8
  bool has_swiglu = false;       ///< the weight's rows are gates and ups, interleaved by eights

  std::string name() const;   ///< of the tile: "2cta_n256"
  std::string entry() const;  ///< as `tilewright kernels` lists it

  /// Bytes of contiguous rows of x and out. Those of a weight are padded to 128 elements where
  /// 4-bit elements are unpacked on their way.
  std::int64_t x_row_bytes(std::int64_t k) const;
  std::int64_t weight_row_bytes(std::int64_t k) const;
  std::int64_t out_row_bytes(std::int64_t columns) const;
  /// Columns of out, and bytes of their scales in 128x4 order: 0 of bf16.
  std::int64_t out_columns(std::int64_t n) const { return has_swiglu ? n / 2 : n; }
  std::int64_t out_scale_bytes(std::int64_t m, std::int64_t columns) const;
  /// Elements along k that share a scale.
  int scale_block() const { return config.is_nvfp4() ? 16 : 32; }
};

/// All tiles for these operands and results, small ones first.
std::vector<BlockScaledVariant> block_scaled_variants(kernels::BlockScaledKind kind,
                                                      bool is_requantising);

/// The same with SwiGLU: tiles whose halves are whole runs of 64 columns.
std::vector<BlockScaledVariant> block_scaled_swiglu_variants(kernels::BlockScaledKind kind,
                                                             bool is_requantising,
                                                             bool is_mxfp8_out);

/// What the memory of a device gives by its data.
double memory_bytes_per_us(const device::DeviceInfo& device) noexcept;

/// What a launch costs if every unit works at its peak; the same counts as the simulator's report
/// makes.
struct BlockScaledCost {
  std::int64_t tiles = 0;
  std::uint32_t clusters = 0;  ///< that share the tiles, at most one CTA an SM
  /// Clocks that the busiest CTA needs: of the tensor core, for bytes that arrive from L2, for
  /// shared memory.
  double tensor_clocks = 0, arriving_clocks = 0, shared_clocks = 0;
  double l2_bytes = 0;      ///< read out of L2 by all; what several CTAs load together counts once
  double memory_bytes = 0;  ///< each operand once
  double us = 0;            ///< the largest of them and of the memory's time
};
BlockScaledCost block_scaled_cost(const device::DeviceInfo& device,
                                  const BlockScaledVariant& variant, const BlockScaledSizes& sizes);

}  // namespace tilewright::ops
