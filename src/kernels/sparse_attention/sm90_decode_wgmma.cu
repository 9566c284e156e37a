// targets: sm_90a
//
// Sparse decode for 64 and 128 heads.
#include "kernels/sparse_attention/sm90_decode_wgmma.h"
#include "ptx/grid_dependency.h"
#include "tile/sparse_consumer.h"
#include "tile/sparse_converter.h"

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

template <KvFormat Format>
__device__ void sparse_decode_wgmma(const SparseDecodeParams& params) {
  using Tile = SparseWgmmaTile;
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<tile::SparseShared*>(dynamic);
  if (threadIdx.x == 0) {
    shared.initialise(Format == KvFormat::kBf16 ? 4 : 2);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const auto parts = static_cast<std::int32_t>(gridDim.x) / params.groups;
  const auto group = static_cast<std::int32_t>(blockIdx.x) / parts;
  const std::int32_t first_head = static_cast<std::int32_t>(blockIdx.x) % parts * Tile::kHeads;
  const std::uint32_t role = ptx::uniform(threadIdx.x / 128);
  if (role == 0) {
    take_registers<Tile::kScoreRegisters>();
    tile::SparseScoreConsumer(params, shared, first_head).run(group);
  } else if (role == 1) {
    take_registers<Tile::kValueRegisters>();
    tile::SparseValueConsumer(params, shared, first_head).run(group);
  } else {
    take_registers<Tile::kConverterRegisters>();
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32 - 8);
    tile::convert_sparse_rows<Format>(params, shared, group, warp);
  }
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_SPARSE_DECODE_WGMMA(NAME, FORMAT)                                              \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::SparseWgmmaTile::kThreads, 1) \
      sparse_decode_wgmma_##NAME(                                                                 \
          const __grid_constant__ tilewright::kernels::SparseDecodeParams params) {               \
    tilewright::kernels::sparse_decode_wgmma<tilewright::KvFormat::FORMAT>(params);               \
  }

TILEWRIGHT_SPARSE_DECODE_WGMMA(fp8, kFp8)
TILEWRIGHT_SPARSE_DECODE_WGMMA(nvfp4, kNvfp4)
TILEWRIGHT_SPARSE_DECODE_WGMMA(bf16, kBf16)
