// The laws of the algebra, each over all coordinates of hand-picked and random layouts.

#include "base/error.h"
#include "layout/divide_product.h"
#include "layout_families.h"

#include <set>

namespace tilewright {
namespace {

using test::family;
using test::offsets;
using test::random_any;
using test::random_compact;
using test::random_with_gaps;

constexpr int kRandom = 400;

// True if the operation accepts its operands; the laws say what must hold then.
template <class Operation>
bool accepts(Operation operation) {
  try {
    operation();
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.what();
    return false;
  }
}

TEST(Laws, SizeIsTheProductOfModeSizesAndCosizeBoundsTheOffsets) {
  for (const Layout& a : family(random_any, kRandom, 1)) {
    std::int64_t product = 1, largest = 0;
    for (int i = 0; i < rank(a); ++i) product *= size(a, i);
    for (const std::int64_t offset : offsets(a)) largest = std::max(largest, offset);
    EXPECT_EQ(size(a), product) << to_string(a);
    EXPECT_EQ(cosize(a), largest + 1) << to_string(a);
  }
}

TEST(Laws, LinearAndNestedCoordinatesAgree) {
  for (const Layout& a : family(random_any, kRandom, 2)) {
    for (std::int64_t i = 0; i < size(a); ++i) {
      const IntTuple nested = idx2crd(i, shape(a));
      EXPECT_EQ(crd2idx(nested, shape(a)), i);
      EXPECT_EQ(a(nested), a(i)) << to_string(a) << " at " << to_string(nested);
    }
  }
}

TEST(Laws, CoalesceKeepsEveryOffset) {
  for (const Layout& a : family(random_any, kRandom, 3)) {
    const Layout r = coalesce(a);
    EXPECT_EQ(offsets(r), offsets(a)) << to_string(a) << " -> " << to_string(r);
    EXPECT_LE(depth(r), 1);
    EXPECT_EQ(coalesce(r), r) << "not at rest: " << to_string(r);
  }
}

TEST(Laws, CoalesceByProfileKeepsEveryOffsetOfEveryMode) {
  for (const Layout& a : family(random_any, kRandom, 4)) {
    IntTuple profile;
    for (int i = 0; i < rank(a); ++i) push_mode(profile, IntTuple(1));
    const Layout r = coalesce(a, profile);
    ASSERT_EQ(rank(r), rank(a));
    for (int i = 0; i < rank(a); ++i)
      EXPECT_EQ(offsets(mode(r, i)), offsets(mode(a, i))) << to_string(a);
  }
}

TEST(Laws, FilterVisitsTheSameOffsets) {
  for (const Layout& a : family(random_any, kRandom, 5)) {
    const auto of = [](const Layout& layout) {
      const auto all = offsets(layout);
      return std::set<std::int64_t>(all.begin(), all.end());
    };
    EXPECT_EQ(of(filter(a)), of(a)) << to_string(a);
  }
}

TEST(Laws, CompositionIsCompositionOfFunctions) {
  std::mt19937 rng(6);
  int accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    const Layout a = i % 2 ? random_any(rng) : random_compact(rng);
    const Layout b = random_with_gaps(rng, 2);
    Layout r;
    if (!accepts([&] { r = composition(a, b); })) continue;
    ++accepted;
    EXPECT_TRUE(compatible(shape(b), shape(r)))
        << to_string(a) << " o " << to_string(b) << " = " << to_string(r);
    // Beyond its last offset a layout goes on along its last mode that coalesce keeps.
    const Layout flat = coalesce(a);
    for (std::int64_t k = 0; k < size(b); ++k) {
      ASSERT_EQ(r(k), flat(b(k))) << to_string(a) << " o " << to_string(b) << " = " << to_string(r)
                                  << " at " << k;
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(Laws, CompositionRefusesWhatCarriesFromOneExtentIntoTheNext) {
  // Each mode of B alone stays inside (4), together they reach offset 4: a sum of the two parts
  // would be wrong.
  EXPECT_THROW(composition(parse_layout("(4,3):(1,10)"), parse_layout("(3,2):(1,2)")), Error);
  EXPECT_EQ(composition(parse_layout("(4,3):(1,10)"), parse_layout("(2,2):(1,2)")),
            parse_layout("(2,2):(1,2)"));
  // 3:3 needs offsets 0, 3 and 6 only: that 3 does not divide 8 is no matter.
  EXPECT_EQ(composition(parse_layout("(8,8):(3,97)"), parse_layout("3:3")), parse_layout("3:9"));
}

TEST(Laws, CompositionIsAssociative) {
  std::mt19937 rng(7);
  int accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    const Layout a = random_compact(rng), b = random_compact(rng, 3), c = random_compact(rng, 2);
    if (cosize(b) > size(a) || cosize(c) > size(b)) continue;
    Layout left, right;
    if (!accepts([&] {
          left = composition(composition(a, b), c);
          right = composition(a, composition(b, c));
        })) {
      continue;
    }
    ++accepted;
    EXPECT_EQ(offsets(left), offsets(right))
        << to_string(a) << " " << to_string(b) << " " << to_string(c);
  }
  EXPECT_GT(accepted, 100);
}

TEST(Laws, CompositionWithTheIdentityChangesNothing) {
  for (const Layout& a : family(random_any, kRandom, 8)) {
    EXPECT_EQ(offsets(composition(a, make_layout(size(a)))), offsets(a)) << to_string(a);
    EXPECT_EQ(offsets(composition(make_layout(cosize(a)), a)), offsets(a)) << to_string(a);
  }
}

TEST(Laws, CompositionByModeActsOnEachMode) {
  const Layout a = parse_layout("((4,2),8):((1,32),4)");
  const Layout r = composition(a, parse_tiler("<2:4,4:2>"));
  EXPECT_EQ(r, parse_layout("(2,4):(32,8)"));
  EXPECT_EQ(composition(a, parse_tiler("<_,4:2>")), parse_layout("((4,2),4):((1,32),8)"));
  EXPECT_EQ(composition(a, parse_tiler("<2:4>")), parse_layout("(2,8):(32,4)"));
}

TEST(Laws, ComplementIsIncreasingDisjointAndCompletes) {
  for (const Layout& a : family(random_with_gaps, kRandom, 9)) {
    for (const std::int64_t bound : {std::int64_t{1}, cosize(a), 3 * cosize(a) + 1}) {
      Layout r;
      if (!accepts([&] { r = complement(a, bound); })) continue;
      const auto rest = offsets(r);
      EXPECT_TRUE(std::ranges::is_sorted(rest)) << to_string(a) << " -> " << to_string(r);
      const auto own = offsets(a);
      const std::set<std::int64_t> image(own.begin(), own.end());
      for (std::size_t i = 1; i < rest.size(); ++i)
        EXPECT_FALSE(image.contains(rest[i])) << to_string(a);
      EXPECT_GE(cosize(make_layout(a, r)), bound) << to_string(a) << " -> " << to_string(r);
      // Together they are injective: each offset of A shifted by each of R is another one.
      std::set<std::int64_t> both;
      for (const std::int64_t x : image) {
        for (const std::int64_t y : rest) both.insert(x + y);
      }
      EXPECT_EQ(both.size(), image.size() * rest.size()) << to_string(a) << " -> " << to_string(r);
    }
  }
}

TEST(Laws, RightInverseIsARightInverse) {
  for (const Layout& a : family(random_any, kRandom, 10)) {
    const Layout r = right_inverse(a);
    for (std::int64_t i = 0; i < size(r); ++i)
      ASSERT_EQ(a(r(i)), i) << to_string(a) << " -> " << to_string(r);
  }
  for (const Layout& a : family(random_compact, kRandom, 11)) {
    if (cosize(a) == size(a)) {
      EXPECT_EQ(size(right_inverse(a)), size(a)) << to_string(a);
    }
  }
}

TEST(Laws, LeftInverseIsALeftInverse) {
  for (const Layout& a : family(random_with_gaps, kRandom, 12)) {
    Layout r;
    if (!accepts([&] { r = left_inverse(a); })) continue;
    if (filter(a) != coalesce(a)) continue;  // stride 0: no layout can tell its coordinates apart
    for (std::int64_t i = 0; i < size(a); ++i)
      ASSERT_EQ(r(a(i)), i) << to_string(a) << " -> " << to_string(r);
  }
}

TEST(Laws, LogicalDividePicksTheTileAndReachesEverything) {
  std::mt19937 rng(13);
  int accepted = 0;
  for (int i = 0; i < 2000; ++i) {
    const Layout a = random_any(rng), tile = random_with_gaps(rng, 2);
    if (cosize(tile) > size(a)) continue;
    Layout r;
    if (!accepts([&] { r = logical_divide(a, tile); })) continue;
    ++accepted;
    ASSERT_EQ(rank(r), 2);
    EXPECT_EQ(offsets(mode(r, 0)), offsets(composition(a, tile)))
        << to_string(a) << " / " << to_string(tile);
    EXPECT_GE(size(r), size(a));
    if (size(r) == size(a)) {
      auto left = offsets(r), right = offsets(a);
      std::ranges::sort(left);
      std::ranges::sort(right);
      EXPECT_EQ(left, right) << to_string(a) << " / " << to_string(tile) << " = " << to_string(r);
    }
  }
  EXPECT_GT(accepted, 300);
}

TEST(Laws, TheDivideFamilyOnlyRegroups) {
  const Layout a = parse_layout("(8,6,5):(6,1,48)");
  const Tiler tiler = parse_tiler("<4:1,3:1>");
  const Layout logical = logical_divide(a, tiler);
  EXPECT_EQ(logical, parse_layout("((4,2),(3,2),5):((6,24),(1,3),48)"));
  EXPECT_EQ(zipped_divide(a, tiler), parse_layout("((4,3),(2,2,5)):((6,1),(24,3,48))"));
  EXPECT_EQ(tiled_divide(a, tiler), parse_layout("((4,3),2,2,5):((6,1),24,3,48)"));
  EXPECT_EQ(flat_divide(a, tiler), parse_layout("(4,3,2,2,5):(6,1,24,3,48)"));
}

TEST(Laws, LogicalProductRepeatsTheBlockOverFreeOffsets) {
  std::mt19937 rng(14);
  int accepted = 0;
  for (int i = 0; i < 2000; ++i) {
    const Layout a = random_with_gaps(rng, 2), tile = random_compact(rng, 2);
    Layout r;
    if (!accepts([&] { r = logical_product(a, tile); })) continue;
    ++accepted;
    EXPECT_EQ(mode(r, 0), a);
    EXPECT_TRUE(compatible(shape(tile), shape(mode(r, 1))))
        << to_string(a) << " x " << to_string(tile);
    const auto all = offsets(r);
    EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), all.size())
        << to_string(a) << " x " << to_string(tile) << " = " << to_string(r);
  }
  EXPECT_GT(accepted, 500);
}

TEST(Laws, TheProductFamilyOnlyRegroups) {
  const Layout a = parse_layout("(2,4):(4,1)");
  EXPECT_EQ(logical_product(a, Tiler(parse_layout("(3,2)"))),
            parse_layout("((2,4),(3,2)):((4,1),(8,24))"));
  EXPECT_EQ(tiled_product(a, Tiler(parse_layout("(3,2)"))),
            parse_layout("((2,4),3,2):((4,1),8,24)"));
  EXPECT_EQ(flat_product(a, Tiler(parse_layout("(3,2)"))), parse_layout("(2,4,3,2):(4,1,8,24)"));
  EXPECT_EQ(zipped_product(a, parse_tiler("<3:1,5:1>")),
            parse_layout("((2,4),(3,5)):((4,1),(1,4))"));
}

TEST(Laws, BlockedAndRakedProductsCoverTheSameTileInTwoOrders) {
  const Layout block = parse_layout("(2,5):(5,1)"), tiler = parse_layout("(3,4):(1,3)");
  const Layout blocked = blocked_product(block, tiler), raked = raked_product(block, tiler);
  EXPECT_EQ(blocked, parse_layout("((2,3),(5,4)):((5,10),(1,30))"));
  EXPECT_EQ(raked, parse_layout("((3,2),(4,5)):((10,5),(30,1))"));
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 20; ++j) {
      EXPECT_EQ(blocked(i, j), raked(i % 2 * 3 + i / 2, j % 5 * 4 + j / 5)) << i << "," << j;
    }
  }
}

TEST(Laws, TileToShapeCoversTheShapeInTheGivenOrder) {
  const Layout block = parse_layout("(8,64):(64,1)");
  EXPECT_EQ(tile_to_shape(block, make_shape(16, 128)),
            parse_layout("((8,2),(64,2)):((64,512),(1,1024))"));
  EXPECT_EQ(tile_to_shape(block, make_shape(16, 128), make_shape(1, 0)),
            parse_layout("((8,2),(64,2)):((64,1024),(1,512))"));
  for (const IntTuple& order : {make_shape(0, 1, 2), make_shape(2, 1, 0), make_shape(1, 2, 0)}) {
    const Layout r = tile_to_shape(block, make_shape(24, 128, 3), order);
    const auto all = offsets(r);
    EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), 24u * 128 * 3);
    EXPECT_EQ(cosize(r), 24 * 128 * 3) << "compact";
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(r(i, 5, 0), block(i, 5)) << "the first block is the block";
  }
}

TEST(Laws, MaxCommonVectorIsContiguousInBoth) {
  std::mt19937 rng(15);
  for (int i = 0; i < 1000; ++i) {
    const Layout a = random_compact(rng), b = random_compact(rng);
    if (size(a) != size(b)) continue;
    const std::int64_t n = max_common_vector(a, b);
    const Layout inverse = right_inverse(b);
    for (std::int64_t k = 0; k < n; ++k)
      EXPECT_EQ(a(inverse(k)), k) << to_string(a) << ", " << to_string(b);
    if (n < size(inverse)) {
      EXPECT_NE(a(inverse(n)), n) << "not the longest: " << to_string(a) << ", " << to_string(b);
    }
  }
  EXPECT_EQ(max_common_vector(parse_layout("(8,4):(4,1)"), parse_layout("(8,4):(8,1)")), 4);
}

}  // namespace
}  // namespace tilewright
