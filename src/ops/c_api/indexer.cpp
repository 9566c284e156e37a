#include "tilewright/indexer.h"

#include "tilewright/tilewright_indexer.h"

#include "base/error.h"
#include "ops/c_api/checked.h"
#include "ops/c_api/device.h"
#include "ops/c_api/status.h"

using tilewright::c_api::checked;
using tilewright::c_api::guarded;
using tilewright::c_api::require_address;

struct tw_indexer {
  tilewright::Indexer indexer;
};

namespace {

tilewright::KvCacheLayout to_sizes(const tw_kv_layout& layout) {
  return {tilewright::KvCacheFormat::kBf16, layout.page_size, layout.num_pages,
          layout.page_stride_bytes};
}
tilewright::SequencePages to_pages(const tw_sequence_pages& t) {
  return {t.pages, t.blocks, t.stride};
}

tilewright::IndexerProblem to_problem(const tw_indexer_problem& p) {
  tilewright::require(p.format == TW_INDEXER_FP8 || p.format == TW_INDEXER_MXFP4,
                      tilewright::ErrorKind::kInvalidArgument,
                      "tw_indexer_create: format = {}; expected 0 or 1", p.format);
  tilewright::IndexerProblem problem;
  problem.format = p.format == TW_INDEXER_FP8 ? tilewright::IndexerFormat::kFp8
                                              : tilewright::IndexerFormat::kMxfp4;
  problem.heads = p.heads;
  problem.topk = p.topk;
  problem.ratio = p.ratio;
  problem.max_len = p.max_len;
  problem.keys = to_sizes(p.keys);
  problem.rows = to_sizes(p.rows);
  problem.fill_logits = p.fill_logits != 0;
  return problem;
}

tilewright::IndexerArguments to_arguments(const tw_indexer_arguments& a) {
  tilewright::IndexerArguments arguments;
  arguments.tokens = a.tokens;
  arguments.sequences = {a.sequences.batch, a.sequences.q_len, a.sequences.offsets,
                         a.sequences.starts};
  arguments.positions = a.positions;
  arguments.lengths = a.lengths;
  arguments.q = a.q;
  arguments.q_token_stride = a.q_token_stride;
  arguments.q_head_stride = a.q_head_stride;
  arguments.weights = a.weights;
  arguments.weights_dtype =
      a.has_f32_weights != 0 ? tilewright::DType::kF32 : tilewright::DType::kBF16;
  arguments.weights_stride = a.weights_stride;
  arguments.rope = a.rope;
  arguments.rope_positions = a.rope_positions;
  arguments.key_pages = a.key_pages;
  arguments.key_table = to_pages(a.key_table);
  arguments.row_table = to_pages(a.row_table);
  arguments.rows = a.rows;
  arguments.rows_stride = a.rows_stride;
  arguments.counts = a.counts;
  arguments.workspace = a.workspace;
  arguments.has_schedule = a.has_schedule != 0;
  arguments.stream = a.stream;
  return arguments;
}

}  // namespace

void tw_indexer_problem_init(tw_indexer_problem* problem) {
  if (problem == nullptr) return;
  const tilewright::IndexerProblem defaults;
  *problem = {};
  problem->struct_bytes = sizeof *problem;
  problem->format = TW_INDEXER_MXFP4;
  problem->heads = defaults.heads;
  problem->topk = defaults.topk;
  problem->ratio = defaults.ratio;
  problem->keys.page_size = problem->rows.page_size = defaults.keys.page_size;
}

void tw_indexer_arguments_init(tw_indexer_arguments* arguments) {
  if (arguments == nullptr) return;
  *arguments = {};
  arguments->struct_bytes = sizeof *arguments;
}

tw_status tw_indexer_create(const tw_device* device, const tw_indexer_problem* problem,
                            tw_indexer** indexer) {
  return guarded([&] {
    require_address(indexer, "tw_indexer_create", "indexer");
    *indexer = nullptr;
    require_address(device, "tw_indexer_create", "device");
    const auto& p = checked(problem, "tw_indexer_create", "tw_indexer_problem_init");
    *indexer = new tw_indexer{tilewright::Indexer(device->device, to_problem(p))};
  });
}

void tw_indexer_destroy(tw_indexer* indexer) {
  delete indexer;
}

size_t tw_indexer_key_cache_bytes(const tw_indexer* indexer) {
  return indexer == nullptr ? 0 : indexer->indexer.key_cache_bytes();
}

size_t tw_indexer_workspace_bytes(const tw_indexer* indexer, int64_t tokens, int64_t batch) {
  if (indexer == nullptr || tokens < 0 || batch < 0) return 0;
  std::size_t bytes = 0;
  (void)guarded([&] { bytes = indexer->indexer.workspace_bytes(tokens, batch); });
  return bytes;
}

tw_status tw_indexer_run(const tw_indexer* indexer, const tw_indexer_arguments* arguments) {
  return guarded([&] {
    require_address(indexer, "tw_indexer_run", "indexer");
    const auto& a = checked(arguments, "tw_indexer_run", "tw_indexer_arguments_init");
    indexer->indexer.run(to_arguments(a));
  });
}
