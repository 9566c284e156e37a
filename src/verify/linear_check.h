// Results of a linear layer against float64, and how far its roundings take it from the original.
#pragma once

#include "tilewright/linear.h"

#include "verify/linear_data.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace tilewright::cli {

/// One comparison of some rows of out.
struct LinearErrors {
  std::string reference;
  double max_abs = 0;
  double relative_rms = 0;    ///< of the error, relative to the reference
  double worst_tile_rms = 0;  ///< the same in the worst 64 columns: a wrong tile does not hide
  double cosine = 1;
  double worst_of_bound = 0;  ///< largest |error| / bound; 0 where there is no bound
};

struct LinearReport {
  std::int64_t rows = 0;
  LinearErrors same;         ///< products as the kernel rounds its operands: what it must reproduce
  LinearErrors dequantised;  ///< of the stored weight and x as they are
  LinearErrors original;     ///< of the weight before it was quantised; empty if that is not known

  /// W4A16's gate of the specification against `same`: relative rms <= 0.003, cosine >= 0.99999,
  /// and every element within its bound.
  bool is_ok() const noexcept;
};

/// Some rows of x (all if they are few), compared with rows `out` [m, n].
LinearReport check_linear(const LinearWeightData& weight, const LinearPlan& plan,
                          std::span<const float> x, std::span<const double> out,
                          std::int64_t max_rows);

nlohmann::json to_json(const LinearErrors& errors);
nlohmann::json to_json(const LinearReport& report);

}  // namespace tilewright::cli
