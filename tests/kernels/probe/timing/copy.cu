// targets: sm_90a
//
// Copies by TMA: how long one takes, the first use of its tensor map, and what a ring of copies
// moves.
#include "kernels/probe/timing/measure.h"
#include "ptx/address.h"
#include "ptx/bulk_copy.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/fence.h"
#include "ptx/mbarrier.h"

namespace tilewright::kernels {
namespace {

constexpr int kMaxStages = 16;

__device__ std::uint32_t stages_address() {
  extern __shared__ std::uint32_t dynamic[];
  return (ptx::shared_address(dynamic) + 1023) / 1024 * 1024;
}

__device__ std::uint32_t init_barriers() {
  __shared__ std::uint64_t barriers[kMaxStages];
  if (threadIdx.x == 0) {
    for (auto& barrier : barriers) ptx::mbarrier_init(ptx::shared_address(&barrier), 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  return ptx::shared_address(barriers);
}

// One thread issues `count` copies at a time, of `stride` bytes each: boxes of 128-byte rows of the
// tensor map one below the other, or (Plain) lines of memory. Each turn reads what follows.
template <bool Plain, bool Prefetched>
__device__ void time_copies(const TimingProbeParams& params) {
  const std::uint32_t to = stages_address(), barriers = init_barriers();
  if (threadIdx.x != 0) return;
  if (Prefetched) {
    ptx::prefetch_tensormap(params.tensor_map);
    for (std::uint32_t begin = read_clock(); read_clock() - begin < 4096;) {
    }
  }
  const std::uint32_t rows = params.stride / 128;
  std::uint32_t clocks[kTimingCopyMarks];
  for (std::uint32_t i = 0; i < params.iterations; ++i) {
    clocks[0] = read_clock();
    for (std::uint32_t n = 0; n < params.count; ++n) {
      const std::uint32_t barrier = barriers + n * 8, box = i * params.count + n;
      ptx::mbarrier_arrive_expect_tx(barrier, params.stride);
      if (Plain) {
        ptx::cp_async_bulk_shared_global(to + n * params.stride,
                                         params.memory + std::uint64_t{box} * params.stride / 4,
                                         params.stride, barrier);
      } else {
        ptx::cp_async_bulk_tensor_2d_shared_global(to + n * params.stride, params.tensor_map, 0,
                                                   static_cast<std::int32_t>(box * rows), barrier);
      }
    }
    clocks[1] = read_clock();
    std::uint32_t* const marks = marks_of(params, i, kTimingCopyMarks);
    for (std::uint32_t n = 0; n < params.count; ++n) {
      ptx::mbarrier_wait_parity(barriers + n * 8, i & 1);
      marks[2 + n] = read_clock();
    }
    marks[0] = clocks[0];
    marks[1] = clocks[1];
  }
}

// Every CTA keeps `count` boxes of `stride` bytes under way; together they read the first
// `iterations` boxes of the tensor map, again and again from the start if there are fewer.
__device__ void stream_copies(const TimingProbeParams& params) {
  const std::uint32_t to = stages_address(), barriers = init_barriers();
  if (threadIdx.x != 0) return;
  const std::uint32_t rows = params.stride / 128;
  const auto num_boxes = static_cast<std::uint32_t>(params.memory_bytes / params.stride);
  std::uint32_t issued = blockIdx.x, awaited = blockIdx.x;
  const auto issue = [&](std::uint32_t stage) {
    if (issued >= params.iterations) return;
    ptx::mbarrier_arrive_expect_tx(barriers + stage * 8, params.stride);
    ptx::cp_async_bulk_tensor_2d_shared_global(to + stage * params.stride, params.tensor_map, 0,
                                               static_cast<std::int32_t>(issued % num_boxes * rows),
                                               barriers + stage * 8);
    issued += gridDim.x;
  };
  for (std::uint32_t stage = 0; stage < params.count; ++stage) issue(stage);
  for (std::uint32_t turn = 0; awaited < params.iterations; ++turn, awaited += gridDim.x) {
    const std::uint32_t stage = turn % params.count;
    ptx::mbarrier_wait_parity(barriers + stage * 8, turn / params.count & 1);
    issue(stage);
  }
}

// A ring of `count` copies of `stride` bytes for each warp, as kernels of few tokens have it; all
// warps together read memory once.
__device__ void ring_copies(const TimingProbeParams& params) {
  constexpr std::uint32_t kWarps = 16, kMostCopies = 8;
  __shared__ std::uint64_t barriers_of_warps[kWarps * kMostCopies];
  const std::uint32_t warp = threadIdx.x / 32, copies = params.count, bytes = params.stride;
  const std::uint32_t barriers = ptx::shared_address(barriers_of_warps) + warp * kMostCopies * 8;
  if (threadIdx.x % 32 != 0) return;
  const std::uint32_t to = stages_address() + warp * copies * bytes;
  for (std::uint32_t i = 0; i < copies; ++i) ptx::mbarrier_init(barriers + i * 8, 1);
  ptx::fence_mbarrier_init_release_cluster();
  const std::uint32_t all = gridDim.x * kWarps;
  const auto chunks = static_cast<std::uint32_t>(params.memory_bytes / bytes);
  std::uint32_t issued = blockIdx.x * kWarps + warp, awaited = issued;
  const auto issue = [&](std::uint32_t stage) {
    if (issued >= chunks) return;
    ptx::mbarrier_arrive_expect_tx(barriers + stage * 8, bytes);
    ptx::cp_async_bulk_shared_global(to + stage * bytes,
                                     params.memory + std::uint64_t{issued} * bytes / 4, bytes,
                                     barriers + stage * 8);
    issued += all;
  };
  for (std::uint32_t stage = 0; stage < copies; ++stage) issue(stage);
  for (std::uint32_t stage = 0, parity = 0; awaited < chunks; awaited += all) {
    ptx::mbarrier_wait_parity(barriers + stage * 8, parity);
    issue(stage);
    if (++stage == copies) stage = 0, parity ^= 1;
  }
}

// The same of `iterations` pages of `stride` bytes. Shuffled: anywhere in memory, which holds a
// power of two of them; else one after the other. Stores: of each page 256 bytes of results.
template <bool Shuffled, bool Stores>
__device__ void page_copies(const TimingProbeParams& params) {
  constexpr std::uint32_t kMostWarps = 16, kMostCopies = 8, kResultWords = 64;
  constexpr std::uint32_t kResults = 1024 * 1024;  // words of the sink
  __shared__ std::uint64_t barriers_of_warps[kMostWarps * kMostCopies];
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const std::uint32_t copies = params.count, bytes = params.stride;
  const std::uint32_t barriers = ptx::shared_address(barriers_of_warps) + warp * kMostCopies * 8;
  const std::uint32_t to = stages_address() + warp * copies * bytes;
  if (lane == 0) {
    for (std::uint32_t i = 0; i < copies; ++i) ptx::mbarrier_init(barriers + i * 8, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncwarp();
  const auto all = static_cast<std::uint32_t>(params.memory_bytes / bytes);
  const std::uint32_t half = (31 - __clz(all)) / 2;
  const auto place = [&](std::uint32_t page) {
    if (!Shuffled) return page;
    page = page * 0x9e3779b1u & (all - 1);
    page ^= page >> half;
    page = page * 0x85ebca6bu & (all - 1);
    return page ^ page >> half;
  };
  const std::uint32_t step = gridDim.x * warps;
  std::uint32_t issued = blockIdx.x * warps + warp, awaited = issued;
  const auto issue = [&](std::uint32_t stage) {
    if (issued < params.iterations && lane == 0) {
      ptx::mbarrier_arrive_expect_tx(barriers + stage * 8, bytes);
      ptx::cp_async_bulk_shared_global(to + stage * bytes,
                                       params.memory + std::uint64_t{place(issued)} * bytes / 4,
                                       bytes, barriers + stage * 8);
    }
    issued += step;
  };
  for (std::uint32_t stage = 0; stage < copies; ++stage) issue(stage);
  for (std::uint32_t stage = 0, parity = 0; awaited < params.iterations; awaited += step) {
    ptx::mbarrier_wait_parity(barriers + stage * 8, parity);
    __syncwarp();
    issue(stage);
    if (Stores) {
      const std::uint32_t at = (awaited * kResultWords + lane * 2) % kResults;
      *reinterpret_cast<uint2*>(params.sink + at) = make_uint2(awaited, stage);
    }
    if (++stage == copies) stage = 0, parity ^= 1;
  }
}

// Matrices by boxes: each CTA keeps `count` boxes of 64 rows of 128 bytes under way, one
// behind the other along rows of `stride` bytes, as products read weights. All rows are read once.
__device__ void box_copies(const TimingProbeParams& params) {
  constexpr std::uint32_t kRows = 64, kColumns = 128, kBytes = kRows * kColumns;
  const std::uint32_t to = stages_address(), barriers = init_barriers();
  if (threadIdx.x != 0) return;
  const std::uint32_t of_rows = params.stride / kColumns;
  const auto all = static_cast<std::uint32_t>(params.memory_bytes / kBytes);
  // The boxes of this CTA: whole blocks of rows, each gridDim.x-th.
  std::uint32_t row = blockIdx.x, column = 0;
  const std::uint32_t blocks = all / of_rows;
  const auto issue = [&](std::uint32_t stage) {
    if (row >= blocks) return false;
    ptx::mbarrier_arrive_expect_tx(barriers + stage * 8, kBytes);
    ptx::cp_async_bulk_tensor_2d_shared_global(
        to + stage * kBytes, params.tensor_map, static_cast<std::int32_t>(column * kColumns),
        static_cast<std::int32_t>(row * kRows), barriers + stage * 8);
    if (++column == of_rows) column = 0, row += gridDim.x;
    return true;
  };
  std::uint32_t issued = 0;
  for (std::uint32_t stage = 0; stage < params.count; ++stage) issued += issue(stage) ? 1 : 0;
  for (std::uint32_t turn = 0; turn < issued; ++turn) {
    const std::uint32_t stage = turn % params.count;
    ptx::mbarrier_wait_parity(barriers + stage * 8, turn / params.count & 1);
    issued += issue(stage) ? 1 : 0;
  }
}

}  // namespace
}  // namespace tilewright::kernels

TILEWRIGHT_TIMING_PROBE(copy_tensor, 32, time_copies<false, false>(params))
TILEWRIGHT_TIMING_PROBE(copy_tensor_prefetched, 32, time_copies<false, true>(params))
TILEWRIGHT_TIMING_PROBE(copy_plain, 32, time_copies<true, false>(params))
TILEWRIGHT_TIMING_PROBE(copy_stream, 32, stream_copies(params))
TILEWRIGHT_TIMING_PROBE(copy_rings, 512, ring_copies(params))
TILEWRIGHT_TIMING_PROBE(copy_pages, 512, page_copies<false, false>(params))
TILEWRIGHT_TIMING_PROBE(copy_pages_shuffled, 512, page_copies<true, false>(params))
TILEWRIGHT_TIMING_PROBE(copy_pages_stores, 512, page_copies<true, true>(params))
TILEWRIGHT_TIMING_PROBE(copy_boxes, 32, box_copies(params))
