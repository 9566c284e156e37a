// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, attention, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members/attention.h"

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

TEST(CApiMembers, tw_strides) {
  const Members<tw_strides, Strides> test(tw_strides_init, changed_tw_strides);
  test.has_the_defaults();
  test.sets("batch", [](auto& c) { c.batch = 1001; }, [](const auto& p) { return p.batch == 1001; });
  test.sets("row", [](auto& c) { c.row = 1002; }, [](const auto& p) { return p.row == 1002; });
  test.sets("head", [](auto& c) { c.head = 1003; }, [](const auto& p) { return p.head == 1003; });
}

TEST(CApiMembers, tw_fp8_options) {
  const Members<tw_fp8_options, Fp8Options> test(tw_fp8_options_init, changed_tw_fp8_options);
  test.has_the_defaults();
  test.sets("scales", [](auto& c) { c.scales = TW_SCALE_SHARING_HEAD; }, [](const auto& p) { return p.scales == ScaleSharing::kHead; });
  test.sets("scales", [](auto& c) { c.scales = TW_SCALE_SHARING_BLOCK; }, [](const auto& p) { return p.scales == ScaleSharing::kBlock; });
  test.refuses("scales", [](auto& c) { c.scales = 77; });
  test.sets("v_layout", [](auto& c) { c.v_layout = TW_FP8_VALUE_LAYOUT_COLUMNS; }, [](const auto& p) { return p.v_layout == Fp8ValueLayout::kColumns; });
  test.refuses("v_layout", [](auto& c) { c.v_layout = 77; });
  test.sets("accumulation", [](auto& c) { c.accumulation = TW_FP8_ACCUMULATION_ONE_LEVEL; }, [](const auto& p) { return p.accumulation == Fp8Accumulation::kOneLevel; });
  test.sets("accumulation", [](auto& c) { c.accumulation = TW_FP8_ACCUMULATION_TWO_LEVEL; }, [](const auto& p) { return p.accumulation == Fp8Accumulation::kTwoLevel; });
  test.refuses("accumulation", [](auto& c) { c.accumulation = 77; });
}

TEST(CApiMembers, tw_attention_problem) {
  const Members<tw_attention_problem, AttentionProblem> test(tw_attention_problem_init, changed_tw_attention_problem);
  test.has_the_defaults();
  test.sets("dtype", [](auto& c) { c.dtype = TW_F16; }, [](const auto& p) { return p.dtype == DType::kF16; });
  test.sets("dtype", [](auto& c) { c.dtype = TW_E4M3; }, [](const auto& p) { return p.dtype == DType::kF8_E4M3; });
  test.refuses("dtype", [](auto& c) { c.dtype = 77; });
  test.sets("batch", [](auto& c) { c.batch = 1002; }, [](const auto& p) { return p.batch == 1002; });
  test.sets("heads", [](auto& c) { c.heads = 1003; }, [](const auto& p) { return p.heads == 1003; });
  test.sets("kv_heads", [](auto& c) { c.kv_heads = 1004; }, [](const auto& p) { return p.kv_heads == 1004; });
  test.sets("q_len", [](auto& c) { c.q_len = 1005; }, [](const auto& p) { return p.q_len == 1005; });
  test.sets("kv_len", [](auto& c) { c.kv_len = 1006; }, [](const auto& p) { return p.kv_len == 1006; });
  test.sets("head_dim", [](auto& c) { c.head_dim = 1007; }, [](const auto& p) { return p.head_dim == 1007; });
  test.sets("scale", [](auto& c) { c.scale = 8.25; }, [](const auto& p) { return p.scale == 8.25; });
  test.sets("causal", [](auto& c) { c.causal = 1; }, [](const auto& p) { return p.causal == true; });
  test.sets("window_left", [](auto& c) { c.window_left = 1010; }, [](const auto& p) { return p.window_left == 1010; });
  test.sets("window_right", [](auto& c) { c.window_right = 1011; }, [](const auto& p) { return p.window_right == 1011; });
  test.sets("softcap", [](auto& c) { c.softcap = 12.25; }, [](const auto& p) { return p.softcap == 12.25; });
  test.sets("has_sink", [](auto& c) { c.has_sink = 1; }, [](const auto& p) { return p.has_sink == true; });
  test.sets("has_lse", [](auto& c) { c.has_lse = 1; }, [](const auto& p) { return p.has_lse == true; });
  test.sets("is_packed", [](auto& c) { c.is_packed = 1; }, [](const auto& p) { return p.is_packed == true; });
  test.sets("total_q", [](auto& c) { c.total_q = 1016; }, [](const auto& p) { return p.total_q == 1016; });
  test.sets("total_kv", [](auto& c) { c.total_kv = 1017; }, [](const auto& p) { return p.total_kv == 1017; });
  test.sets("q_strides.batch", [](auto& c) { c.q_strides.batch = 1018; }, [](const auto& p) { return p.q_strides.batch == 1018; });
  test.sets("q_strides.row", [](auto& c) { c.q_strides.row = 1019; }, [](const auto& p) { return p.q_strides.row == 1019; });
  test.sets("q_strides.head", [](auto& c) { c.q_strides.head = 1020; }, [](const auto& p) { return p.q_strides.head == 1020; });
  test.sets("k_strides.batch", [](auto& c) { c.k_strides.batch = 1021; }, [](const auto& p) { return p.k_strides.batch == 1021; });
  test.sets("k_strides.row", [](auto& c) { c.k_strides.row = 1022; }, [](const auto& p) { return p.k_strides.row == 1022; });
  test.sets("k_strides.head", [](auto& c) { c.k_strides.head = 1023; }, [](const auto& p) { return p.k_strides.head == 1023; });
  test.sets("v_strides.batch", [](auto& c) { c.v_strides.batch = 1024; }, [](const auto& p) { return p.v_strides.batch == 1024; });
  test.sets("v_strides.row", [](auto& c) { c.v_strides.row = 1025; }, [](const auto& p) { return p.v_strides.row == 1025; });
  test.sets("v_strides.head", [](auto& c) { c.v_strides.head = 1026; }, [](const auto& p) { return p.v_strides.head == 1026; });
  test.sets("out_strides.batch", [](auto& c) { c.out_strides.batch = 1027; }, [](const auto& p) { return p.out_strides.batch == 1027; });
  test.sets("out_strides.row", [](auto& c) { c.out_strides.row = 1028; }, [](const auto& p) { return p.out_strides.row == 1028; });
  test.sets("out_strides.head", [](auto& c) { c.out_strides.head = 1029; }, [](const auto& p) { return p.out_strides.head == 1029; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 30"; }, [](const auto& p) { return p.kernel == "sentinel 30"; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_BF16; }, [](const auto& p) { return p.out_dtype == DType::kBF16; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_F16; }, [](const auto& p) { return p.out_dtype == DType::kF16; });
  test.refuses("out_dtype", [](auto& c) { c.out_dtype = 77; });
  test.sets("fp8.scales", [](auto& c) { c.fp8.scales = TW_SCALE_SHARING_HEAD; }, [](const auto& p) { return p.fp8.scales == ScaleSharing::kHead; });
  test.sets("fp8.scales", [](auto& c) { c.fp8.scales = TW_SCALE_SHARING_BLOCK; }, [](const auto& p) { return p.fp8.scales == ScaleSharing::kBlock; });
  test.refuses("fp8.scales", [](auto& c) { c.fp8.scales = 77; });
  test.sets("fp8.v_layout", [](auto& c) { c.fp8.v_layout = TW_FP8_VALUE_LAYOUT_COLUMNS; }, [](const auto& p) { return p.fp8.v_layout == Fp8ValueLayout::kColumns; });
  test.refuses("fp8.v_layout", [](auto& c) { c.fp8.v_layout = 77; });
  test.sets("fp8.accumulation", [](auto& c) { c.fp8.accumulation = TW_FP8_ACCUMULATION_ONE_LEVEL; }, [](const auto& p) { return p.fp8.accumulation == Fp8Accumulation::kOneLevel; });
  test.sets("fp8.accumulation", [](auto& c) { c.fp8.accumulation = TW_FP8_ACCUMULATION_TWO_LEVEL; }, [](const auto& p) { return p.fp8.accumulation == Fp8Accumulation::kTwoLevel; });
  test.refuses("fp8.accumulation", [](auto& c) { c.fp8.accumulation = 77; });
  test.sets("has_q_lengths", [](auto& c) { c.has_q_lengths = 1; }, [](const auto& p) { return p.has_q_lengths == true; });
  test.sets("has_kv_lengths", [](auto& c) { c.has_kv_lengths = 1; }, [](const auto& p) { return p.has_kv_lengths == true; });
  test.sets("page_size", [](auto& c) { c.page_size = 1037; }, [](const auto& p) { return p.page_size == 1037; });
  test.sets("num_pages", [](auto& c) { c.num_pages = 1038; }, [](const auto& p) { return p.num_pages == 1038; });
  test.sets("max_pages", [](auto& c) { c.max_pages = 1039; }, [](const auto& p) { return p.max_pages == 1039; });
  test.sets("table_stride", [](auto& c) { c.table_stride = 1040; }, [](const auto& p) { return p.table_stride == 1040; });
  test.sets("value_dim", [](auto& c) { c.value_dim = 1041; }, [](const auto& p) { return p.value_dim == 1041; });
  test.sets("chunk", [](auto& c) { c.chunk = 1042; }, [](const auto& p) { return p.chunk == 1042; });
  test.sets("kv_dtype", [](auto& c) { c.kv_dtype = TW_BF16; }, [](const auto& p) { return p.kv_dtype == DType::kBF16; });
  test.sets("kv_dtype", [](auto& c) { c.kv_dtype = TW_F16; }, [](const auto& p) { return p.kv_dtype == DType::kF16; });
  test.sets("kv_dtype", [](auto& c) { c.kv_dtype = TW_E4M3; }, [](const auto& p) { return p.kv_dtype == DType::kF8_E4M3; });
  test.refuses("kv_dtype", [](auto& c) { c.kv_dtype = 77; });
}

TEST(CApiMembers, tw_attention_arguments) {
  const Members<tw_attention_arguments, AttentionArguments> test(tw_attention_arguments_init, changed_tw_attention_arguments);
  test.has_the_defaults();
  test.sets("q", [](auto& c) { c.q = at<const void>(1); }, [](const auto& p) { return p.q == at<const void>(1); });
  test.sets("k", [](auto& c) { c.k = at<const void>(2); }, [](const auto& p) { return p.k == at<const void>(2); });
  test.sets("v", [](auto& c) { c.v = at<const void>(3); }, [](const auto& p) { return p.v == at<const void>(3); });
  test.sets("out", [](auto& c) { c.out = at<void>(4); }, [](const auto& p) { return p.out == at<void>(4); });
  test.sets("lse", [](auto& c) { c.lse = at<float>(5); }, [](const auto& p) { return p.lse == at<float>(5); });
  test.sets("sink", [](auto& c) { c.sink = at<const float>(6); }, [](const auto& p) { return p.sink == at<const float>(6); });
  test.sets("cu_q", [](auto& c) { c.cu_q = at<const int32_t>(7); }, [](const auto& p) { return p.cu_q == at<const int32_t>(7); });
  test.sets("cu_kv", [](auto& c) { c.cu_kv = at<const int32_t>(8); }, [](const auto& p) { return p.cu_kv == at<const int32_t>(8); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(9); }, [](const auto& p) { return p.workspace == at<void>(9); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(10); }, [](const auto& p) { return p.stream == at<void>(10); });
  test.sets("q_descale", [](auto& c) { c.q_descale = at<const float>(11); }, [](const auto& p) { return p.q_descale == at<const float>(11); });
  test.sets("k_descale", [](auto& c) { c.k_descale = at<const float>(12); }, [](const auto& p) { return p.k_descale == at<const float>(12); });
  test.sets("v_descale", [](auto& c) { c.v_descale = at<const float>(13); }, [](const auto& p) { return p.v_descale == at<const float>(13); });
  test.sets("v_descale_max", [](auto& c) { c.v_descale_max = at<const float>(14); }, [](const auto& p) { return p.v_descale_max == at<const float>(14); });
  test.sets("q_lengths", [](auto& c) { c.q_lengths = at<const int32_t>(15); }, [](const auto& p) { return p.q_lengths == at<const int32_t>(15); });
  test.sets("kv_lengths", [](auto& c) { c.kv_lengths = at<const int32_t>(16); }, [](const auto& p) { return p.kv_lengths == at<const int32_t>(16); });
  test.sets("block_table", [](auto& c) { c.block_table = at<const int32_t>(17); }, [](const auto& p) { return p.block_table == at<const int32_t>(17); });
}

TEST(CApiMembers, tw_attention_merge_problem) {
  const Members<tw_attention_merge_problem, AttentionMergeProblem> test(tw_attention_merge_problem_init, changed_tw_attention_merge_problem);
  test.has_the_defaults();
  test.sets("part_dtype", [](auto& c) { c.part_dtype = TW_BF16; }, [](const auto& p) { return p.part_dtype == DType::kBF16; });
  test.sets("part_dtype", [](auto& c) { c.part_dtype = TW_F16; }, [](const auto& p) { return p.part_dtype == DType::kF16; });
  test.refuses("part_dtype", [](auto& c) { c.part_dtype = 77; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_F32; }, [](const auto& p) { return p.out_dtype == DType::kF32; });
  test.sets("out_dtype", [](auto& c) { c.out_dtype = TW_F16; }, [](const auto& p) { return p.out_dtype == DType::kF16; });
  test.refuses("out_dtype", [](auto& c) { c.out_dtype = 77; });
  test.sets("parts", [](auto& c) { c.parts = 1003; }, [](const auto& p) { return p.parts == 1003; });
  test.sets("batch", [](auto& c) { c.batch = 1004; }, [](const auto& p) { return p.batch == 1004; });
  test.sets("rows", [](auto& c) { c.rows = 1005; }, [](const auto& p) { return p.rows == 1005; });
  test.sets("heads", [](auto& c) { c.heads = 1006; }, [](const auto& p) { return p.heads == 1006; });
  test.sets("head_dim", [](auto& c) { c.head_dim = 1007; }, [](const auto& p) { return p.head_dim == 1007; });
  test.sets("has_sink", [](auto& c) { c.has_sink = 1; }, [](const auto& p) { return p.has_sink == true; });
  test.sets("has_lse", [](auto& c) { c.has_lse = 1; }, [](const auto& p) { return p.has_lse == true; });
  test.sets("part_stride", [](auto& c) { c.part_stride = 1010; }, [](const auto& p) { return p.part_stride == 1010; });
  test.sets("lse_part_stride", [](auto& c) { c.lse_part_stride = 1011; }, [](const auto& p) { return p.lse_part_stride == 1011; });
  test.sets("part_strides.batch", [](auto& c) { c.part_strides.batch = 1012; }, [](const auto& p) { return p.part_strides.batch == 1012; });
  test.sets("part_strides.row", [](auto& c) { c.part_strides.row = 1013; }, [](const auto& p) { return p.part_strides.row == 1013; });
  test.sets("part_strides.head", [](auto& c) { c.part_strides.head = 1014; }, [](const auto& p) { return p.part_strides.head == 1014; });
  test.sets("out_strides.batch", [](auto& c) { c.out_strides.batch = 1015; }, [](const auto& p) { return p.out_strides.batch == 1015; });
  test.sets("out_strides.row", [](auto& c) { c.out_strides.row = 1016; }, [](const auto& p) { return p.out_strides.row == 1016; });
  test.sets("out_strides.head", [](auto& c) { c.out_strides.head = 1017; }, [](const auto& p) { return p.out_strides.head == 1017; });
  test.sets("lse_part_strides.batch", [](auto& c) { c.lse_part_strides.batch = 1018; }, [](const auto& p) { return p.lse_part_strides.batch == 1018; });
  test.sets("lse_part_strides.row", [](auto& c) { c.lse_part_strides.row = 1019; }, [](const auto& p) { return p.lse_part_strides.row == 1019; });
  test.sets("lse_part_strides.head", [](auto& c) { c.lse_part_strides.head = 1020; }, [](const auto& p) { return p.lse_part_strides.head == 1020; });
  test.sets("lse_strides.batch", [](auto& c) { c.lse_strides.batch = 1021; }, [](const auto& p) { return p.lse_strides.batch == 1021; });
  test.sets("lse_strides.row", [](auto& c) { c.lse_strides.row = 1022; }, [](const auto& p) { return p.lse_strides.row == 1022; });
  test.sets("lse_strides.head", [](auto& c) { c.lse_strides.head = 1023; }, [](const auto& p) { return p.lse_strides.head == 1023; });
  test.sets("other_strides.batch", [](auto& c) { c.other_strides.batch = 1024; }, [](const auto& p) { return p.other_strides.batch == 1024; });
  test.sets("other_strides.row", [](auto& c) { c.other_strides.row = 1025; }, [](const auto& p) { return p.other_strides.row == 1025; });
  test.sets("other_strides.head", [](auto& c) { c.other_strides.head = 1026; }, [](const auto& p) { return p.other_strides.head == 1026; });
  test.sets("lse_other_strides.batch", [](auto& c) { c.lse_other_strides.batch = 1027; }, [](const auto& p) { return p.lse_other_strides.batch == 1027; });
  test.sets("lse_other_strides.row", [](auto& c) { c.lse_other_strides.row = 1028; }, [](const auto& p) { return p.lse_other_strides.row == 1028; });
  test.sets("lse_other_strides.head", [](auto& c) { c.lse_other_strides.head = 1029; }, [](const auto& p) { return p.lse_other_strides.head == 1029; });
}

TEST(CApiMembers, tw_attention_merge_arguments) {
  const Members<tw_attention_merge_arguments, AttentionMergeArguments> test(tw_attention_merge_arguments_init, changed_tw_attention_merge_arguments);
  test.has_the_defaults();
  test.sets("part_out", [](auto& c) { c.part_out = at<const void>(1); }, [](const auto& p) { return p.part_out == at<const void>(1); });
  test.sets("part_lse", [](auto& c) { c.part_lse = at<const float>(2); }, [](const auto& p) { return p.part_lse == at<const float>(2); });
  test.sets("other_out", [](auto& c) { c.other_out = at<const void>(3); }, [](const auto& p) { return p.other_out == at<const void>(3); });
  test.sets("other_lse", [](auto& c) { c.other_lse = at<const float>(4); }, [](const auto& p) { return p.other_lse == at<const float>(4); });
  test.sets("out", [](auto& c) { c.out = at<void>(5); }, [](const auto& p) { return p.out == at<void>(5); });
  test.sets("lse", [](auto& c) { c.lse = at<float>(6); }, [](const auto& p) { return p.lse == at<float>(6); });
  test.sets("sink", [](auto& c) { c.sink = at<const float>(7); }, [](const auto& p) { return p.sink == at<const float>(7); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(8); }, [](const auto& p) { return p.stream == at<void>(8); });
}

TEST(CApiMembers, tw_attention_prepare_problem) {
  const Members<tw_attention_prepare_problem, AttentionPrepareProblem> test(tw_attention_prepare_problem_init, changed_tw_attention_prepare_problem);
  test.has_the_defaults();
  test.sets("dtype", [](auto& c) { c.dtype = TW_F16; }, [](const auto& p) { return p.dtype == DType::kF16; });
  test.refuses("dtype", [](auto& c) { c.dtype = 77; });
  test.sets("batch", [](auto& c) { c.batch = 1002; }, [](const auto& p) { return p.batch == 1002; });
  test.sets("heads", [](auto& c) { c.heads = 1003; }, [](const auto& p) { return p.heads == 1003; });
  test.sets("kv_heads", [](auto& c) { c.kv_heads = 1004; }, [](const auto& p) { return p.kv_heads == 1004; });
  test.sets("q_len", [](auto& c) { c.q_len = 1005; }, [](const auto& p) { return p.q_len == 1005; });
  test.sets("kv_len", [](auto& c) { c.kv_len = 1006; }, [](const auto& p) { return p.kv_len == 1006; });
  test.sets("head_dim", [](auto& c) { c.head_dim = 1007; }, [](const auto& p) { return p.head_dim == 1007; });
  test.sets("is_packed", [](auto& c) { c.is_packed = 1; }, [](const auto& p) { return p.is_packed == true; });
  test.sets("total_q", [](auto& c) { c.total_q = 1009; }, [](const auto& p) { return p.total_q == 1009; });
  test.sets("total_kv", [](auto& c) { c.total_kv = 1010; }, [](const auto& p) { return p.total_kv == 1010; });
  test.sets("q_strides.batch", [](auto& c) { c.q_strides.batch = 1011; }, [](const auto& p) { return p.q_strides.batch == 1011; });
  test.sets("q_strides.row", [](auto& c) { c.q_strides.row = 1012; }, [](const auto& p) { return p.q_strides.row == 1012; });
  test.sets("q_strides.head", [](auto& c) { c.q_strides.head = 1013; }, [](const auto& p) { return p.q_strides.head == 1013; });
  test.sets("k_strides.batch", [](auto& c) { c.k_strides.batch = 1014; }, [](const auto& p) { return p.k_strides.batch == 1014; });
  test.sets("k_strides.row", [](auto& c) { c.k_strides.row = 1015; }, [](const auto& p) { return p.k_strides.row == 1015; });
  test.sets("k_strides.head", [](auto& c) { c.k_strides.head = 1016; }, [](const auto& p) { return p.k_strides.head == 1016; });
  test.sets("v_strides.batch", [](auto& c) { c.v_strides.batch = 1017; }, [](const auto& p) { return p.v_strides.batch == 1017; });
  test.sets("v_strides.row", [](auto& c) { c.v_strides.row = 1018; }, [](const auto& p) { return p.v_strides.row == 1018; });
  test.sets("v_strides.head", [](auto& c) { c.v_strides.head = 1019; }, [](const auto& p) { return p.v_strides.head == 1019; });
  test.sets("q8_strides.batch", [](auto& c) { c.q8_strides.batch = 1020; }, [](const auto& p) { return p.q8_strides.batch == 1020; });
  test.sets("q8_strides.row", [](auto& c) { c.q8_strides.row = 1021; }, [](const auto& p) { return p.q8_strides.row == 1021; });
  test.sets("q8_strides.head", [](auto& c) { c.q8_strides.head = 1022; }, [](const auto& p) { return p.q8_strides.head == 1022; });
  test.sets("k8_strides.batch", [](auto& c) { c.k8_strides.batch = 1023; }, [](const auto& p) { return p.k8_strides.batch == 1023; });
  test.sets("k8_strides.row", [](auto& c) { c.k8_strides.row = 1024; }, [](const auto& p) { return p.k8_strides.row == 1024; });
  test.sets("k8_strides.head", [](auto& c) { c.k8_strides.head = 1025; }, [](const auto& p) { return p.k8_strides.head == 1025; });
  test.sets("v8_strides.batch", [](auto& c) { c.v8_strides.batch = 1026; }, [](const auto& p) { return p.v8_strides.batch == 1026; });
  test.sets("v8_strides.row", [](auto& c) { c.v8_strides.row = 1027; }, [](const auto& p) { return p.v8_strides.row == 1027; });
  test.sets("v8_strides.head", [](auto& c) { c.v8_strides.head = 1028; }, [](const auto& p) { return p.v8_strides.head == 1028; });
  test.sets("scales", [](auto& c) { c.scales = TW_SCALE_SHARING_TENSOR; }, [](const auto& p) { return p.scales == ScaleSharing::kTensor; });
  test.sets("scales", [](auto& c) { c.scales = TW_SCALE_SHARING_HEAD; }, [](const auto& p) { return p.scales == ScaleSharing::kHead; });
  test.refuses("scales", [](auto& c) { c.scales = 77; });
  test.sets("v_layout", [](auto& c) { c.v_layout = TW_FP8_VALUE_LAYOUT_ROWS; }, [](const auto& p) { return p.v_layout == Fp8ValueLayout::kRows; });
  test.refuses("v_layout", [](auto& c) { c.v_layout = 77; });
  test.sets("is_rotated", [](auto& c) { c.is_rotated = 0; }, [](const auto& p) { return p.is_rotated == false; });
  test.sets("sign_seed", [](auto& c) { c.sign_seed = 1032; }, [](const auto& p) { return p.sign_seed == 1032; });
  test.sets("rope", [](auto& c) { c.rope = TW_ROTARY_PAIRS_INTERLEAVED; }, [](const auto& p) { return p.rope == RotaryPairs::kInterleaved; });
  test.sets("rope", [](auto& c) { c.rope = TW_ROTARY_PAIRS_HALVES; }, [](const auto& p) { return p.rope == RotaryPairs::kHalves; });
  test.refuses("rope", [](auto& c) { c.rope = 77; });
  test.sets("rotary_dim", [](auto& c) { c.rotary_dim = 1034; }, [](const auto& p) { return p.rotary_dim == 1034; });
  test.sets("rope_positions", [](auto& c) { c.rope_positions = 1035; }, [](const auto& p) { return p.rope_positions == 1035; });
  test.sets("has_positions", [](auto& c) { c.has_positions = 1; }, [](const auto& p) { return p.has_positions == true; });
}

TEST(CApiMembers, tw_attention_prepare_arguments) {
  const Members<tw_attention_prepare_arguments, AttentionPrepareArguments> test(tw_attention_prepare_arguments_init, changed_tw_attention_prepare_arguments);
  test.has_the_defaults();
  test.sets("q", [](auto& c) { c.q = at<const void>(1); }, [](const auto& p) { return p.q == at<const void>(1); });
  test.sets("k", [](auto& c) { c.k = at<const void>(2); }, [](const auto& p) { return p.k == at<const void>(2); });
  test.sets("v", [](auto& c) { c.v = at<const void>(3); }, [](const auto& p) { return p.v == at<const void>(3); });
  test.sets("q8", [](auto& c) { c.q8 = at<void>(4); }, [](const auto& p) { return p.q8 == at<void>(4); });
  test.sets("k8", [](auto& c) { c.k8 = at<void>(5); }, [](const auto& p) { return p.k8 == at<void>(5); });
  test.sets("v8", [](auto& c) { c.v8 = at<void>(6); }, [](const auto& p) { return p.v8 == at<void>(6); });
  test.sets("q_descale", [](auto& c) { c.q_descale = at<float>(7); }, [](const auto& p) { return p.q_descale == at<float>(7); });
  test.sets("k_descale", [](auto& c) { c.k_descale = at<float>(8); }, [](const auto& p) { return p.k_descale == at<float>(8); });
  test.sets("v_descale", [](auto& c) { c.v_descale = at<float>(9); }, [](const auto& p) { return p.v_descale == at<float>(9); });
  test.sets("v_descale_max", [](auto& c) { c.v_descale_max = at<float>(10); }, [](const auto& p) { return p.v_descale_max == at<float>(10); });
  test.sets("cu_q", [](auto& c) { c.cu_q = at<const int32_t>(11); }, [](const auto& p) { return p.cu_q == at<const int32_t>(11); });
  test.sets("cu_kv", [](auto& c) { c.cu_kv = at<const int32_t>(12); }, [](const auto& p) { return p.cu_kv == at<const int32_t>(12); });
  test.sets("rope", [](auto& c) { c.rope = at<const float>(13); }, [](const auto& p) { return p.rope.angles == at<const float>(13); });
  test.sets("q_positions", [](auto& c) { c.q_positions = at<const int32_t>(14); }, [](const auto& p) { return p.q_positions == at<const int32_t>(14); });
  test.sets("k_positions", [](auto& c) { c.k_positions = at<const int32_t>(15); }, [](const auto& p) { return p.k_positions == at<const int32_t>(15); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(16); }, [](const auto& p) { return p.workspace == at<void>(16); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(17); }, [](const auto& p) { return p.stream == at<void>(17); });
}

}  // namespace
}  // namespace tilewright::c_api
