#include "reference/linear/output_projection.h"

#include "base/error.h"
#include "reference/dot.h"
#include "reference/linear/linear.h"
#include "reference/shape.h"

namespace tilewright::reference {

std::vector<double> grouped_projection(const OutputProjectionParams& p, std::span<const double> o,
                                       std::span<const double> wo_a) {
  require(p.groups >= 1 && p.heads % p.groups == 0, ErrorKind::kInvalidArgument,
          "output_projection: heads = {} and groups = {}; expected groups that divide heads. Take "
          "both from the model's configuration.",
          p.heads, p.groups);
  const int64_t in = p.heads / p.groups * p.head_dim;
  require_shape("output_projection", "o", o.size(), "[tokens, heads, head_dim]",
                {p.tokens, p.heads, p.head_dim});
  require_shape("output_projection", "wo_a", wo_a.size(), "[groups, rank, in]",
                {p.groups, p.rank, in});
  std::vector<double> z;
  for (int64_t row = 0; row < p.tokens * p.groups; ++row) {
    const int64_t group = row % p.groups;
    for (int64_t r = 0; r < p.rank; ++r)
      z.push_back(dot(&o[row * in], &wo_a[(group * p.rank + r) * in], in));
  }
  return z;
}

std::vector<double> output_projection(const OutputProjectionParams& p, std::span<const double> o,
                                      std::span<const double> wo_a, std::span<const double> wo_b) {
  const auto z = grouped_projection(p, o, wo_a);
  return linear({p.tokens, p.hidden, p.groups * p.rank}, z, wo_b);
}

}  // namespace tilewright::reference
