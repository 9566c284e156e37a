// The accumulators of a warpgroup's product of 64 rows and N columns, as the layout algebra
// describes them: what each thread holds, its rows and columns, and the registers as an operand.
//
// All of these are constants. An index into a thread's registers is a number once loops are
// unrolled, and what depends on the thread is the few shifts that one would write by hand.
#pragma once

#include "arch/fragments/wgmma.h"
#include "layout/constant.h"
#include "layout/fragment_views.h"
#include "ptx/wgmma_sync.h"

#include <cstdint>

namespace tilewright::tile {

template <int N>
struct Accumulator {
  static constexpr TiledMma kMma = {.atom = arch::make_wgmma_rs(N, 16)};
  static constexpr IntTuple kTile = make_shape(arch::kWgmmaM, N);
  /// Registers of a thread, ((2,2,N/8),1,1), in the order of the instruction.
  static constexpr Layout kFragment = make_fragment(kMma, Operand::kC, kTile);
  /// (thread, register) -> (row, column) of the tile.
  static constexpr Layout kPlaces = partition_C(kMma, make_identity_layout(kTile));
  /// (row of the thread, column of the thread) -> register.
  static constexpr Layout kRowsColumns = layout_acc_mn(kMma, kFragment);
  /// (value, 0, reduction step) -> register, when they are read as the A operand of a product over
  /// the columns, 16 of them a step.
  static constexpr Layout kOperand = convert_c_layout_to_a_layout(kFragment, make_shape(2, 2, 2));
  /// Threads that share a row.
  static constexpr Layout kSiblings = reduction_target_n(kMma);

  static constexpr int kRegisters = size(kFragment), kSteps = size(kOperand, 2);
  static constexpr int kRows = size(kRowsColumns, 0), kColumns = size(kRowsColumns, 1);
  static_assert(kRegisters == N / 2 && size(kOperand) == kRegisters);

  /// Row and column of the tile that a register of this thread belongs to.
  static __device__ auto place(int index) { return coordinate_in<kPlaces>(threadIdx.x, index); }
  /// From the first row of a thread to another: the same for all threads.
  static constexpr int row_step(int row) {
    return coordinate_in<kPlaces>(0, offset_in<kRowsColumns>(row, 0))[0];
  }
  /// The register of a row and a column of this thread.
  static __device__ int index(int row, int column) { return offset_in<kRowsColumns>(row, column); }
  /// The register that is value `value` of the A operand of a reduction step.
  static __device__ int operand(int value, int step) { return offset_in<kOperand>(value, 0, step); }

  /// x of all threads that share a row, joined by an operation in which order does not matter.
  template <class Join>
  static __device__ float reduce_row(float x, Join&& join) {
    constexpr int kThreads = size(kSiblings), kStride = stride(kSiblings).value[0];
    static_assert(rank(kSiblings) == 1 && kThreads * kStride <= 32, "a shuffle stays in a warp");
#pragma unroll
    for (int step = 1; step < kThreads; step *= 2)
      x = join(x, __shfl_xor_sync(0xffffffffu, x, step * kStride));
    return x;
  }
};

/// Issues MMAs that write d, and waits for them: nothing overlaps.
template <int Count, class Issue>
__device__ void multiply_and_wait(float (&d)[Count], Issue&& issue) {
  ptx::wgmma_fence_operand(d);
  ptx::wgmma_fence_sync_aligned();
  issue();
  ptx::wgmma_commit_group_sync_aligned();
  ptx::wgmma_wait_group_sync_aligned<0>();
  ptx::wgmma_fence_operand(d);
}

}  // namespace tilewright::tile
