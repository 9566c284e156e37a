// targets: sm_100f
//
// NVFP4 by NVFP4 on the tensor core's block-scaled product (kind::mxf4nvf4): e2m1 elements, a ue4m3
// scale per 16 of them along K, multiplied in by the hardware.
//
//   warp 5      copies A, B and their scales of a step of 256 elements of K to shared memory; the
//               scales' 512-byte tiles come as they lie in global memory
//   warp 4      one thread: tcgen05.cp of the scales to Tensor Memory, four products, a commit that
//               frees the stage; another commit per tile hands the accumulator over
//   warps 0-3   32 rows each: Tensor Memory -> registers -> bf16, or NVFP4 with scales in the very
//               order that the next GEMM reads -> shared memory -> tensor copies
//
//   Tensor Memory   accumulator 0 | accumulator 1 | scales of a step | of the next | ...
//
// CTAs are persistent, one per SM; the next tile's products run while results are
// written. In a pair (2cta) each CTA holds its 128 rows of A and half of B's: one thread multiplies
// for both, and B's traffic per CTA halves. Two pairs (4cta) load B together, by multicast.
// Everything ragged is the hardware's: copies read zeros outside of the tensors and write nothing
// there; only the scales of the last, incomplete product have to be zeroed by hand (0 times a NaN
// in the padding would be NaN).
// Measured, in counts: docs/notes. Sources: PTX ISA, tcgen05; the shape of CUTLASS's examples.
#include "kernels/linear/block_scaled/kernel.h"
#include "kernels/linear/block_scaled/nvfp4_output.h"
#include "kernels/linear/block_scaled/sm100_nvfp4_gemm.h"

namespace tilewright::kernels {

TILEWRIGHT_BLOCK_SCALED_ENTRIES(sm100_nvfp4_gemm, kNvfp4, bf16, Bf16Output)
TILEWRIGHT_BLOCK_SCALED_ENTRIES(sm100_nvfp4_gemm, kNvfp4, nvfp4, Nvfp4Output)

}  // namespace tilewright::kernels
