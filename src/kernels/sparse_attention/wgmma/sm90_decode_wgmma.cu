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
// Where results go: the piece's query, or a partial result.
#include "kernels/sparse_attention/wgmma/consumer.h"
#include "kernels/sparse_attention/wgmma/converter.h"
#include "kernels/sparse_attention/wgmma/sm90_decode_wgmma.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

template <int Count>
__device__ void take_registers() {
  if constexpr (Count > SparseWgmmaTile::kRegisters) {
    ptx::setmaxnreg_inc_sync_aligned<Count>();
  } else {
    ptx::setmaxnreg_dec_sync_aligned<Count>();
  }
}

template <KvFormat Format, int Ctas>
__device__ void sparse_decode_wgmma(const SparseDecodeParams& params) {
  using Tile = SparseWgmmaTile;
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<tile::SparseShared*>(dynamic);
  if (threadIdx.x == 0) {
    shared.initialise(Ctas);
    ptx::fence_mbarrier_init_release_cluster();
  }
  if constexpr (Ctas > 1) {
    ptx::cluster_sync();
  } else {
    __syncthreads();
  }
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const auto parts = static_cast<std::int32_t>(gridDim.x) / params.groups;
  const auto group = static_cast<std::int32_t>(blockIdx.x) / parts;
  const std::int32_t first_head = static_cast<std::int32_t>(blockIdx.x) % parts * Tile::kHeads;
  const std::uint32_t role = ptx::uniform(threadIdx.x / 128);
  if (role == 0) {
    take_registers<Tile::kScoreRegisters>();
    tile::SparseScoreConsumer<Ctas>(params, shared, first_head).run(group);
  } else if (role == 1) {
    take_registers<Tile::kValueRegisters>();
    tile::SparseValueConsumer<Ctas>(params, shared, first_head).run(group);
  } else {
    take_registers<Tile::kConverterRegisters>();
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32 - 8);
    tile::convert_sparse_rows<Format, Ctas>(params, shared, group, warp);
  }
  if constexpr (Ctas > 1) ptx::cluster_sync();  // the other's copies to here, and its arrivals
}

}  // namespace
#define TILEWRIGHT_SPARSE_DECODE_WGMMA(NAME, FORMAT, CTAS)           \
  TILEWRIGHT_KERNEL(sparse_decode_wgmma_##NAME, SparseDecodeParams,  \
                    __launch_bounds__(SparseWgmmaTile::kThreads, 1), \
                    sparse_decode_wgmma<KvFormat::FORMAT, CTAS>)

TILEWRIGHT_SPARSE_DECODE_WGMMA(fp8, kFp8, 1)
TILEWRIGHT_SPARSE_DECODE_WGMMA(nvfp4, kNvfp4, 1)
TILEWRIGHT_SPARSE_DECODE_WGMMA(bf16, kBf16, 1)
TILEWRIGHT_SPARSE_DECODE_WGMMA(pair_fp8, kFp8, 2)
TILEWRIGHT_SPARSE_DECODE_WGMMA(pair_nvfp4, kNvfp4, 2)
TILEWRIGHT_SPARSE_DECODE_WGMMA(pair_bf16, kBf16, 2)

}  // namespace tilewright::kernels
