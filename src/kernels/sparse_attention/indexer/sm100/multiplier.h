// The thread that multiplies tiles of keys with the queries of a part.
#pragma once

#include "arch/tcgen05_descriptors.h"
#include "kernels/sparse_attention/indexer/sm100/shared.h"
#include "ptx/tcgen05_block_scale.h"
#include "ptx/tcgen05_mma.h"
#include "ptx/tcgen05_sync.h"
#include "tile/tensor_memory.h"

#include <cstdint>

namespace tilewright::tile {

template <IndexFormat Format, class Params>
struct TensorIndexerMultiplier {
  using Traits = TensorIndexerTraits<Format>;
  using Operand = typename Traits::Operand;

  const Params& params;
  const TensorIndexerRings<Format>& rings;
  std::uint32_t tmem;
  DeepPosition key;
  RingPosition<2> query;
  RingPosition<Traits::kAccumulators> accumulator;
  RingPosition<Traits::kFullBarriers> full;

  /// 128 keys by `columns` queries; the scales of instruction i of MXFP4 are bytes 2 i and 2 i + 1.
  static __device__ std::uint32_t instruction(std::uint32_t columns, std::uint32_t i) {
    if constexpr (Traits::kIsFp8) {
      constexpr auto kType = static_cast<std::uint32_t>(arch::MmaF8Type::kE4m3);
      return encode_mma_instruction(
          arch::MmaInstruction{.a_type = kType, .b_type = kType, .m = 128, .n = columns});
    } else {
      return encode_mma_instruction(arch::BlockScaledMmaInstruction{.a_type = arch::kMmaF4TypeE2m1,
                                                                    .b_type = arch::kMmaF4TypeE2m1,
                                                                    .m = 128,
                                                                    .n = columns,
                                                                    .a_scale_id = 2 * i,
                                                                    .b_scale_id = 2 * i});
    }
  }
  /// An atom of scales: 32 rows of 16 bytes.
  static __device__ void copy_scales(std::uint32_t column, const std::uint32_t* atom) {
    constexpr arch::SmemBox kAtom = {32, 16, arch::SmemSwizzle::kNone};
    ptx::tcgen05_cp_32x128b_warpx4(column,
                                   arch::tcgen05_descriptor<kAtom>(ptx::shared_address(atom)));
  }
  __device__ std::uint32_t query_scales() const {
    return tmem + Traits::kQueryScales + query.stage * 2 * Traits::kScaleColumns;
  }
  __device__ std::uint32_t key_scales() const {
    return tmem + Traits::kKeyScales + key.stage * Traits::kScaleColumns;
  }

  /// What products by the columns from `first` on need, as many as a product has.
  struct Block {
    std::uint64_t b;
    std::uint32_t scales, instructions[Traits::kProducts];
    int accumulators;

    __device__ Block(const TensorIndexerMultiplier& m, const TensorIndexerPart& part, int first)
        : b(arch::tcgen05_descriptor<Operand::kBox>(
              m.rings.queries(m.query.stage, m.params.columns) +
              static_cast<std::uint32_t>(first * Traits::kRowBytes))),
          scales(m.query_scales() +
                 static_cast<std::uint32_t>(first / Traits::kColumns) * Traits::kScaleColumns) {
      const int columns = min(part.columns - first, Traits::kProductColumns);
      accumulators = columns > Traits::kColumns ? 2 : 1;
#pragma unroll
      for (std::uint32_t i = 0; i < Traits::kProducts; ++i)
        instructions[i] = instruction(static_cast<std::uint32_t>(columns), i);
    }
  };

  /// Calls work() for the accumulators of a block.
  template <class Work>
  __device__ void for_each_accumulator(const Block& block, Work&& work) {
    work();
    if (Traits::kProductColumns > Traits::kColumns && block.accumulators == 2) work();
  }

  /// A tile by a block of columns.
  __device__ void multiply(const Block& block, std::uint64_t a, std::uint32_t a_scales) {
    const Ring<6> ring(rings.shared.accumulators);
    const std::uint32_t d = tmem + accumulator.stage * Traits::kColumns;
    for_each_accumulator(block, [&] {
      wait_for_tensor_memory(ring.empty_barriers + accumulator.stage * 8, accumulator.parity ^ 1);
      accumulator.advance();
    });
#pragma unroll
    for (std::uint32_t i = 0; i < Traits::kProducts; ++i) {
      const std::uint64_t a_i = advance_descriptor(a, 2 * i),
                          b_i = advance_descriptor(block.b, 2 * i);
      if constexpr (Traits::kIsFp8) {
        ptx::tcgen05_mma_f8f6f4(d, a_i, b_i, block.instructions[i], i > 0);
      } else {
        ptx::tcgen05_mma_mxf4_2x(d, a_i, b_i, block.instructions[i], a_scales, block.scales, i > 0);
      }
    }
    for_each_accumulator(block, [&] {
      ptx::tcgen05_commit(ring.full_barriers + full.stage * 8);
      full.advance();
    });
  }

  __device__ void run(const TensorIndexerPart& part, std::int32_t begin, std::int32_t end) {
    const Ring<2> queries(rings.shared.queries);
    wait_for_tensor_memory(queries.full(query), query.parity);
    if constexpr (!Traits::kIsFp8) {
      for (std::int32_t i = 0; i < part.columns; i += 128)
        copy_scales(query_scales() + static_cast<std::uint32_t>(i) / 128 * Traits::kScaleColumns,
                    &rings.shared.query_scales[query.stage][i]);
    }
    const Block block(*this, part, 0), second(*this, part, Traits::kProductColumns);
    const bool has_second = part.columns > Traits::kProductColumns;
    const std::int32_t tiles =
        (end - begin) * (kernels::kIndexerChunk / kernels::kTensorIndexerKeys);
    for (std::int32_t tile = 0; tile < tiles; ++tile) {
      wait_for_tensor_memory(rings.full(key.stage), key.parity);
      if constexpr (!Traits::kIsFp8) copy_scales(key_scales(), rings.shared.key_scales[key.stage]);
      const std::uint64_t a = arch::tcgen05_descriptor<Operand::kBox>(rings.tile(key.stage));
      multiply(block, a, key_scales());
      if (!Traits::kIsFp8 && has_second) multiply(second, a, key_scales());
      ptx::tcgen05_commit(rings.empty(key.stage));
      key.advance(rings.stages);
    }
    ptx::tcgen05_commit(queries.empty(query));
    query.advance();
  }
  /// All of it is done, arrivals included.
  __device__ void finish() const {
    const std::uint32_t done = ptx::shared_address(&rings.shared.done);
    ptx::tcgen05_commit(done);
    ptx::mbarrier_wait_parity(done, 0);
  }
};

}  // namespace tilewright::tile
