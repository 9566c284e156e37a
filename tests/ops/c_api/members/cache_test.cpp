// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, cache, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members/cache.h"

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

TEST(CApiMembers, tw_rope_options) {
  const Members<tw_rope_options, RopeOptions> test(tw_rope_options_init, changed_tw_rope_options);
  test.has_the_defaults();
  test.sets("theta", [](auto& c) { c.theta = 1.25; }, [](const auto& p) { return p.theta == 1.25; });
  test.sets("has_yarn", [](auto& c) { c.has_yarn = 1; }, [](const auto& p) { return p.has_yarn == true; });
  test.sets("factor", [](auto& c) { c.factor = 3.25; }, [](const auto& p) { return p.factor == 3.25; });
  test.sets("original_positions", [](auto& c) { c.original_positions = 4.25; }, [](const auto& p) { return p.original_positions == 4.25; });
  test.sets("beta_fast", [](auto& c) { c.beta_fast = 5.25; }, [](const auto& p) { return p.beta_fast == 5.25; });
  test.sets("beta_slow", [](auto& c) { c.beta_slow = 6.25; }, [](const auto& p) { return p.beta_slow == 6.25; });
}

TEST(CApiMembers, tw_sequence_batch) {
  const Members<tw_sequence_batch, SequenceBatch> test(tw_sequence_batch_init, changed_tw_sequence_batch);
  test.has_the_defaults();
  test.sets("batch", [](auto& c) { c.batch = 1001; }, [](const auto& p) { return p.batch == 1001; });
  test.sets("q_len", [](auto& c) { c.q_len = 1002; }, [](const auto& p) { return p.q_len == 1002; });
  test.sets("offsets", [](auto& c) { c.offsets = at<const int32_t>(3); }, [](const auto& p) { return p.offsets == at<const int32_t>(3); });
  test.sets("starts", [](auto& c) { c.starts = at<const int32_t>(4); }, [](const auto& p) { return p.starts == at<const int32_t>(4); });
}

TEST(CApiMembers, tw_sequence_pages) {
  const Members<tw_sequence_pages, SequencePages> test(tw_sequence_pages_init, changed_tw_sequence_pages);
  test.has_the_defaults();
  test.sets("pages", [](auto& c) { c.pages = at<const int32_t>(1); }, [](const auto& p) { return p.pages == at<const int32_t>(1); });
  test.sets("blocks", [](auto& c) { c.blocks = 1002; }, [](const auto& p) { return p.blocks == 1002; });
  test.sets("stride", [](auto& c) { c.stride = 1003; }, [](const auto& p) { return p.stride == 1003; });
}

TEST(CApiMembers, tw_kv_write_arguments) {
  const Members<tw_kv_write_arguments, KvWriteArguments> test(tw_kv_write_arguments_init, changed_tw_kv_write_arguments);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("heads", [](auto& c) { c.heads = 1002; }, [](const auto& p) { return p.heads == 1002; });
  test.sets("eps", [](auto& c) { c.eps = 3.25; }, [](const auto& p) { return p.eps == 3.25; });
  test.sets("q", [](auto& c) { c.q = at<const void>(4); }, [](const auto& p) { return p.q == at<const void>(4); });
  test.sets("q_out", [](auto& c) { c.q_out = at<void>(5); }, [](const auto& p) { return p.q_out == at<void>(5); });
  test.sets("q_token_stride", [](auto& c) { c.q_token_stride = 1006; }, [](const auto& p) { return p.q_token_stride == 1006; });
  test.sets("q_head_stride", [](auto& c) { c.q_head_stride = 1007; }, [](const auto& p) { return p.q_head_stride == 1007; });
  test.sets("kv", [](auto& c) { c.kv = at<const void>(8); }, [](const auto& p) { return p.kv == at<const void>(8); });
  test.sets("kv_dtype", [](auto& c) { c.kv_dtype = TW_F32; }, [](const auto& p) { return p.kv_dtype == DType::kF32; });
  test.refuses("kv_dtype", [](auto& c) { c.kv_dtype = 77; });
  test.sets("kv_stride", [](auto& c) { c.kv_stride = 1010; }, [](const auto& p) { return p.kv_stride == 1010; });
  test.sets("kv_weight", [](auto& c) { c.kv_weight = at<const void>(11); }, [](const auto& p) { return p.kv_weight == at<const void>(11); });
  test.sets("positions", [](auto& c) { c.positions = at<const int32_t>(12); }, [](const auto& p) { return p.positions == at<const int32_t>(12); });
  test.sets("rope", [](auto& c) { c.rope = at<const float>(13); }, [](const auto& p) { return p.rope.angles == at<const float>(13); });
  test.sets("rope_positions", [](auto& c) { c.rope_positions = 1014; }, [](const auto& p) { return p.rope.positions == 1014; });
  test.sets("slots", [](auto& c) { c.slots = at<const int32_t>(15); }, [](const auto& p) { return p.slots == at<const int32_t>(15); });
  test.sets("pages", [](auto& c) { c.pages = at<void>(16); }, [](const auto& p) { return p.pages == at<void>(16); });
  test.sets("kv_out", [](auto& c) { c.kv_out = at<void>(17); }, [](const auto& p) { return p.kv_out == at<void>(17); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(18); }, [](const auto& p) { return p.stream == at<void>(18); });
}

TEST(CApiMembers, tw_kv_read_arguments) {
  const Members<tw_kv_read_arguments, KvReadArguments> test(tw_kv_read_arguments_init, changed_tw_kv_read_arguments);
  test.has_the_defaults();
  test.sets("count", [](auto& c) { c.count = 1001; }, [](const auto& p) { return p.count == 1001; });
  test.sets("rows", [](auto& c) { c.rows = at<const int32_t>(2); }, [](const auto& p) { return p.rows == at<const int32_t>(2); });
  test.sets("pages", [](auto& c) { c.pages = at<const void>(3); }, [](const auto& p) { return p.pages == at<const void>(3); });
  test.sets("out", [](auto& c) { c.out = at<void>(4); }, [](const auto& p) { return p.out == at<void>(4); });
  test.sets("out_stride", [](auto& c) { c.out_stride = 1005; }, [](const auto& p) { return p.out_stride == 1005; });
  test.sets("stream", [](auto& c) { c.stream = at<void>(6); }, [](const auto& p) { return p.stream == at<void>(6); });
}

TEST(CApiMembers, tw_kv_list_arguments) {
  const Members<tw_kv_list_arguments, KvListArguments> test(tw_kv_list_arguments_init, changed_tw_kv_list_arguments);
  test.has_the_defaults();
  test.sets("kind", [](auto& c) { c.kind = TW_KV_LIST_KIND_WINDOW; }, [](const auto& p) { return p.kind == KvListKind::kWindow; });
  test.sets("kind", [](auto& c) { c.kind = TW_KV_LIST_KIND_ENTRIES; }, [](const auto& p) { return p.kind == KvListKind::kEntries; });
  test.refuses("kind", [](auto& c) { c.kind = 77; });
  test.sets("tokens", [](auto& c) { c.tokens = 1002; }, [](const auto& p) { return p.tokens == 1002; });
  test.sets("sequences.batch", [](auto& c) { c.sequences.batch = 1003; }, [](const auto& p) { return p.sequences.batch == 1003; });
  test.sets("sequences.q_len", [](auto& c) { c.sequences.q_len = 1004; }, [](const auto& p) { return p.sequences.q_len == 1004; });
  test.sets("sequences.offsets", [](auto& c) { c.sequences.offsets = at<const int32_t>(5); }, [](const auto& p) { return p.sequences.offsets == at<const int32_t>(5); });
  test.sets("sequences.starts", [](auto& c) { c.sequences.starts = at<const int32_t>(6); }, [](const auto& p) { return p.sequences.starts == at<const int32_t>(6); });
  test.sets("table.pages", [](auto& c) { c.table.pages = at<const int32_t>(7); }, [](const auto& p) { return p.table.pages == at<const int32_t>(7); });
  test.sets("table.blocks", [](auto& c) { c.table.blocks = 1008; }, [](const auto& p) { return p.table.blocks == 1008; });
  test.sets("table.stride", [](auto& c) { c.table.stride = 1009; }, [](const auto& p) { return p.table.stride == 1009; });
  test.sets("ring", [](auto& c) { c.ring = 1010; }, [](const auto& p) { return p.ring == 1010; });
  test.sets("window", [](auto& c) { c.window = 1011; }, [](const auto& p) { return p.window == 1011; });
  test.sets("ratio", [](auto& c) { c.ratio = 1012; }, [](const auto& p) { return p.ratio == 1012; });
  test.sets("list_len", [](auto& c) { c.list_len = 1013; }, [](const auto& p) { return p.list_len == 1013; });
  test.sets("list_stride", [](auto& c) { c.list_stride = 1014; }, [](const auto& p) { return p.list_stride == 1014; });
  test.sets("lists", [](auto& c) { c.lists = at<int32_t>(15); }, [](const auto& p) { return p.lists == at<int32_t>(15); });
  test.sets("lengths", [](auto& c) { c.lengths = at<int32_t>(16); }, [](const auto& p) { return p.lengths == at<int32_t>(16); });
  test.sets("positions", [](auto& c) { c.positions = at<int32_t>(17); }, [](const auto& p) { return p.positions == at<int32_t>(17); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(18); }, [](const auto& p) { return p.stream == at<void>(18); });
}

TEST(CApiMembers, tw_kv_cache_work) {
  const Members<tw_kv_cache_work, KvCacheWork> test(tw_kv_cache_work_init, changed_tw_kv_cache_work);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("heads", [](auto& c) { c.heads = 1002; }, [](const auto& p) { return p.heads == 1002; });
  test.sets("list_len", [](auto& c) { c.list_len = 1003; }, [](const auto& p) { return p.list_len == 1003; });
  test.sets("read_rows", [](auto& c) { c.read_rows = 1004; }, [](const auto& p) { return p.read_rows == 1004; });
}

TEST(CApiMembers, tw_inverse_rope_arguments) {
  const Members<tw_inverse_rope_arguments, InverseRopeArguments> test(tw_inverse_rope_arguments_init, changed_tw_inverse_rope_arguments);
  test.has_the_defaults();
  test.sets("tokens", [](auto& c) { c.tokens = 1001; }, [](const auto& p) { return p.tokens == 1001; });
  test.sets("heads", [](auto& c) { c.heads = 1002; }, [](const auto& p) { return p.heads == 1002; });
  test.sets("out", [](auto& c) { c.out = at<void>(3); }, [](const auto& p) { return p.out == at<void>(3); });
  test.sets("token_stride", [](auto& c) { c.token_stride = 1004; }, [](const auto& p) { return p.token_stride == 1004; });
  test.sets("head_stride", [](auto& c) { c.head_stride = 1005; }, [](const auto& p) { return p.head_stride == 1005; });
  test.sets("positions", [](auto& c) { c.positions = at<const int32_t>(6); }, [](const auto& p) { return p.positions == at<const int32_t>(6); });
  test.sets("rope", [](auto& c) { c.rope = at<const float>(7); }, [](const auto& p) { return p.rope.angles == at<const float>(7); });
  test.sets("rope_positions", [](auto& c) { c.rope_positions = 1008; }, [](const auto& p) { return p.rope.positions == 1008; });
  test.sets("codes", [](auto& c) { c.codes = at<void>(9); }, [](const auto& p) { return p.codes == at<void>(9); });
  test.sets("scales", [](auto& c) { c.scales = at<void>(10); }, [](const auto& p) { return p.scales == at<void>(10); });
  test.sets("has_pow2_scales", [](auto& c) { c.has_pow2_scales = 1; }, [](const auto& p) { return p.has_pow2_scales == true; });
  test.sets("has_block_major_scales", [](auto& c) { c.has_block_major_scales = 1; }, [](const auto& p) { return p.has_block_major_scales == true; });
  test.sets("has_operand_order", [](auto& c) { c.has_operand_order = 1; }, [](const auto& p) { return p.has_operand_order == true; });
  test.sets("stream", [](auto& c) { c.stream = at<void>(14); }, [](const auto& p) { return p.stream == at<void>(14); });
}

TEST(CApiMembers, tw_compressor_problem) {
  const Members<tw_compressor_problem, CompressorProblem> test(tw_compressor_problem_init, changed_tw_compressor_problem);
  test.has_the_defaults();
  test.sets("kind", [](auto& c) { c.kind = TW_COMPRESSOR_KIND_HCA; }, [](const auto& p) { return p.kind == CompressorKind::kHca; });
  test.sets("kind", [](auto& c) { c.kind = TW_COMPRESSOR_KIND_INDEX_FP8; }, [](const auto& p) { return p.kind == CompressorKind::kIndexFp8; });
  test.sets("kind", [](auto& c) { c.kind = TW_COMPRESSOR_KIND_INDEX_MXFP4; }, [](const auto& p) { return p.kind == CompressorKind::kIndexMxfp4; });
  test.refuses("kind", [](auto& c) { c.kind = 77; });
  test.sets("cache.format", [](auto& c) { c.cache.format = TW_NUMBER_FORMAT_BF16; }, [](const auto& p) { return p.cache.format == NumberFormat::kBf16; });
  test.sets("cache.format", [](auto& c) { c.cache.format = TW_NUMBER_FORMAT_NVFP4; }, [](const auto& p) { return p.cache.format == NumberFormat::kNvfp4; });
  test.refuses("cache.format", [](auto& c) { c.cache.format = 77; });
  test.sets("cache.page_size", [](auto& c) { c.cache.page_size = 1003; }, [](const auto& p) { return p.cache.page_size == 1003; });
  test.sets("cache.num_pages", [](auto& c) { c.cache.num_pages = 1004; }, [](const auto& p) { return p.cache.num_pages == 1004; });
  test.sets("cache.page_stride_bytes", [](auto& c) { c.cache.page_stride_bytes = 1005; }, [](const auto& p) { return p.cache.page_stride_bytes == 1005; });
  test.sets("state_slots", [](auto& c) { c.state_slots = 1006; }, [](const auto& p) { return p.state_slots == 1006; });
  test.sets("ring", [](auto& c) { c.ring = 1007; }, [](const auto& p) { return p.ring == 1007; });
  test.sets("eps", [](auto& c) { c.eps = 8.25; }, [](const auto& p) { return p.eps == 8.25; });
}

TEST(CApiMembers, tw_compressor_arguments) {
  const Members<tw_compressor_arguments, CompressorArguments> test(tw_compressor_arguments_init, changed_tw_compressor_arguments);
  test.has_the_defaults();
  test.sets("sequences.batch", [](auto& c) { c.sequences.batch = 1001; }, [](const auto& p) { return p.sequences.batch == 1001; });
  test.sets("sequences.q_len", [](auto& c) { c.sequences.q_len = 1002; }, [](const auto& p) { return p.sequences.q_len == 1002; });
  test.sets("sequences.offsets", [](auto& c) { c.sequences.offsets = at<const int32_t>(3); }, [](const auto& p) { return p.sequences.offsets == at<const int32_t>(3); });
  test.sets("sequences.starts", [](auto& c) { c.sequences.starts = at<const int32_t>(4); }, [](const auto& p) { return p.sequences.starts == at<const int32_t>(4); });
  test.sets("max_tokens", [](auto& c) { c.max_tokens = 1005; }, [](const auto& p) { return p.max_tokens == 1005; });
  test.sets("kv", [](auto& c) { c.kv = at<const float>(6); }, [](const auto& p) { return p.kv == at<const float>(6); });
  test.sets("gate", [](auto& c) { c.gate = at<const float>(7); }, [](const auto& p) { return p.gate == at<const float>(7); });
  test.sets("kv_stride", [](auto& c) { c.kv_stride = 1008; }, [](const auto& p) { return p.kv_stride == 1008; });
  test.sets("gate_stride", [](auto& c) { c.gate_stride = 1009; }, [](const auto& p) { return p.gate_stride == 1009; });
  test.sets("ape", [](auto& c) { c.ape = at<const float>(10); }, [](const auto& p) { return p.ape == at<const float>(10); });
  test.sets("norm_weight", [](auto& c) { c.norm_weight = at<const void>(11); }, [](const auto& p) { return p.norm_weight == at<const void>(11); });
  test.sets("rope", [](auto& c) { c.rope = at<const float>(12); }, [](const auto& p) { return p.rope.angles == at<const float>(12); });
  test.sets("rope_positions", [](auto& c) { c.rope_positions = 1013; }, [](const auto& p) { return p.rope.positions == 1013; });
  test.sets("state", [](auto& c) { c.state = at<void>(14); }, [](const auto& p) { return p.state == at<void>(14); });
  test.sets("state_slots", [](auto& c) { c.state_slots = at<const int32_t>(15); }, [](const auto& p) { return p.state_slots == at<const int32_t>(15); });
  test.sets("table.pages", [](auto& c) { c.table.pages = at<const int32_t>(16); }, [](const auto& p) { return p.table.pages == at<const int32_t>(16); });
  test.sets("table.blocks", [](auto& c) { c.table.blocks = 1017; }, [](const auto& p) { return p.table.blocks == 1017; });
  test.sets("table.stride", [](auto& c) { c.table.stride = 1018; }, [](const auto& p) { return p.table.stride == 1018; });
  test.sets("pages", [](auto& c) { c.pages = at<void>(19); }, [](const auto& p) { return p.pages == at<void>(19); });
  test.sets("stream", [](auto& c) { c.stream = at<void>(20); }, [](const auto& p) { return p.stream == at<void>(20); });
}

}  // namespace
}  // namespace tilewright::c_api
