// targets: sm_90a sm_100f
//
// Queries and cache rows: norm, rotation, rounding, and for the cache its codes and where they go.
//
//   warp = row of 512, lane = 16 neighbours (the last four lanes hold what is rotated)
//     position, slot | load 32 or 64 B | squares, 5 shuffles | x / rms (* weight) | lanes 28..31:
//     8 cosines, 8 sines | bf16 | q: store 32 B    kv: amax of 4 lanes or of 1, codes | store
//
// Rows of the cache come first, since they take longer. No warp waits for another.
//
// Limit: memory. A query row is read and written, 2 KB; a cache row reads 1 (bf16) or 2 KB and
// writes 584, 384 or 1024 bytes. 256 tokens of 64 heads: 33.9 MB, 7.9 us at the 4.3 TB/s of a copy
// where nothing is in L2. About 130 instructions a lane and row: 16,640 rows on 132 SMs are
// 126 rows * 130 / 4 = 4,100 cycles, 2.3 us, so memory has room.
// Measured on an H200: 10.5 us (75 % of a copy), 4096 tokens 144 us (87 %); docs/06-deepseek-v4.md.
// Sources: the official DeepSeek-V4 inference code (order of operations); vLLM fuses the same
// steps.
#include "kernels/sparse_attention/cache/cache_write.h"
#include "kernels/sparse_attention/cache/write_row.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

__device__ void write(const CacheWriteParams& params) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const auto row = static_cast<std::int32_t>(blockIdx.x * kCacheWriteWarps + threadIdx.x / 32);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  write_row(params, row, lane);
}

}  // namespace

TILEWRIGHT_KERNEL(cache_write, CacheWriteParams, __launch_bounds__(kCacheWriteThreads), write)

}  // namespace tilewright::kernels
