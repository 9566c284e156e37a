#include "layout/unchecked.h"

#include "layout/algebra.h"

#include <algorithm>

namespace tilewright {

namespace {

Layout compose_leaf(const Layout& a, std::int64_t shape, std::int64_t stride) {
  if (stride == 0) return detail::leaf_layout(shape, 0);
  Layout out;
  const int last = a.profile.num_leaves - 1;
  for (int i = 0; i < last; ++i) {
    const std::int64_t taken = std::min(std::max<std::int64_t>(1, a.shape[i] / stride), shape);
    if (taken != 1) detail::push_leaf(out, taken, stride * a.stride[i], {});
    shape = taken == 0 ? 0 : shape / taken;
    stride = ceil_div(stride, std::max<std::int64_t>(1, a.shape[i]));
  }
  if (shape != 1 || rank(out) == 0) detail::push_leaf(out, shape, stride * a.stride[last], {});
  return unwrap(out);
}

}  // namespace

Layout unchecked_composition(const Layout& a, const Layout& b) {
  if (is_leaf(b)) return compose_leaf(as_tuple(coalesce(a)), b.shape[0], b.stride[0]);
  Layout out;
  for (int i = 0; i < rank(b); ++i) push_mode(out, unchecked_composition(a, mode(b, i)));
  return out;
}

Layout unchecked_complement(const Layout& a, std::int64_t bound) {
  const Layout sorted = detail::sorted_by_stride(a);
  Layout out;
  std::int64_t covered = 1;
  for (int i = 0; i < sorted.profile.num_leaves; ++i) {
    if (sorted.stride[i] == 0 || sorted.shape[i] == 1) continue;
    detail::push_leaf(out, sorted.stride[i] / covered, covered, {});
    covered = sorted.shape[i] * sorted.stride[i];
  }
  detail::push_leaf(out, ceil_div(bound, covered), covered, {});
  return coalesce(out);
}

Layout unchecked_logical_divide(const Layout& a, const Layout& tile) {
  return unchecked_composition(a, make_layout(tile, unchecked_complement(tile, size(a))));
}

Layout unchecked_logical_product(const Layout& a, const Layout& tile) {
  return make_layout(a,
                     unchecked_composition(unchecked_complement(a, size(a) * cosize(tile)), tile));
}

}  // namespace tilewright
