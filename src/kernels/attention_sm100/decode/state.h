// What the warps of a tensor-core decode kernel share: where operands lie in shared and Tensor
// Memory, barriers, and the numbers of rows.
//
//   warps 0-3   a thread a key: scores to weights; a thread a dimension: results
//   warp 4      one thread multiplies
//   warp 5      boxes of keys and values; or
//   warps 6, 7  gather them
//
//   barriers   full, empty [stage]   an item of K or V; empty by commit
//              q_ready               queries of a segment, by warps 0-3
//              s_full[buffer]        scores, by commit
//              p_ready               weights, by warps 0-3
//              o_done                a step's results, by commit
#pragma once

#include "arch/smem_descriptor.h"
#include "kernels/attention/decode/agenda.h"
#include "kernels/attention_sm100/decode/tensor_decode.h"
#include "ptx/address.h"
#include "ptx/mbarrier.h"
#include "tile/deep_position.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr std::uint32_t kDecodeMmaWarp = 4, kDecodeBoxWarp = 5;
inline constexpr std::uint32_t kDecodeGatherWarp = 6, kDecodeGatherWarps = 2;
inline constexpr int kDecodeRowBarrier = 1;  ///< the named barrier of warps 0-3

struct TensorDecodeState {
  std::uint64_t full[kernels::kTensorDecodeMostStages], empty[kernels::kTensorDecodeMostStages];
  std::uint64_t q_ready, s_full[2], p_ready, o_done;
  DecodeAgenda<kernels::DecodeAnyParams> agenda;
  alignas(16) float reference[kernels::kTensorDecodeMostRows];  ///< running maxima, log2
  alignas(16) float unit[kernels::kTensorDecodeMostRows];       ///< codes: of a product, in log2
  alignas(16) float factor[kernels::kTensorDecodeMostRows];     ///< of earlier results
  float sum[kernels::kTensorDecodeMostRows];
  float part[4][kernels::kTensorDecodeMostRows];  ///< of each warp
  std::uint32_t tensor_memory;
  bool is_last_part;

  __device__ void initialise(int stages, std::uint32_t producers) {
    for (int i = 0; i < stages; ++i) {
      ptx::mbarrier_init(ptx::shared_address(&full[i]), producers);
      ptx::mbarrier_init(ptx::shared_address(&empty[i]), 1);
    }
    ptx::mbarrier_init(ptx::shared_address(&q_ready), kernels::kTensorDecodeRowThreads);
    ptx::mbarrier_init(ptx::shared_address(&s_full[0]), 1);
    ptx::mbarrier_init(ptx::shared_address(&s_full[1]), 1);
    ptx::mbarrier_init(ptx::shared_address(&p_ready), kernels::kTensorDecodeRowThreads);
    ptx::mbarrier_init(ptx::shared_address(&o_done), 1);
  }
};
static_assert(sizeof(TensorDecodeState) <= kernels::kTensorDecodeStateBytes);

/// Byte `offset` of rows of `span` bytes, where a swizzle over 128 bytes or 64 puts it.
__device__ inline std::uint32_t swizzled_at(std::uint32_t offset, std::uint32_t span) {
  return offset ^ ((offset >> 7 & (span == 128 ? 7u : 3u)) << 4);
}

/// The whole of a kernel's types and places. Rows: of a tile at most.
template <bool IsCodes, int Rows>
struct TensorDecode {
  static constexpr bool kIsCodes = IsCodes;
  static constexpr int kRows = Rows, kChunks = Rows / 16;
  static constexpr int kParts = IsCodes ? kernels::kTensorDecodeCodeParts : 1;
  static constexpr int kColumns = kRows * kParts;  ///< of scores, and of 128 dimensions' results
  static constexpr int kResults = 2 * kColumns;    ///< behind two buffers of scores
  static constexpr int kUsed = 4 * kColumns;
  static constexpr int kAllocated = kUsed <= 64    ? 64
                                    : kUsed <= 128 ? 128
                                    : kUsed <= 256 ? 256
                                                   : 512;
  static_assert(kUsed <= 512);

  const kernels::TensorDecodeParams& params;
  const kernels::DecodeAnyParams& p = params.decode;
  TensorDecodeState& state;
  std::uint32_t ring, queries, weights;  ///< shared addresses
  std::uint32_t stages, columns;         ///< columns: the first one of Tensor Memory

  __device__ std::uint32_t dims() const { return static_cast<std::uint32_t>(params.width); }
  __device__ std::uint32_t row_bytes() const { return IsCodes ? dims() : 2 * dims(); }
  __device__ std::uint32_t span() const { return IsCodes && dims() < 128 ? dims() : 128; }
  __device__ std::uint32_t item_bytes() const { return kernels::kTensorDecodeKeys * row_bytes(); }
  __device__ std::uint32_t item(DeepPosition at) const { return ring + at.stage * item_bytes(); }
  __device__ arch::SmemSwizzle swizzle() const {
    return span() == 128 ? arch::SmemSwizzle::k128B : arch::SmemSwizzle::k64B;
  }
  __device__ std::uint32_t full(DeepPosition at) const {
    return ptx::shared_address(&state.full[at.stage]);
  }
  __device__ std::uint32_t empty(DeepPosition at) const {
    return ptx::shared_address(&state.empty[at.stage]);
  }
  __device__ void wait_empty(DeepPosition at) const {
    ptx::mbarrier_wait_parity(empty(at), at.parity ^ 1);
  }

  /// Of a segment: chunks of 16 rows of which some exist, and steps of 128 keys.
  __device__ int chunks(const DecodeSegment& segment) const {
    const std::int32_t rows = p.group * p.q_len - segment.m_tile * kRows;
    return kChunks == 1 ? 1 : (min(rows, kRows) + 15) / 16;
  }
  __device__ static std::int32_t steps(const DecodeSegment& segment) {
    constexpr std::int32_t kPieces = kernels::kTensorDecodeKeys / kernels::kDecodePieceKeys;
    return (max(segment.end - segment.begin, 0) + kPieces - 1) / kPieces;
  }
  __device__ static std::int32_t first_key(const DecodeSegment& segment, std::int32_t step) {
    return segment.begin * kernels::kDecodePieceKeys + step * kernels::kTensorDecodeKeys;
  }
};

}  // namespace tilewright::tile
