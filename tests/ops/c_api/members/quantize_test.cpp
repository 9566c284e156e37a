// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, quantize, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members/quantize.h"

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

TEST(CApiMembers, tw_quantize_problem) {
  const Members<tw_quantize_problem, QuantizeProblem> test(tw_quantize_problem_init, changed_tw_quantize_problem);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = "sentinel 1"; }, [](const auto& p) { return p.format == "sentinel 1"; });
  test.sets("scales", [](auto& c) { c.scales = "sentinel 2"; }, [](const auto& p) { return p.scales == "sentinel 2"; });
  test.sets("dtype", [](auto& c) { c.dtype = TW_F16; }, [](const auto& p) { return p.dtype == DType::kF16; });
  test.sets("dtype", [](auto& c) { c.dtype = TW_F32; }, [](const auto& p) { return p.dtype == DType::kF32; });
  test.refuses("dtype", [](auto& c) { c.dtype = 77; });
  test.sets("rows", [](auto& c) { c.rows = 1004; }, [](const auto& p) { return p.rows == 1004; });
  test.sets("cols", [](auto& c) { c.cols = 1005; }, [](const auto& p) { return p.cols == 1005; });
  test.sets("row_stride", [](auto& c) { c.row_stride = 1006; }, [](const auto& p) { return p.row_stride == 1006; });
  test.sets("has_row_index", [](auto& c) { c.has_row_index = 1; }, [](const auto& p) { return p.has_row_index == true; });
  test.sets("out_rows", [](auto& c) { c.out_rows = 1008; }, [](const auto& p) { return p.out_rows == 1008; });
  test.sets("out_cols", [](auto& c) { c.out_cols = 1009; }, [](const auto& p) { return p.out_cols == 1009; });
  test.sets("has_operand_order", [](auto& c) { c.has_operand_order = 1; }, [](const auto& p) { return p.has_operand_order == true; });
  test.sets("has_128x4_scales", [](auto& c) { c.has_128x4_scales = 1; }, [](const auto& p) { return p.has_128x4_scales == true; });
  test.sets("has_block_major_scales", [](auto& c) { c.has_block_major_scales = 1; }, [](const auto& p) { return p.has_block_major_scales == true; });
  test.sets("encode_scale", [](auto& c) { c.encode_scale = 13.25f; }, [](const auto& p) { return p.encode_scale == 13.25f; });
  test.sets("has_encode_scale_address", [](auto& c) { c.has_encode_scale_address = 1; }, [](const auto& p) { return p.has_encode_scale_address == true; });
}

TEST(CApiMembers, tw_quantize_arguments) {
  const Members<tw_quantize_arguments, QuantizeArguments> test(tw_quantize_arguments_init, changed_tw_quantize_arguments);
  test.has_the_defaults();
  test.sets("in", [](auto& c) { c.in = at<const void>(1); }, [](const auto& p) { return p.in == at<const void>(1); });
  test.sets("row_index", [](auto& c) { c.row_index = at<const int32_t>(2); }, [](const auto& p) { return p.row_index == at<const int32_t>(2); });
  test.sets("codes", [](auto& c) { c.codes = at<void>(3); }, [](const auto& p) { return p.codes == at<void>(3); });
  test.sets("scales", [](auto& c) { c.scales = at<void>(4); }, [](const auto& p) { return p.scales == at<void>(4); });
  test.sets("encode_scale", [](auto& c) { c.encode_scale = at<const float>(5); }, [](const auto& p) { return p.encode_scale == at<const float>(5); });
  test.sets("tensor_scale", [](auto& c) { c.tensor_scale = at<float>(6); }, [](const auto& p) { return p.tensor_scale == at<float>(6); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(7); }, [](const auto& p) { return p.workspace == at<void>(7); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(8); }, [](const auto& p) { return p.stream == at<void>(8); });
}

}  // namespace
}  // namespace tilewright::c_api
