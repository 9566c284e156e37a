#include "base/quote.h"

#include "base/similar.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

using namespace std::string_view_literals;

TEST(Quote, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(quote("plain"), "\"plain\"");
  EXPECT_EQ(quote(""), "\"\"");
  EXPECT_EQ(quote("a\"b\\c\n\t"), R"("a\"b\\c\n\t")");
  EXPECT_EQ(quote("\x1b[31m\0\x7f\xc3"sv), R"("\x1b[31m\x00\x7f\xc3")");
}

TEST(Quote, CutsLongText) {
  EXPECT_EQ(quote("12345", 5), "\"12345\"");
  EXPECT_EQ(quote("123456", 5), "\"12345...\" (6 bytes)");
  EXPECT_EQ(escape("123456", 5), "12345...");
  EXPECT_EQ(escape("12345", 5), "12345");
}

TEST(SimilarNames, PreferSharedBeginningAndEnd) {
  const std::vector<std::string_view> names = {"head.weight", "layers.0.attn.wq.weight",
                                               "layers.0.attn.wk.weight", "norm"};
  EXPECT_EQ(
      similar_names("layers.0.attn.wk.bias", names),
      R"(similar names: "layers.0.attn.wk.weight", "layers.0.attn.wq.weight", "head.weight")");
  EXPECT_EQ(similar_names("model.head.weight", {"zzz", "head.weight"}),
            R"(similar names: "head.weight", "zzz")");
  EXPECT_EQ(similar_names("a", {}), "there are no names");
}

TEST(SimilarNames, DoesNotCountSharedBytesTwice) {
  // "aa" shares one byte with "a", not one at each end.
  EXPECT_EQ(similar_names("aa", {"a", "aab"}), R"(similar names: "aab", "a")");
}

}  // namespace
}  // namespace tilewright
