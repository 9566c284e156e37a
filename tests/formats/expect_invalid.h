// Expecting an InvalidArgument error with a certain text.
#pragma once

#include "tilewright/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {

template <class Call>
void expect_invalid(const Call& call, const char* text) {
  try {
    call();
    FAIL() << "no error; expected one with \"" << text << '"';
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr(text));
  }
}

}  // namespace tilewright
