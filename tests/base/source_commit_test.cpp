#include "base/source_commit.h"

#include "tests/base/scoped_env.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(SourceCommit, KnowsWhetherTheTreeDiffered) {
  EXPECT_EQ(parse_commit("cad4f89822a4"), (SourceCommit{"cad4f89822a4", false}));
  EXPECT_EQ(parse_commit("cad4f89822a4-dirty"), (SourceCommit{"cad4f89822a4", true}));
  EXPECT_EQ(parse_commit("unknown"), (SourceCommit{"unknown", false}));
  EXPECT_EQ(parse_commit("-dirty"), (SourceCommit{"unknown", true}));
}

TEST(SourceCommit, TheEnvironmentKnowsBetterThanTheBuild) {
  {
    const ScopedEnv env("TILEWRIGHT_COMMIT", "0123456789ab-dirty");
    EXPECT_EQ(source_commit("cad4f89822a4"), (SourceCommit{"0123456789ab", true}));
  }
  const ScopedEnv env("TILEWRIGHT_COMMIT", "");
  EXPECT_EQ(source_commit("cad4f89822a4"), (SourceCommit{"cad4f89822a4", false}));
}

}  // namespace
}  // namespace tilewright
