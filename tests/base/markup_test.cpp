#include "base/markup.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(Markup, EscapesWhatMarkupMeans) {
  EXPECT_EQ(escape_markup("a < b && \"c\" > d"), "a &lt; b &amp;&amp; &quot;c&quot; &gt; d");
  EXPECT_EQ(escape_markup("plain 'text' \u00e4"), "plain 'text' \u00e4");
  EXPECT_EQ(escape_markup(""), "");
}

}  // namespace
}  // namespace tilewright
