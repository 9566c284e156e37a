#include "ops/operator/rotary_checks.h"

#include "tests/reference/inputs.h"

#include <gtest/gtest.h>

namespace tilewright::ops {
namespace {

constexpr ArgumentChecks kChecks("an operator");
alignas(64) constexpr float kAngles[32] = {};

TEST(RotaryChecks, OneTableIsTakenAndTwoAreRefused) {
  check_one_table(kChecks, {.angles = kAngles, .positions = 4}, 16);
  reference::expect_invalid([] { check_one_table(kChecks, {}, 16); },
                            {"an operator", "rope.angles is null"});
  reference::expect_invalid([] { check_one_table(kChecks, {.angles = kAngles + 1}, 16); },
                            {"rope.angles is", "a multiple of 16"});
  reference::expect_invalid([] { check_one_table(kChecks, {.cos = kAngles, .sin = kAngles}, 16); },
                            {"reads one table, rope.angles", "Join the two"});
}

TEST(RotaryChecks, TwoTablesAreTakenAndOneIsRefused) {
  check_two_tables(kChecks, {.cos = kAngles, .sin = kAngles + 1});
  reference::expect_invalid([] { check_two_tables(kChecks, {.cos = kAngles}); },
                            {"rope.sin is null"});
  reference::expect_invalid([] { check_two_tables(kChecks, {.angles = kAngles}); },
                            {"reads two tables, rope.cos and rope.sin", "Split the one"});
}

TEST(RotaryChecks, TablesHaveTheRowsThatThePlanCountsOn) {
  for (const std::int64_t positions : {0, 8, 9}) {
    check_planned_positions(kChecks, {.angles = kAngles, .positions = positions}, 8);
  }
  reference::expect_invalid([] { check_planned_positions(kChecks, {.positions = 7}, 8); },
                            {"rope.positions = 7", "at least 8"});
}

}  // namespace
}  // namespace tilewright::ops
