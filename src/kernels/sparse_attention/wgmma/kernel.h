// The roles of the sparse attention kernel with warpgroup MMAs: sm90_decode_wgmma.cu says what they
// do, and sm90_decode_wgmma_mla.cu what is different for rows of 576.
#pragma once

#include "kernels/sparse_attention/wgmma/consumer.h"
#include "kernels/sparse_attention/wgmma/converter_base.h"
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

template <class Rows, KvFormat Format, int Ctas>
__device__ void sparse_decode_wgmma(const SparseWgmmaParams& all) {
  using Tile = SparseWgmmaTile;
  const SparseDecodeParams& params = all.decode;
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<tile::SparseShared<Rows>*>(dynamic);
  if (threadIdx.x == 0) {
    shared.initialise(Ctas);
    ptx::fence_mbarrier_init_release_cluster();
  }
  // Relaxed: what is to be known are barriers, and the fence behind them is for that. An arrival
  // with release waits for memory, 0.5 us.
  if constexpr (Ctas > 1) ptx::barrier_cluster_arrive_relaxed_aligned();
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  if constexpr (Ctas > 1) {
    ptx::barrier_cluster_wait_aligned();
  } else {
    __syncthreads();
  }
  const auto ctas = static_cast<std::int32_t>(gridDim.x) / params.groups;
  const auto group = static_cast<std::int32_t>(blockIdx.x) / ctas;
  const std::int32_t first_head = static_cast<std::int32_t>(blockIdx.x) % ctas * Tile::kHeads;
  const std::uint32_t role = ptx::uniform(threadIdx.x / 128);
  tile::SparseParts parts(all, group, first_head, role, &shared.parts[role % 2]);
  if (role == 0) {
    take_registers<Tile::kScoreRegisters>();
    tile::SparseScoreConsumer<Rows, Ctas>(params, shared, first_head).run(group, parts);
  } else if (role == 1) {
    take_registers<Tile::kValueRegisters>();
    tile::SparseValueConsumer<Rows, Ctas>(params, shared, first_head).run(group, parts);
  } else {
    take_registers<Tile::kConverterRegisters>();
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32 - 8);
    tile::convert_sparse_rows<Format, Ctas>(params, shared, group, warp);
    return;
  }
  parts.merge();  // one code for both halves of the results
}

}  // namespace

#define TILEWRIGHT_SPARSE_DECODE_WGMMA(NAME, ROWS, FORMAT, CTAS)     \
  TILEWRIGHT_KERNEL(sparse_decode_wgmma_##NAME, SparseWgmmaParams,   \
                    __launch_bounds__(SparseWgmmaTile::kThreads, 1), \
                    sparse_decode_wgmma<tile::ROWS, KvFormat::FORMAT, CTAS>)

}  // namespace tilewright::kernels
