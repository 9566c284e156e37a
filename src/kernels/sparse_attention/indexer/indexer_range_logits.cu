// targets: sm_90a
//
// Logits of the lightning indexer over keys without pages, of e4m3 and MXFP4: each token sees a
// range of them, and codes and scales come apart. Roles over time, floors and limits: logits.h.
#include "kernels/sparse_attention/indexer/logits.h"

namespace tilewright::kernels {

TILEWRIGHT_INDEXER_RANGE_LOGITS(fp8_h64, kFp8, 64)
TILEWRIGHT_INDEXER_RANGE_LOGITS(fp8_h32, kFp8, 32)
TILEWRIGHT_INDEXER_RANGE_LOGITS(mxfp4_h64, kMxfp4, 64)
TILEWRIGHT_INDEXER_RANGE_LOGITS(mxfp4_h32, kMxfp4, 32)

}  // namespace tilewright::kernels
