// Layouts to check laws on: a hand-picked list and a seeded random family.
#pragma once

#include "layout/parse.h"
#include "layout/print.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright {

inline void PrintTo(const Layout& layout, std::ostream* out) {
  *out << to_string(layout);
}
inline void PrintTo(const ComposedLayout& layout, std::ostream* out) {
  *out << to_string(layout);
}
inline void PrintTo(const IntTuple& tuple, std::ostream* out) {
  *out << to_string(tuple);
}
inline void PrintTo(const Tiler& tiler, std::ostream* out) {
  *out << to_string(tiler);
}

namespace test {

/// Trees of extents: up to `leaves` leaves, up to 3 levels.
inline IntTuple random_shape(std::mt19937& rng, int leaves, int level = 0) {
  constexpr std::int64_t kExtents[] = {1, 2, 2, 3, 4, 4, 5, 6, 8};
  if (leaves == 1 && (level > 0 || rng() % 2))
    return IntTuple(kExtents[rng() % std::size(kExtents)]);
  IntTuple out;
  while (leaves > 0) {
    const int part = level == 2 ? 1 : 1 + static_cast<int>(rng() % static_cast<unsigned>(leaves));
    push_mode(out, random_shape(rng, part, level + 1));
    leaves -= part;
  }
  return out;
}

/// Compact: the leaves are contiguous in a random order, so the layout is a bijection.
inline Layout random_compact(std::mt19937& rng, int leaves = 4) {
  const IntTuple shape =
      random_shape(rng, 1 + static_cast<int>(rng() % static_cast<unsigned>(leaves)));
  IntTuple order = shape;
  std::iota(order.value, order.value + order.profile.num_leaves, 0);
  std::shuffle(order.value, order.value + order.profile.num_leaves, rng);
  return make_ordered_layout(shape, order);
}

/// Injective and increasing along sorted strides, with gaps: what complement accepts.
inline Layout random_with_gaps(std::mt19937& rng, int leaves = 4) {
  Layout out = random_compact(rng, leaves);
  std::vector<int> by_stride(static_cast<std::size_t>(out.profile.num_leaves));
  std::iota(by_stride.begin(), by_stride.end(), 0);
  std::ranges::stable_sort(by_stride, {}, [&](int i) { return out.stride[i]; });
  std::int64_t covered = 1;
  for (const int i : by_stride) {
    covered *= 1 + static_cast<std::int64_t>(rng() % 3);
    out.stride[i] = covered;
    covered *= out.shape[i];
  }
  return out;
}

/// Any strides at all: gaps, overlaps, zeros.
inline Layout random_any(std::mt19937& rng, int leaves = 4) {
  constexpr std::int64_t kStrides[] = {0, 1, 1, 2, 3, 4, 6, 8, 16, 24, 64};
  Layout out =
      make_layout(random_shape(rng, 1 + static_cast<int>(rng() % static_cast<unsigned>(leaves))));
  for (int i = 0; i < out.profile.num_leaves; ++i)
    out.stride[i] = kStrides[rng() % std::size(kStrides)];
  return out;
}

inline std::vector<Layout> hand_picked() {
  std::vector<Layout> out;
  for (const char* text : {"1:0",
                           "1:1",
                           "(1):(0)",
                           "4:0",
                           "4:1",
                           "4:2",
                           "(4):(1)",
                           "(2,4):(1,2)",
                           "(4,2):(2,1)",
                           "(8,1):(1,8)",
                           "(1,8):(1,1)",
                           "(2,(1,6)):(1,(6,2))",
                           "((2,2),2):((1,4),2)",
                           "((4,2),(2,4)):((2,1),(16,8))",
                           "(8,8):(8,1)",
                           "(3,5):(1,3)",
                           "(3,5):(5,1)",
                           "(4,6,8):(2,3,5)",
                           "(4,(6,2),8):(1,(4,24),48)",
                           "((4,8,4),(2,2,8)):((128,1,16),(64,8,512))",
                           "((4,8),(2,2,2)):((32,1),(16,8,128))",
                           "((32,4),(16,4)):((16,4),(0,1))",
                           "(4,8):(0,1)",
                           "(4,(2,3),(5,(1,7))):(1,(4,8),(24,(0,120)))",
                           "(((2,2),(2,2)),((2,2),(2,2))):(((1,2),(4,8)),((16,32),(64,128)))"}) {
    out.push_back(parse_layout(text));
  }
  return out;
}

/// Hand-picked layouts, then `count` random ones of a kind.
template <class Make>
std::vector<Layout> family(Make make, int count, unsigned seed) {
  std::vector<Layout> out = hand_picked();
  std::mt19937 rng(seed);
  for (int i = 0; i < count; ++i) out.push_back(make(rng, 4));
  return out;
}

inline std::vector<std::int64_t> offsets(const Layout& layout) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < size(layout); ++i) out.push_back(layout(i));
  return out;
}

}  // namespace test
}  // namespace tilewright
