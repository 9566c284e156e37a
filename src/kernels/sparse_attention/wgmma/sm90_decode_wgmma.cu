// targets: sm_90a
//
// Sparse attention for 64 heads a CTA over chosen rows of paged caches (key and value are one row),
// by warpgroup MMAs in bf16. 128 heads are a cluster of two CTAs: each decodes half of the rows of
// a block, and copies what it wrote to the other's shared memory.
//
// Roles; a block is 64 keys, a stage a block as bf16, of two:
//   converters   two warpgroups; a warp has half of the columns of 16 rows (of 8 in a cluster):
//                copies their bytes to its own memory, a share of 8 rows ahead, decodes them (bits
//                placed, one multiplication by the scale: unpack_e4m3.h, unpack_e2m1.h) and
//                writes them as the products read them; bf16 rows are copied there as they are
//   scores       a warpgroup: s = q k^T of 64 x 64 x 512, softmax; o[:, 0:256] += p v with p in
//                registers, by two products of 128 columns (512 threads have 128 registers each at
//                the launch: no accumulators of 256 columns)
//   values       a warpgroup: o[:, 256:512] += p v with p in shared memory; loads the next queries
//
//   converters | decode 2, copy 3 |  wait  | decode 3, copy 4 |
//   scores     | pv (0) | q k (1) | softmax of 1 | pv (1) | q k (2) | softmax of 2 |
//   values     | pv (0) |                        | pv (1) |
//   barriers   k_ring[half] of two stages: full when decoded (and, in a cluster, when the other
//              CTA's bytes have come), empty when its consumer's product is done (in a cluster: of
//              both CTAs' consumers'); p_ring: weights and the factors of results so far
//
// Limit, of a block: tensor cores 2048 cycles; shared memory 2850 (queries and keys of the scores
// 1024, values 512, weights 200, rows' bytes in and out 580, keys written 512); memory 37 KB, 2070
// cycles of 4.2 TB/s; scores, softmax and values in a row 2700. Decoding is 840 instructions of
// each scheduler, 4000 cycles in one warp and hidden in two.
// Measured (H200), and what bound the designs before: docs/notes/2026-11-22-dsv4-decode64.md.
// Where results go: the piece's query, or a partial result, which the CTAs that made those of a
// query merge (parts.h). This file has rows of e4m3; those of e2m1 and bf16 have their own.
#include "kernels/sparse_attention/fp8_share.h"
#include "kernels/sparse_attention/wgmma/converter.h"
#include "kernels/sparse_attention/wgmma/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_SPARSE_DECODE_WGMMA(fp8, SparseRows512, kFp8, 1)
TILEWRIGHT_SPARSE_DECODE_WGMMA(pair_fp8, SparseRows512, kFp8, 2)

}  // namespace tilewright::kernels
