// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, hyper connection, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members/hyper_connection.h"

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

TEST(CApiMembers, tw_hyper_connection_problem) {
  const Members<tw_hyper_connection_problem, HyperConnectionProblem> test(tw_hyper_connection_problem_init, changed_tw_hyper_connection_problem);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("hidden", [](auto& c) { c.hidden = 1002; }, [](const auto& p) { return p.hidden == 1002; });
  test.sets("stream_dtype", [](auto& c) { c.stream_dtype = TW_F32; }, [](const auto& p) { return p.stream_dtype == DType::kF32; });
  test.refuses("stream_dtype", [](auto& c) { c.stream_dtype = 77; });
  test.sets("has_merge", [](auto& c) { c.has_merge = 1; }, [](const auto& p) { return p.has_merge == true; });
  test.sets("has_second", [](auto& c) { c.has_second = 1; }, [](const auto& p) { return p.has_second == true; });
  test.sets("has_mix", [](auto& c) { c.has_mix = 0; }, [](const auto& p) { return p.has_mix == false; });
  test.sets("is_head", [](auto& c) { c.is_head = 1; }, [](const auto& p) { return p.is_head == true; });
  test.sets("result_dtype", [](auto& c) { c.result_dtype = TW_F32; }, [](const auto& p) { return p.result_dtype == DType::kF32; });
  test.refuses("result_dtype", [](auto& c) { c.result_dtype = 77; });
  test.sets("second_dtype", [](auto& c) { c.second_dtype = TW_F32; }, [](const auto& p) { return p.second_dtype == DType::kF32; });
  test.refuses("second_dtype", [](auto& c) { c.second_dtype = 77; });
  test.sets("iterations", [](auto& c) { c.iterations = 1010; }, [](const auto& p) { return p.iterations == 1010; });
  test.sets("eps", [](auto& c) { c.eps = 11.25; }, [](const auto& p) { return p.eps == 11.25; });
  test.sets("norm_eps", [](auto& c) { c.norm_eps = 12.25; }, [](const auto& p) { return p.norm_eps == 12.25; });
}

TEST(CApiMembers, tw_hyper_connection_arguments) {
  const Members<tw_hyper_connection_arguments, HyperConnectionArguments> test(tw_hyper_connection_arguments_init, changed_tw_hyper_connection_arguments);
  test.has_the_defaults();
  test.sets("streams", [](auto& c) { c.streams = at<const void>(1); }, [](const auto& p) { return p.streams == at<const void>(1); });
  test.sets("merged", [](auto& c) { c.merged = at<void>(2); }, [](const auto& p) { return p.merged == at<void>(2); });
  test.sets("mix_before", [](auto& c) { c.mix_before = at<const float>(3); }, [](const auto& p) { return p.mix_before == at<const float>(3); });
  test.sets("result", [](auto& c) { c.result = at<const void>(4); }, [](const auto& p) { return p.result == at<const void>(4); });
  test.sets("second_result", [](auto& c) { c.second_result = at<const void>(5); }, [](const auto& p) { return p.second_result == at<const void>(5); });
  test.sets("mix_weight", [](auto& c) { c.mix_weight = at<const float>(6); }, [](const auto& p) { return p.mix_weight == at<const float>(6); });
  test.sets("mix_bias", [](auto& c) { c.mix_bias = at<const float>(7); }, [](const auto& p) { return p.mix_bias == at<const float>(7); });
  test.sets("mix_scale", [](auto& c) { c.mix_scale = at<const float>(8); }, [](const auto& p) { return p.mix_scale == at<const float>(8); });
  test.sets("norm_weight", [](auto& c) { c.norm_weight = at<const void>(9); }, [](const auto& p) { return p.norm_weight == at<const void>(9); });
  test.sets("mix", [](auto& c) { c.mix = at<float>(10); }, [](const auto& p) { return p.mix == at<float>(10); });
  test.sets("out", [](auto& c) { c.out = at<void>(11); }, [](const auto& p) { return p.out == at<void>(11); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(12); }, [](const auto& p) { return p.workspace == at<void>(12); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(13); }, [](const auto& p) { return p.stream == at<void>(13); });
}

TEST(CApiMembers, tw_hyper_embedding_problem) {
  const Members<tw_hyper_embedding_problem, HyperEmbeddingProblem> test(tw_hyper_embedding_problem_init, changed_tw_hyper_embedding_problem);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("hidden", [](auto& c) { c.hidden = 1002; }, [](const auto& p) { return p.hidden == 1002; });
  test.sets("vocab", [](auto& c) { c.vocab = 1003; }, [](const auto& p) { return p.vocab == 1003; });
  test.sets("stream_dtype", [](auto& c) { c.stream_dtype = TW_F32; }, [](const auto& p) { return p.stream_dtype == DType::kF32; });
  test.refuses("stream_dtype", [](auto& c) { c.stream_dtype = 77; });
}

TEST(CApiMembers, tw_hyper_embedding_arguments) {
  const Members<tw_hyper_embedding_arguments, HyperEmbeddingArguments> test(tw_hyper_embedding_arguments_init, changed_tw_hyper_embedding_arguments);
  test.has_the_defaults();
  test.sets("table", [](auto& c) { c.table = at<const void>(1); }, [](const auto& p) { return p.table == at<const void>(1); });
  test.sets("ids", [](auto& c) { c.ids = at<const int32_t>(2); }, [](const auto& p) { return p.ids == at<const int32_t>(2); });
  test.sets("streams", [](auto& c) { c.streams = at<void>(3); }, [](const auto& p) { return p.streams == at<void>(3); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(4); }, [](const auto& p) { return p.stream == at<void>(4); });
}

TEST(CApiMembers, tw_rms_norm_problem) {
  const Members<tw_rms_norm_problem, RmsNormProblem> test(tw_rms_norm_problem_init, changed_tw_rms_norm_problem);
  test.has_the_defaults();
  test.sets("rows", [](auto& c) { c.rows = 1001; }, [](const auto& p) { return p.rows == 1001; });
  test.sets("cols", [](auto& c) { c.cols = 1002; }, [](const auto& p) { return p.cols == 1002; });
  test.sets("x_dtype", [](auto& c) { c.x_dtype = TW_F32; }, [](const auto& p) { return p.x_dtype == DType::kF32; });
  test.refuses("x_dtype", [](auto& c) { c.x_dtype = 77; });
  test.sets("x_stride", [](auto& c) { c.x_stride = 1004; }, [](const auto& p) { return p.x_stride == 1004; });
  test.sets("out_stride", [](auto& c) { c.out_stride = 1005; }, [](const auto& p) { return p.out_stride == 1005; });
  test.sets("has_weight", [](auto& c) { c.has_weight = 0; }, [](const auto& p) { return p.has_weight == false; });
  test.sets("eps", [](auto& c) { c.eps = 7.25; }, [](const auto& p) { return p.eps == 7.25; });
}

TEST(CApiMembers, tw_rms_norm_arguments) {
  const Members<tw_rms_norm_arguments, RmsNormArguments> test(tw_rms_norm_arguments_init, changed_tw_rms_norm_arguments);
  test.has_the_defaults();
  test.sets("x", [](auto& c) { c.x = at<const void>(1); }, [](const auto& p) { return p.x == at<const void>(1); });
  test.sets("weight", [](auto& c) { c.weight = at<const void>(2); }, [](const auto& p) { return p.weight == at<const void>(2); });
  test.sets("out", [](auto& c) { c.out = at<void>(3); }, [](const auto& p) { return p.out == at<void>(3); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(4); }, [](const auto& p) { return p.stream == at<void>(4); });
}

}  // namespace
}  // namespace tilewright::c_api
