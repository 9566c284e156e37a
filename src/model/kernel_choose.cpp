// CSA: which entries the tokens of a step look at.
#include "model/kernel_step.h"

namespace tilewright::model {

void KernelStep::choose_entries(const Call& call, std::int64_t i) const {
  Activations& at = call.at();
  const CompressedCache& cache = *call.context.memory.csa;
  call.context.memory.csa_cache->list({.kind = KvListKind::kEntries,
                                       .tokens = tokens_,
                                       .sequences = call.context.sequences(),
                                       .table = cache.table.pages(),
                                       .ratio = 4,
                                       .list_len = at.csa_entries,
                                       .lists = at.csa_list.get(),
                                       .lengths = at.csa_length.get(),
                                       .stream = call.stream()});
  if (call.tap() != nullptr)
    call.tap()->selection(i, cache, at.csa_list, at.csa_length, at.csa_entries);
}

}  // namespace tilewright::model
