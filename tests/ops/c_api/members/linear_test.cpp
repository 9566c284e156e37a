// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, linear, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members/linear.h"

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

TEST(CApiMembers, tw_linear_weight_info) {
  const Members<tw_linear_weight_info, LinearWeightInfo> test(tw_linear_weight_info_init, changed_tw_linear_weight_info);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.format == NumberFormat::kBf16; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_FP8; }, [](const auto& p) { return p.format == NumberFormat::kFp8; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_MXFP4; }, [](const auto& p) { return p.format == NumberFormat::kMxfp4; });
  test.refuses("format", [](auto& c) { c.format = 77; });
  test.sets("activations", [](auto& c) { c.activations = TW_LINEAR_ACTIVATIONS_FP8; }, [](const auto& p) { return p.activations == LinearActivations::kFp8; });
  test.sets("activations", [](auto& c) { c.activations = TW_LINEAR_ACTIVATIONS_BLOCK_SCALED; }, [](const auto& p) { return p.activations == LinearActivations::kBlockScaled; });
  test.refuses("activations", [](auto& c) { c.activations = 77; });
  test.sets("n", [](auto& c) { c.n = 1003; }, [](const auto& p) { return p.n == 1003; });
  test.sets("k", [](auto& c) { c.k = 1004; }, [](const auto& p) { return p.k == 1004; });
  test.sets("groups", [](auto& c) { c.groups = 1005; }, [](const auto& p) { return p.groups == 1005; });
}

TEST(CApiMembers, tw_linear_problem) {
  const Members<tw_linear_problem, LinearProblem> test(tw_linear_problem_init, changed_tw_linear_problem);
  test.has_the_defaults();
  test.sets("m", [](auto& c) { c.m = 1001; }, [](const auto& p) { return p.m == 1001; });
  test.sets("x_dtype", [](auto& c) { c.x_dtype = TW_E4M3; }, [](const auto& p) { return p.x_dtype == DType::kF8_E4M3; });
  test.refuses("x_dtype", [](auto& c) { c.x_dtype = 77; });
  test.sets("activation_scales", [](auto& c) { c.activation_scales = TW_SCALE_SHARING_ROW; }, [](const auto& p) { return p.activation_scales == ScaleSharing::kRow; });
  test.sets("activation_scales", [](auto& c) { c.activation_scales = TW_SCALE_SHARING_BLOCK; }, [](const auto& p) { return p.activation_scales == ScaleSharing::kBlock; });
  test.refuses("activation_scales", [](auto& c) { c.activation_scales = 77; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_F32; }, [](const auto& p) { return p.out_dtype == DType::kF32; });
  test.refuses("out_dtype", [](auto& c) { c.out_dtype = 77; });
  test.sets("has_bias", [](auto& c) { c.has_bias = 1; }, [](const auto& p) { return p.has_bias == true; });
  test.sets("x_stride", [](auto& c) { c.x_stride = 1006; }, [](const auto& p) { return p.x_stride == 1006; });
  test.sets("out_stride", [](auto& c) { c.out_stride = 1007; }, [](const auto& p) { return p.out_stride == 1007; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 8"; }, [](const auto& p) { return p.kernel == "sentinel 8"; });
}

TEST(CApiMembers, tw_linear_arguments) {
  const Members<tw_linear_arguments, LinearArguments> test(tw_linear_arguments_init, changed_tw_linear_arguments);
  test.has_the_defaults();
  test.sets("x", [](auto& c) { c.x = at<const void>(1); }, [](const auto& p) { return p.x == at<const void>(1); });
  test.sets("x_scales", [](auto& c) { c.x_scales = at<const float>(2); }, [](const auto& p) { return p.x_scales == at<const float>(2); });
  test.sets("bias", [](auto& c) { c.bias = at<const float>(3); }, [](const auto& p) { return p.bias == at<const float>(3); });
  test.sets("out", [](auto& c) { c.out = at<void>(4); }, [](const auto& p) { return p.out == at<void>(4); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(5); }, [](const auto& p) { return p.workspace == at<void>(5); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(6); }, [](const auto& p) { return p.stream == at<void>(6); });
}

TEST(CApiMembers, tw_block_scaled_weight_info) {
  const Members<tw_block_scaled_weight_info, BlockScaledWeightInfo> test(tw_block_scaled_weight_info_init, changed_tw_block_scaled_weight_info);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.format == NumberFormat::kBf16; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_FP8; }, [](const auto& p) { return p.format == NumberFormat::kFp8; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_MXFP4; }, [](const auto& p) { return p.format == NumberFormat::kMxfp4; });
  test.refuses("format", [](auto& c) { c.format = 77; });
  test.sets("n", [](auto& c) { c.n = 1002; }, [](const auto& p) { return p.n == 1002; });
  test.sets("k", [](auto& c) { c.k = 1003; }, [](const auto& p) { return p.k == 1003; });
  test.sets("is_gate_up", [](auto& c) { c.is_gate_up = 1; }, [](const auto& p) { return p.is_gate_up == true; });
}

TEST(CApiMembers, tw_block_scaled_problem) {
  const Members<tw_block_scaled_problem, BlockScaledProblem> test(tw_block_scaled_problem_init, changed_tw_block_scaled_problem);
  test.has_the_defaults();
  test.sets("m", [](auto& c) { c.m = 1001; }, [](const auto& p) { return p.m == 1001; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_F4; }, [](const auto& p) { return p.out_dtype == DType::kF4; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_E4M3; }, [](const auto& p) { return p.out_dtype == DType::kF8_E4M3; });
  test.refuses("out_dtype", [](auto& c) { c.out_dtype = 77; });
  test.sets("x_row_bytes", [](auto& c) { c.x_row_bytes = 1003; }, [](const auto& p) { return p.x_row_bytes == 1003; });
  test.sets("out_row_bytes", [](auto& c) { c.out_row_bytes = 1004; }, [](const auto& p) { return p.out_row_bytes == 1004; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 5"; }, [](const auto& p) { return p.kernel == "sentinel 5"; });
  test.sets("swiglu_limit", [](auto& c) { c.swiglu_limit = 6.25; }, [](const auto& p) { return p.swiglu_limit == 6.25; });
}

TEST(CApiMembers, tw_block_scaled_arguments) {
  const Members<tw_block_scaled_arguments, BlockScaledArguments> test(tw_block_scaled_arguments_init, changed_tw_block_scaled_arguments);
  test.has_the_defaults();
  test.sets("x", [](auto& c) { c.x = at<const void>(1); }, [](const auto& p) { return p.x == at<const void>(1); });
  test.sets("x_scales", [](auto& c) { c.x_scales = at<const void>(2); }, [](const auto& p) { return p.x_scales == at<const void>(2); });
  test.sets("out", [](auto& c) { c.out = at<void>(3); }, [](const auto& p) { return p.out == at<void>(3); });
  test.sets("out_scales", [](auto& c) { c.out_scales = at<void>(4); }, [](const auto& p) { return p.out_scales == at<void>(4); });
  test.sets("x_tensor_scale", [](auto& c) { c.x_tensor_scale = 5.25f; }, [](const auto& p) { return p.x_tensor_scale == 5.25f; });
  test.sets("out_encode_scale", [](auto& c) { c.out_encode_scale = 6.25f; }, [](const auto& p) { return p.out_encode_scale == 6.25f; });
  test.sets("stream", [](auto& c) { c.stream = at<void>(7); }, [](const auto& p) { return p.stream == at<void>(7); });
}

}  // namespace
}  // namespace tilewright::c_api
