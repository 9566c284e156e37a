// The indexer under `strict`: its tiles end in keys that are not there.
#include "tests/device/rerun.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(IndexerStrictTest, RowsThatAreNoKeysAreNotUsed) {
  for (const char* const test : {"DecodesSeveralTokensOfASequence", "OddPagesOfKeysAndRows"}) {
    expect_pass_again(kStrictTiming, std::string("SimTest/IndexerTest.") + test + "/h200");
  }
  expect_pass_again(kStrictTiming, "SimTest/IndexerLogitsTest.PackedPrompts/h200");
}

}  // namespace
}  // namespace tilewright
