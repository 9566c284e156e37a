#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(Error, CarriesKindAndFormattedText) {
  try {
    fail(ErrorKind::kUnsupported, "plan: head_dim = {} is not supported", 96);
    FAIL() << "fail() returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_STREQ(error.what(), "plan: head_dim = 96 is not supported");
  }
}

TEST(Error, RequireThrowsOnlyWhenBroken) {
  EXPECT_NO_THROW(require(true, ErrorKind::kInternal, "unused"));
  EXPECT_THROW(require(false, ErrorKind::kInternal, "used"), Error);
}

TEST(Error, EveryKindHasAName) {
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::kInternal); ++kind) {
    EXPECT_STRNE(to_string(static_cast<ErrorKind>(kind)), "Unknown") << kind;
  }
}

}  // namespace
}  // namespace tilewright
