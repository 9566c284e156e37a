// targets: sm_100f
//
// Logits of the lightning indexer over MXFP4 keys (kind::mxf4): scales of keys and queries are
// multiplied in by the tensor core, block by block, so that no key is too wide for it. Roles over
// time: kernel.h.
#include "kernels/sparse_attention/indexer/sm100/kernel.h"

TILEWRIGHT_TENSOR_INDEXER_LOGITS(indexer_logits_mxfp4, TensorIndexerParams, kMxfp4)
