// The block-scaled linear operator on a drawn gate and up, and float64 of what it must give.
#pragma once

#include "tilewright/block_scaled_linear.h"

#include "verify/linear_check.h"
#include "verify/linear_data.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tilewright::cli {

/// Gate and up [inter, k] in N(0, 1), rounded to a format; with one scale of the tensor for both.
class GateAndUp {
 public:
  GateAndUp(NumberFormat format, std::int64_t inter, std::int64_t k);

  LinearWeightSource source() const;  ///< shows this object's memory
  BlockScaledWeightInfo info() const;
  const LinearWeightData& weight(bool is_up) const { return is_up ? up_ : gate_; }

 private:
  LinearWeightData gate_, up_;
};

struct SwigluErrors {
  std::int64_t rows = 0;
  LinearErrors errors;

  bool is_ok() const noexcept { return errors.worst_of_bound <= 1; }
};
nlohmann::json to_json(const SwigluErrors& errors);

/// One run of a plan: x [m, k] rounded to what the weights are multiplied with, times 1 / sqrt(k)
/// as the tensor's scale, so that gate and up are of the order of 1.
class SwigluRun {
 public:
  SwigluRun(const Device& device, const GateAndUp& weights, std::span<const float> x,
            const BlockScaledPlan& plan);
  ~SwigluRun();
  SwigluRun(const SwigluRun&) = delete;
  SwigluRun& operator=(const SwigluRun&) = delete;

  void run(const BlockScaledLinear& linear);
  /// Rows of out against float64 on the same codes, exact but for what the last rounding and sums
  /// in fp32 may change.
  SwigluErrors check(std::int64_t max_rows) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::cli
