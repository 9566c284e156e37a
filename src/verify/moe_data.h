// Operands of a Mixture-of-Experts layer on the host, drawn: experts of which only a few differ,
// tokens, and routings.
#pragma once

#include "tilewright/moe.h"

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

struct MoeShape {
  std::string name;
  std::int64_t experts = 256, topk = 8, hidden = 7168, inter = 2048;
  bool has_shared = false;
  double swiglu_limit = 0;  ///< 0: none
};

/// "v3": DeepSeek-V3, "v4-flash", "v4-pro", "gpt-oss" sizes, "small".
/// Errors   InvalidArgument; the message lists the names. EXPERTS/TOPK/HIDDEN/INTER makes its own
MoeShape find_moe_shape(const std::string& name);

/// One random matrix in a checkpoint's format, weights of about 1 / sqrt(k).
class DrawnWeight {
 public:
  DrawnWeight(std::uint64_t seed, NumberFormat format, std::int64_t n, std::int64_t k);
  LinearWeightSource source() const;
  /// [n, k], exactly what the format stands for.
  std::vector<float> numbers() const;

 private:
  NumberFormat format_;
  std::int64_t n_, k_;
  std::vector<std::uint8_t> values_, scales_;
  std::vector<float> block_scales_;
  float global_ = 1;
};

/// Experts e and e + distinct are the same.
class MoeExperts {
 public:
  MoeExperts(const MoeShape& shape, NumberFormat format, std::int64_t distinct);
  MoeWeightsSource source() const;
  const MoeShape& shape() const noexcept { return shape_; }

  /// out[:] of one token: its experts by `ids` with `weights`, the shared one last, without any
  /// rounding.
  std::vector<double> exact_row(const float* x, const std::int32_t* ids, const float* weights,
                                double limit);

 private:
  struct Numbers {
    std::vector<float> gate, up, down;
  };
  const Numbers& numbers(std::size_t index);
  void add_expert(std::size_t index, const float* x, double weight, double limit,
                  std::vector<double>& out);

  MoeShape shape_;
  std::size_t distinct_;
  std::vector<DrawnWeight> gate_, up_, down_;  // distinct ones, then the shared one
  std::map<std::size_t, Numbers> numbers_;
};

/// Different experts for every token, each as likely, in random order; weights sum to 1.
struct MoeRoutingData {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
};
MoeRoutingData draw_routing(const MoeShape& shape, std::int64_t tokens, std::uint64_t seed);

/// Largest relative rms of a right result against float64 without roundings: the specification's
/// gates.
inline constexpr double kMoeBf16Rms = 0.006, kMoeFp8Rms = 0.063;
/// Of DrawnWeight's, whose codes are equally likely: 69 % of their energy is in the magnitudes 1.5,
/// 3 and 6, which folding a scale into e4m3 rounds (2.2 % rms); with 2.65 % of tokens' own rounding
/// and three products in a row sqrt(3) * 3.45 % = 6.0 %, and a fifth for h, whose small values are
/// subnormal beside its largest.
inline constexpr double kMoeFp8DrawnRms = 0.072;

/// Block-scaled activations. MXFP8 rounds x and h by 2.65 % rms, as FP8 does. NVFP4 rounds normal
/// numbers by 9.5 %: sqrt(3) * 9.5 % = 16.5 % (x by way of gate and of up, and h), and a fifth for
/// h, which is not normal.
inline constexpr double kMoeNvfp4Rms = 0.2;

/// Numbers beside exact ones.
struct MoeDifference {
  double error = 0, norm = 0, dot = 0, other = 0, max_abs = 0;

  void add(double found, double exact) noexcept;
  double relative_rms() const noexcept;
  double cosine() const noexcept;
  nlohmann::json log(double most_rms, const char* reference) const;
};

}  // namespace tilewright::cli
