#include "reference/rotation/hadamard.h"

#include "base/error.h"
#include "reference/shape.h"

#include <bit>

namespace tilewright::reference {
namespace {

void check(const HadamardParams& params, std::span<const double> x, std::span<const double> signs) {
  require(std::has_single_bit(static_cast<uint64_t>(params.dim)), ErrorKind::kInvalidArgument,
          "hadamard: dim = {}; expected a power of two. Split or pad the rows.", params.dim);
  require_shape("hadamard", "x", x.size(), "[rows, dim]", {params.rows, params.dim});
  if (!signs.empty()) require_shape("hadamard", "signs", signs.size(), "[dim]", {params.dim});
  for (size_t i = 0; i < signs.size(); ++i) {
    require(signs[i] == 1 || signs[i] == -1, ErrorKind::kInvalidArgument,
            "hadamard: signs[{}] = {}; expected +1 or -1. Use scale for any other factor.", i,
            signs[i]);
  }
}

}  // namespace

std::vector<double> hadamard(const HadamardParams& params, std::span<const double> x,
                             std::span<const double> signs) {
  check(params, x, signs);
  std::vector<double> out;
  for (int64_t r = 0; r < params.rows; ++r) {
    for (int64_t j = 0; j < params.dim; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < params.dim; ++i) {
        const bool is_negative = std::popcount(static_cast<uint64_t>(i & j)) % 2 == 1;
        const double signed_x = (signs.empty() ? 1.0 : signs[i]) * x[r * params.dim + i];
        sum += is_negative ? -signed_x : signed_x;
      }
      out.push_back(params.scale * sum);
    }
  }
  return out;
}

}  // namespace tilewright::reference
