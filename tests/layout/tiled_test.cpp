// Tiled MMAs and copies, and the views of an accumulator that attention needs.

#include "base/error.h"
#include "layout/fragment_views.h"
#include "layout/tiled_copy.h"
#include "layout_families.h"

#include <map>
#include <set>

namespace tilewright {
namespace {

// wgmma m64n64k16 with A from registers, and mma.sync m16n8k16.
constexpr MmaAtom kWarpgroup = {
    make_shape(64, 64, 16), make_layout(128), "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))"_layout,
    "(128,(64,16)):(0,(1,64))"_layout, "((4,8,4),(2,2,8)):((128,1,16),(64,8,512))"_layout};
constexpr MmaAtom kWarp = {
    make_shape(16, 8, 16), make_layout(32), "((4,8),(2,2,2)):((32,1),(16,8,128))"_layout,
    "((4,8),(2,2)):((16,1),(8,64))"_layout, "((4,8),(2,2)):((32,1),(16,8))"_layout};

TEST(TiledMma, ASingleAtomIsItsOwnTile) {
  constexpr TiledMma mma{kWarpgroup};
  EXPECT_EQ(mma.num_threads(), 128);
  EXPECT_EQ(test::offsets(tv_layout_C(mma)), test::offsets(kWarpgroup.c_tv));
  EXPECT_EQ(test::offsets(tv_layout_A(mma)), test::offsets(kWarpgroup.a_tv));
  EXPECT_EQ(test::offsets(tv_layout_B(mma)), test::offsets(kWarpgroup.b_tv));
}

TEST(TiledMma, FragmentsHaveTheShapesOfTheDocuments) {
  constexpr TiledMma mma{kWarpgroup};
  EXPECT_EQ(partition_shape(mma, Operand::kC, make_shape(64, 64)),
            parse_int_tuple("((2,2,8),1,1)"));
  EXPECT_EQ(partition_shape(mma, Operand::kA, make_shape(64, 64)),
            parse_int_tuple("((2,2,2),1,4)"));
  EXPECT_EQ(partition_shape(mma, Operand::kB, make_shape(64, 128)),
            parse_int_tuple("((64,16),1,8)"));
  EXPECT_EQ(make_fragment(mma, Operand::kC, make_shape(64, 64)),
            parse_layout("((2,2,8),1,1):((1,2,4),32,32)"));
}

// Every element of C belongs to exactly one (thread, value); of A and B to one per group of threads
// that share it.
TEST(TiledMma, PartitionsCoverTheTileOnce) {
  const TiledMma mma{kWarp, make_layout(make_shape(4, 2, 1))};
  ASSERT_EQ(mma.num_threads(), 256);
  EXPECT_EQ(mma.tile_extent(0), 64);
  EXPECT_EQ(mma.tile_extent(1), 16);
  const auto count = [&](Operand operand, const IntTuple& tile) {
    std::map<std::int64_t, int> seen;
    for (int t = 0; t < mma.num_threads(); ++t) {
      const ComposedLayout part = partition(get_slice(mma, t), operand, make_layout(tile));
      for (int i = 0; i < size(part); ++i) ++seen[part(i)];
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), product(tile));
    std::set<int> counts;
    for (const auto& [offset, times] : seen) counts.insert(times);
    return counts;
  };
  EXPECT_EQ(count(Operand::kC, make_shape(128, 32)), std::set<int>{1});
  EXPECT_EQ(count(Operand::kA, make_shape(128, 64)), std::set<int>{2})
      << "once per column of warps";
  EXPECT_EQ(count(Operand::kB, make_shape(32, 64)), std::set<int>{4}) << "once per row of warps";
}

TEST(TiledMma, PartitionsOfTheIdentityNameTheElements) {
  const TiledMma mma{kWarpgroup, make_layout(make_shape(2, 1, 1))};
  // Thread 133 is thread 5 of the second warpgroup: rows 65 and 73, columns 2, 3, 10, 11, ...
  const ComposedLayout part =
      partition_C(get_slice(mma, 133), make_identity_layout(make_shape(128, 64)));
  EXPECT_EQ(coordinate(part, 0), make_coord(65, 2));
  EXPECT_EQ(coordinate(part, 1), make_coord(65, 3));
  EXPECT_EQ(coordinate(part, 2), make_coord(73, 2));
  EXPECT_EQ(coordinate(part, 4), make_coord(65, 10));
  // tv_layout_C says the same as an offset into the column-major tile.
  const Layout tv = tv_layout_C(mma);
  for (int t = 0; t < 256; t += 7) {
    const ComposedLayout mine =
        partition_C(get_slice(mma, t), make_identity_layout(make_shape(128, 64)));
    for (int v = 0; v < 32; ++v) {
      const IntTuple at = coordinate(mine, v);
      EXPECT_EQ(tv(t, v), at.value[0] + 128 * at.value[1]) << t << "," << v;
    }
  }
}

// As one layout of all threads, a partition says what it says thread by thread.
TEST(TiledMma, PartitionsOfAllThreadsAreThoseOfEach) {
  const TiledMma warpgroups{kWarpgroup, make_layout(make_shape(2, 1, 1))};
  const TiledMma warps{kWarp, make_layout(make_shape(2, 2, 1))};
  const TiledMma interleaved{kWarp, make_layout(make_shape(1, 1, 1)),
                             make_tiler(kFree, parse_layout("(2,4,2):(1,4,2)"), kFree)};
  for (const TiledMma& mma : {warpgroups, warps, interleaved}) {
    for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
      if (operand == Operand::kB && mma == warpgroups) continue;  // a whole tile for each thread
      const IntTuple tile = make_shape(2 * mma.tile_extent(operand == Operand::kB ? 1 : 0),
                                       2 * mma.tile_extent(operand == Operand::kC ? 1 : 2));
      for (const Layout& elements : {make_row_major(tile), make_identity_layout(tile)}) {
        const Layout all = partition(mma, operand, elements);
        ASSERT_EQ(size(all, 0), mma.num_threads());
        for (int t = 0; t < mma.num_threads(); t += 5) {
          const ComposedLayout mine = partition(get_slice(mma, t), operand, elements);
          ASSERT_EQ(size(all, 1), size(mine));
          for (int v = 0; v < size(mine); ++v)
            ASSERT_EQ(coordinate(all, make_coord(t, v)), coordinate(mine, v)) << t << "," << v;
        }
      }
    }
  }
}

TEST(TiledMma, AxesOfACoordinateLayoutAreOffsetLayouts) {
  const TiledMma mma{kWarpgroup};
  const Layout places = partition_C(mma, make_identity_layout(make_shape(64, 64)));
  EXPECT_EQ(num_axes(places), 2);
  EXPECT_EQ(num_axes(make_layout(make_shape(4, 8))), 0);
  const Layout rows = along_axis(places, 0), columns = along_axis(places, 1);
  for (int t = 0; t < 128; t += 3) {
    for (int v = 0; v < 32; ++v)
      EXPECT_EQ(coordinate(places, make_coord(t, v)), make_coord(rows(t, v), columns(t, v)));
  }
  EXPECT_THROW(along_axis(make_identity_layout(make_shape(4, make_shape(2, 2))), 0), Error);
}

TEST(TiledMma, TvLayoutsOfAAndBKnowWhoShares) {
  const TiledMma mma{kWarp, make_layout(make_shape(2, 2, 1))};
  const Layout a = tv_layout_A(mma), b = tv_layout_B(mma);
  ASSERT_EQ(size(a, 0), 128);
  ASSERT_EQ(size(b, 0), 128);
  for (int t = 0; t < 32; ++t) {
    // Warps 0..3 stand at (m,n) = (0,0) (1,0) (0,1) (1,1): A is shared by 0 and 2, B by 0 and 1.
    for (int v = 0; v < 8; ++v) EXPECT_EQ(a(t, v), a(t + 64, v));
    for (int v = 0; v < 4; ++v) EXPECT_EQ(b(t, v), b(t + 32, v));
  }
  EXPECT_EQ(a(32, 0), 16) << "the second warp starts at row 16";
  EXPECT_EQ(b(64, 0), 8) << "the third at column 8";
}

TEST(TiledMma, APermutationWidensTheTile) {
  // Two n-tiles a warp, interleaved so that a thread's columns of both are neighbours.
  const TiledMma mma{kWarp, make_layout(make_shape(1, 1, 1)),
                     make_tiler(kFree, parse_layout("(2,4,2):(1,4,2)"), kFree)};
  EXPECT_EQ(mma.tile_extent(1), 16);
  const ComposedLayout part =
      partition_C(get_slice(mma, 1), make_identity_layout(make_shape(16, 16)));
  std::vector<std::int64_t> columns;
  for (int i = 0; i < size(part); ++i) columns.push_back(coordinate(part, i).value[1]);
  EXPECT_EQ(columns, (std::vector<std::int64_t>{4, 5, 4, 5, 6, 7, 6, 7}));
}

TEST(TiledCopy, DealsRowsToThreads) {
  const TiledCopy copy =
      make_tiled_copy(make_vector_copy(8), parse_layout("(16,8):(8,1)"), parse_layout("(1,8)"));
  EXPECT_EQ(copy.tile, make_shape(16, 64));
  EXPECT_EQ(copy.num_threads(), 128);
  const Layout tile = make_row_major(make_shape(32, 128));
  std::vector<int> seen(32 * 128);
  for (int t = 0; t < 128; ++t) {
    const ComposedLayout source = partition_S(copy, t, tile),
                         destination = partition_D(copy, t, tile);
    EXPECT_EQ(test::offsets(source.layout), test::offsets(destination.layout)) << "a plain copy";
    EXPECT_EQ(source(0), tile(t / 8, t % 8 * 8));
    for (int v = 1; v < 8; ++v) EXPECT_EQ(source(v), source(0) + v) << "one 16-byte access";
    for (int i = 0; i < size(source); ++i) ++seen[static_cast<std::size_t>(source(i))];
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](int n) { return n == 1; }));
}

TEST(TiledCopy, SourceAndDestinationMayDiffer) {
  // ldmatrix.x1: lane r reads row r, lane t receives elements (t/4, 2*(t%4)..).
  const CopyAtom ldmatrix{make_layout(32), parse_layout("((8,4),8):((1,0),8)"),
                          parse_layout("((4,8),2):((16,1),8)")};
  const TiledCopy copy{ldmatrix, ldmatrix.src_tv, make_shape(8, 8)};
  const Layout tile = make_row_major(make_shape(8, 8));
  for (int t = 0; t < 32; ++t) {
    const ComposedLayout source = partition_S(copy, t, tile),
                         destination = partition_D(copy, t, tile);
    EXPECT_EQ(source(0), tile(t % 8, 0));
    EXPECT_EQ(destination(0), tile(t / 4, t % 4 * 2));
    EXPECT_EQ(destination(1), tile(t / 4, t % 4 * 2 + 1));
  }
}

// The table of the K4 document for the 64x64 tile.
TEST(FragmentViews, TheTableOfThe64x64Tile) {
  constexpr TiledMma mma{kWarpgroup};
  constexpr Layout acc = make_fragment(mma, Operand::kC, make_shape(64, 64));
  constexpr Layout acc_mn = layout_acc_mn(mma, acc);
  constexpr Layout siblings = reduction_target_n(mma);
  static_assert(mma.num_threads() == 128);
  static_assert(size(acc) == 32);
  static_assert(size(acc_mn, 0) == 2, "rows a thread");
  static_assert(size(acc_mn, 1) == 16, "columns a thread");
  static_assert(size(siblings) == 4, "threads sharing a row");
  static_assert(mma.num_threads() / size(siblings) == 32, "threads on different rows");
  EXPECT_EQ(acc_mn, parse_layout("((2,1),(2,8,1)):((2,32),(1,4,32))"));
  EXPECT_EQ(siblings, parse_layout("(4):(1)"));
}

TEST(FragmentViews, RowsAndColumnsAreRowsAndColumns) {
  for (const std::int64_t n : {64, 128}) {
    const TiledMma mma{kWarpgroup};
    const Layout acc = make_fragment(mma, Operand::kC, make_shape(64, n));
    const Layout acc_mn = layout_acc_mn(mma, acc);
    for (int t = 0; t < 128; t += 11) {
      const ComposedLayout mine =
          partition_C(get_slice(mma, t), make_identity_layout(make_shape(64, n)));
      for (int i = 0; i < size(acc_mn, 0); ++i) {
        for (int j = 0; j < size(acc_mn, 1); ++j) {
          const IntTuple at = coordinate(mine, acc_mn(i, j));
          EXPECT_EQ(at.value[0], coordinate(mine, acc_mn(i, 0)).value[0])
              << "row " << i << " of thread " << t;
          EXPECT_EQ(at.value[1], coordinate(mine, acc_mn(0, j)).value[1])
              << "column " << j << " of thread " << t;
        }
      }
    }
  }
}

TEST(FragmentViews, SiblingsShareTheirRows) {
  const TiledMma mma{kWarpgroup};
  const Layout tv = tv_layout_C(mma);
  for (int t = 0; t < 128; ++t) {
    std::set<std::int64_t> own, siblings;
    for (int v = 0; v < 32; ++v) own.insert(tv(t, v) % 64);
    const Layout steps = reduction_target_n(mma);  // from the first of them to each
    for (int s = 0; s < size(steps); ++s) {
      for (int v = 0; v < 32; ++v) siblings.insert(tv(t / 4 * 4 + steps(s), v) % 64);
    }
    EXPECT_EQ(own.size(), 2u);
    EXPECT_EQ(own, siblings) << "thread " << t;
  }
}

TEST(FragmentViews, TheAccumulatorReReadAsOperandHoldsTheSameElements) {
  const TiledMma mma{kWarpgroup};
  const Layout acc = make_fragment(mma, Operand::kC, make_shape(64, 64));
  const Layout as_a = convert_c_layout_to_a_layout(acc, make_shape(2, 2, 2));
  EXPECT_EQ(as_a, parse_layout("((2,2,2),1,(1,4)):((1,2,4),32,(32,8))"));
  const Layout c = tv_layout_C(mma);
  for (int t = 0; t < 128; ++t) {
    for (int step = 0; step < 4; ++step) {
      for (int v = 0; v < 8; ++v) {
        // The operand wants element (m, 16*step + k); the register re-read holds what C put there.
        const std::int64_t wanted = kWarpgroup.a_tv(t, v) + 64 * 16 * step;
        const std::int64_t reg = as_a(make_coord(v, 0, make_coord(0, step)));
        EXPECT_EQ(c(t, reg), wanted) << t << "," << step << "," << v;
      }
    }
  }
}

TEST(FragmentViews, LayoutSeparatePartsByReferenceStride) {
  const Separated parts =
      layout_separate(64, parse_layout("(2,2,8):(1,2,4)"), parse_layout("(2,2,8):(64,8,512)"));
  EXPECT_EQ(parts.below, parse_layout("(2):(2)"));
  EXPECT_EQ(parts.rest, parse_layout("(2,8):(1,4)"));
  EXPECT_THROW(layout_separate(64, parse_layout("(2,2):(1,2)"), parse_layout("8:1")), Error);
}

}  // namespace
}  // namespace tilewright
