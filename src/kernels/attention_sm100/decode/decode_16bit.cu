// targets: sm_100f
//
// Flash decode on Blackwell's tensor core, caches of bf16 and f16: 1 to 16 queries a sequence
// against a long cache. The problem, the schedule of keys over CTAs, and the merging of splits are
// those of attention/decode (decode.h, agenda.h, parts.h); what a CTA does is not.
//
// An MMA has 128 rows, and a KV head has 1 to 16 queries or a few times that. So keys are the rows:
// S^T = K Q^T has 128 keys by 16 or 64 columns, O^T = V^T P^T head_dim by as many. Both operands
// from memory are A, read once each as they came (V with its dimensions as M), and what is few is
// B. A row's softmax then runs across lanes, 128 keys of a step. Maxima are only exchanged when
// some score exceeds the running maximum by 2^8, of which all threads vote; sums are taken at the
// end.
//
//   warp 5      | K0 V0 | K1 V1 | K2 V2 | ...        boxes of 16 keys by TMA; or warps 6, 7 gather
//   warp 4      |  S0   | S1     O0     | S2     O1 | ...
//   warps 0-3   |       | P0 (vote, exp2) | P1 ...      a thread a key; then a thread a dimension
//
// Limit: memory. 128 keys and values of 128 bf16 are 64 KiB, 2383 cycles of an SM's share of
// 8 TB/s; shared memory needs 1281 of them, the tensor core 128, the rest less. Counts: README.md.
#include "kernels/attention_sm100/decode/kernel.h"

TILEWRIGHT_TENSOR_DECODE_ENTRY(16bit, false, 16)
TILEWRIGHT_TENSOR_DECODE_ENTRY(16bit, false, 64)
