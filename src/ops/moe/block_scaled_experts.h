// Experts as Blackwell's tensor cores multiply them: rows as they are in a checkpoint, scales in
// their order.
#pragma once

#include "device/device.h"
#include "ops/linear/source.h"
#include "ops/moe/weights.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::ops {

/// Errors   InvalidArgument if such experts cannot be for block-scaled activations
void check_block_scaled_experts(const MoeWeightsInfo& info);

/// Prepares the experts one by one. Gate and up of an expert are one matrix, rows in turns of 8.
class BlockScaledPacker {
 public:
  BlockScaledPacker(const device::Device& device, std::size_t matrices, std::size_t parts,
                    NumberFormat format, std::int64_t n, std::int64_t k);

  /// The next matrix: one weight, or gate and up.
  void add(const std::vector<const HostWeight*>& parts);
  /// Number `from` once more.
  void repeat(std::size_t from);
  PackedExperts finish() &&;

 private:
  const device::Device& device_;
  NumberFormat format_;
  std::int64_t rows_, k_, row_bytes_, scale_bytes_;  // of a matrix
  device::Buffer values_, scales_;
  std::vector<float> alphas_;
  std::size_t count_ = 0;
};

}  // namespace tilewright::ops
