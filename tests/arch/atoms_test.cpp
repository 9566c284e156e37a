// Every named atom can be found, drawn and printed.

#include "arch/fragments/atoms.h"

#include "layout/draw_svg.h"
#include "layout/parse.h"
#include "layout/print.h"

#include <set>

#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

TEST(Atoms, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const NamedAtom& atom : named_atoms()) {
    EXPECT_TRUE(names.insert(atom.name).second) << atom.name;
    EXPECT_EQ(find_atom(atom.name), &atom);
    EXPECT_FALSE(atom.summary.empty()) << atom.name;
    EXPECT_EQ(parse_composed_layout(to_string(atom.layout)), atom.layout) << atom.name;
  }
  EXPECT_EQ(find_atom("wgmma.m64n7.C"), nullptr);
  for (const char* name :
       {"mma.m16n8k16.A", "wgmma.m64n256.C", "smem.MN.128B.16bit", "tcgen05.ld.32x32b.x128",
        "tmem.C.m128.n256", "tmem.A.m128.k64.16bit", "sf.K.16"}) {
    EXPECT_NE(find_atom(name), nullptr) << name;
  }
}

TEST(Atoms, DrawingsFillTheirTiles) {
  for (const NamedAtom& atom : named_atoms()) {
    const Drawing drawing = draw_atom(atom, {0, 8, 0, 8});
    int filled = 0;
    for (const DrawnCell& cell : drawing.cells) filled += !cell.text.empty();
    EXPECT_GT(filled, 0) << atom.name;
    if (atom.kind == AtomKind::kThreadValue) {
      EXPECT_EQ(filled, static_cast<int>(drawing.cells.size())) << atom.name;
      EXPECT_EQ(cosize(atom.layout.layout), product(atom.tile)) << atom.name;
    }
    EXPECT_GT(to_svg(drawing).size(), 500u) << atom.name;
  }
}

}  // namespace
}  // namespace tilewright::arch
