// targets: sm_90a
#include "tile/index_logits.h"

TILEWRIGHT_INDEXER_LOGITS(mxfp4_h64, kMxfp4, 64)
TILEWRIGHT_INDEXER_LOGITS(mxfp4_h32, kMxfp4, 32)
TILEWRIGHT_INDEXER_LOGITS(mxfp4_h16, kMxfp4, 16)
TILEWRIGHT_INDEXER_LOGITS(mxfp4_h8, kMxfp4, 8)
