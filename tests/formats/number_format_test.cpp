#include "tilewright/error.h"
#include "tilewright/format.h"

#include <string>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(NumberFormat, NamesAreReadBack) {
  const std::string names[] = {"bf16", "fp8", "mxfp4", "nvfp4"};
  int value = 0;
  for (const std::string& name : names) {
    const NumberFormat format = parse_number_format(name);
    EXPECT_EQ(format, static_cast<NumberFormat>(value++));
    EXPECT_EQ(to_string(format), name);
    EXPECT_EQ(number_format_from_string(name), format);
  }
}

TEST(ScaleSharing, HasTheNamesOfTheTool) {
  const std::string names[] = {"auto", "none", "tensor", "head", "row", "block"};
  for (int value = 0; value < 6; ++value)
    EXPECT_EQ(to_string(static_cast<ScaleSharing>(value)), names[value]);
}

TEST(NumberFormat, OtherNamesAreRefused) {
  for (const char* const name : {"", "FP8", "e4m3", "fp8 "}) {
    EXPECT_EQ(number_format_from_string(name), std::nullopt);
    try {
      parse_number_format(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_EQ(std::string(error.what()), "there is no number format \"" + std::string(name) +
                                               "\"; expected bf16, fp8, mxfp4 or nvfp4");
    }
  }
}

}  // namespace
}  // namespace tilewright
