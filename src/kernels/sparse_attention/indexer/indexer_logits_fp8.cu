// targets: sm_90a
//
// Logits of the lightning indexer over e4m3 keys: both operands from shared memory.
// Roles over time, floors and limits: logits.h; measured rounds:
// docs/notes/2026-11-22-dsv4-indexer.md. Right on an H200.
#include "kernels/sparse_attention/indexer/logits.h"

namespace tilewright::kernels {

TILEWRIGHT_INDEXER_LOGITS(fp8_h64, kFp8, 64)
TILEWRIGHT_INDEXER_LOGITS(fp8_h32, kFp8, 32)
TILEWRIGHT_INDEXER_LOGITS(fp8_h16, kFp8, 16)
TILEWRIGHT_INDEXER_LOGITS(fp8_h8, kFp8, 8)

}  // namespace tilewright::kernels
