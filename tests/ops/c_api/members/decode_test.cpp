// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, decode, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members/decode.h"

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

TEST(CApiMembers, tw_decode_append) {
  const Members<tw_decode_append, DecodeAppend> test(tw_decode_append_init, changed_tw_decode_append);
  test.has_the_defaults();
  test.sets("is_wanted", [](auto& c) { c.is_wanted = 1; }, [](const auto& p) { return p.is_wanted == true; });
  test.sets("rotary", [](auto& c) { c.rotary = TW_ROTARY_PAIRS_INTERLEAVED; }, [](const auto& p) { return p.rotary == RotaryPairs::kInterleaved; });
  test.sets("rotary", [](auto& c) { c.rotary = TW_ROTARY_PAIRS_HALVES; }, [](const auto& p) { return p.rotary == RotaryPairs::kHalves; });
  test.refuses("rotary", [](auto& c) { c.rotary = 77; });
  test.sets("rotary_dim", [](auto& c) { c.rotary_dim = 1003; }, [](const auto& p) { return p.rotary_dim == 1003; });
  test.sets("max_position", [](auto& c) { c.max_position = 1004; }, [](const auto& p) { return p.max_position == 1004; });
}

TEST(CApiMembers, tw_attention_decode_problem) {
  const Members<tw_attention_decode_problem, AttentionDecodeProblem> test(tw_attention_decode_problem_init, changed_tw_attention_decode_problem);
  test.has_the_defaults();
  test.sets("dtype", [](auto& c) { c.dtype = TW_F16; }, [](const auto& p) { return p.dtype == DType::kF16; });
  test.refuses("dtype", [](auto& c) { c.dtype = 77; });
  test.sets("kv_dtype", [](auto& c) { c.kv_dtype = TW_F16; }, [](const auto& p) { return p.kv_dtype == DType::kF16; });
  test.sets("kv_dtype", [](auto& c) { c.kv_dtype = TW_E4M3; }, [](const auto& p) { return p.kv_dtype == DType::kF8_E4M3; });
  test.refuses("kv_dtype", [](auto& c) { c.kv_dtype = 77; });
  test.sets("batch", [](auto& c) { c.batch = 1003; }, [](const auto& p) { return p.batch == 1003; });
  test.sets("q_len", [](auto& c) { c.q_len = 1004; }, [](const auto& p) { return p.q_len == 1004; });
  test.sets("heads", [](auto& c) { c.heads = 1005; }, [](const auto& p) { return p.heads == 1005; });
  test.sets("kv_heads", [](auto& c) { c.kv_heads = 1006; }, [](const auto& p) { return p.kv_heads == 1006; });
  test.sets("head_dim", [](auto& c) { c.head_dim = 1007; }, [](const auto& p) { return p.head_dim == 1007; });
  test.sets("max_len", [](auto& c) { c.max_len = 1008; }, [](const auto& p) { return p.max_len == 1008; });
  test.sets("page_size", [](auto& c) { c.page_size = 1009; }, [](const auto& p) { return p.page_size == 1009; });
  test.sets("num_pages", [](auto& c) { c.num_pages = 1010; }, [](const auto& p) { return p.num_pages == 1010; });
  test.sets("max_pages", [](auto& c) { c.max_pages = 1011; }, [](const auto& p) { return p.max_pages == 1011; });
  test.sets("table_stride", [](auto& c) { c.table_stride = 1012; }, [](const auto& p) { return p.table_stride == 1012; });
  test.sets("scale", [](auto& c) { c.scale = 13.25; }, [](const auto& p) { return p.scale == 13.25; });
  test.sets("causal", [](auto& c) { c.causal = 0; }, [](const auto& p) { return p.causal == false; });
  test.sets("window_left", [](auto& c) { c.window_left = 1015; }, [](const auto& p) { return p.window_left == 1015; });
  test.sets("softcap", [](auto& c) { c.softcap = 16.25; }, [](const auto& p) { return p.softcap == 16.25; });
  test.sets("descale", [](auto& c) { c.descale = TW_SCALE_SHARING_TENSOR; }, [](const auto& p) { return p.descale == ScaleSharing::kTensor; });
  test.sets("descale", [](auto& c) { c.descale = TW_SCALE_SHARING_HEAD; }, [](const auto& p) { return p.descale == ScaleSharing::kHead; });
  test.refuses("descale", [](auto& c) { c.descale = 77; });
  test.sets("has_sink", [](auto& c) { c.has_sink = 1; }, [](const auto& p) { return p.has_sink == true; });
  test.sets("has_lse", [](auto& c) { c.has_lse = 1; }, [](const auto& p) { return p.has_lse == true; });
  test.sets("append.is_wanted", [](auto& c) { c.append.is_wanted = 1; }, [](const auto& p) { return p.append.is_wanted == true; });
  test.sets("append.rotary", [](auto& c) { c.append.rotary = TW_ROTARY_PAIRS_INTERLEAVED; }, [](const auto& p) { return p.append.rotary == RotaryPairs::kInterleaved; });
  test.sets("append.rotary", [](auto& c) { c.append.rotary = TW_ROTARY_PAIRS_HALVES; }, [](const auto& p) { return p.append.rotary == RotaryPairs::kHalves; });
  test.refuses("append.rotary", [](auto& c) { c.append.rotary = 77; });
  test.sets("append.rotary_dim", [](auto& c) { c.append.rotary_dim = 1022; }, [](const auto& p) { return p.append.rotary_dim == 1022; });
  test.sets("append.max_position", [](auto& c) { c.append.max_position = 1023; }, [](const auto& p) { return p.append.max_position == 1023; });
  test.sets("q_strides.batch", [](auto& c) { c.q_strides.batch = 1024; }, [](const auto& p) { return p.q_strides.batch == 1024; });
  test.sets("q_strides.row", [](auto& c) { c.q_strides.row = 1025; }, [](const auto& p) { return p.q_strides.row == 1025; });
  test.sets("q_strides.head", [](auto& c) { c.q_strides.head = 1026; }, [](const auto& p) { return p.q_strides.head == 1026; });
  test.sets("out_strides.batch", [](auto& c) { c.out_strides.batch = 1027; }, [](const auto& p) { return p.out_strides.batch == 1027; });
  test.sets("out_strides.row", [](auto& c) { c.out_strides.row = 1028; }, [](const auto& p) { return p.out_strides.row == 1028; });
  test.sets("out_strides.head", [](auto& c) { c.out_strides.head = 1029; }, [](const auto& p) { return p.out_strides.head == 1029; });
  test.sets("new_k_strides.batch", [](auto& c) { c.new_k_strides.batch = 1030; }, [](const auto& p) { return p.new_k_strides.batch == 1030; });
  test.sets("new_k_strides.row", [](auto& c) { c.new_k_strides.row = 1031; }, [](const auto& p) { return p.new_k_strides.row == 1031; });
  test.sets("new_k_strides.head", [](auto& c) { c.new_k_strides.head = 1032; }, [](const auto& p) { return p.new_k_strides.head == 1032; });
  test.sets("new_v_strides.batch", [](auto& c) { c.new_v_strides.batch = 1033; }, [](const auto& p) { return p.new_v_strides.batch == 1033; });
  test.sets("new_v_strides.row", [](auto& c) { c.new_v_strides.row = 1034; }, [](const auto& p) { return p.new_v_strides.row == 1034; });
  test.sets("new_v_strides.head", [](auto& c) { c.new_v_strides.head = 1035; }, [](const auto& p) { return p.new_v_strides.head == 1035; });
  test.sets("cache_strides.batch", [](auto& c) { c.cache_strides.batch = 1036; }, [](const auto& p) { return p.cache_strides.batch == 1036; });
  test.sets("cache_strides.row", [](auto& c) { c.cache_strides.row = 1037; }, [](const auto& p) { return p.cache_strides.row == 1037; });
  test.sets("cache_strides.head", [](auto& c) { c.cache_strides.head = 1038; }, [](const auto& p) { return p.cache_strides.head == 1038; });
  test.sets("splits", [](auto& c) { c.splits = 1039; }, [](const auto& p) { return p.splits == 1039; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 40"; }, [](const auto& p) { return p.kernel == "sentinel 40"; });
  test.sets("chunk", [](auto& c) { c.chunk = 1041; }, [](const auto& p) { return p.chunk == 1041; });
}

TEST(CApiMembers, tw_attention_decode_arguments) {
  const Members<tw_attention_decode_arguments, AttentionDecodeArguments> test(tw_attention_decode_arguments_init, changed_tw_attention_decode_arguments);
  test.has_the_defaults();
  test.sets("q", [](auto& c) { c.q = at<const void>(1); }, [](const auto& p) { return p.q == at<const void>(1); });
  test.sets("k_cache", [](auto& c) { c.k_cache = at<void>(2); }, [](const auto& p) { return p.k_cache == at<void>(2); });
  test.sets("v_cache", [](auto& c) { c.v_cache = at<void>(3); }, [](const auto& p) { return p.v_cache == at<void>(3); });
  test.sets("lengths", [](auto& c) { c.lengths = at<const int32_t>(4); }, [](const auto& p) { return p.lengths == at<const int32_t>(4); });
  test.sets("block_table", [](auto& c) { c.block_table = at<const int32_t>(5); }, [](const auto& p) { return p.block_table == at<const int32_t>(5); });
  test.sets("k_descale", [](auto& c) { c.k_descale = at<const float>(6); }, [](const auto& p) { return p.k_descale == at<const float>(6); });
  test.sets("v_descale", [](auto& c) { c.v_descale = at<const float>(7); }, [](const auto& p) { return p.v_descale == at<const float>(7); });
  test.sets("new_k", [](auto& c) { c.new_k = at<const void>(8); }, [](const auto& p) { return p.new_k == at<const void>(8); });
  test.sets("new_v", [](auto& c) { c.new_v = at<const void>(9); }, [](const auto& p) { return p.new_v == at<const void>(9); });
  test.sets("cos", [](auto& c) { c.cos = at<const float>(10); }, [](const auto& p) { return p.rope.cos == at<const float>(10); });
  test.sets("sin", [](auto& c) { c.sin = at<const float>(11); }, [](const auto& p) { return p.rope.sin == at<const float>(11); });
  test.sets("out", [](auto& c) { c.out = at<void>(12); }, [](const auto& p) { return p.out == at<void>(12); });
  test.sets("lse", [](auto& c) { c.lse = at<float>(13); }, [](const auto& p) { return p.lse == at<float>(13); });
  test.sets("sink", [](auto& c) { c.sink = at<const float>(14); }, [](const auto& p) { return p.sink == at<const float>(14); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(15); }, [](const auto& p) { return p.workspace == at<void>(15); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(16); }, [](const auto& p) { return p.stream == at<void>(16); });
}

TEST(CApiMembers, tw_cache_append_problem) {
  const Members<tw_cache_append_problem, CacheAppendProblem> test(tw_cache_append_problem_init, changed_tw_cache_append_problem);
  test.has_the_defaults();
  test.sets("dtype", [](auto& c) { c.dtype = TW_F16; }, [](const auto& p) { return p.dtype == DType::kF16; });
  test.sets("dtype", [](auto& c) { c.dtype = TW_E4M3; }, [](const auto& p) { return p.dtype == DType::kF8_E4M3; });
  test.refuses("dtype", [](auto& c) { c.dtype = 77; });
  test.sets("kv_dtype", [](auto& c) { c.kv_dtype = TW_F16; }, [](const auto& p) { return p.kv_dtype == DType::kF16; });
  test.sets("kv_dtype", [](auto& c) { c.kv_dtype = TW_E4M3; }, [](const auto& p) { return p.kv_dtype == DType::kF8_E4M3; });
  test.refuses("kv_dtype", [](auto& c) { c.kv_dtype = 77; });
  test.sets("batch", [](auto& c) { c.batch = 1003; }, [](const auto& p) { return p.batch == 1003; });
  test.sets("kv_heads", [](auto& c) { c.kv_heads = 1004; }, [](const auto& p) { return p.kv_heads == 1004; });
  test.sets("new_len", [](auto& c) { c.new_len = 1005; }, [](const auto& p) { return p.new_len == 1005; });
  test.sets("head_dim", [](auto& c) { c.head_dim = 1006; }, [](const auto& p) { return p.head_dim == 1006; });
  test.sets("value_dim", [](auto& c) { c.value_dim = 1007; }, [](const auto& p) { return p.value_dim == 1007; });
  test.sets("is_packed", [](auto& c) { c.is_packed = 1; }, [](const auto& p) { return p.is_packed == true; });
  test.sets("total_new", [](auto& c) { c.total_new = 1009; }, [](const auto& p) { return p.total_new == 1009; });
  test.sets("heads", [](auto& c) { c.heads = 1010; }, [](const auto& p) { return p.heads == 1010; });
  test.sets("q_len", [](auto& c) { c.q_len = 1011; }, [](const auto& p) { return p.q_len == 1011; });
  test.sets("is_q_packed", [](auto& c) { c.is_q_packed = 1; }, [](const auto& p) { return p.is_q_packed == true; });
  test.sets("total_q", [](auto& c) { c.total_q = 1013; }, [](const auto& p) { return p.total_q == 1013; });
  test.sets("max_len", [](auto& c) { c.max_len = 1014; }, [](const auto& p) { return p.max_len == 1014; });
  test.sets("page_size", [](auto& c) { c.page_size = 1015; }, [](const auto& p) { return p.page_size == 1015; });
  test.sets("num_pages", [](auto& c) { c.num_pages = 1016; }, [](const auto& p) { return p.num_pages == 1016; });
  test.sets("max_pages", [](auto& c) { c.max_pages = 1017; }, [](const auto& p) { return p.max_pages == 1017; });
  test.sets("table_stride", [](auto& c) { c.table_stride = 1018; }, [](const auto& p) { return p.table_stride == 1018; });
  test.sets("descale", [](auto& c) { c.descale = TW_SCALE_SHARING_TENSOR; }, [](const auto& p) { return p.descale == ScaleSharing::kTensor; });
  test.sets("descale", [](auto& c) { c.descale = TW_SCALE_SHARING_HEAD; }, [](const auto& p) { return p.descale == ScaleSharing::kHead; });
  test.refuses("descale", [](auto& c) { c.descale = 77; });
  test.sets("rotary", [](auto& c) { c.rotary = TW_ROTARY_PAIRS_INTERLEAVED; }, [](const auto& p) { return p.rotary == RotaryPairs::kInterleaved; });
  test.sets("rotary", [](auto& c) { c.rotary = TW_ROTARY_PAIRS_HALVES; }, [](const auto& p) { return p.rotary == RotaryPairs::kHalves; });
  test.refuses("rotary", [](auto& c) { c.rotary = 77; });
  test.sets("rotary_dim", [](auto& c) { c.rotary_dim = 1021; }, [](const auto& p) { return p.rotary_dim == 1021; });
  test.sets("max_position", [](auto& c) { c.max_position = 1022; }, [](const auto& p) { return p.max_position == 1022; });
  test.sets("has_rotary_lengths", [](auto& c) { c.has_rotary_lengths = 1; }, [](const auto& p) { return p.has_rotary_lengths == true; });
  test.sets("is_one_position", [](auto& c) { c.is_one_position = 1; }, [](const auto& p) { return p.is_one_position == true; });
  test.sets("has_new_lengths", [](auto& c) { c.has_new_lengths = 1; }, [](const auto& p) { return p.has_new_lengths == true; });
  test.sets("q_strides.batch", [](auto& c) { c.q_strides.batch = 1026; }, [](const auto& p) { return p.q_strides.batch == 1026; });
  test.sets("q_strides.row", [](auto& c) { c.q_strides.row = 1027; }, [](const auto& p) { return p.q_strides.row == 1027; });
  test.sets("q_strides.head", [](auto& c) { c.q_strides.head = 1028; }, [](const auto& p) { return p.q_strides.head == 1028; });
  test.sets("turned_q_strides.batch", [](auto& c) { c.turned_q_strides.batch = 1029; }, [](const auto& p) { return p.turned_q_strides.batch == 1029; });
  test.sets("turned_q_strides.row", [](auto& c) { c.turned_q_strides.row = 1030; }, [](const auto& p) { return p.turned_q_strides.row == 1030; });
  test.sets("turned_q_strides.head", [](auto& c) { c.turned_q_strides.head = 1031; }, [](const auto& p) { return p.turned_q_strides.head == 1031; });
  test.sets("new_k_strides.batch", [](auto& c) { c.new_k_strides.batch = 1032; }, [](const auto& p) { return p.new_k_strides.batch == 1032; });
  test.sets("new_k_strides.row", [](auto& c) { c.new_k_strides.row = 1033; }, [](const auto& p) { return p.new_k_strides.row == 1033; });
  test.sets("new_k_strides.head", [](auto& c) { c.new_k_strides.head = 1034; }, [](const auto& p) { return p.new_k_strides.head == 1034; });
  test.sets("new_v_strides.batch", [](auto& c) { c.new_v_strides.batch = 1035; }, [](const auto& p) { return p.new_v_strides.batch == 1035; });
  test.sets("new_v_strides.row", [](auto& c) { c.new_v_strides.row = 1036; }, [](const auto& p) { return p.new_v_strides.row == 1036; });
  test.sets("new_v_strides.head", [](auto& c) { c.new_v_strides.head = 1037; }, [](const auto& p) { return p.new_v_strides.head == 1037; });
  test.sets("k_cache_strides.batch", [](auto& c) { c.k_cache_strides.batch = 1038; }, [](const auto& p) { return p.k_cache_strides.batch == 1038; });
  test.sets("k_cache_strides.row", [](auto& c) { c.k_cache_strides.row = 1039; }, [](const auto& p) { return p.k_cache_strides.row == 1039; });
  test.sets("k_cache_strides.head", [](auto& c) { c.k_cache_strides.head = 1040; }, [](const auto& p) { return p.k_cache_strides.head == 1040; });
  test.sets("v_cache_strides.batch", [](auto& c) { c.v_cache_strides.batch = 1041; }, [](const auto& p) { return p.v_cache_strides.batch == 1041; });
  test.sets("v_cache_strides.row", [](auto& c) { c.v_cache_strides.row = 1042; }, [](const auto& p) { return p.v_cache_strides.row == 1042; });
  test.sets("v_cache_strides.head", [](auto& c) { c.v_cache_strides.head = 1043; }, [](const auto& p) { return p.v_cache_strides.head == 1043; });
}

TEST(CApiMembers, tw_cache_append_arguments) {
  const Members<tw_cache_append_arguments, CacheAppendArguments> test(tw_cache_append_arguments_init, changed_tw_cache_append_arguments);
  test.has_the_defaults();
  test.sets("q", [](auto& c) { c.q = at<const void>(1); }, [](const auto& p) { return p.q == at<const void>(1); });
  test.sets("new_k", [](auto& c) { c.new_k = at<const void>(2); }, [](const auto& p) { return p.new_k == at<const void>(2); });
  test.sets("new_v", [](auto& c) { c.new_v = at<const void>(3); }, [](const auto& p) { return p.new_v == at<const void>(3); });
  test.sets("turned_q", [](auto& c) { c.turned_q = at<void>(4); }, [](const auto& p) { return p.turned_q == at<void>(4); });
  test.sets("k_cache", [](auto& c) { c.k_cache = at<void>(5); }, [](const auto& p) { return p.k_cache == at<void>(5); });
  test.sets("v_cache", [](auto& c) { c.v_cache = at<void>(6); }, [](const auto& p) { return p.v_cache == at<void>(6); });
  test.sets("lengths", [](auto& c) { c.lengths = at<const int32_t>(7); }, [](const auto& p) { return p.lengths == at<const int32_t>(7); });
  test.sets("rotary_lengths", [](auto& c) { c.rotary_lengths = at<const int32_t>(8); }, [](const auto& p) { return p.rotary_lengths == at<const int32_t>(8); });
  test.sets("new_lengths", [](auto& c) { c.new_lengths = at<int32_t>(9); }, [](const auto& p) { return p.new_lengths == at<int32_t>(9); });
  test.sets("block_table", [](auto& c) { c.block_table = at<const int32_t>(10); }, [](const auto& p) { return p.block_table == at<const int32_t>(10); });
  test.sets("cu_new", [](auto& c) { c.cu_new = at<const int32_t>(11); }, [](const auto& p) { return p.cu_new == at<const int32_t>(11); });
  test.sets("cu_q", [](auto& c) { c.cu_q = at<const int32_t>(12); }, [](const auto& p) { return p.cu_q == at<const int32_t>(12); });
  test.sets("k_descale", [](auto& c) { c.k_descale = at<const float>(13); }, [](const auto& p) { return p.k_descale == at<const float>(13); });
  test.sets("v_descale", [](auto& c) { c.v_descale = at<const float>(14); }, [](const auto& p) { return p.v_descale == at<const float>(14); });
  test.sets("cos", [](auto& c) { c.cos = at<const float>(15); }, [](const auto& p) { return p.rope.cos == at<const float>(15); });
  test.sets("sin", [](auto& c) { c.sin = at<const float>(16); }, [](const auto& p) { return p.rope.sin == at<const float>(16); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(17); }, [](const auto& p) { return p.stream == at<void>(17); });
}

}  // namespace
}  // namespace tilewright::c_api
