#include "reference/rotation/rotary_table.h"

#include "base/error.h"
#include "reference/error_bound.h"
#include "reference/shape.h"

#include <cmath>

namespace tilewright::reference {

namespace {

// Calls visit(a, b, row): elements of a pair, and of the tables.
template <class Visit>
void for_each_pair(const RotaryTableParams& p, std::span<const double> x,
                   std::span<const int64_t> positions, std::span<const double> cos,
                   std::span<const double> sin, const Visit& visit) {
  const int64_t half = p.rotary_dim / 2;
  require(p.rotary_dim >= 0 && p.rotary_dim % 2 == 0 && p.rotary_dim <= p.head_dim,
          ErrorKind::kInvalidArgument,
          "rotary_table: rotary_dim = {}; expected an even number from 0 to head_dim = {}",
          p.rotary_dim, p.head_dim);
  require_shape("rotary_table", "x", x.size(), "[tokens, heads, head_dim]",
                {p.tokens, p.heads, p.head_dim});
  require_shape("rotary_table", "positions", positions.size(), "[tokens]", {p.tokens});
  require(cos.size() == sin.size(), ErrorKind::kInvalidArgument,
          "rotary_table: cos has {} elements, sin {}; expected equally many", cos.size(),
          sin.size());
  for (int64_t t = 0; t < p.tokens; ++t) {
    const int64_t row = positions[t] * half;
    require(positions[t] >= 0 && row + half <= static_cast<int64_t>(cos.size()),
            ErrorKind::kInvalidArgument,
            "rotary_table: position {} of token {}; expected a row of the tables", positions[t], t);
    for (int64_t h = 0; h < p.heads; ++h) {
      const int64_t head = (t * p.heads + h) * p.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const int64_t a = head + (p.is_interleaved ? 2 * i : i);
        const int64_t b = head + (p.is_interleaved ? 2 * i + 1 : i + half);
        visit(a, b, row + i);
      }
    }
  }
}

}  // namespace

std::vector<double> rotary_table(const RotaryTableParams& p, std::span<const double> x,
                                 std::span<const int64_t> positions, std::span<const double> cos,
                                 std::span<const double> sin) {
  std::vector<double> out(x.begin(), x.end());
  for_each_pair(p, x, positions, cos, sin, [&](int64_t a, int64_t b, int64_t at) {
    out[a] = x[a] * cos[at] - x[b] * sin[at];
    out[b] = x[a] * sin[at] + x[b] * cos[at];
  });
  return out;
}

std::vector<double> rotary_table_error(const RotaryTableParams& p, std::span<const double> x,
                                       std::span<const int64_t> positions,
                                       std::span<const double> cos, std::span<const double> sin) {
  std::vector<double> error(x.size());
  for_each_pair(p, x, positions, cos, sin, [&](int64_t a, int64_t b, int64_t at) {
    error[a] = 3 * kRoundoffFp32 * (std::abs(x[a] * cos[at]) + std::abs(x[b] * sin[at]));
    error[b] = 3 * kRoundoffFp32 * (std::abs(x[a] * sin[at]) + std::abs(x[b] * cos[at]));
  });
  return error;
}

}  // namespace tilewright::reference
