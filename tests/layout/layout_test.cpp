// Building, indexing, slicing and rearranging layouts.

#include "base/error.h"
#include "layout/recast.h"
#include "layout/slice.h"
#include "layout_families.h"

namespace tilewright {
namespace {

// What is known at compile time, checked there.
constexpr Layout kFragment = "((4,8,4),(2,2,8)):((128,1,16),(64,8,512))"_layout;
static_assert(size(kFragment) == 4096 && cosize(kFragment) == 4096);
static_assert(rank(kFragment) == 2 && depth(kFragment) == 2);
static_assert(kFragment(1, 0) == 128 && kFragment(4, 0) == 1 && kFragment(127, 31) == 4095);
static_assert(coalesce("(2,(1,6)):(1,(6,2))"_layout) == "12:1"_layout);
static_assert(composition("(8,8):(8,1)"_layout, "(4,2):(2,1)"_layout) == "(4,2):(16,8)"_layout);
static_assert(complement("4:2"_layout, 24) == "(2,3):(1,8)"_layout);
static_assert(right_inverse("(4,8):(8,1)"_layout) == "(8,4):(4,1)"_layout);
static_assert(make_layout(make_shape(4, make_shape(2, 3))) == "(4,(2,3)):(1,(4,8))"_layout);
static_assert(make_row_major(make_shape(4, make_shape(2, 3))) == "(4,(2,3)):(6,(3,1))"_layout);

TEST(Layout, TheEmptyLayoutHasOneElement) {
  const Layout empty;
  EXPECT_EQ(rank(empty), 0);
  EXPECT_EQ(size(empty), 1);
  EXPECT_EQ(to_string(empty), "():()");
  EXPECT_EQ(append(empty, parse_layout("4:1")), parse_layout("(4):(1)"));
}

TEST(Layout, CoordinatesMayBeLinearByModeOrNested) {
  const Layout a = parse_layout("((2,3),4):((1,2),6)");
  EXPECT_EQ(a(17), 17);
  EXPECT_EQ(a(5, 2), 17);
  EXPECT_EQ(a(make_coord(make_coord(1, 2), 2)), 17);
  EXPECT_EQ(a(make_coord(make_coord(1, 2), 5)), 5 + 30)
      << "beyond the last extent a layout goes on";
}

TEST(Layout, TwelveLeavesAtDepthFour) {
  const Layout a = parse_layout(
      "((2,(2,(2,2))),((2,2),(2,(2,2))),(2,2,2)):((1,(2,(4,8))),((16,32),(64,(128,256))),(512,1024,"
      "2048))");
  EXPECT_EQ(a.profile.num_leaves, 12);
  EXPECT_EQ(depth(a), 4);
  EXPECT_EQ(size(a), 4096);
  EXPECT_EQ(coalesce(a), parse_layout("4096:1"));
  for (std::int64_t i = 0; i < size(a); ++i) ASSERT_EQ(a(i), i);
}

TEST(Layout, OrderedLayoutsAreContiguousInTheirOrder) {
  EXPECT_EQ(make_ordered_layout(make_shape(2, 3, 4), make_shape(2, 0, 1)),
            parse_layout("(2,3,4):(12,1,3)"));
  EXPECT_EQ(make_ordered_layout(make_shape(make_shape(2, 3), 4), make_shape(1, 0)),
            parse_layout("((2,3),4):((4,8),1)"));
}

TEST(Layout, SelectGroupAppendPrependReplace) {
  const Layout a = parse_layout("(2,(3,4),5):(1,(2,6),24)");
  EXPECT_EQ(select(a, 1), parse_layout("(3,4):(2,6)"));
  EXPECT_EQ(select(a, 2, 0), parse_layout("(5,2):(24,1)"));
  EXPECT_EQ(take(a, 1, 3), parse_layout("((3,4),5):((2,6),24)"));
  EXPECT_EQ(group(a, 0, 2), parse_layout("((2,(3,4)),5):((1,(2,6)),24)"));
  EXPECT_EQ(flatten(a), parse_layout("(2,3,4,5):(1,2,6,24)"));
  EXPECT_EQ(append(a, parse_layout("7:0")), parse_layout("(2,(3,4),5,7):(1,(2,6),24,0)"));
  EXPECT_EQ(prepend(a, parse_layout("7:0")), parse_layout("(7,2,(3,4),5):(0,1,(2,6),24)"));
  EXPECT_EQ(replace(a, 1, parse_layout("7:0")), parse_layout("(2,7,5):(1,0,24)"));
}

TEST(Layout, SliceKeepsFreeModesAndReportsTheOffset) {
  const Layout a = parse_layout("((2,3),4):((1,2),6)");
  EXPECT_EQ(slice(parse_int_tuple("(_,3)"), a), parse_composed_layout("18 o ((2,3)):((1,2))"));
  EXPECT_EQ(slice(parse_int_tuple("((_,1),_)"), a), parse_composed_layout("2 o (2,4):(1,6)"));
  EXPECT_EQ(slice(parse_int_tuple("((1,_),2)"), a), parse_composed_layout("13 o (3):(2)"));
  EXPECT_EQ(slice(IntTuple(kFree), a), ComposedLayout(a));
  EXPECT_EQ(dice(parse_int_tuple("(_,3)"), a), parse_layout("(4):(6)"));
}

TEST(Layout, SliceLawHoldsForEveryCoordinate) {
  std::mt19937 rng(21);
  for (int n = 0; n < 300; ++n) {
    const Layout a = test::random_any(rng, 5);
    if (rank(a) < 2) continue;
    const auto fixed = static_cast<int>(rng() % static_cast<unsigned>(rank(a)));
    for (std::int64_t at = 0; at < size(a, fixed); ++at) {
      IntTuple crd;
      for (int i = 0; i < rank(a); ++i) push_mode(crd, IntTuple(i == fixed ? at : kFree));
      const ComposedLayout part = slice(crd, a);
      for (std::int64_t i = 0; i < size(part); ++i) {
        // The same element by its full coordinate.
        const IntTuple rest = idx2crd(i, shape(part));
        IntTuple full;
        for (int m = 0, next = 0; m < rank(a); ++m)
          push_mode(full, m == fixed ? IntTuple(at) : mode(rest, next++));
        ASSERT_EQ(part(i), a(full)) << to_string(a) << " at " << to_string(crd);
      }
    }
  }
}

TEST(Layout, IdentityLayoutsNameTheirCoordinates) {
  const Layout id = make_identity_layout(make_shape(4, make_shape(2, 3)));
  EXPECT_EQ(to_string(id), "(4,(2,3)):(1@0,(1@0@1,1@1@1))");
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 6; ++j) {
      EXPECT_EQ(coordinate(id, make_coord(i, j)), make_coord(i, make_coord(j % 2, j / 2)));
    }
  }
  EXPECT_THROW(id(0), Error);
}

TEST(Layout, IdentityLayoutsTellWhatLiesOutside) {
  // A 5x7 matrix in tiles of 4x4: the coordinates of the last tile exceed the matrix where it
  // overhangs.
  const ComposedLayout tile =
      local_tile(make_identity_layout(make_shape(5, 7)), make_tiler(4, 4), make_coord(1, 1));
  EXPECT_EQ(coordinate(tile, make_coord(0, 0)), make_coord(4, 4));
  EXPECT_EQ(coordinate(tile, make_coord(3, 3)), make_coord(7, 7));
}

TEST(Layout, LocalTileAndLocalPartitionDealOutEveryElementOnce) {
  const Layout a = make_row_major(make_shape(16, 24));
  std::vector<int> seen(16 * 24);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 3; ++j) {
      const ComposedLayout tile = local_tile(a, make_tiler(4, 8), make_coord(i, j));
      EXPECT_EQ(tile(1, 2), a(4 * i + 1, 8 * j + 2));
      for (int k = 0; k < size(tile); ++k) ++seen[static_cast<std::size_t>(tile(k))];
    }
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](int n) { return n == 1; }));

  const Layout threads = parse_layout("(4,8):(8,1)");
  std::ranges::fill(seen, 0);
  for (int t = 0; t < 32; ++t) {
    const ComposedLayout mine = local_partition(a, threads, t);
    EXPECT_EQ(size(mine), 16 * 24 / 32);
    EXPECT_EQ(mine(0), a(t / 8, t % 8)) << "thread " << t << " starts at its own coordinate";
    for (int k = 0; k < size(mine); ++k) ++seen[static_cast<std::size_t>(mine(k))];
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](int n) { return n == 1; }));
}

TEST(Layout, LocalTileWithFreeTilesKeepsThemAsModes) {
  const Layout a = make_layout(make_shape(16, 24));
  const ComposedLayout row = local_tile(a, make_tiler(4, 8), make_coord(2, kFree));
  EXPECT_EQ(row, parse_composed_layout("8 o (4,8,3):(1,16,128)"));
}

TEST(Layout, GetFlatCoordInvertsCompactLayouts) {
  EXPECT_EQ(get_flat_coord(parse_layout("(8,4):(4,1)"), 6), make_coord(1, 2));
  EXPECT_EQ(get_flat_coord(parse_layout("((2,4),4):((16,4),1)"), 21), make_coord(3, 1));
  EXPECT_THROW(get_flat_coord(parse_layout("(2,2):(1,8)"), 5), Error);
}

TEST(Recast, UpcastMergesContiguousElements) {
  EXPECT_EQ(upcast(parse_layout("(8,64):(64,1)"), 2), parse_layout("(8,32):(32,1)"));
  EXPECT_EQ(upcast(parse_layout("(4,8):(0,1)"), 4), parse_layout("(4,2):(0,1)"));
  EXPECT_EQ(downcast(parse_layout("(8,32):(32,1)"), 2), parse_layout("(8,64):(64,1)"));
  EXPECT_EQ(recast(parse_layout("(8,64):(64,1)"), 16, 8), parse_layout("(8,128):(128,1)"));
}

TEST(Recast, SeesTheSameBytes) {
  std::mt19937 rng(31);
  int accepted = 0;
  for (int n = 0; n < 500; ++n) {
    const Layout a = test::random_compact(rng, 4);
    try {
      const Layout wide = upcast(a, 2);
      ++accepted;
      std::vector<std::int64_t> narrow = test::offsets(a), merged;
      for (const std::int64_t unit : test::offsets(wide)) {
        merged.push_back(2 * unit);
        merged.push_back(2 * unit + 1);
      }
      std::ranges::sort(narrow);
      std::ranges::sort(merged);
      EXPECT_EQ(narrow, merged) << to_string(a) << " -> " << to_string(wide);
      EXPECT_EQ(test::offsets(upcast(downcast(a, 4), 4)), test::offsets(a)) << to_string(a);
    } catch (const Error&) {
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(Recast, ASwizzleOfBytesStaysTheSameSwizzle) {
  const ComposedLayout bytes = parse_composed_layout("Sw<3,4,3> o 0 o (8,128):(128,1)");
  for (const int bits : {16, 32, 64, 128}) {
    const ComposedLayout wide = recast(bytes, 8, bits);
    for (int row = 0; row < 8; ++row) {
      for (int unit = 0; unit < 1024 / bits; ++unit) {
        EXPECT_EQ(wide(row, unit) * bits / 8, bytes(row, unit * bits / 8)) << bits;
      }
    }
  }
  EXPECT_THROW(recast(bytes, 8, 256), Error) << "32 bytes are not kept together";
}

TEST(Recast, RefusesElementsThatAreNotContiguous) {
  EXPECT_THROW(upcast(parse_layout("(4,3):(3,1)"), 2), Error);
  EXPECT_THROW(upcast(parse_layout("8:3"), 2), Error);
  EXPECT_THROW(recast(parse_layout("8:1"), 16, 24), Error);
}

}  // namespace
}  // namespace tilewright
