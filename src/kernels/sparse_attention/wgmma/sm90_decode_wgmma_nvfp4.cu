// targets: sm_90a
//
// Sparse attention over rows of e2m1: sm90_decode_wgmma.cu with other rows to decode.
//
// Limit, of a block: as there, but 25 KB of memory.
#include "kernels/sparse_attention/nvfp4_share.h"
#include "kernels/sparse_attention/wgmma/converter.h"
#include "kernels/sparse_attention/wgmma/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_SPARSE_DECODE_WGMMA(nvfp4, SparseRows512, kNvfp4, 1)
TILEWRIGHT_SPARSE_DECODE_WGMMA(pair_nvfp4, SparseRows512, kNvfp4, 2)

}  // namespace tilewright::kernels
