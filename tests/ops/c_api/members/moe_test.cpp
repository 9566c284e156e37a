// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, moe, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members/moe.h"

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

TEST(CApiMembers, tw_moe_weights_info) {
  const Members<tw_moe_weights_info, MoeWeightsInfo> test(tw_moe_weights_info_init, changed_tw_moe_weights_info);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.format == NumberFormat::kBf16; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_FP8; }, [](const auto& p) { return p.format == NumberFormat::kFp8; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_MXFP4; }, [](const auto& p) { return p.format == NumberFormat::kMxfp4; });
  test.refuses("format", [](auto& c) { c.format = 77; });
  test.sets("activations", [](auto& c) { c.activations = TW_LINEAR_ACTIVATIONS_FP8; }, [](const auto& p) { return p.activations == LinearActivations::kFp8; });
  test.sets("activations", [](auto& c) { c.activations = TW_LINEAR_ACTIVATIONS_BLOCK_SCALED; }, [](const auto& p) { return p.activations == LinearActivations::kBlockScaled; });
  test.refuses("activations", [](auto& c) { c.activations = 77; });
  test.sets("experts", [](auto& c) { c.experts = 1003; }, [](const auto& p) { return p.experts == 1003; });
  test.sets("hidden", [](auto& c) { c.hidden = 1004; }, [](const auto& p) { return p.hidden == 1004; });
  test.sets("inter", [](auto& c) { c.inter = 1005; }, [](const auto& p) { return p.inter == 1005; });
  test.sets("has_shared", [](auto& c) { c.has_shared = 1; }, [](const auto& p) { return p.has_shared == true; });
}

TEST(CApiMembers, tw_moe_problem) {
  const Members<tw_moe_problem, MoeProblem> test(tw_moe_problem_init, changed_tw_moe_problem);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("topk", [](auto& c) { c.topk = 1002; }, [](const auto& p) { return p.topk == 1002; });
  test.sets("routing", [](auto& c) { c.routing = TW_MOE_ROUTING_LOGITS; }, [](const auto& p) { return p.routing == MoeRouting::kLogits; });
  test.sets("routing", [](auto& c) { c.routing = TW_MOE_ROUTING_HASH; }, [](const auto& p) { return p.routing == MoeRouting::kHash; });
  test.sets("routing", [](auto& c) { c.routing = TW_MOE_ROUTING_GROUPED; }, [](const auto& p) { return p.routing == MoeRouting::kGrouped; });
  test.sets("routing", [](auto& c) { c.routing = TW_MOE_ROUTING_CONTIGUOUS; }, [](const auto& p) { return p.routing == MoeRouting::kContiguous; });
  test.sets("routing", [](auto& c) { c.routing = TW_MOE_ROUTING_SINGLE; }, [](const auto& p) { return p.routing == MoeRouting::kSingle; });
  test.refuses("routing", [](auto& c) { c.routing = 77; });
  test.sets("score", [](auto& c) { c.score = TW_MOE_SCORE_SQRT_SOFTPLUS; }, [](const auto& p) { return p.score == MoeScore::kSqrtSoftplus; });
  test.refuses("score", [](auto& c) { c.score = 77; });
  test.sets("normalize", [](auto& c) { c.normalize = 0; }, [](const auto& p) { return p.normalize == false; });
  test.sets("has_bias", [](auto& c) { c.has_bias = 1; }, [](const auto& p) { return p.has_bias == true; });
  test.sets("route_scale", [](auto& c) { c.route_scale = 7.25; }, [](const auto& p) { return p.route_scale == 7.25; });
  test.sets("vocab", [](auto& c) { c.vocab = 1008; }, [](const auto& p) { return p.vocab == 1008; });
  test.sets("logits_stride", [](auto& c) { c.logits_stride = 1009; }, [](const auto& p) { return p.logits_stride == 1009; });
  test.sets("swiglu_limit", [](auto& c) { c.swiglu_limit = 10.25; }, [](const auto& p) { return p.swiglu_limit == 10.25; });
  test.sets("weight_after_down", [](auto& c) { c.weight_after_down = 1; }, [](const auto& p) { return p.weight_after_down == true; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_F32; }, [](const auto& p) { return p.out_dtype == DType::kF32; });
  test.refuses("out_dtype", [](auto& c) { c.out_dtype = 77; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 13"; }, [](const auto& p) { return p.kernel == "sentinel 13"; });
  test.sets("expected_tokens", [](auto& c) { c.expected_tokens = 1014; }, [](const auto& p) { return p.expected_tokens == 1014; });
  test.sets("all_experts", [](auto& c) { c.all_experts = 1015; }, [](const auto& p) { return p.all_experts == 1015; });
  test.sets("first_expert", [](auto& c) { c.first_expert = 1016; }, [](const auto& p) { return p.first_expert == 1016; });
}

TEST(CApiMembers, tw_moe_arguments) {
  const Members<tw_moe_arguments, MoeArguments> test(tw_moe_arguments_init, changed_tw_moe_arguments);
  test.has_the_defaults();
  test.sets("x", [](auto& c) { c.x = at<const void>(1); }, [](const auto& p) { return p.x == at<const void>(1); });
  test.sets("ids", [](auto& c) { c.ids = at<const int32_t>(2); }, [](const auto& p) { return p.ids == at<const int32_t>(2); });
  test.sets("weights", [](auto& c) { c.weights = at<const float>(3); }, [](const auto& p) { return p.weights == at<const float>(3); });
  test.sets("logits", [](auto& c) { c.logits = at<const float>(4); }, [](const auto& p) { return p.logits == at<const float>(4); });
  test.sets("bias", [](auto& c) { c.bias = at<const float>(5); }, [](const auto& p) { return p.bias == at<const float>(5); });
  test.sets("token_ids", [](auto& c) { c.token_ids = at<const int32_t>(6); }, [](const auto& p) { return p.token_ids == at<const int32_t>(6); });
  test.sets("table", [](auto& c) { c.table = at<const int32_t>(7); }, [](const auto& p) { return p.table == at<const int32_t>(7); });
  test.sets("out", [](auto& c) { c.out = at<void>(8); }, [](const auto& p) { return p.out == at<void>(8); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(9); }, [](const auto& p) { return p.workspace == at<void>(9); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(10); }, [](const auto& p) { return p.stream == at<void>(10); });
  test.sets("counts", [](auto& c) { c.counts = at<const int32_t>(11); }, [](const auto& p) { return p.counts == at<const int32_t>(11); });
}

}  // namespace
}  // namespace tilewright::c_api
