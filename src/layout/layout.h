// Layouts as values: a shape and a stride with the same nesting, a map from coordinates to offsets.
//
//   (4,8):(1,4)         column-major 4x8: (i,j) -> i + 4*j
//   ((2,2),8):((1,16),2) the same 32 coordinates, other offsets
//
// The words and their meaning are CuTe's. A Layout is a plain structural type, so that it can be a
// template argument of device code and a run-time value of a tool alike; congruence of shape and
// stride holds by construction, since both hang on one Profile.
#pragma once

#include "layout/int_tuple.h"

#include <concepts>
#include <cstdint>

namespace tilewright {

/// Which coordinate a stride counts in. Plain strides count elements. A basis stride counts along
/// one axis of a coordinate: path (1) is the second entry, path (1,0) the first entry of the second
/// entry. Printed as CuTe prints it, innermost index first: 1@0@1 is (0,(1,...)).
struct Basis {
  std::uint32_t path =
      0;  ///< byte k holds 1 + the index at level k, outermost first; 0 ends the path

  static constexpr int kMaxDepth = 4;

  constexpr bool operator==(const Basis&) const = default;
  constexpr bool is_plain() const { return path == 0; }
  constexpr int index(int level) const {
    return static_cast<int>((path >> (8 * level)) & 0xff) - 1;
  }
  constexpr int depth() const {
    int levels = 0;
    while (levels < kMaxDepth && index(levels) >= 0) ++levels;
    return levels;
  }
  constexpr Basis then(int next) const {
    if (depth() == kMaxDepth || next > 0xfe)
      law::must_fit_the_capacity_of_a_layout("basis levels", depth() + 1, kMaxDepth);
    return Basis{path | static_cast<std::uint32_t>(next + 1) << (8 * depth())};
  }
};

struct Layout {
  Profile profile;
  std::int64_t shape[kMaxLeaves] = {};
  std::int64_t stride[kMaxLeaves] = {};
  Basis basis[kMaxLeaves] = {};

  constexpr void set_leaf(int i, const Layout& from, int j) {
    shape[i] = from.shape[j];
    stride[i] = from.stride[j];
    basis[i] = from.basis[j];
  }
  constexpr bool operator==(const Layout&) const = default;

  /// True if the layout maps to coordinates (some stride has a basis) and not to offsets.
  constexpr bool is_coordinate() const {
    for (int i = 0; i < profile.num_leaves; ++i) {
      if (!basis[i].is_plain()) return true;
    }
    return false;
  }

  /// Offset of a coordinate: one number (a linear index), one number per mode, or a nested
  /// coordinate.
  constexpr std::int64_t operator()(const IntTuple& crd) const;
  constexpr std::int64_t operator()(std::integral auto index) const {
    return (*this)(IntTuple(static_cast<std::int64_t>(index)));
  }
  template <class... Modes>
  requires(sizeof...(Modes) >= 2) constexpr std::int64_t operator()(const Modes&... crd) const {
    return (*this)(make_coord(crd...));
  }
};

/// shape(layout) and stride(layout) as tuples; stride() drops the basis of coordinate layouts.
constexpr IntTuple shape(const Layout& layout) {
  IntTuple out;
  out.profile = layout.profile;
  for (int i = 0; i < layout.profile.num_leaves; ++i) out.value[i] = layout.shape[i];
  return out;
}
constexpr IntTuple stride(const Layout& layout) {
  IntTuple out;
  out.profile = layout.profile;
  for (int i = 0; i < layout.profile.num_leaves; ++i) out.value[i] = layout.stride[i];
  return out;
}

/// Number of coordinates.
constexpr std::int64_t size(const Layout& layout) {
  return product(shape(layout));
}
constexpr std::int64_t size(const Layout& layout, int i) {
  return size(mode(layout, i));
}

/// One past the largest offset.
constexpr std::int64_t cosize(const Layout& layout) {
  if (layout.is_coordinate()) {
    law::coordinate_layouts_have_no_offsets("cosize", layout);
  }
  std::int64_t last = 0;
  for (int i = 0; i < layout.profile.num_leaves; ++i) {
    const std::int64_t step = layout.stride[i] < 0 ? -layout.stride[i] : layout.stride[i];
    last += checked_multiply(layout.shape[i] - 1, step);
  }
  return last + 1;
}

/// Layout of a shape and a congruent stride.
constexpr Layout make_layout(const IntTuple& shape, const IntTuple& stride) {
  law::must_be_a_constant_in_device_code();
  if (!congruent(shape, stride)) {
    law::shape_and_stride_must_be_nested_alike(shape, stride);
  }
  Layout out;
  out.profile = shape.profile;
  for (int i = 0; i < shape.profile.num_leaves; ++i) {
    if (shape.value[i] < 1) law::extents_must_be_positive(shape);
    out.shape[i] = shape.value[i];
    out.stride[i] = stride.value[i];
  }
  product(shape);  // refuses sizes that do not fit
  return out;
}

/// Compact column-major layout: the first leaf is contiguous.
constexpr Layout make_layout(const IntTuple& shape) {
  IntTuple stride = shape;
  std::int64_t step = 1;
  for (int i = 0; i < shape.profile.num_leaves; ++i) {
    stride.value[i] = step;
    step = checked_multiply(step, shape.value[i]);
  }
  return make_layout(shape, stride);
}

/// Compact row-major layout: the last leaf is contiguous.
constexpr Layout make_row_major(const IntTuple& shape) {
  IntTuple stride = shape;
  std::int64_t step = 1;
  for (int i = shape.profile.num_leaves; i-- > 0;) {
    stride.value[i] = step;
    step = checked_multiply(step, shape.value[i]);
  }
  return make_layout(shape, stride);
}

/// A tuple of layouts is a layout: the given ones become its modes.
template <std::same_as<Layout>... Modes>
constexpr Layout make_layout(const Layout& first, const Modes&... rest) {
  return tuple_of(first, rest...);
}

namespace detail {

constexpr Layout order_leaves(const IntTuple& shape, const IntTuple& order) {
  Layout out = make_layout(shape);
  std::int64_t step = 1;
  bool done[kMaxLeaves] = {};
  for (int placed = 0; placed < shape.profile.num_leaves; ++placed) {
    int next = -1;
    for (int i = 0; i < shape.profile.num_leaves; ++i) {
      if (!done[i] && (next < 0 || order.value[i] < order.value[next])) next = i;
    }
    done[next] = true;
    out.stride[next] = step;
    step *= shape.value[next];
  }
  return out;
}

constexpr void spread_order(const IntTuple& shape, int node, const IntTuple& order, int order_node,
                            IntTuple& out) {
  if (order.profile.is_leaf(order_node)) {
    const int begin = shape.profile.first_leaf(node);
    for (int i = 0; i < shape.profile.leaves_at(node); ++i) {
      out.value[begin + i] = order.value[order.profile.first_leaf(order_node)];
    }
    return;
  }
  for (int k = 0; k < order.profile.rank_at(order_node); ++k) {
    spread_order(shape, shape.profile.child(node, k), order, order.profile.child(order_node, k),
                 out);
  }
}

}  // namespace detail

/// Compact layout whose modes are contiguous in the given order, smallest first; equal ranks run
/// from left to right. make_ordered_layout((2,3,4), (2,0,1)) = (2,3,4):(12,1,3).
constexpr Layout make_ordered_layout(const IntTuple& shape, const IntTuple& order) {
  if (!weakly_congruent(order, shape)) {
    law::order_must_be_nested_like_the_shape(order, shape);
  }
  IntTuple per_leaf = shape;
  detail::spread_order(shape, 0, order, 0, per_leaf);
  return detail::order_leaves(shape, per_leaf);
}

namespace detail {

constexpr void set_identity(Layout& layout, int node, Basis basis) {
  if (layout.profile.is_leaf(node)) {
    layout.stride[layout.profile.first_leaf(node)] = 1;
    layout.basis[layout.profile.first_leaf(node)] = basis;
    return;
  }
  for (int k = 0; k < layout.profile.rank_at(node); ++k) {
    set_identity(layout, layout.profile.child(node, k), basis.then(k));
  }
}

}  // namespace detail

/// The layout that maps every coordinate of a shape to itself: (4,8):(1@0,1@1). Tiled and
/// partitioned like any other, it tells which element a thread holds.
constexpr Layout make_identity_layout(const IntTuple& shape) {
  Layout out = make_layout(shape);
  detail::set_identity(out, 0, Basis{});
  return out;
}

constexpr std::int64_t Layout::operator()(const IntTuple& crd) const {
  if (is_coordinate()) {
    law::coordinate_layouts_have_no_offsets("layout(crd)", *this);
  }
  const LeafCoordinates at = leaf_coordinates(crd, tilewright::shape(*this));
  std::int64_t offset = 0;
  for (int i = 0; i < profile.num_leaves; ++i) offset += at.digit[i] * stride[i];
  return offset;
}

/// The coordinate that a compact layout maps to an offset, nested like the shape or one entry per
/// mode: get_flat_coord((8,4):(4,1), 1) = (0,1). (CuTe's words.)
/// Post  layout(R) == offset
constexpr IntTuple get_hier_coord(const Layout& layout, std::int64_t offset) {
  IntTuple crd = shape(layout);
  for (int i = 0; i < layout.profile.num_leaves; ++i) {
    crd.value[i] = layout.stride[i] == 0 ? 0 : offset / layout.stride[i] % layout.shape[i];
  }
  if (layout(crd) != offset) law::offset_must_be_reached(layout, offset);
  return crd;
}
constexpr IntTuple get_flat_coord(const Layout& layout, std::int64_t offset) {
  const IntTuple crd = get_hier_coord(layout, offset), extents = shape(layout);
  IntTuple flat;
  for (int i = 0; i < rank(layout); ++i) {
    push_mode(flat, IntTuple(crd2idx(mode(crd, i), mode(extents, i))));
  }
  return flat;
}

namespace detail {

// The entry at `prefix` of the coordinate sum(digit * stride * basis).
constexpr IntTuple coordinate_entry(const Layout& layout, const LeafCoordinates& at, Basis prefix) {
  const int level = prefix.depth();
  const std::uint32_t mask = level == 0 ? 0 : ~std::uint32_t{0} >> (32 - 8 * level);
  std::int64_t sum = 0;
  int last_child = -1;
  for (int i = 0; i < layout.profile.num_leaves; ++i) {
    const Basis basis = layout.basis[i];
    if ((basis.path & mask) != prefix.path) continue;
    if (basis.depth() == level) sum += at.digit[i] * layout.stride[i];
    if (basis.depth() > level && basis.index(level) > last_child) last_child = basis.index(level);
  }
  if (last_child < 0) return IntTuple(sum);
  IntTuple out;
  for (int k = 0; k <= last_child; ++k) {
    push_mode(out, coordinate_entry(layout, at, prefix.then(k)));
  }
  return out;
}

}  // namespace detail

/// What a layout maps a coordinate to, as a coordinate. An offset layout gives a single number.
constexpr IntTuple coordinate(const Layout& layout, const IntTuple& crd) {
  return detail::coordinate_entry(layout, leaf_coordinates(crd, shape(layout)), Basis{});
}

/// Entries of the coordinates that a coordinate layout maps to.
constexpr int num_axes(const Layout& layout) {
  int axes = 0;
  for (int i = 0; i < layout.profile.num_leaves; ++i) {
    if (layout.basis[i].index(0) >= axes) axes = layout.basis[i].index(0) + 1;
  }
  return axes;
}

/// One entry of the coordinates that a layout maps to, as a layout of offsets: leaves that walk
/// along other axes get stride 0. Entries must be numbers.
/// Post  R(c) == entry `axis` of coordinate(A, c)
constexpr Layout along_axis(const Layout& a, int axis) {
  Layout out = a;
  for (int i = 0; i < a.profile.num_leaves; ++i) {
    if (a.stride[i] != 0 && a.basis[i].depth() != 1) law::coordinates_must_be_flat(a);
    if (a.basis[i].index(0) != axis) out.stride[i] = 0;
    out.basis[i] = {};
  }
  return out;
}

}  // namespace tilewright
