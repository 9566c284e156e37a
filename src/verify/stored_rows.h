// A stored weight row by row, as references read it.
#pragma once

#include "tilewright/linear.h"

#include "reference/linear/weight.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::cli {

/// Rows and columns of a kFp8 weight that share a scale.
inline constexpr std::int64_t kStoredBlock = 128;

/// A source in host memory that LinearWeight::prepare takes. It refers to the source's memory.
class StoredRows {
 public:
  explicit StoredRows(const LinearWeightSource& source);
  StoredRows(StoredRows&&) noexcept = default;  // no copies: spans show what is owned
  StoredRows& operator=(StoredRows&&) noexcept = default;

  std::int64_t n() const noexcept { return n_; }
  std::int64_t k() const noexcept { return k_; }
  /// Row j as a weight of one row.
  reference::StoredWeight row(std::int64_t j) const;

 private:
  void read_narrow_scales(const LinearWeightSource& source);
  void read_block_scales(const ConstTensorView& scales);

  NumberFormat format_;
  std::int64_t n_ = 0, k_ = 0;
  std::span<const std::uint8_t> values_, scales_;  // scales: mxfp4, nvfp4, in plain order
  std::vector<std::uint8_t> owned_scales_;
  std::vector<float> block_scales_;  // fp8
  double global_scale_ = 1, largest_scale_ = 0;
};

}  // namespace tilewright::cli
