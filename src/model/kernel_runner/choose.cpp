// CSA: which entries the tokens of a step look at.
#include "model/kernel_runner/step.h"

namespace tilewright::model {

IndexerArguments KernelStep::indexer_call(const Call& call, std::int64_t i) const {
  Activations& at = call.at();
  const LayerArrays& arrays = call.arrays(i);
  const KernelMemory& memory = call.context.memory;
  return {.tokens = tokens_,
          .sequences = call.context.sequences(),
          .positions = at.positions.get(),
          .q = at.query.get() + arrays.index_query_column,
          .q_token_stride = arrays.query.width(),
          .q_head_stride = config_.index_dim,
          .weights = at.input.get() + arrays.columns.index_weights,
          .weights_dtype = DType::kF32,
          .weights_stride = arrays.input.width(),
          .rope = call.rope_table(arrays.kind),
          .key_pages = call.memory(i).index_keys->get(),
          .key_table = memory.index->table.pages(),
          .row_table = memory.csa->table.pages(),
          .rows = at.csa_list.get(),
          .counts = at.csa_length.get(),
          .workspace = at.indexer.get(),
          .reuses_schedule = call.has_indexer_schedule,
          .stream = call.stream()};
}

// The queries are there: store_rows() has made them.
void KernelStep::choose_entries(Call& call, std::int64_t i) const {
  const Activations& at = call.at();
  const KernelMemory& memory = call.context.memory;
  const IndexerArguments arguments = indexer_call(call, i);
  if (!call.has_indexer_schedule) memory.indexer->run(arguments, IndexerStep::kSchedule);
  memory.indexer->run(arguments, IndexerStep::kLogits);
  memory.indexer->run(arguments, IndexerStep::kSelect);
  call.has_indexer_schedule = true;
  if (call.tap() == nullptr) return;
  const bool is_fp8 = memory.indexer->problem().format == NumberFormat::kFp8;
  const IndexerResults results = memory.indexer->results(arguments);
  call.tap()->index_keys(i, *memory.index, *call.memory(i).index_keys, is_fp8);
  if (!is_fp8) {  // the scales of fp8 queries are in the weights
    call.tap()->index_queries(i, results, config_.index_heads);
    call.tap()->rows("idx_w", i, {results.weights, DType::kF32, {config_.index_heads}});
  }
  call.tap()->index_scores(i, results);
  call.tap()->selection(i, *memory.csa, at.csa_list, at.csa_length, at.csa_entries);
}

}  // namespace tilewright::model
