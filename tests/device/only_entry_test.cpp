// One entry of a PTX text, and nothing else moved.

#include "device/kernel_registry.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::device {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kText = R"(.version 9.0
.target sm_90a
.address_size 64
	// .globl	first .entry no_entry(
.extern .shared .align 16 .b8 space[];

.visible .entry first(
	.param .b64 first_param_0
)
.maxntid 32, 1, 1
{
	.reg .b32 %r<2>;
	// a brace { of a comment; and a "quote
	/* } */
	{
	mov.u32 %r1, %tid.x;
}
	ret;
}

.func helper()
{
	ret;
}
.visible .entry first_of_all()
{
	call helper;
	ret;
}
.visible
 .entry
 declared();
.entry last() { ret; }
.section .debug_str
{
$L__info: .b8 46
.b8 "}.entry in_a_string() {"
}
)";

std::size_t line_of(std::string_view text, std::string_view what) {
  const std::size_t at = text.find(what);
  if (at == std::string_view::npos) return 0;
  return 1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + at, '\n'));
}

TEST(OnlyEntry, OthersGoAndLinesKeepTheirNumbers) {
  const std::string text = only_entry(std::string(kText), "first_of_all");
  for (const char* kept : {".version 9.0", "space[]", ".func helper", ".entry first_of_all",
                           "call helper", ".section .debug_str", "in_a_string"}) {
    EXPECT_EQ(line_of(text, kept), line_of(kText, kept)) << kept;
    EXPECT_NE(line_of(text, kept), 0U) << kept;
  }
  for (const char* gone : {"first(", "first_param_0", "%tid.x", "a brace", ".maxntid", "declared",
                           ".entry last", "first_of_all_"}) {
    EXPECT_THAT(text, Not(HasSubstr(gone)));
  }
  EXPECT_EQ(std::ranges::count(text, '\n'), std::ranges::count(kText, '\n'));
  EXPECT_EQ(std::ranges::count(text, '{'), 4) << "helper, first_of_all, the section, its string";
}

TEST(OnlyEntry, TheFirstAndTheLast) {
  const std::string first = only_entry(std::string(kText), "first");
  EXPECT_THAT(first, HasSubstr("%tid.x"));
  EXPECT_THAT(first, HasSubstr("a \"quote"));
  EXPECT_THAT(first, Not(HasSubstr("first_of_all")));
  EXPECT_EQ(line_of(first, ".section"), line_of(kText, ".section"));
  const std::string last = only_entry(std::string(kText), "last");
  EXPECT_THAT(last, HasSubstr(".entry last() { ret; }"));
  EXPECT_THAT(last, Not(HasSubstr(".entry first")));
}

TEST(OnlyEntry, ATextWithoutItStaysAsItIs) {
  for (const char* name : {"no_entry", "in_a_string", "firs", "helper", ""}) {
    EXPECT_EQ(only_entry(std::string(kText), name), kText) << name;
  }
  EXPECT_EQ(only_entry("", "first"), "");
}

TEST(OnlyEntry, TheLinkageGoesWithItsEntry) {
  EXPECT_EQ(only_entry(".weak .entry a() {}\n.visible\n.entry b();.entry c() {} .func f();", "c"),
            "\n\n.entry c() {} .func f();");
  EXPECT_EQ(only_entry(".entry a() {}.visible .entry b() {}", "b"), ".visible .entry b() {}");
}

TEST(OnlyEntry, TextsThatAreCut) {
  for (std::size_t size = 0; size < kText.size(); ++size) {
    const std::string cut(kText.substr(0, size));
    const std::string text = only_entry(cut, "first_of_all");
    EXPECT_EQ(std::ranges::count(text, '\n'), std::ranges::count(cut, '\n')) << size;
  }
}

}  // namespace
}  // namespace tilewright::device
