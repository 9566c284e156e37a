// targets: sm_90a
//
// Linear layers of many FP8 tokens. Weights are the A operand of m64nNk32 and come from registers,
// since decoded tiles in shared memory would have to be written, fenced and read once more. Tokens
// are the B operand, from the ring.
//
//   producer     per step of 128 of k: bricks by one or two bulk copies, tokens by tensor copies of
//                64, scales of the tokens for this step by a bulk copy
//   consumer     two warpgroups of 64 rows. While the products of a step run, the next step's
//                codes are read (LDS.128: one group of 16 of two rows per thread), its scale bytes
//                looked up in a table of e4m3 octets (16 copies side by side: no bank conflicts),
//                and the codes turned into operands by two byte permutations for eight
//   epilogue     token scale, alpha, bias; SwiGLU inside a thread; transposed through shared memory
//   k in two     for small grids: a cluster of two CTAs a tile; the second one sends its sums to
//                the idle ring of the first
//
// Sums. The tensor core adds e4m3 products with 13 fraction bits. Two levels: every `promote`
// steps its sums are added to f32 registers, with the scales of 128 of k where there are any.
// One level leaves them there: twice the tokens per tile (registers: N / 2 instead of N), and an
// error that grows with k; measured relative rms 1.8e-3 at k = 7168, as much as rounding to bf16.
//
// Budgets. A step of 128 tokens is 512 cycles of tensor core for both warpgroups. Issue: 2 warps a
// scheduler x (77 decode + 64 promotion + 30) = 342 slots; the permutations' pipe 224 cycles.
// Shared memory, 128 B/cycle: tokens 2 x 16 KB for the products, 25 KB filled, 9 KB of codes and 8
// KB of look-ups: 132 B/cycle at full rate, and that is the limit; 256 tokens need 114.
// Registers of a consumer, 232: two levels of 128 tokens 64 + 64 + 32 (operands of two steps) +
// 16 (codes, look-ups) + 30; one level of 256 tokens 128 + 32 + 16 + 30.
// Predicted for 128 tokens 1000 TFLOP/s, for 256 1150; measured 950 to 1130, and 1200 to 1300, of
// cuBLASLt's 1290 to 1440. What was tried: docs/notes.
#include "kernels/linear/wide/e4m3_kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_WIDE_E4M3(fp4_t256, 0)
TILEWRIGHT_WIDE_E4M3(fp4_t128, 1)
TILEWRIGHT_WIDE_E4M3(fp4_g128, 2)
TILEWRIGHT_WIDE_E4M3(fp8_t128, 3)
TILEWRIGHT_WIDE_E4M3(fp8_g128, 4)

}  // namespace tilewright::kernels
