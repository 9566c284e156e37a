// Nested tuples of integers: shapes, strides, coordinates, orders.
#pragma once

#include "layout/tree.h"

#include <cstdint>
#include <limits>

namespace tilewright {

/// Marks a free mode in a coordinate to slice with; printed and parsed as `_`.
inline constexpr std::int64_t kFree = std::numeric_limits<std::int64_t>::min();

struct IntTuple {
  Profile profile;
  std::int64_t value[kMaxLeaves] = {};

  constexpr IntTuple() = default;  ///< the empty tuple ()
  constexpr IntTuple(std::int64_t leaf) : profile(Profile::leaf()), value{leaf} {}

  constexpr void set_leaf(int i, const IntTuple& from, int j) { value[i] = from.value[j]; }
  constexpr bool operator==(const IntTuple&) const = default;
};

/// make_shape(4, make_shape(2, 3)) is (4,(2,3)). make_stride, make_coord and make_tiler_shape read
/// better where they are meant; all three are the same function.
template <class... Modes>
constexpr IntTuple make_shape(const Modes&... modes) {
  IntTuple out;
  (push_mode(out, IntTuple(modes)), ...);
  return out;
}
template <class... Modes>
constexpr IntTuple make_stride(const Modes&... modes) {
  return make_shape(modes...);
}
template <class... Modes>
constexpr IntTuple make_coord(const Modes&... modes) {
  return make_shape(modes...);
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// a * b, or a broken law if it does not fit in 63 bits.
constexpr std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  const auto magnitude = [](std::int64_t x) { return x < 0 ? -x : x; };
  if (a != 0 && magnitude(b) > std::numeric_limits<std::int64_t>::max() / magnitude(a)) {
    law::product_must_fit_in_63_bits(a, b);
  }
  return a * b;
}

/// Product of all leaves; 1 for ().
constexpr std::int64_t product(const IntTuple& tuple) {
  std::int64_t total = 1;
  for (int i = 0; i < tuple.profile.num_leaves; ++i) {
    total = checked_multiply(total, tuple.value[i]);
  }
  return total;
}

/// One product per mode: product_each((2,(3,4))) = (2,12).
constexpr IntTuple product_each(const IntTuple& tuple) {
  IntTuple out;
  for (int i = 0; i < rank(tuple); ++i) push_mode(out, IntTuple(product(mode(tuple, i))));
  return out;
}

/// Same nesting.
template <Tree A, Tree B>
constexpr bool congruent(const A& a, const B& b) {
  return a.profile == b.profile;
}

namespace detail {

constexpr bool weakly_congruent_at(const Profile& a, int i, const Profile& b, int j) {
  if (a.is_leaf(i)) return true;
  if (b.is_leaf(j) || a.rank_at(i) != b.rank_at(j)) return false;
  for (int k = 0; k < a.rank_at(i); ++k) {
    if (!weakly_congruent_at(a, a.child(i, k), b, b.child(j, k))) return false;
  }
  return true;
}

constexpr bool compatible_at(const IntTuple& a, const IntTuple& b) {
  if (is_leaf(a)) return a.value[0] == product(b);
  if (is_leaf(b) || rank(a) != rank(b)) return false;
  for (int k = 0; k < rank(a); ++k) {
    if (!compatible_at(mode(a, k), mode(b, k))) return false;
  }
  return true;
}

}  // namespace detail

/// `b` refines the nesting of `a`: a leaf of `a` may be any tuple in `b`.
template <Tree A, Tree B>
constexpr bool weakly_congruent(const A& a, const B& b) {
  return detail::weakly_congruent_at(a.profile, 0, b.profile, 0);
}

/// Every coordinate of shape `a` is a coordinate of shape `b`: a leaf of `a` may be any tuple of
/// the same size in `b`.
constexpr bool compatible(const IntTuple& a, const IntTuple& b) {
  return detail::compatible_at(a, b);
}

/// The nested coordinate of a linear index (colexicographic: the first leaf runs fastest). The last
/// leaf takes what is left, so an index past the end stays recognisable.
constexpr IntTuple idx2crd(std::int64_t index, const IntTuple& shape) {
  law::must_be_a_constant_in_device_code();
  IntTuple crd = shape;
  for (int i = 0; i < shape.profile.num_leaves; ++i) {
    const bool last = i + 1 == shape.profile.num_leaves;
    crd.value[i] = last ? index : index % shape.value[i];
    index /= shape.value[i];
  }
  return crd;
}

namespace detail {

constexpr void spread_index(const Profile& profile, const std::int64_t* extent, int node,
                            std::int64_t index, std::int64_t* digit) {
  const int begin = profile.first_leaf(node), end = begin + profile.leaves_at(node);
  for (int i = begin; i < end; ++i) {
    digit[i] = i + 1 == end ? index : index % extent[i];
    index /= extent[i];
  }
}

constexpr bool spread_coordinate(const Profile& profile, const std::int64_t* extent, int node,
                                 const IntTuple& crd, int crd_node, std::int64_t* digit) {
  if (crd.profile.is_leaf(crd_node)) {
    const std::int64_t index = crd.value[crd.profile.first_leaf(crd_node)];
    spread_index(profile, extent, node, index, digit);
    return true;
  }
  const int modes = crd.profile.rank_at(crd_node);
  if (profile.is_leaf(node) ? modes != 1 : modes != profile.rank_at(node)) return false;
  for (int k = 0; k < modes; ++k) {
    if (!spread_coordinate(profile, extent, profile.child(node, k), crd,
                           crd.profile.child(crd_node, k), digit)) {
      return false;
    }
  }
  return true;
}

}  // namespace detail

/// One coordinate per leaf of a shape.
struct LeafCoordinates {
  std::int64_t digit[kMaxLeaves] = {};
};

/// Splits a coordinate, as coarse or as fine as the caller has it, over the leaves of the shape.
constexpr LeafCoordinates leaf_coordinates(const IntTuple& crd, const IntTuple& shape) {
  law::must_be_a_constant_in_device_code();
  LeafCoordinates out;
  if (!detail::spread_coordinate(shape.profile, shape.value, 0, crd, 0, out.digit)) {
    law::coordinate_must_be_nested_like_the_shape(crd, shape);
  }
  return out;
}

/// Linear (colexicographic) index of a coordinate in a shape: the inverse of idx2crd.
constexpr std::int64_t crd2idx(const IntTuple& crd, const IntTuple& shape) {
  const LeafCoordinates at = leaf_coordinates(crd, shape);
  std::int64_t index = 0, step = 1;
  for (int i = 0; i < shape.profile.num_leaves; ++i) {
    index += at.digit[i] * step;
    step *= shape.value[i];
  }
  return index;
}

/// Sum of two coordinates; where one has no entry it counts as 0, so (3) + (1,2) = (4,2) and 0 + x
/// = x.
constexpr IntTuple add_coordinates(const IntTuple& a, const IntTuple& b) {
  if (is_leaf(a) && is_leaf(b)) return IntTuple(a.value[0] + b.value[0]);
  if (is_leaf(a) && a.value[0] == 0) return b;
  if (is_leaf(b) && b.value[0] == 0) return a;
  if (is_leaf(a) || is_leaf(b)) {
    law::a_number_and_a_tuple_have_no_sum(a, b);
  }
  IntTuple out;
  const int modes = rank(a) > rank(b) ? rank(a) : rank(b);
  for (int i = 0; i < modes; ++i) {
    if (i >= rank(a)) {
      push_mode(out, mode(b, i));
    } else if (i >= rank(b)) {
      push_mode(out, mode(a, i));
    } else {
      push_mode(out, add_coordinates(mode(a, i), mode(b, i)));
    }
  }
  return out;
}

}  // namespace tilewright
