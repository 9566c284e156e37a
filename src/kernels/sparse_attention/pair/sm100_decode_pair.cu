// targets: sm_100f
//
// Sparse attention on Blackwell by pairs of CTAs that multiply together: 33 to 128 heads of a
// query, half of them in each CTA, or two neighbouring queries of up to 64 heads (README.md).
//
// Each CTA has half of the dimensions of every key: it gathers these from the cache, decodes them
// once, and both products read what it wrote, as keys and as values. The queries have the first
// 256 dimensions in lanes 0 to 63 of Tensor Memory and the others in lanes 64 to 127. An
// instruction of M = 128 puts the columns that the second CTA supplies into the upper lanes, and
// reads A there: so one instruction makes sums over both halves, each in its own lanes. The two
// threads of a row exchange them through shared memory; each goes on with half of the keys.
//
//   warps 4-11   8 keys of each block: bytes to registers a block ahead, bf16 to shared memory
//                (bf16 rows by cp.async, two blocks ahead); arrive at k_full, in the first CTA
//   warp 12      one thread of the first CTA: S of the next block, then O += P V of the last
//   warps 0-3    a row two threads: half sums, weights, weights to both; arrive at p_ready. The
//                next queries while the last values are added; then results
//
//   keys     | 0 | 1 | 2 | 3 | 4 ...                      four stages
//   tensor       | S0 | S1 | O0 | S2 | O1 | S3 | O2 ...
//   rows              | 0  |  1     |  2     |  3 ...
//
//   barriers   k_full[4], p_ready[2], q_ready, s_read: in the first CTA, a warp of either an
//              arrival; s_full[2], k_free[4]: in both, by commit. k_free also says that the values
//              of its block are in the results; s_read, of rows of 576 alone, that the scores of a
//              block are in registers, whose columns the next ones overlap
//
// Weights are relative to a maximum that stays until a score of the warps' rows is more than 2^8
// above it. They are made with the old one first; both warps of a row tell each other whether that
// was right when they exchange weights. If not they are made again, and results are rescaled.
//
// Counts and bounds of the units: README.md. Not run on a B200.
// Sources: FlashMLA's kernel for 128 heads on Blackwell: halves of the dimensions in the two CTAs,
// half sums in two halves of the lanes; PTX ISA, tcgen05 data path layout B.
#include "kernels/sparse_attention/fp8_share.h"
#include "kernels/sparse_attention/pair/kernel.h"
#include "kernels/sparse_attention/pair/keys.h"
#include "kernels/sparse_attention/pair/lists.h"

namespace tilewright::kernels {
namespace {

template <int Half>
using Fp8Keys = tile::SparsePairKeys<KvFormat::kFp8, Half>;
using Fp8 = tile::OverLists<KvFormat::kFp8, Fp8Keys>;

}  // namespace

TILEWRIGHT_ATTENTION_IN_PAIRS(sparse_decode_pair_fp8, Fp8)

}  // namespace tilewright::kernels
