// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, sparse attention, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members/sparse_attention.h"

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

TEST(CApiMembers, tw_kv_layout) {
  const Members<tw_kv_layout, KvCacheLayout> test(tw_kv_layout_init, changed_tw_kv_layout);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.format == NumberFormat::kBf16; });
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.format == NumberFormat::kNvfp4; });
  test.refuses("format", [](auto& c) { c.format = 77; });
  test.sets("page_size", [](auto& c) { c.page_size = 1002; }, [](const auto& p) { return p.page_size == 1002; });
  test.sets("num_pages", [](auto& c) { c.num_pages = 1003; }, [](const auto& p) { return p.num_pages == 1003; });
  test.sets("page_stride_bytes", [](auto& c) { c.page_stride_bytes = 1004; }, [](const auto& p) { return p.page_stride_bytes == 1004; });
}

TEST(CApiMembers, tw_sparse_list) {
  const Members<tw_sparse_list, SparseList> test(tw_sparse_list_init, changed_tw_sparse_list);
  test.has_the_defaults();
  test.sets("cache.format", [](auto& c) { c.cache.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.cache.format == NumberFormat::kBf16; });
  test.sets("cache.format", [](auto& c) { c.cache.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.cache.format == NumberFormat::kNvfp4; });
  test.refuses("cache.format", [](auto& c) { c.cache.format = 77; });
  test.sets("cache.page_size", [](auto& c) { c.cache.page_size = 1002; }, [](const auto& p) { return p.cache.page_size == 1002; });
  test.sets("cache.num_pages", [](auto& c) { c.cache.num_pages = 1003; }, [](const auto& p) { return p.cache.num_pages == 1003; });
  test.sets("cache.page_stride_bytes", [](auto& c) { c.cache.page_stride_bytes = 1004; }, [](const auto& p) { return p.cache.page_stride_bytes == 1004; });
  test.sets("topk", [](auto& c) { c.topk = 1005; }, [](const auto& p) { return p.topk == 1005; });
  test.sets("index_stride", [](auto& c) { c.index_stride = 1006; }, [](const auto& p) { return p.index_stride == 1006; });
  test.sets("lengths", [](auto& c) { c.lengths = TW_SPARSE_LENGTHS_PER_BATCH; }, [](const auto& p) { return p.lengths == SparseLengths::kPerBatch; });
  test.sets("lengths", [](auto& c) { c.lengths = TW_SPARSE_LENGTHS_PER_QUERY; }, [](const auto& p) { return p.lengths == SparseLengths::kPerQuery; });
  test.refuses("lengths", [](auto& c) { c.lengths = 77; });
}

TEST(CApiMembers, tw_sparse_attention_problem) {
  const Members<tw_sparse_attention_problem, SparseAttentionProblem> test(tw_sparse_attention_problem_init, changed_tw_sparse_attention_problem);
  test.has_the_defaults();
  test.sets("batch", [](auto& c) { c.batch = 1001; }, [](const auto& p) { return p.batch == 1001; });
  test.sets("q_len", [](auto& c) { c.q_len = 1002; }, [](const auto& p) { return p.q_len == 1002; });
  test.sets("heads", [](auto& c) { c.heads = 1003; }, [](const auto& p) { return p.heads == 1003; });
  test.sets("scale", [](auto& c) { c.scale = 4.25; }, [](const auto& p) { return p.scale == 4.25; });
  test.sets("window.cache.format", [](auto& c) { c.window.cache.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.window.cache.format == NumberFormat::kBf16; });
  test.sets("window.cache.format", [](auto& c) { c.window.cache.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.window.cache.format == NumberFormat::kNvfp4; });
  test.refuses("window.cache.format", [](auto& c) { c.window.cache.format = 77; });
  test.sets("window.cache.page_size", [](auto& c) { c.window.cache.page_size = 1006; }, [](const auto& p) { return p.window.cache.page_size == 1006; });
  test.sets("window.cache.num_pages", [](auto& c) { c.window.cache.num_pages = 1007; }, [](const auto& p) { return p.window.cache.num_pages == 1007; });
  test.sets("window.cache.page_stride_bytes", [](auto& c) { c.window.cache.page_stride_bytes = 1008; }, [](const auto& p) { return p.window.cache.page_stride_bytes == 1008; });
  test.sets("window.topk", [](auto& c) { c.window.topk = 1009; }, [](const auto& p) { return p.window.topk == 1009; });
  test.sets("window.index_stride", [](auto& c) { c.window.index_stride = 1010; }, [](const auto& p) { return p.window.index_stride == 1010; });
  test.sets("window.lengths", [](auto& c) { c.window.lengths = TW_SPARSE_LENGTHS_PER_BATCH; }, [](const auto& p) { return p.window.lengths == SparseLengths::kPerBatch; });
  test.sets("window.lengths", [](auto& c) { c.window.lengths = TW_SPARSE_LENGTHS_PER_QUERY; }, [](const auto& p) { return p.window.lengths == SparseLengths::kPerQuery; });
  test.refuses("window.lengths", [](auto& c) { c.window.lengths = 77; });
  test.sets("compressed.cache.format", [](auto& c) { c.compressed.cache.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.compressed.cache.format == NumberFormat::kBf16; });
  test.sets("compressed.cache.format", [](auto& c) { c.compressed.cache.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.compressed.cache.format == NumberFormat::kNvfp4; });
  test.refuses("compressed.cache.format", [](auto& c) { c.compressed.cache.format = 77; });
  test.sets("compressed.cache.page_size", [](auto& c) { c.compressed.cache.page_size = 1013; }, [](const auto& p) { return p.compressed.cache.page_size == 1013; });
  test.sets("compressed.cache.num_pages", [](auto& c) { c.compressed.cache.num_pages = 1014; }, [](const auto& p) { return p.compressed.cache.num_pages == 1014; });
  test.sets("compressed.cache.page_stride_bytes", [](auto& c) { c.compressed.cache.page_stride_bytes = 1015; }, [](const auto& p) { return p.compressed.cache.page_stride_bytes == 1015; });
  test.sets("compressed.topk", [](auto& c) { c.compressed.topk = 1016; }, [](const auto& p) { return p.compressed.topk == 1016; });
  test.sets("compressed.index_stride", [](auto& c) { c.compressed.index_stride = 1017; }, [](const auto& p) { return p.compressed.index_stride == 1017; });
  test.sets("compressed.lengths", [](auto& c) { c.compressed.lengths = TW_SPARSE_LENGTHS_PER_BATCH; }, [](const auto& p) { return p.compressed.lengths == SparseLengths::kPerBatch; });
  test.sets("compressed.lengths", [](auto& c) { c.compressed.lengths = TW_SPARSE_LENGTHS_PER_QUERY; }, [](const auto& p) { return p.compressed.lengths == SparseLengths::kPerQuery; });
  test.refuses("compressed.lengths", [](auto& c) { c.compressed.lengths = 77; });
  test.sets("has_sink", [](auto& c) { c.has_sink = 1; }, [](const auto& p) { return p.has_sink == true; });
  test.sets("has_lse", [](auto& c) { c.has_lse = 1; }, [](const auto& p) { return p.has_lse == true; });
  test.sets("has_max_logits", [](auto& c) { c.has_max_logits = 1; }, [](const auto& p) { return p.has_max_logits == true; });
  test.sets("q_strides.batch", [](auto& c) { c.q_strides.batch = 1022; }, [](const auto& p) { return p.q_strides.batch == 1022; });
  test.sets("q_strides.row", [](auto& c) { c.q_strides.row = 1023; }, [](const auto& p) { return p.q_strides.row == 1023; });
  test.sets("q_strides.head", [](auto& c) { c.q_strides.head = 1024; }, [](const auto& p) { return p.q_strides.head == 1024; });
  test.sets("out_strides.batch", [](auto& c) { c.out_strides.batch = 1025; }, [](const auto& p) { return p.out_strides.batch == 1025; });
  test.sets("out_strides.row", [](auto& c) { c.out_strides.row = 1026; }, [](const auto& p) { return p.out_strides.row == 1026; });
  test.sets("out_strides.head", [](auto& c) { c.out_strides.head = 1027; }, [](const auto& p) { return p.out_strides.head == 1027; });
  test.sets("lse_strides.batch", [](auto& c) { c.lse_strides.batch = 1028; }, [](const auto& p) { return p.lse_strides.batch == 1028; });
  test.sets("lse_strides.row", [](auto& c) { c.lse_strides.row = 1029; }, [](const auto& p) { return p.lse_strides.row == 1029; });
  test.sets("lse_strides.head", [](auto& c) { c.lse_strides.head = 1030; }, [](const auto& p) { return p.lse_strides.head == 1030; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 31"; }, [](const auto& p) { return p.kernel == "sentinel 31"; });
  test.sets("positive_empty_lse", [](auto& c) { c.positive_empty_lse = 1; }, [](const auto& p) { return p.positive_empty_lse == true; });
  test.sets("head_dim", [](auto& c) { c.head_dim = 1033; }, [](const auto& p) { return p.head_dim == 1033; });
}

TEST(CApiMembers, tw_sparse_list_arguments) {
  const Members<tw_sparse_list_arguments, SparseListArguments> test(tw_sparse_list_arguments_init, changed_tw_sparse_list_arguments);
  test.has_the_defaults();
  test.sets("pages", [](auto& c) { c.pages = at<const void>(1); }, [](const auto& p) { return p.pages == at<const void>(1); });
  test.sets("indices", [](auto& c) { c.indices = at<const int32_t>(2); }, [](const auto& p) { return p.indices == at<const int32_t>(2); });
  test.sets("lengths", [](auto& c) { c.lengths = at<const int32_t>(3); }, [](const auto& p) { return p.lengths == at<const int32_t>(3); });
}

TEST(CApiMembers, tw_sparse_attention_arguments) {
  const Members<tw_sparse_attention_arguments, SparseAttentionArguments> test(tw_sparse_attention_arguments_init, changed_tw_sparse_attention_arguments);
  test.has_the_defaults();
  test.sets("q", [](auto& c) { c.q = at<const void>(1); }, [](const auto& p) { return p.q == at<const void>(1); });
  test.sets("window.pages", [](auto& c) { c.window.pages = at<const void>(2); }, [](const auto& p) { return p.window.pages == at<const void>(2); });
  test.sets("window.indices", [](auto& c) { c.window.indices = at<const int32_t>(3); }, [](const auto& p) { return p.window.indices == at<const int32_t>(3); });
  test.sets("window.lengths", [](auto& c) { c.window.lengths = at<const int32_t>(4); }, [](const auto& p) { return p.window.lengths == at<const int32_t>(4); });
  test.sets("compressed.pages", [](auto& c) { c.compressed.pages = at<const void>(5); }, [](const auto& p) { return p.compressed.pages == at<const void>(5); });
  test.sets("compressed.indices", [](auto& c) { c.compressed.indices = at<const int32_t>(6); }, [](const auto& p) { return p.compressed.indices == at<const int32_t>(6); });
  test.sets("compressed.lengths", [](auto& c) { c.compressed.lengths = at<const int32_t>(7); }, [](const auto& p) { return p.compressed.lengths == at<const int32_t>(7); });
  test.sets("out", [](auto& c) { c.out = at<void>(8); }, [](const auto& p) { return p.out == at<void>(8); });
  test.sets("lse", [](auto& c) { c.lse = at<float>(9); }, [](const auto& p) { return p.lse == at<float>(9); });
  test.sets("max_logits", [](auto& c) { c.max_logits = at<float>(10); }, [](const auto& p) { return p.max_logits == at<float>(10); });
  test.sets("sink", [](auto& c) { c.sink = at<const float>(11); }, [](const auto& p) { return p.sink == at<const float>(11); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(12); }, [](const auto& p) { return p.workspace == at<void>(12); });
  test.sets("reuses_schedule", [](auto& c) { c.reuses_schedule = 1; }, [](const auto& p) { return p.reuses_schedule == true; });
  test.sets("stream", [](auto& c) { c.stream = at<void>(14); }, [](const auto& p) { return p.stream == at<void>(14); });
}

TEST(CApiMembers, tw_latent_attention_problem) {
  const Members<tw_latent_attention_problem, LatentAttentionProblem> test(tw_latent_attention_problem_init, changed_tw_latent_attention_problem);
  test.has_the_defaults();
  test.sets("dtype", [](auto& c) { c.dtype = TW_F16; }, [](const auto& p) { return p.dtype == DType::kF16; });
  test.refuses("dtype", [](auto& c) { c.dtype = 77; });
  test.sets("batch", [](auto& c) { c.batch = 1002; }, [](const auto& p) { return p.batch == 1002; });
  test.sets("q_len", [](auto& c) { c.q_len = 1003; }, [](const auto& p) { return p.q_len == 1003; });
  test.sets("heads", [](auto& c) { c.heads = 1004; }, [](const auto& p) { return p.heads == 1004; });
  test.sets("kv_heads", [](auto& c) { c.kv_heads = 1005; }, [](const auto& p) { return p.kv_heads == 1005; });
  test.sets("value_dim", [](auto& c) { c.value_dim = 1006; }, [](const auto& p) { return p.value_dim == 1006; });
  test.sets("has_qv", [](auto& c) { c.has_qv = 0; }, [](const auto& p) { return p.has_qv == false; });
  test.sets("max_len", [](auto& c) { c.max_len = 1008; }, [](const auto& p) { return p.max_len == 1008; });
  test.sets("page_size", [](auto& c) { c.page_size = 1009; }, [](const auto& p) { return p.page_size == 1009; });
  test.sets("num_pages", [](auto& c) { c.num_pages = 1010; }, [](const auto& p) { return p.num_pages == 1010; });
  test.sets("max_pages", [](auto& c) { c.max_pages = 1011; }, [](const auto& p) { return p.max_pages == 1011; });
  test.sets("table_stride", [](auto& c) { c.table_stride = 1012; }, [](const auto& p) { return p.table_stride == 1012; });
  test.sets("scale", [](auto& c) { c.scale = 13.25; }, [](const auto& p) { return p.scale == 13.25; });
  test.sets("causal", [](auto& c) { c.causal = 0; }, [](const auto& p) { return p.causal == false; });
  test.sets("has_sink", [](auto& c) { c.has_sink = 1; }, [](const auto& p) { return p.has_sink == true; });
  test.sets("has_lse", [](auto& c) { c.has_lse = 1; }, [](const auto& p) { return p.has_lse == true; });
  test.sets("positive_empty_lse", [](auto& c) { c.positive_empty_lse = 1; }, [](const auto& p) { return p.positive_empty_lse == true; });
  test.sets("q_strides.batch", [](auto& c) { c.q_strides.batch = 1018; }, [](const auto& p) { return p.q_strides.batch == 1018; });
  test.sets("q_strides.row", [](auto& c) { c.q_strides.row = 1019; }, [](const auto& p) { return p.q_strides.row == 1019; });
  test.sets("q_strides.head", [](auto& c) { c.q_strides.head = 1020; }, [](const auto& p) { return p.q_strides.head == 1020; });
  test.sets("qv_strides.batch", [](auto& c) { c.qv_strides.batch = 1021; }, [](const auto& p) { return p.qv_strides.batch == 1021; });
  test.sets("qv_strides.row", [](auto& c) { c.qv_strides.row = 1022; }, [](const auto& p) { return p.qv_strides.row == 1022; });
  test.sets("qv_strides.head", [](auto& c) { c.qv_strides.head = 1023; }, [](const auto& p) { return p.qv_strides.head == 1023; });
  test.sets("out_strides.batch", [](auto& c) { c.out_strides.batch = 1024; }, [](const auto& p) { return p.out_strides.batch == 1024; });
  test.sets("out_strides.row", [](auto& c) { c.out_strides.row = 1025; }, [](const auto& p) { return p.out_strides.row == 1025; });
  test.sets("out_strides.head", [](auto& c) { c.out_strides.head = 1026; }, [](const auto& p) { return p.out_strides.head == 1026; });
  test.sets("lse_strides.batch", [](auto& c) { c.lse_strides.batch = 1027; }, [](const auto& p) { return p.lse_strides.batch == 1027; });
  test.sets("lse_strides.row", [](auto& c) { c.lse_strides.row = 1028; }, [](const auto& p) { return p.lse_strides.row == 1028; });
  test.sets("lse_strides.head", [](auto& c) { c.lse_strides.head = 1029; }, [](const auto& p) { return p.lse_strides.head == 1029; });
  test.sets("k_strides.batch", [](auto& c) { c.k_strides.batch = 1030; }, [](const auto& p) { return p.k_strides.batch == 1030; });
  test.sets("k_strides.row", [](auto& c) { c.k_strides.row = 1031; }, [](const auto& p) { return p.k_strides.row == 1031; });
  test.sets("k_strides.head", [](auto& c) { c.k_strides.head = 1032; }, [](const auto& p) { return p.k_strides.head == 1032; });
  test.sets("v_strides.batch", [](auto& c) { c.v_strides.batch = 1033; }, [](const auto& p) { return p.v_strides.batch == 1033; });
  test.sets("v_strides.row", [](auto& c) { c.v_strides.row = 1034; }, [](const auto& p) { return p.v_strides.row == 1034; });
  test.sets("v_strides.head", [](auto& c) { c.v_strides.head = 1035; }, [](const auto& p) { return p.v_strides.head == 1035; });
  test.sets("kernel", [](auto& c) { c.kernel = "sentinel 36"; }, [](const auto& p) { return p.kernel == "sentinel 36"; });
}

TEST(CApiMembers, tw_latent_attention_arguments) {
  const Members<tw_latent_attention_arguments, LatentAttentionArguments> test(tw_latent_attention_arguments_init, changed_tw_latent_attention_arguments);
  test.has_the_defaults();
  test.sets("q", [](auto& c) { c.q = at<const void>(1); }, [](const auto& p) { return p.q == at<const void>(1); });
  test.sets("qv", [](auto& c) { c.qv = at<const void>(2); }, [](const auto& p) { return p.qv == at<const void>(2); });
  test.sets("k", [](auto& c) { c.k = at<const void>(3); }, [](const auto& p) { return p.k == at<const void>(3); });
  test.sets("v", [](auto& c) { c.v = at<const void>(4); }, [](const auto& p) { return p.v == at<const void>(4); });
  test.sets("lengths", [](auto& c) { c.lengths = at<const int32_t>(5); }, [](const auto& p) { return p.lengths == at<const int32_t>(5); });
  test.sets("block_table", [](auto& c) { c.block_table = at<const int32_t>(6); }, [](const auto& p) { return p.block_table == at<const int32_t>(6); });
  test.sets("out", [](auto& c) { c.out = at<void>(7); }, [](const auto& p) { return p.out == at<void>(7); });
  test.sets("lse", [](auto& c) { c.lse = at<float>(8); }, [](const auto& p) { return p.lse == at<float>(8); });
  test.sets("sink", [](auto& c) { c.sink = at<const float>(9); }, [](const auto& p) { return p.sink == at<const float>(9); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(10); }, [](const auto& p) { return p.workspace == at<void>(10); });
  test.sets("reuses_schedule", [](auto& c) { c.reuses_schedule = 1; }, [](const auto& p) { return p.reuses_schedule == true; });
  test.sets("stream", [](auto& c) { c.stream = at<void>(12); }, [](const auto& p) { return p.stream == at<void>(12); });
}

TEST(CApiMembers, tw_mask_lists_problem) {
  const Members<tw_mask_lists_problem, MaskListsProblem> test(tw_mask_lists_problem_init, changed_tw_mask_lists_problem);
  test.has_the_defaults();
  test.sets("entry", [](auto& c) { c.entry = TW_MASK_ENTRY_BITS; }, [](const auto& p) { return p.entry == MaskEntry::kBits; });
  test.refuses("entry", [](auto& c) { c.entry = 77; });
  test.sets("batch", [](auto& c) { c.batch = 1002; }, [](const auto& p) { return p.batch == 1002; });
  test.sets("rows", [](auto& c) { c.rows = 1003; }, [](const auto& p) { return p.rows == 1003; });
  test.sets("keys", [](auto& c) { c.keys = 1004; }, [](const auto& p) { return p.keys == 1004; });
  test.sets("query_block", [](auto& c) { c.query_block = 1005; }, [](const auto& p) { return p.query_block == 1005; });
  test.sets("key_block", [](auto& c) { c.key_block = 1006; }, [](const auto& p) { return p.key_block == 1006; });
  test.sets("topk", [](auto& c) { c.topk = 1007; }, [](const auto& p) { return p.topk == 1007; });
  test.sets("index_stride", [](auto& c) { c.index_stride = 1008; }, [](const auto& p) { return p.index_stride == 1008; });
  test.sets("mask_batch_bytes", [](auto& c) { c.mask_batch_bytes = 1009; }, [](const auto& p) { return p.mask_batch_bytes == 1009; });
  test.sets("mask_row_bytes", [](auto& c) { c.mask_row_bytes = 1010; }, [](const auto& p) { return p.mask_row_bytes == 1010; });
  test.sets("page_size", [](auto& c) { c.page_size = 1011; }, [](const auto& p) { return p.page_size == 1011; });
  test.sets("table_stride", [](auto& c) { c.table_stride = 1012; }, [](const auto& p) { return p.table_stride == 1012; });
  test.sets("has_totals", [](auto& c) { c.has_totals = 1; }, [](const auto& p) { return p.has_totals == true; });
}

TEST(CApiMembers, tw_mask_lists_arguments) {
  const Members<tw_mask_lists_arguments, MaskListsArguments> test(tw_mask_lists_arguments_init, changed_tw_mask_lists_arguments);
  test.has_the_defaults();
  test.sets("mask", [](auto& c) { c.mask = at<const void>(1); }, [](const auto& p) { return p.mask == at<const void>(1); });
  test.sets("indices", [](auto& c) { c.indices = at<int32_t>(2); }, [](const auto& p) { return p.indices == at<int32_t>(2); });
  test.sets("lengths", [](auto& c) { c.lengths = at<int32_t>(3); }, [](const auto& p) { return p.lengths == at<int32_t>(3); });
  test.sets("totals", [](auto& c) { c.totals = at<int32_t>(4); }, [](const auto& p) { return p.totals == at<int32_t>(4); });
  test.sets("block_table", [](auto& c) { c.block_table = at<const int32_t>(5); }, [](const auto& p) { return p.block_table == at<const int32_t>(5); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(6); }, [](const auto& p) { return p.stream == at<void>(6); });
}

}  // namespace
}  // namespace tilewright::c_api
