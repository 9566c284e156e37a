// Tilers: a tuple of layouts, one per mode of what is tiled. <4:1,(2,4):(1,8)> tiles mode 0 by 4
// contiguous elements and mode 1 by a two-part pattern; a free mode `_` is left alone.
#pragma once

#include "layout/layout.h"

#include <cstdint>

namespace tilewright {

inline constexpr int kMaxTilerLeaves = 8;

struct Tiler {
  Profile profile;
  Layout layout[kMaxTilerLeaves] = {};
  bool is_free[kMaxTilerLeaves] = {};

  constexpr Tiler() = default;  ///< the empty tuple: tiles nothing
  constexpr Tiler(const Layout& whole) : profile(Profile::leaf()) { layout[0] = whole; }
  /// A number tiles by that many contiguous elements; a tuple of numbers mode by mode.
  constexpr Tiler(const IntTuple& shape) : profile(shape.profile) {
    if (shape.profile.num_leaves > kMaxTilerLeaves) {
      law::must_fit_the_capacity_of_a_layout("layouts of a tiler", shape.profile.num_leaves,
                                             kMaxTilerLeaves);
    }
    for (int i = 0; i < shape.profile.num_leaves; ++i) {
      is_free[i] = shape.value[i] == kFree;
      if (!is_free[i]) layout[i] = make_layout(IntTuple(shape.value[i]));
    }
  }
  constexpr Tiler(std::int64_t extent) : Tiler(IntTuple(extent)) {}

  constexpr void set_leaf(int i, const Tiler& from, int j) {
    if (i >= kMaxTilerLeaves)
      law::must_fit_the_capacity_of_a_layout("layouts of a tiler", i + 1, kMaxTilerLeaves);
    layout[i] = from.layout[j];
    is_free[i] = from.is_free[j];
  }
  constexpr bool operator==(const Tiler&) const = default;
};

/// make_tiler(4, make_layout(2), kFree): modes given as extents, shapes, layouts, tilers or kFree.
template <class... Modes>
constexpr Tiler make_tiler(const Modes&... modes) {
  Tiler out;
  (push_mode(out, Tiler(modes)), ...);
  return out;
}

}  // namespace tilewright
