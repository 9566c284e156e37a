// Sequences and their pages as the C interface has them.
#pragma once

#include "tilewright/cache.h"
#include "tilewright/tilewright_cache.h"

namespace tilewright::c_api {

inline SequenceBatch to_batch(const tw_sequence_batch& s) {
  return {s.batch, s.q_len, s.offsets, s.starts};
}
inline SequencePages to_pages(const tw_sequence_pages& t) {
  return {t.pages, t.blocks, t.stride};
}

}  // namespace tilewright::c_api
