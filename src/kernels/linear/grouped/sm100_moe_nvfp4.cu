// targets: sm_100f
//
// NVFP4 rows of experts by NVFP4 weights (kind::mxf4nvf4); h in NVFP4. Products are made as in
// ../block_scaled/sm100_nvfp4_gemm.cu. Particular to experts:
//
//   few rows     weights are A and rows of x are B: an instruction does as many as there are
//                (few_rows.h); many rows: rows are A, and zeros stand where there are none
//   one warp     tiles of every expert from its offsets, in shared memory; every role looks there
//   loading      only the rows that an expert has, in boxes of 8 to 128; the weight's tile whole
//   results      64 columns of gate and up are 32 of h, quantised in registers, with their scales;
//                y of 32 rows by a tensor copy, or row by row where the next expert's follow
//
// Few tokens: HBM, each weight that is used once. Many: the tensor core.
#include "kernels/linear/grouped/kernel.h"
#include "kernels/linear/grouped/nvfp4_h.h"

namespace tilewright::kernels {

TILEWRIGHT_MOE_GROUPED_ENTRIES(sm100_moe_nvfp4, kNvfp4, Nvfp4H)

}  // namespace tilewright::kernels
