// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, indexer, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members/indexer.h"

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

TEST(CApiMembers, tw_indexer_problem) {
  const Members<tw_indexer_problem, IndexerProblem> test(tw_indexer_problem_init, changed_tw_indexer_problem);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_FP8; }, [](const auto& p) { return p.format == NumberFormat::kFp8; });
  test.refuses("format", [](auto& c) { c.format = 77; });
  test.sets("heads", [](auto& c) { c.heads = 1002; }, [](const auto& p) { return p.heads == 1002; });
  test.sets("topk", [](auto& c) { c.topk = 1003; }, [](const auto& p) { return p.topk == 1003; });
  test.sets("ratio", [](auto& c) { c.ratio = 1004; }, [](const auto& p) { return p.ratio == 1004; });
  test.sets("max_len", [](auto& c) { c.max_len = 1005; }, [](const auto& p) { return p.max_len == 1005; });
  test.sets("keys.format", [](auto& c) { c.keys.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.keys.format == NumberFormat::kBf16; });
  test.sets("keys.format", [](auto& c) { c.keys.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.keys.format == NumberFormat::kNvfp4; });
  test.refuses("keys.format", [](auto& c) { c.keys.format = 77; });
  test.sets("keys.page_size", [](auto& c) { c.keys.page_size = 1007; }, [](const auto& p) { return p.keys.page_size == 1007; });
  test.sets("keys.num_pages", [](auto& c) { c.keys.num_pages = 1008; }, [](const auto& p) { return p.keys.num_pages == 1008; });
  test.sets("keys.page_stride_bytes", [](auto& c) { c.keys.page_stride_bytes = 1009; }, [](const auto& p) { return p.keys.page_stride_bytes == 1009; });
  test.sets("rows.format", [](auto& c) { c.rows.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.rows.format == NumberFormat::kBf16; });
  test.sets("rows.format", [](auto& c) { c.rows.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.rows.format == NumberFormat::kNvfp4; });
  test.refuses("rows.format", [](auto& c) { c.rows.format = 77; });
  test.sets("rows.page_size", [](auto& c) { c.rows.page_size = 1011; }, [](const auto& p) { return p.rows.page_size == 1011; });
  test.sets("rows.num_pages", [](auto& c) { c.rows.num_pages = 1012; }, [](const auto& p) { return p.rows.num_pages == 1012; });
  test.sets("rows.page_stride_bytes", [](auto& c) { c.rows.page_stride_bytes = 1013; }, [](const auto& p) { return p.rows.page_stride_bytes == 1013; });
  test.sets("fill_logits", [](auto& c) { c.fill_logits = 1; }, [](const auto& p) { return p.fill_logits == true; });
}

TEST(CApiMembers, tw_indexer_arguments) {
  const Members<tw_indexer_arguments, IndexerArguments> test(tw_indexer_arguments_init, changed_tw_indexer_arguments);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("sequences.batch", [](auto& c) { c.sequences.batch = 1002; }, [](const auto& p) { return p.sequences.batch == 1002; });
  test.sets("sequences.q_len", [](auto& c) { c.sequences.q_len = 1003; }, [](const auto& p) { return p.sequences.q_len == 1003; });
  test.sets("sequences.offsets", [](auto& c) { c.sequences.offsets = at<const int32_t>(4); }, [](const auto& p) { return p.sequences.offsets == at<const int32_t>(4); });
  test.sets("sequences.starts", [](auto& c) { c.sequences.starts = at<const int32_t>(5); }, [](const auto& p) { return p.sequences.starts == at<const int32_t>(5); });
  test.sets("positions", [](auto& c) { c.positions = at<const int32_t>(6); }, [](const auto& p) { return p.positions == at<const int32_t>(6); });
  test.sets("lengths", [](auto& c) { c.lengths = at<const int32_t>(7); }, [](const auto& p) { return p.lengths == at<const int32_t>(7); });
  test.sets("q", [](auto& c) { c.q = at<const void>(8); }, [](const auto& p) { return p.q == at<const void>(8); });
  test.sets("q_token_stride", [](auto& c) { c.q_token_stride = 1009; }, [](const auto& p) { return p.q_token_stride == 1009; });
  test.sets("q_head_stride", [](auto& c) { c.q_head_stride = 1010; }, [](const auto& p) { return p.q_head_stride == 1010; });
  test.sets("weights", [](auto& c) { c.weights = at<const void>(11); }, [](const auto& p) { return p.weights == at<const void>(11); });
  test.sets("weights_dtype", [](auto& c) { c.weights_dtype = TW_F32; }, [](const auto& p) { return p.weights_dtype == DType::kF32; });
  test.refuses("weights_dtype", [](auto& c) { c.weights_dtype = 77; });
  test.sets("weights_stride", [](auto& c) { c.weights_stride = 1013; }, [](const auto& p) { return p.weights_stride == 1013; });
  test.sets("rope", [](auto& c) { c.rope = at<const float>(14); }, [](const auto& p) { return p.rope.angles == at<const float>(14); });
  test.sets("rope_positions", [](auto& c) { c.rope_positions = 1015; }, [](const auto& p) { return p.rope.positions == 1015; });
  test.sets("key_pages", [](auto& c) { c.key_pages = at<const void>(16); }, [](const auto& p) { return p.key_pages == at<const void>(16); });
  test.sets("key_table.pages", [](auto& c) { c.key_table.pages = at<const int32_t>(17); }, [](const auto& p) { return p.key_table.pages == at<const int32_t>(17); });
  test.sets("key_table.blocks", [](auto& c) { c.key_table.blocks = 1018; }, [](const auto& p) { return p.key_table.blocks == 1018; });
  test.sets("key_table.stride", [](auto& c) { c.key_table.stride = 1019; }, [](const auto& p) { return p.key_table.stride == 1019; });
  test.sets("row_table.pages", [](auto& c) { c.row_table.pages = at<const int32_t>(20); }, [](const auto& p) { return p.row_table.pages == at<const int32_t>(20); });
  test.sets("row_table.blocks", [](auto& c) { c.row_table.blocks = 1021; }, [](const auto& p) { return p.row_table.blocks == 1021; });
  test.sets("row_table.stride", [](auto& c) { c.row_table.stride = 1022; }, [](const auto& p) { return p.row_table.stride == 1022; });
  test.sets("rows", [](auto& c) { c.rows = at<int32_t>(23); }, [](const auto& p) { return p.rows == at<int32_t>(23); });
  test.sets("rows_stride", [](auto& c) { c.rows_stride = 1024; }, [](const auto& p) { return p.rows_stride == 1024; });
  test.sets("counts", [](auto& c) { c.counts = at<int32_t>(25); }, [](const auto& p) { return p.counts == at<int32_t>(25); });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(26); }, [](const auto& p) { return p.workspace == at<void>(26); });
  test.sets("reuses_schedule", [](auto& c) { c.reuses_schedule = 1; }, [](const auto& p) { return p.reuses_schedule == true; });
  test.sets("stream", [](auto& c) { c.stream = at<void>(28); }, [](const auto& p) { return p.stream == at<void>(28); });
}

TEST(CApiMembers, tw_indexer_logits_problem) {
  const Members<tw_indexer_logits_problem, IndexerLogitsProblem> test(tw_indexer_logits_problem_init, changed_tw_indexer_logits_problem);
  test.has_the_defaults();
  test.sets("format", [](auto& c) { c.format = TW_NUMBER_FORMAT_MXFP4; }, [](const auto& p) { return p.format == NumberFormat::kMxfp4; });
  test.refuses("format", [](auto& c) { c.format = 77; });
  test.sets("heads", [](auto& c) { c.heads = 1002; }, [](const auto& p) { return p.heads == 1002; });
  test.sets("max_len", [](auto& c) { c.max_len = 1003; }, [](const auto& p) { return p.max_len == 1003; });
  test.sets("keys.format", [](auto& c) { c.keys.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.keys.format == NumberFormat::kBf16; });
  test.sets("keys.format", [](auto& c) { c.keys.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.keys.format == NumberFormat::kNvfp4; });
  test.refuses("keys.format", [](auto& c) { c.keys.format = 77; });
  test.sets("keys.page_size", [](auto& c) { c.keys.page_size = 1005; }, [](const auto& p) { return p.keys.page_size == 1005; });
  test.sets("keys.num_pages", [](auto& c) { c.keys.num_pages = 1006; }, [](const auto& p) { return p.keys.num_pages == 1006; });
  test.sets("keys.page_stride_bytes", [](auto& c) { c.keys.page_stride_bytes = 1007; }, [](const auto& p) { return p.keys.page_stride_bytes == 1007; });
  test.sets("is_compressed", [](auto& c) { c.is_compressed = 1; }, [](const auto& p) { return p.is_compressed == true; });
  test.sets("fill_logits", [](auto& c) { c.fill_logits = 1; }, [](const auto& p) { return p.fill_logits == true; });
}

TEST(CApiMembers, tw_indexer_logits_arguments) {
  const Members<tw_indexer_logits_arguments, IndexerLogitsArguments> test(tw_indexer_logits_arguments_init, changed_tw_indexer_logits_arguments);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("sequences.batch", [](auto& c) { c.sequences.batch = 1002; }, [](const auto& p) { return p.sequences.batch == 1002; });
  test.sets("sequences.q_len", [](auto& c) { c.sequences.q_len = 1003; }, [](const auto& p) { return p.sequences.q_len == 1003; });
  test.sets("sequences.offsets", [](auto& c) { c.sequences.offsets = at<const int32_t>(4); }, [](const auto& p) { return p.sequences.offsets == at<const int32_t>(4); });
  test.sets("sequences.starts", [](auto& c) { c.sequences.starts = at<const int32_t>(5); }, [](const auto& p) { return p.sequences.starts == at<const int32_t>(5); });
  test.sets("starts", [](auto& c) { c.starts = at<const int32_t>(6); }, [](const auto& p) { return p.starts == at<const int32_t>(6); });
  test.sets("ends", [](auto& c) { c.ends = at<const int32_t>(7); }, [](const auto& p) { return p.ends == at<const int32_t>(7); });
  test.sets("q", [](auto& c) { c.q = at<const void>(8); }, [](const auto& p) { return p.q == at<const void>(8); });
  test.sets("q_scales", [](auto& c) { c.q_scales = at<const void>(9); }, [](const auto& p) { return p.q_scales == at<const void>(9); });
  test.sets("weights", [](auto& c) { c.weights = at<const float>(10); }, [](const auto& p) { return p.weights == at<const float>(10); });
  test.sets("keys", [](auto& c) { c.keys = at<const void>(11); }, [](const auto& p) { return p.keys == at<const void>(11); });
  test.sets("key_scales", [](auto& c) { c.key_scales = at<const void>(12); }, [](const auto& p) { return p.key_scales == at<const void>(12); });
  test.sets("num_keys", [](auto& c) { c.num_keys = 1013; }, [](const auto& p) { return p.num_keys == 1013; });
  test.sets("key_table.pages", [](auto& c) { c.key_table.pages = at<const int32_t>(14); }, [](const auto& p) { return p.key_table.pages == at<const int32_t>(14); });
  test.sets("key_table.blocks", [](auto& c) { c.key_table.blocks = 1015; }, [](const auto& p) { return p.key_table.blocks == 1015; });
  test.sets("key_table.stride", [](auto& c) { c.key_table.stride = 1016; }, [](const auto& p) { return p.key_table.stride == 1016; });
  test.sets("logits", [](auto& c) { c.logits = at<float>(17); }, [](const auto& p) { return p.logits == at<float>(17); });
  test.sets("logits_stride", [](auto& c) { c.logits_stride = 1018; }, [](const auto& p) { return p.logits_stride == 1018; });
  test.sets("columns", [](auto& c) { c.columns = 1019; }, [](const auto& p) { return p.columns == 1019; });
  test.sets("workspace", [](auto& c) { c.workspace = at<void>(20); }, [](const auto& p) { return p.workspace == at<void>(20); });
  test.sets("reuses_schedule", [](auto& c) { c.reuses_schedule = 1; }, [](const auto& p) { return p.reuses_schedule == true; });
  test.sets("stream", [](auto& c) { c.stream = at<void>(22); }, [](const auto& p) { return p.stream == at<void>(22); });
}

}  // namespace
}  // namespace tilewright::c_api
