// targets: sm_90a sm_100f
//
// The bandwidth kernel: few tokens, so that the time is that of reading the weights once.
//
// Weights are the product's M operand, tokens its N, by eights; results come out transposed and
// leave so. One producer warp brings weights (one bulk copy per K block of 64 and tile of rows;
// packed_weight.h puts them in that order) and tokens (16-byte copies, which gather rows and zero
// what lies behind K) through a ring of stages of 128 along K. The other warps have 32 rows each:
// a lane reads 16 bytes of codes per 16 rows and K block, decodes them in registers, exactly, and
// multiplies with mma.m16n8k16.
//
//   producer  | weights 0 1 2 .. | (kernel before ends) tokens 0 1 2 .. | both of n, n + 1 ..
//   warps     |                                           wait 0, decode, multiply, release, 1 ..
//   cluster   |                                                                 sums -> owners, y
//
// K is split over a cluster's CTAs and over k_groups of warps in a CTA. Each sends its sums to the
// shared memory of the fragment's owner, which adds them in the order of their ranks: no atomics,
// no workspace, the same bits every time. Weights do not depend on the preceding kernel: with
// dependent launch the ring is full when that one ends.
//
// Lower bounds. Memory: 0.5625 bytes a weight (NVFP4) at 4.3 TB/s; 7168 x 7168 in 6.7 us.
// Instructions: at that rate 3.9 lane-instructions a weight, of which the ALU (logic, shifts,
// permutes) does half as many: 1.95. The loop needs, for 64 weights of a lane (32 rows, K block of
// 64, 8 tokens):
//   twiddled codes      64 ALU, 24 IMAD (left shifts)      scales  8 PRMT/LEA
//   scaling             32 HMUL2                           products 8 HMMA, 6 shared loads
//   the rest            about 30 (addresses, moves into operand pairs, barriers)
// 178 instructions, 2.8 a weight; 86 of them ALU, 1.35 a weight: 70 % of both budgets. More tokens
// add 8 HMMA and 2 loads per 8. So what is left out of the loop decides: lane addresses are kept in
// registers by a trick (work.h, keep), sizes of the launch are parameters (no registers).
// Shared memory with 32 tokens: 4 KB of tokens per 1152 bytes of weights, 65 bytes a cycle of 128.
//
// Measured, tried and not kept: docs/notes/2026-11-22-linear-bandwidth.md. Sources: MARLIN (IST
// Austria) for the idea of decoding in registers from an order made for the fragments.
#include "kernels/linear/band/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LINEAR_BAND(nvfp4, kNvfp4, kBf16, 32)
TILEWRIGHT_LINEAR_BAND(nvfp4, kNvfp4, kBf16, 64)

}  // namespace tilewright::kernels
