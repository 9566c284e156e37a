// targets: sm_90a
//
// Sparse attention over rows of bf16, of 512 and of 576: sm90_decode_wgmma.cu and its form for 576,
// without decoding. Converters copy rows to their places.
//
// Limit, of a block and 64 heads: as there, and of memory 64 KB or 72 (half of it in a cluster).
#include "kernels/sparse_attention/wgmma/bf16_converter.h"
#include "kernels/sparse_attention/wgmma/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_SPARSE_DECODE_WGMMA(bf16, SparseRows512, kBf16, 1)
TILEWRIGHT_SPARSE_DECODE_WGMMA(bf16_mla, SparseRows576, kBf16Mla, 1)
TILEWRIGHT_SPARSE_DECODE_WGMMA(pair_bf16, SparseRows512, kBf16, 2)
TILEWRIGHT_SPARSE_DECODE_WGMMA(pair_bf16_mla, SparseRows576, kBf16Mla, 2)

}  // namespace tilewright::kernels
