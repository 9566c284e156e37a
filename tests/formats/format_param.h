// Tests that run once per number format: how GoogleTest names and prints the parameter.
#pragma once

#include "formats/format_spec.h"

#include <ostream>
#include <string>

#include <gtest/gtest.h>

namespace tilewright {

inline void PrintTo(const FormatSpec& format, std::ostream* out) {
  *out << format.name;
}

inline std::string format_test_name(const testing::TestParamInfo<FormatSpec>& test) {
  return test.param.name;
}

}  // namespace tilewright
