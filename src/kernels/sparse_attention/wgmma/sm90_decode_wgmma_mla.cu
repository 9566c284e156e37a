// targets: sm_90a
//
// Sparse attention over rows of DeepSeek-V3 and V3.2: sm90_decode_wgmma.cu, whose values are the
// first 512 numbers of a row and whose scores take 64 more. Two stages of those do not fit beside
// weights and rows to be decoded: they have one (mla_tail.h), and less is on its way.
//
//   scores | pv (0) | q k (1) | softmax of 1 | pv (1) | q k (2) |     q 72 KB, k 2 x 64, tail 8,
//   tail   |  1               | 2 is copied  |   2              |     weights 8, rows 8.3: 226 KB
//
// Limit, of a block and 64 heads: tensor cores 2176 cycles; memory 42 KB, 2040 cycles of 4.2 TB/s
// (half of it in a cluster). Decoding is 11 instead of 9 instructions for four codes: a scale is an
// fp32. Floors and what was dropped: docs/notes/2026-11-26-mla-576.md.
#include "kernels/sparse_attention/wgmma/kernel.h"
#include "kernels/sparse_attention/wgmma/mla_converter.h"

namespace tilewright::kernels {

TILEWRIGHT_SPARSE_DECODE_WGMMA(fp8_mla, SparseRows576, kFp8Mla, 1)
TILEWRIGHT_SPARSE_DECODE_WGMMA(pair_fp8_mla, SparseRows576, kFp8Mla, 2)

}  // namespace tilewright::kernels
