// targets: sm_100f
//
// Logits of the lightning indexer over e4m3 keys (kind::f8f6f4). Roles over time: kernel.h.
#include "kernels/sparse_attention/indexer/sm100/kernel.h"

TILEWRIGHT_TENSOR_INDEXER_LOGITS(indexer_logits_fp8, TensorIndexerParams, kFp8)
