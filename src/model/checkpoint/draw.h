// Random weights in the formats of released checkpoints: the same for a seed and a name.
#pragma once

#include "model/model_tensors.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::model {

/// A stream of random bits that depends on a seed and a name alone (SplitMix64).
class NamedRandom {
 public:
  NamedRandom(std::uint64_t seed, std::string_view name) noexcept;

  std::uint64_t bits() noexcept;
  double uniform() noexcept;  ///< in [0, 1)

 private:
  std::uint64_t state_;
};

/// Codes and scales, or plain numbers, as a checkpoint has them.
struct DrawnMatrix {
  std::vector<std::uint8_t> codes, scales;
  float tensor_scale = 1;
};

/// A matrix whose elements have the standard deviation `deviation` (about): products with
/// `1 / sqrt(cols)` keep the size of what they multiply.
///
///   ""                   bf16, uniform
///   fp8_128x128_ue8m0    all signs and mantissas, exponents -3 to 1, no NaN; scales of the two
///                        powers of two about the deviation
///   mxfp4                all codes; scales likewise
///   nvfp4                all codes; block scales from 1 to 1.875, the rest in the tensor scale
/// Errors   Internal for another format
DrawnMatrix draw_matrix(std::string_view format, std::int64_t rows, std::int64_t cols,
                        double deviation, NamedRandom random);

/// What a matrix of that role should deviate by: rows of the embedding are of size 1, the others
/// keep the size of what they multiply.
double drawn_deviation(TensorRole role, std::int64_t cols);

/// Norms about 1, as bf16 holds them; hyper-connections whose streams keep their size; sinks,
/// biases and ape small.
Vector draw_vector(TensorRole role, std::string_view name, std::int64_t count, NamedRandom random);

/// Rows of different numbers below `limit`.
std::vector<std::int32_t> draw_table(std::int64_t rows, std::int64_t cols, std::int64_t limit,
                                     NamedRandom random);

}  // namespace tilewright::model
