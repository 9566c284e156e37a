// targets: sm_100f
//
// Logits of the lightning indexer over MXFP4 (kind::mxf4) keys without pages, of which each token
// sees a range. Roles over time: kernel.h.
#include "kernels/sparse_attention/indexer/sm100/kernel.h"

TILEWRIGHT_TENSOR_INDEXER_LOGITS(indexer_range_logits_mxfp4, TensorIndexerRangeParams, kMxfp4)
