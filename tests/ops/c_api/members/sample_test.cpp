// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, sample, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members/sample.h"

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

TEST(CApiMembers, tw_sample_problem) {
  const Members<tw_sample_problem, SampleProblem> test(tw_sample_problem_init, changed_tw_sample_problem);
  test.has_the_defaults();
  test.sets("rows", [](auto& c) { c.rows = 1001; }, [](const auto& p) { return p.rows == 1001; });
  test.sets("vocab", [](auto& c) { c.vocab = 1002; }, [](const auto& p) { return p.vocab == 1002; });
  test.sets("logits_dtype", [](auto& c) { c.logits_dtype = TW_BF16; }, [](const auto& p) { return p.logits_dtype == DType::kBF16; });
  test.refuses("logits_dtype", [](auto& c) { c.logits_dtype = 77; });
  test.sets("parts", [](auto& c) { c.parts = 1004; }, [](const auto& p) { return p.parts == 1004; });
  test.sets("row_stride", [](auto& c) { c.row_stride = 1005; }, [](const auto& p) { return p.row_stride == 1005; });
  test.sets("part_stride", [](auto& c) { c.part_stride = 1006; }, [](const auto& p) { return p.part_stride == 1006; });
}

TEST(CApiMembers, tw_sample_arguments) {
  const Members<tw_sample_arguments, SampleArguments> test(tw_sample_arguments_init, changed_tw_sample_arguments);
  test.has_the_defaults();
  test.sets("logits", [](auto& c) { c.logits = at<const void>(1); }, [](const auto& p) { return p.logits == at<const void>(1); });
  test.sets("temperature", [](auto& c) { c.temperature = at<const float>(2); }, [](const auto& p) { return p.temperature == at<const float>(2); });
  test.sets("top_k", [](auto& c) { c.top_k = at<const int32_t>(3); }, [](const auto& p) { return p.top_k == at<const int32_t>(3); });
  test.sets("top_p", [](auto& c) { c.top_p = at<const float>(4); }, [](const auto& p) { return p.top_p == at<const float>(4); });
  test.sets("min_p", [](auto& c) { c.min_p = at<const float>(5); }, [](const auto& p) { return p.min_p == at<const float>(5); });
  test.sets("seeds", [](auto& c) { c.seeds = at<const uint64_t>(6); }, [](const auto& p) { return p.seeds == at<const uint64_t>(6); });
  test.sets("positions", [](auto& c) { c.positions = at<const int32_t>(7); }, [](const auto& p) { return p.positions == at<const int32_t>(7); });
  test.sets("ids", [](auto& c) { c.ids = at<int32_t>(8); }, [](const auto& p) { return p.ids == at<int32_t>(8); });
  test.sets("log_probs", [](auto& c) { c.log_probs = at<float>(9); }, [](const auto& p) { return p.log_probs == at<float>(9); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(10); }, [](const auto& p) { return p.stream == at<void>(10); });
}

TEST(CApiMembers, tw_gather_rows_problem) {
  const Members<tw_gather_rows_problem, GatherRowsProblem> test(tw_gather_rows_problem_init, changed_tw_gather_rows_problem);
  test.has_the_defaults();
  test.sets("rows", [](auto& c) { c.rows = 1001; }, [](const auto& p) { return p.rows == 1001; });
  test.sets("x_rows", [](auto& c) { c.x_rows = 1002; }, [](const auto& p) { return p.x_rows == 1002; });
  test.sets("cols", [](auto& c) { c.cols = 1003; }, [](const auto& p) { return p.cols == 1003; });
}

TEST(CApiMembers, tw_gather_rows_arguments) {
  const Members<tw_gather_rows_arguments, GatherRowsArguments> test(tw_gather_rows_arguments_init, changed_tw_gather_rows_arguments);
  test.has_the_defaults();
  test.sets("x", [](auto& c) { c.x = at<const void>(1); }, [](const auto& p) { return p.x == at<const void>(1); });
  test.sets("index", [](auto& c) { c.index = at<const int32_t>(2); }, [](const auto& p) { return p.index == at<const int32_t>(2); });
  test.sets("out", [](auto& c) { c.out = at<void>(3); }, [](const auto& p) { return p.out == at<void>(3); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(4); }, [](const auto& p) { return p.stream == at<void>(4); });
}

}  // namespace
}  // namespace tilewright::c_api
