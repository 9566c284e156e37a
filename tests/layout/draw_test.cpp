// Drawings: the right label in the right cell, well-formed SVG, plain text without colour.

#include "base/error.h"
#include "layout/draw_svg.h"
#include "layout/draw_text.h"
#include "layout/palette.h"
#include "layout_families.h"

#include <gmock/gmock.h>

namespace tilewright {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Draw, OffsetsStandAtTheirCoordinates) {
  const Drawing d = draw_offsets(parse_layout("(4,8):(8,1)"));
  ASSERT_EQ(d.rows(), 4);
  ASSERT_EQ(d.columns(), 8);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 8; ++j) EXPECT_EQ(d.at(i, j).text, std::to_string(8 * i + j));
  }
  EXPECT_EQ(d.at(1, 0).color, d.at(1, 7).color);
  EXPECT_NE(d.at(1, 0).color, d.at(2, 0).color);
}

TEST(Draw, LayoutsOfOneModeAreOneRow) {
  const Drawing d = draw_offsets(parse_layout("8:3"));
  EXPECT_EQ(d.rows(), 1);
  EXPECT_EQ(d.at(0, 5).text, "15");
}

TEST(Draw, ThreadValueCellsNameTheHolder) {
  const Layout tv = parse_layout("((4,8),(2,2)):((32,1),(16,8))");
  const Drawing d = draw_thread_values(tv, 16, 8);
  for (int t = 0; t < 32; ++t) {
    for (int v = 0; v < 4; ++v) {
      const auto at = static_cast<int>(tv(t, v));
      EXPECT_EQ(d.at(at % 16, at / 16).text, "T" + std::to_string(t) + "\nV" + std::to_string(v));
      EXPECT_EQ(d.at(at % 16, at / 16).color, t);
    }
  }
}

TEST(Draw, AWindowIsAPartOfTheWhole) {
  const Layout tv = parse_layout("((4,8),(2,2)):((32,1),(16,8))");
  const Drawing whole = draw_thread_values(tv, 16, 8),
                part = draw_thread_values(tv, 16, 8, {8, 12, 2, 6});
  ASSERT_EQ(part.rows(), 4);
  ASSERT_EQ(part.columns(), 4);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) EXPECT_EQ(part.at(i, j).text, whole.at(8 + i, 2 + j).text);
  }
  EXPECT_EQ(part.row_headers.front(), "8");
  EXPECT_THAT(to_text(part, TextColor::kNone),
              HasSubstr("Shown: rows 8-11 of 16, columns 2-5 of 8."));
  EXPECT_THROW(draw_thread_values(tv, 16, 8, {16, 20, 0, 8}), Error);
  EXPECT_THROW(draw_offsets(parse_layout("(1000,1000)")), Error) << "too many cells";
}

TEST(Draw, MemoryShowsWhichCoordinatesLieWhere) {
  const ComposedLayout tile = parse_composed_layout("Sw<3,3,3> o 0 o (8,64):(64,1)");
  const Drawing d = draw_memory(tile, {});
  ASSERT_EQ(d.rows(), 8);
  ASSERT_EQ(d.columns(), 8);
  for (int row = 0; row < 8; ++row) {
    for (int chunk = 0; chunk < 8; ++chunk) {
      const int k = 8 * (chunk ^ row);  // the 128 B swizzle
      EXPECT_EQ(d.at(row, chunk).text, "m" + std::to_string(row) + "\nk" + std::to_string(k) + "-" +
                                           std::to_string(k + 7));
    }
  }
}

TEST(Draw, TensorMemoryShowsLanesByColumns) {
  const Drawing d =
      draw_tmem(parse_layout("(128,8):(131072,1)"), {16, 128, "m", "k"}, {0, 4, 0, -1});
  ASSERT_EQ(d.columns(), 4) << "two 16-bit elements a column";
  EXPECT_EQ(d.at(3, 2).text, "m3\nk4-5");
}

// Tags nest and close; text is escaped.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const std::size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    const std::string name =
        tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(Draw, SvgIsWellFormedAndComplete) {
  Drawing d = draw_offsets(parse_composed_layout("Sw<2,1,3> o 0 o (4,8):(8,1)"));
  d.name = "a <swizzled> & \"quoted\" name";
  const std::string one = to_svg(d), two = to_svg({d, d}, "side by side");
  expect_well_formed(one);
  expect_well_formed(two);
  EXPECT_THAT(one, HasSubstr("a &lt;swizzled&gt; &amp; &quot;quoted&quot; name"));
  for (int i = 0; i < 32; ++i) EXPECT_THAT(one, HasSubstr(">" + std::to_string(i) + "</text>"));
  EXPECT_GT(two.size(), one.size() + 32 * 60);
}

TEST(Draw, TextHasColourOnlyWhenAsked) {
  const Drawing d = draw_offsets(parse_layout("(4,8):(8,1)"));
  EXPECT_THAT(to_text(d, TextColor::kNone), Not(HasSubstr("\x1b")));
  EXPECT_THAT(to_text(d, TextColor::k256), HasSubstr("\x1b[30;48;5;"));
  EXPECT_THAT(to_text(d, TextColor::kTrue), HasSubstr("\x1b[30;48;2;"));
}

TEST(Draw, PaletteColoursDifferAndAreLight) {
  for (const int count : {8, 32}) {
    std::set<std::tuple<int, int, int>> seen;
    for (int i = 0; i < count; ++i) {
      const Rgb c = palette_color(i, count);
      seen.emplace(c.r, c.g, c.b);
      // Relative luminance high enough for black text at contrast 7:1.
      const double luminance = 0.2126 * c.r / 255 + 0.7152 * c.g / 255 + 0.0722 * c.b / 255;
      EXPECT_GT(luminance, 0.55) << i << " of " << count;
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(count));
  }
}

}  // namespace
}  // namespace tilewright
