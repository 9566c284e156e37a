// Reference data of the algebra's operations: 1800 cases made with pycute.

#include "base/error.h"
#include "layout/cases.h"
#include "layout/operations.h"
#include "layout_families.h"

#include <fstream>

namespace tilewright {
namespace {

nlohmann::json golden_cases() {
  std::ifstream file(std::string(TILEWRIGHT_TEST_DATA) + "/layout/layout_algebra.json");
  return nlohmann::json::parse(file);
}

TEST(Golden, AllCasesHaveEqualValuesAndSize) {
  const nlohmann::json cases = golden_cases();
  ASSERT_EQ(cases.size(), 1800u);
  int outside_laws = 0;
  for (const auto& test_case : cases) {
    const CaseResult result = run_layout_case(test_case);
    EXPECT_TRUE(result.passed()) << result.op << " " << test_case["a"].dump() << ": "
                                 << result.difference;
    outside_laws += result.is_outside_laws;
  }
  // In these the operands break a law; pycute rounds down and goes on, the library refuses.
  EXPECT_EQ(outside_laws, 13);
}

TEST(Golden, ResultsHaveTheFormThatCuteGives) {
  int compared = 0;
  for (const auto& test_case : golden_cases()) {
    if (!test_case.contains("result") || run_layout_case(test_case).is_outside_laws) continue;
    std::vector<std::string> operands = {to_string(layout_from_json(test_case["a"]))};
    if (test_case.contains("b")) operands.push_back(to_string(layout_from_json(test_case["b"])));
    if (test_case.contains("max_idx")) operands.push_back(test_case["max_idx"].dump());
    const auto result =
        std::get<ComposedLayout>(run_layout_operation(test_case["op"].get<std::string>(), operands))
            .layout;
    const Layout expected = layout_from_json(test_case["result"]);
    EXPECT_EQ(shape(result), shape(expected)) << test_case["op"] << " " << operands[0];
    for (int i = 0; i < result.profile.num_leaves; ++i) {
      // Strides of modes of extent 1 are never used; pycute leaves what was there.
      if (result.shape[i] > 1) {
        EXPECT_EQ(result.stride[i], expected.stride[i]) << test_case["op"] << " " << operands[0];
      }
    }
    ++compared;
  }
  EXPECT_EQ(compared, 1637);
}

TEST(Golden, ACaseFailsOnAWrongValueSizeOrOperation) {
  const auto fails = [](const char* text) {
    return !run_layout_case(nlohmann::json::parse(text)).passed();
  };
  EXPECT_FALSE(fails(R"json({"op":"coalesce","a":"(2,3)","values":[0,1,2,3,4,5]})json"));
  EXPECT_TRUE(fails(R"json({"op":"coalesce","a":"(2,3)","values":[0,1,2,3,4,6]})json"));
  EXPECT_TRUE(fails(R"json({"op":"coalesce","a":"(2,3)","values":[0,1,2,3,4]})json"));
  EXPECT_TRUE(fails(R"json({"op":"eval","a":"(2,3)","cosize":7,"values":[0,1,2,3,4,5]})json"));
  EXPECT_TRUE(fails(R"json({"op":"coalesse","a":"(2,3)","values":[0,1,2,3,4,5]})json"));
  EXPECT_TRUE(fails(R"json({"op":"coalesce","values":[0]})json"));
  EXPECT_TRUE(fails(R"json({"op":"coalesce","a":"(2,3","values":[0]})json"));
  EXPECT_TRUE(fails(R"json([])json"));
  EXPECT_TRUE(fails(R"json({"op":"eval","a":"(2,3)","error":true})json"));
  EXPECT_FALSE(fails(R"json({"op":"composition","a":"(3,5):(1,10)","b":"3:2","error":true})json"));
}

TEST(Operations, EveryOperationSaysWhatItTakes) {
  for (const LayoutOperation& operation : layout_operations()) {
    EXPECT_GT(operation.num_operands(), 0) << operation.name;
    const std::vector<std::string> none;
    EXPECT_THROW(run_layout_operation(operation.name, none), Error) << operation.name;
  }
  EXPECT_THROW(run_layout_operation("nonsense", {}), Error);
}

}  // namespace
}  // namespace tilewright
