#include "base/env.h"

#include "tests/base/expect_error.h"
#include "tests/base/scoped_env.h"

namespace tilewright {
namespace {

constexpr const char* kName = "TILEWRIGHT_TEST_VALUE";

TEST(EnvInt, ReadsNumbersInRange) {
  EXPECT_EQ((ScopedEnv(kName, "12"), env_int(kName, 1, 12)), 12);
  EXPECT_EQ((ScopedEnv(kName, "-3"), env_int(kName, -3, 12)), -3);
}

TEST(EnvInt, UnsetAndEmptyAreNothing) {
  EXPECT_EQ((ScopedEnv(kName, nullptr), env_int(kName, 1, 12)), std::nullopt);
  EXPECT_EQ((ScopedEnv(kName, ""), env_int(kName, 1, 12)), std::nullopt);
}

TEST(EnvInt, RefusalNamesVariableValueAndRange) {
  for (const char* value :
       {"0", "13", "x", "5x", " 5", "5 ", "1.5", "+5", "99999999999999999999"}) {
    const ScopedEnv env(kName, value);
    EXPECT_EQ(error_of(ErrorKind::kInvalidArgument, [] { env_int(kName, 1, 12); }),
              std::string("environment variable TILEWRIGHT_TEST_VALUE is \"") + value +
                  "\"; expected a whole number from 1 to 12. Correct or unset it");
  }
}

}  // namespace
}  // namespace tilewright
