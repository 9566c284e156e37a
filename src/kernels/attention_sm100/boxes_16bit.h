// Operands of 16 bits in their boxes: queries, tiles of keys and values, probabilities.
#pragma once

#include "kernels/attention_sm100/tensor_attention.h"

#include <cstdint>

namespace tilewright::tile {

/// Rows of the boxes of q that no copy writes; all threads, before the barrier that they pass
/// first.
template <int Boxes, int BoxBytes>
__device__ void clear_rows_behind(std::uint8_t (&q)[Boxes][BoxBytes], std::int32_t rows) {
  for (std::int32_t i = rows * 8 + static_cast<std::int32_t>(threadIdx.x); i < BoxBytes / 16;
       i += static_cast<std::int32_t>(blockDim.x)) {
    for (int box = 0; box < Boxes; ++box)
      *reinterpret_cast<uint4*>(q[box] + i * 16) = make_uint4(0, 0, 0, 0);
  }
  ptx::fence_proxy_async_shared_cta();
}

/// The loading thread: the queries, announced to a barrier that expects them.
template <int Boxes, int BoxBytes>
__device__ void load_queries(const kernels::AttentionParams& params,
                             std::uint8_t (&q)[Boxes][BoxBytes], const GroupRows& rows,
                             std::uint32_t barrier) {
#pragma unroll 1
  for (int box = 0; box < Boxes; ++box) {
    ptx::cp_async_bulk_tensor_4d_shared_global(
        ptx::shared_address(q[box]), params.q_map, box * kBoxElems, rows.kv_head * rows.group,
        rows.sequence.q_begin + rows.first_query, rows.stored_batch(params), barrier);
  }
}

/// The loading thread: a tile's boxes of K or V.
template <int Boxes, class Shared>
__device__ void load_tile(const kernels::AttentionParams& params, Shared& shared, const void* map,
                          const GroupRows& work, std::int32_t column, std::int32_t tile,
                          RingPosition<Shared::kStages>& at) {
  const Ring<Shared::kStages> ring(shared.ring);
#pragma unroll 1
  for (int box = 0; box < Boxes; ++box) {
    ring.start_filling(at, kBoxBytes);
    ptx::cp_async_bulk_tensor_4d_shared_global(
        ptx::shared_address(shared.boxes[at.stage]), map, column + box * kBoxElems,
        work.sequence.kv_begin + tile * kKeys, work.kv_head,
        params.cu_kv == nullptr ? work.batch : 0, ring.full(at));
    at.advance();
  }
}

/// Makes the A operand of the probabilities of a row, in columns of its own: two neighbours to a
/// cell, the lower key in the lower half. Chunks of 32 columns become 16 cells.
template <class Element, int Chunks>
__device__ void store_operand(std::uint32_t address, const float (&p)[Chunks][32]) {
#pragma unroll
  for (int i = 0; i < Chunks; i += 2) {
    std::uint32_t cells[32];
#pragma unroll
    for (int j = 0; j < 32; ++j)
      cells[j] = Element::pack(p[i + j / 16][j % 16 * 2], p[i + j / 16][j % 16 * 2 + 1]);
    ptx::tcgen05_st_32x32b(address + arch::packed_columns(32 * i), cells);
  }
}

/// Behind the last key there may be other values, of the next packed sequence or what a page had
/// before. Their weights are 0, but 0 times an infinity is not: in the last of the tiles [begin,
/// end) they are cleared. 128 threads together, before they hand over that tile's operand.
template <class Shared>
__device__ void clear_values_behind(Shared& shared, std::int32_t kv_len, std::int32_t begin,
                                    std::int32_t end) {
  const std::int32_t rows = kv_len - (end - 1) * kKeys;
  if (rows >= kKeys) return;
  const Ring<Shared::kStages> ring(shared.ring);
  std::int32_t index = (end - begin) * (Shared::kKeyBoxes + Shared::kValueBoxes) -
                       Shared::kValueBoxes;  // of all boxes
  for (int box = 0; box < Shared::kValueBoxes; ++box, ++index) {
    const RingPosition<Shared::kStages> at = box_position<Shared::kStages>(index);
    ring.wait_full(at);
    for (std::int32_t i = rows * 8 + static_cast<std::int32_t>(threadIdx.x % kRowThreads);
         i < kKeys * 8; i += kRowThreads)
      *reinterpret_cast<uint4*>(shared.boxes[at.stage] + i * 16) = make_uint4(0, 0, 0, 0);
  }
  ptx::fence_proxy_async_shared_cta();
}

}  // namespace tilewright::tile
