// targets: sm_90a
//
// Attention whose values of 512 make scores as well, beside keys of 64, for 64 rows a CTA: MLA, in
// which a row is a head of a query. Keys come 64 at a time by tensor copies; two CTAs are a cluster
// whose copies go to both.
//
// Roles; a block is 64 keys, a stage a block, of two:
//   loader    a warp: copies of keys; of pairs, the second cache is asked for those two blocks on;
//             three warps: the next tile's qv
//   first     a warpgroup: scores of blocks 0, 2, ... (in stage 0); columns 0 to 255 of o
//   second    a warpgroup: scores of blocks 1, 3, ... (in stage 1); columns from 256 on
//
// Each has the weights of its own blocks in registers, and writes them for the other:
//
//   first   | s0 | softmax 0 | o += p0 v0 |  wait  | o += p1 v1 | s2 | softmax 2 | ...
//   second  |    s1     | o += p0 v0, softmax 1    | o += p1 v1 |    s3    | ...
//
// so that the tensor cores have products of one while the other has a softmax. References of the
// weights go through both: that of block n is one of block n - 1, raised. Stage 0 is empty while
// stage 1 is still read: its next keys, which come first, are there when scores begin.
//
// Limit, of a block: tensor cores 2176 cycles; memory 73.7 KB (a pair of CTAs: 36.9 KB each), 3580
// (1790) cycles of 4.2 TB/s. Shared memory: qv 64 KB, keys 2 x 72, weights 16: 225 KB, which leaves
// no room for q; it is in registers, as fragments.
// Floors, and what was measured: docs/notes/2026-11-26-mla-576.md.
#include "kernels/sparse_attention/latent/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LATENT(bf16_v512_qv, Bf16, 512, true)
TILEWRIGHT_LATENT(f16_v512_qv, Fp16, 512, true)

}  // namespace tilewright::kernels
