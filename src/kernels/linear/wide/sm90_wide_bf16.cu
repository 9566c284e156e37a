// targets: sm_90a
//
// Linear layers for many tokens: packed weights are decoded into registers and multiplied from
// there, tokens come from shared memory.
//
// Decoded weights that go through shared memory would be written and read once more there, and the
// tensor core reads half of its operands from it already. A warpgroup MMA takes A from registers as
// well, so the weights are A (rows of w on the MMA's rows, tokens on its columns), and the result
// is turned over on its way out (stmatrix with .trans).
//
//   producer     a thread: bricks by bulk copies (no tensor map), tokens by tensor copies, which
//                the CTAs of a cluster share by multicast; a ring as deep as shared memory allows
//   consumers    64 rows each, all tokens of the tile: m64nNk16, N = 32 .. 256 as the tile needs
//   a step       64 of k: 4 products, each after the fragment for the next one has been decoded
//                while this one runs
//   results      alpha, bias, SwiGLU (gate and up of a column are rows g and g + 8: one thread)
//
// Why a fragment per product: an HGMMA with A from registers holds its warps back until the one
// before it is through. Decoding two fragments and issuing two products costs the decoding, for
// every half step, on top of the products (what it did at 128 tokens: docs/notes).
//
// Budgets, per step and SM, with 256 tokens: 1024 cycles of tensor core (4 x 2
// products of 128); 2 x 135 of 1024 issue slots of each quarter; copies of 32 KB of tokens and 4.6
// of NVFP4, 36 bytes a cycle: more than the 24 or so that L2 gives to each SM, 20 with
// clusters of two rows. With 128 tokens 512 cycles, and the same 270 issue slots; with 32 or 64
// decoding is what limits, and the `tall` entries have four consumers to hide its latencies.
//
// FP8: sums are kept in units of the block scale that is being multiplied, scaled by the quotient
// when the next block of 128 along k begins; the other warpgroup's products run meanwhile.
//
// Small grids: the CTAs of a cluster may split k. Each sends the sums of the others' tokens into
// their shared memory, and adds up its own in the order of the splits: the same bits every time.
//
// Floors (H200, bf16): 790 TFLOP/s, or the packed weights at 4.3 TB/s. Predicted: 85 % of the
// plain bf16 GEMM at 1024 tokens and more. Measured, and what was tried: docs/notes.
// Sources: PTX ISA, "wgmma.mma_async"; CUTLASS's mixed-input GEMM for the idea of decoding between
// products.
#include "kernels/linear/wide/bf16_kernel.h"

namespace tilewright::kernels {
TILEWRIGHT_WIDE_BF16(nvfp4, kNvfp4, kBf16, false)
TILEWRIGHT_WIDE_BF16(mxfp4, kMxfp4, kBf16, false)
TILEWRIGHT_WIDE_BF16(fp8, kFp8, kBf16, false)
TILEWRIGHT_WIDE_BF16(bf16, kBf16, kBf16, false)
TILEWRIGHT_WIDE_BF16(tall_nvfp4, kNvfp4, kBf16, true)
TILEWRIGHT_WIDE_BF16(tall_mxfp4, kMxfp4, kBf16, true)
TILEWRIGHT_WIDE_BF16(tall_fp8, kFp8, kBf16, true)
TILEWRIGHT_WIDE_BF16(tall_bf16, kBf16, kBf16, true)
}  // namespace tilewright::kernels
