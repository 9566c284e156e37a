#include "reference/linear/output_projection.h"

#include "tests/reference/golden.h"
#include "tests/reference/inputs.h"

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;

TEST(OutputProjection, GroupsOfConsecutiveHeads) {
  // two groups of two heads of one number, rank 1: z = (a . (o0, o1), b . (o2, o3))
  const OutputProjectionParams params{
      .tokens = 1, .heads = 4, .head_dim = 1, .groups = 2, .rank = 1, .hidden = 1};
  const Doubles o = {1, 2, 3, 4}, wo_a = {10, 20, 30, 40}, wo_b = {1, 1000};
  EXPECT_EQ(grouped_projection(params, o, wo_a), (Doubles{50, 250}));
  EXPECT_EQ(output_projection(params, o, wo_a, wo_b), (Doubles{250050}));
  const Doubles exchanged = {30, 40, 10, 20};
  EXPECT_NE(output_projection(params, o, exchanged, wo_b), (Doubles{250050}));
}

TEST(OutputProjection, BadArguments) {
  const OutputProjectionParams params{
      .tokens = 1, .heads = 3, .head_dim = 1, .groups = 2, .rank = 1, .hidden = 1};
  expect_invalid([&] { grouped_projection(params, Doubles(3), Doubles(3)); },
                 {"heads = 3 and groups = 2"});
}

}  // namespace
}  // namespace tilewright::reference
