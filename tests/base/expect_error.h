// Looking at the errors that code throws.
#pragma once

#include "tilewright/error.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {

/// The message of the Error that the call throws. If it throws none, or one of another kind, the
/// test fails.
template <class Call>
std::string error_of(ErrorKind kind, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_STREQ(to_string(error.kind()), to_string(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown; expected " << to_string(kind);
  return "";
}

}  // namespace tilewright
