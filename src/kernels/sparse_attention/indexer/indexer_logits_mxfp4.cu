// targets: sm_90a
//
// Logits of the lightning indexer over MXFP4 keys: e2m1 becomes e4m3 in registers
// (keys.h).
// Roles over time, floors and limits: logits.h; measured rounds:
// docs/notes/2026-11-22-dsv4-indexer.md. Right on an H200.
#include "kernels/sparse_attention/indexer/logits.h"

namespace tilewright::kernels {

TILEWRIGHT_INDEXER_LOGITS(mxfp4_h64, kMxfp4, 64)
TILEWRIGHT_INDEXER_LOGITS(mxfp4_h32, kMxfp4, 32)
TILEWRIGHT_INDEXER_LOGITS(mxfp4_h16, kMxfp4, 16)
TILEWRIGHT_INDEXER_LOGITS(mxfp4_h8, kMxfp4, 8)

}  // namespace tilewright::kernels
