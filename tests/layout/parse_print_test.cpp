// Layouts as text: what is printed reads back, what is malformed is refused with its place.

#include "base/error.h"
#include "layout_families.h"

#include <gmock/gmock.h>

namespace tilewright {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view text) {
  try {
    parse_composed_layout(text);
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::kParseError ||
                error.kind() == ErrorKind::kInvalidArgument)
        << text;
    return error.what();
  }
  return "accepted: " + std::string(text);
}

TEST(ParsePrint, WhatIsPrintedReadsBack) {
  for (const Layout& a : test::family(test::random_any, 1000, 41))
    EXPECT_EQ(parse_layout(to_string(a)), a);
  const Layout id = make_identity_layout(make_shape(4, make_shape(2, make_shape(3, 5))));
  EXPECT_EQ(to_string(id), "(4,(2,(3,5))):(1@0,(1@0@1,(1@0@1@1,1@1@1@1)))");
  EXPECT_EQ(parse_layout(to_string(id)), id);
  for (const char* text :
       {"Sw<3,4,3> o 0 o (8,64):(64,1)", "12 o (4):(2)", "(4,8):(1,4)", "(3,1) o (4):(1@0)"}) {
    EXPECT_EQ(to_string(parse_composed_layout(text)), text);
  }
  for (const char* text : {"<4:1,_>", "<(2,4):(1,8),<3:1,_>>", "_", "(4,8):(1,4)"}) {
    EXPECT_EQ(to_string(parse_tiler(text)), text);
  }
}

TEST(ParsePrint, TheLayoutOfTheQuestion) {
  const char* text = "((4,8,4),(2,2,8)):((128,1,16),(64,8,512))";
  EXPECT_EQ(to_string(parse_layout(text)), text);
}

TEST(ParsePrint, BlanksAndShapesAloneAreAccepted) {
  EXPECT_EQ(parse_layout(" ( 4 , (2, 3) ) : ( 1 , (4 ,8) ) "), parse_layout("(4,(2,3)):(1,(4,8))"));
  EXPECT_EQ(parse_layout("(4,(2,3))"), parse_layout("(4,(2,3)):(1,(4,8))"));
  EXPECT_EQ(parse_layout("7"), parse_layout("7:1"));
}

TEST(ParsePrint, RefusalsPointAtThePlace) {
  EXPECT_EQ(refusal("(4,8:(1,4)"),
            "layout text, column 5: expected `,` or `)`\n  (4,8:(1,4)\n      ^");
  EXPECT_THAT(refusal("(4,8):(1,4) x"), HasSubstr("column 13: expected the end of the text"));
  EXPECT_THAT(refusal("(4,8):1"), HasSubstr("column 7: expected a stride nested like the shape"));
  EXPECT_THAT(refusal("(4,0):(1,4)"), HasSubstr("a shape with extents of at least 1"));
  EXPECT_THAT(refusal("(4,_):(1,4)"), HasSubstr("a shape with extents of at least 1"));
  EXPECT_THAT(refusal("(4,8):(1,_)"), HasSubstr("strides that are numbers"));
  EXPECT_THAT(refusal(""), HasSubstr("column 1: expected a number or `(`"));
  EXPECT_THAT(refusal("(4,"), HasSubstr("column 4: expected a number"));
  EXPECT_THAT(refusal("99999999999999999999"), HasSubstr("a number below 2^62"));
  EXPECT_THAT(refusal("(2000000000000,2000000000000)"), HasSubstr("below 2^63"));
  EXPECT_THAT(refusal("Sw<3,4> o 0 o (8):(1)"), HasSubstr("column 7: expected `,`"));
  EXPECT_THAT(refusal("Sw<3,4,2> o 0 o (8):(1)"), HasSubstr("B <= |S| <= 30"));
  EXPECT_THAT(refusal("Sw<99,4,99> o 0 o (8):(1)"), HasSubstr("B, M in 0..30"));
  EXPECT_THAT(refusal("4:1@0@0@0@0@0"), HasSubstr("at most 4 basis indices"));
  std::string deep(81, '(');
  deep[40] = '1';
  std::fill(deep.begin() + 41, deep.end(), ')');
  EXPECT_THAT(refusal(deep), HasSubstr("at most 16 levels"));
  std::string many = "(1";
  for (int i = 0; i < 30; ++i) many += ",1";
  EXPECT_THAT(refusal(many + ")"), HasSubstr("at most 24 numbers"));
  EXPECT_THROW(parse_tiler("<4:1"), Error);
  EXPECT_THROW(parse_tiler("<4:1]"), Error);
}

TEST(ParsePrint, NoTextBreaksTheParser) {
  std::mt19937 rng(42);
  const std::string alphabet = "()()(),:,12480_@ Sw<>o[]-";
  for (int n = 0; n < 200000; ++n) {
    std::string text;
    if (n % 2 == 1) text = "Sw<3,4,3> o 0 o ((4,8),(2,2)):((128,1),(64,8))";
    const auto edits = 1 + rng() % 12;
    for (unsigned e = 0; e < edits; ++e) {
      const auto at = text.empty() ? 0 : rng() % text.size();
      if (rng() % 3 == 0 && !text.empty()) {
        text.erase(at, 1 + rng() % 3);
      } else {
        text.insert(at, 1, alphabet[rng() % alphabet.size()]);
      }
    }
    try {
      const ComposedLayout layout = parse_composed_layout(text);
      EXPECT_EQ(parse_composed_layout(to_string(layout)), layout) << text;
    } catch (const Error&) {
    }
    try {
      const Tiler tiler = parse_tiler(text);
      EXPECT_EQ(parse_tiler(to_string(tiler)), tiler) << text;
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace tilewright
