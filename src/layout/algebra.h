// The algebra: coalesce, filter, composition, complement, inverses.
//
// Every function states its post-condition, and tests/layout checks it over all coordinates.
#pragma once

#include "layout/layout.h"
#include "layout/tiler.h"

#include <cstdint>

namespace tilewright {

namespace detail {

constexpr Layout leaf_layout(std::int64_t shape, std::int64_t stride, Basis basis = {}) {
  Layout out;
  out.profile = Profile::leaf();
  out.shape[0] = shape;
  out.stride[0] = stride;
  out.basis[0] = basis;
  return out;
}

constexpr void push_leaf(Layout& flat, std::int64_t shape, std::int64_t stride, Basis basis) {
  push_mode(flat, leaf_layout(shape, stride, basis));
}

// A flat tuple of 0 leaves becomes `empty`, of 1 leaf that leaf.
constexpr Layout simplest(const Layout& flat, const Layout& empty) {
  return rank(flat) == 0 ? empty : unwrap(flat);
}

constexpr void require_plain(const char* operation, const Layout& layout) {
  if (layout.is_coordinate()) {
    law::coordinate_layouts_have_no_offsets(operation, layout);
  }
}

}  // namespace detail

/// The simplest layout with the same offsets: extents of 1 dropped, contiguous neighbours merged.
/// Post  R(i) == A(i) for all i < size(A); depth(R) <= 1
constexpr Layout coalesce(const Layout& a) {
  Layout out;
  for (int i = 0; i < a.profile.num_leaves; ++i) {
    const int n = out.profile.num_leaves;
    if (a.shape[i] == 1) continue;
    if (n > 0 && out.basis[n - 1] == a.basis[i] &&
        out.shape[n - 1] * out.stride[n - 1] == a.stride[i]) {
      out.shape[n - 1] *= a.shape[i];
    } else {
      detail::push_leaf(out, a.shape[i], a.stride[i], a.basis[i]);
    }
  }
  return detail::simplest(out, detail::leaf_layout(1, 0));
}

/// Coalesces mode by mode, as deep as the profile goes: coalesce(A, make_shape(1,1)) keeps two
/// modes.
constexpr Layout coalesce(const Layout& a, const IntTuple& profile) {
  if (is_leaf(profile)) return coalesce(a);
  if (rank(profile) > rank(a))
    law::a_must_have_as_many_modes_as_b("coalesce by profile", rank(a), rank(profile));
  Layout out;
  for (int i = 0; i < rank(profile); ++i) push_mode(out, coalesce(mode(a, i), mode(profile, i)));
  push_modes(out, a, rank(profile), rank(a));
  return out;
}

/// Leaves of stride 0 keep their place with extent 1.
constexpr Layout filter_zeros(const Layout& a) {
  Layout out = a;
  for (int i = 0; i < a.profile.num_leaves; ++i) {
    if (a.stride[i] == 0) out.shape[i] = 1;
  }
  return out;
}

/// What is left of a layout when everything that visits no new offset is dropped.
constexpr Layout filter(const Layout& a) {
  return coalesce(filter_zeros(a));
}
constexpr Layout filter(const Layout& a, const IntTuple& profile) {
  return coalesce(filter_zeros(a), profile);
}

namespace detail {

// Composes coalesced A with the leaves of B one by one. Each leaf is skipped by its stride over the
// leaves of A, then takes extents until its own is used up. That is right as long as the leaves of
// B together do not carry out of a leaf of A; `reach` keeps, per leaf of A, the largest index they
// add up to.
struct Composer {
  const Layout& a;                  // coalesced, a tuple
  const Layout &whole_a, &whole_b;  // for messages
  std::int64_t reach[kMaxLeaves] = {};

  constexpr Layout compose(const Layout& b, int node) {
    if (b.profile.is_leaf(node)) {
      const int i = b.profile.first_leaf(node);
      return compose_leaf(b.shape[i], b.stride[i]);
    }
    Layout out;
    for (int k = 0; k < b.profile.rank_at(node); ++k)
      push_mode(out, compose(b, b.profile.child(node, k)));
    return out;
  }

  constexpr Layout compose_leaf(std::int64_t shape, std::int64_t stride) {
    if (stride == 0 || a.profile.num_leaves == 0) return leaf_layout(shape, 0);
    Layout out;
    for (int i = 0; shape > 1 || rank(out) == 0; ++i) {
      const std::int64_t extent = a.shape[i];
      // The last leaf of A goes on for ever; and what ends inside a leaf asks nothing of its
      // extent.
      if (i + 1 == a.profile.num_leaves || (shape - 1) * stride < extent) {
        take(out, i, shape, stride);
        break;
      }
      if (stride % extent == 0) {
        stride /= extent;
        continue;
      }
      const std::int64_t taken = extent / stride;
      if (extent % stride != 0) {
        law::strides_of_b_must_divide_the_extents_of_a_they_cross(whole_a, whole_b);
      }
      if (shape % taken != 0) {
        law::extents_of_b_must_be_multiples_of_the_parts_of_a_they_fill(whole_a, whole_b);
      }
      take(out, i, taken, stride);
      shape /= taken;
      stride = 1;
    }
    return unwrap(out);
  }

  constexpr void take(Layout& out, int leaf, std::int64_t count, std::int64_t stride) {
    push_leaf(out, count, stride * a.stride[leaf], a.basis[leaf]);
    reach[leaf] += (count - 1) * stride;
    if (leaf + 1 < a.profile.num_leaves && reach[leaf] >= a.shape[leaf]) {
      law::modes_of_b_must_not_carry_from_one_extent_of_a_into_the_next(whole_a, whole_b);
    }
  }
};

}  // namespace detail

/// A after B.
/// Post  R(c) == A(B(c)) for all coordinates c of B; compatible(shape(B), shape(R))
constexpr Layout composition(const Layout& a, const Layout& b) {
  detail::require_plain("composition A o B: B", b);
  const Layout flat = as_tuple(coalesce(a));
  return detail::Composer{flat, a, b}.compose(b, 0);
}

/// Mode by mode: a leaf of the tiler is composed with the mode of A at its place; free modes and
/// the modes beyond the tiler stay.
constexpr Layout composition(const Layout& a, const Tiler& tiler) {
  if (is_leaf(tiler)) return tiler.is_free[0] ? a : composition(a, tiler.layout[0]);
  if (rank(tiler) > rank(a))
    law::a_must_have_as_many_modes_as_b("composition by tiler", rank(a), rank(tiler));
  Layout out;
  for (int i = 0; i < rank(tiler); ++i) push_mode(out, composition(mode(a, i), mode(tiler, i)));
  push_modes(out, a, rank(tiler), rank(a));
  return out;
}

/// The layout under another shape of the same size.
constexpr Layout with_shape(const Layout& a, const IntTuple& shape) {
  return composition(a, make_layout(shape));
}

namespace detail {

// Leaves sorted by stride (stable), as a flat layout.
constexpr Layout sorted_by_stride(const Layout& a) {
  Layout out = as_tuple(flatten(a));
  for (int i = 1; i < out.profile.num_leaves; ++i) {
    for (int j = i; j > 0 && out.stride[j] < out.stride[j - 1]; --j) {
      const Layout held = out;
      out.set_leaf(j, held, j - 1);
      out.set_leaf(j - 1, held, j);
    }
  }
  return out;
}

}  // namespace detail

/// The offsets that A leaves out, up to a bound.
/// Post  R is increasing, its image and A's meet in 0 only, and (A, R) reaches at least `bound`
///       offsets
constexpr Layout complement(const Layout& a, std::int64_t bound) {
  detail::require_plain("complement", a);
  const Layout sorted = detail::sorted_by_stride(filter(a));
  Layout out;
  std::int64_t covered = 1;
  for (int i = 0; i < sorted.profile.num_leaves; ++i) {
    if (sorted.shape[i] == 1) continue;
    if (sorted.stride[i] < covered || sorted.stride[i] % covered != 0) {
      law::complement_needs_an_injective_layout_with_nested_strides(a);
    }
    detail::push_leaf(out, sorted.stride[i] / covered, covered, {});
    covered = checked_multiply(sorted.shape[i], sorted.stride[i]);
  }
  detail::push_leaf(out, ceil_div(bound, covered), covered, {});
  return coalesce(out);
}
constexpr Layout complement(const Layout& a) {
  return complement(a, cosize(a));
}

/// Post  A(R(i)) == i for all i < size(R); R is the longest such layout
constexpr Layout right_inverse(const Layout& a) {
  detail::require_plain("right_inverse", a);
  const Layout flat = as_tuple(coalesce(a));
  Layout out;
  std::int64_t reached = 1;
  for (bool found = true; found;) {
    found = false;
    std::int64_t step = 1;  // linear index of a unit step along leaf i
    for (int i = 0; i < flat.profile.num_leaves && !found; ++i) {
      if (flat.shape[i] > 1 && flat.stride[i] == reached) {
        detail::push_leaf(out, flat.shape[i], step, {});
        reached *= flat.shape[i];
        found = true;
      }
      step *= flat.shape[i];
    }
  }
  return coalesce(out);
}

/// Post  R(A(i)) == i for all i < size(A)
constexpr Layout left_inverse(const Layout& a) {
  return right_inverse(make_layout(a, complement(a)));
}

/// Number of elements that are contiguous, in the same order, in both layouts: how wide a vector
/// may be when copying from one to the other.
/// Post  A(V(i)) == i == B(V(i)) for all i < R, with V = right_inverse(B)
constexpr std::int64_t max_common_vector(const Layout& a, const Layout& b) {
  const Layout inverse = right_inverse(b);
  std::int64_t common = 0;
  while (common < size(inverse) && a(inverse(common)) == common) ++common;
  return common > 0 ? common : 1;
}

}  // namespace tilewright
