// The warp that multiplies block-scaled operands.
#pragma once

#include "arch/smem_descriptor.h"
#include "arch/tcgen05_descriptors.h"
#include "kernels/linear/block_scaled/stages.h"
#include "ptx/fence.h"
#include "ptx/tcgen05_block_scale.h"
#include "ptx/tcgen05_mma.h"
#include "ptx/tcgen05_sync.h"

#include <cstdint>

namespace tilewright::tile {

/// One warp of the leader: copies scales to Tensor Memory and multiplies. One lane issues; all stay
/// together for the last step, where scales have to be mended.
template <BlockScaledConfig C>
struct BlockScaledMultiplier {
  static constexpr int kCtas = C.tile.ctas;
  using Columns = BlockScaledColumns<C>;
  using Stage = BlockScaledStage<C>;

  const BlockScaledGemmParams& params;
  BlockScaledShared<C>& shared;
  bool is_issuing;
  std::uint32_t tmem, rank;
  RingPosition<C.stages()> at;
  RingPosition<2> accumulator;
  RingPosition<2> read;  // the tile before, if accumulators share columns
  bool is_first_tile = true;
  RingPosition<Columns::kPlaces> place;
  RingPosition<C.stages()> reusing;  // the step whose place is taken again
  std::int32_t places_taken = 0;
  std::uint32_t columns = C.tile.n;  // of a tile that may have fewer, if operands are swapped

  /// Matrix descriptors of what lies at an address: 128-byte rows in 8-row groups, swizzled; and an
  /// atom of scales, 32 rows of 16 bytes.
  static __device__ std::uint64_t describe_operand(std::uint32_t address) {
    constexpr arch::SmemBox kRows = {128, kernels::kBlockScaledStepBytes, arch::SmemSwizzle::k128B};
    return arch::tcgen05_descriptor<kRows>(address);
  }
  static __device__ std::uint64_t describe_scales(std::uint32_t address) {
    return arch::tcgen05_descriptor<arch::SmemBox{32, 16, arch::SmemSwizzle::kNone}>(address);
  }
  static constexpr std::uint32_t describe_instruction(std::uint32_t scale_id) {
    arch::BlockScaledMmaInstruction i = {.m = static_cast<std::uint32_t>(C.instruction_m()),
                                         .n = C.is_swapped ? 0u : C.tile.n,
                                         .a_scale_id = scale_id,
                                         .b_scale_id = scale_id};
    if (C.is_nvfp4()) {
      i.a_type = i.b_type = arch::kMmaF4TypeE2m1;
      i.scale_type = arch::MmaScaleType::kUe4m3;
    } else {
      i.a_type = i.b_type = static_cast<std::uint32_t>(arch::MmaF8Type::kE4m3);
      if (C.unpacks_weight())
        (C.is_swapped ? i.a_type : i.b_type) = static_cast<std::uint32_t>(arch::MmaF8Type::kE2m1);
      i.scale_type = arch::MmaScaleType::kUe8m0;
    }
    return encode_mma_instruction(i);
  }
  /// N of a descriptor that was made without.
  static __device__ std::uint32_t describe_columns(std::uint32_t columns) {
    return columns >> 3 << 17;
  }
  /// Of operands without scales: bf16, or e4m3.
  __device__ std::uint32_t describe_plain_instruction() const {
    constexpr auto kType = C.is_e4m3() ? static_cast<std::uint32_t>(arch::MmaF8Type::kE4m3)
                                       : static_cast<std::uint32_t>(arch::MmaF16Type::kBf16);
    constexpr arch::MmaInstruction kOneColumn = {.a_type = kType,
                                                 .b_type = kType,
                                                 .m = static_cast<std::uint32_t>(C.instruction_m()),
                                                 .n = 0};
    constexpr std::uint32_t kWithoutColumns = encode_mma_instruction(kOneColumn);
    return kWithoutColumns | describe_columns(C.is_split ? params.tile_columns : C.tile.n);
  }

  __device__ std::uint32_t a_scale_column(int atom) const {
    return tmem + Columns::kScaleBase + place.stage * Columns::kPerStep +
           atom * Columns::kAScaleColumns;
  }
  __device__ std::uint32_t b_scale_column(int atom) const {
    return a_scale_column(Stage::kAtomsK) + atom * Columns::kBScaleColumns;
  }

  /// With fewer places than stages: the products that read this place's scales must be over.
  __device__ void wait_for_place() {
    if constexpr (Columns::kPlaces < C.stages()) {
      if (places_taken < Columns::kPlaces) {
        ++places_taken;
        return;
      }
      wait_pair<C>(ptx::shared_address(shared.ring.empty) + reusing.stage * 8, reusing.parity);
      reusing.advance();
    }
  }

  /// All scales of a step, in the order in which the products want them.
  __device__ void copy_scales(const Stage& stage) const {
#pragma unroll
    for (int k = 0; k < Stage::kAtomsK; ++k) {
      ptx::tcgen05_cp_32x128b_warpx4<kCtas>(
          a_scale_column(k), describe_scales(stage.a_scales() + k * Stage::kAtomBytes));
#pragma unroll
      for (int n = 0; n < Stage::kAtomsN; ++n) {
        ptx::tcgen05_cp_32x128b_warpx4<kCtas>(
            b_scale_column(k) + 4 * n,
            describe_scales(stage.b_scales() + (n * Stage::kAtomsK + k) * Stage::kAtomBytes));
      }
    }
  }

  /// Instruction number `i` of a step. A tile may begin inside of an atom of scales: its columns'
  /// scales then begin at a later column of Tensor Memory.
  __device__ void multiply(const Stage& stage, int i, std::uint32_t first_scale_column,
                           bool accumulate) const {
    const std::uint32_t d = tmem + Columns::accumulator(accumulator.stage);
    const std::uint64_t a = describe_operand(stage.a + i * 32);
    const std::uint64_t b = describe_operand(stage.b() + i * 32);
    if constexpr (C.is_e4m3()) {
      return ptx::tcgen05_mma_f8f6f4<kCtas>(d, a, b, describe_plain_instruction(), accumulate);
    } else if constexpr (!C.has_scales()) {
      return ptx::tcgen05_mma_f16<kCtas>(d, a, b, describe_plain_instruction(), accumulate);
    }
    const std::uint32_t n = C.is_swapped ? describe_columns(columns) : 0;
    if constexpr (C.is_nvfp4()) {
      ptx::tcgen05_mma_mxf4nvf4_4x<kCtas>(d, a, b, describe_instruction(0) | n, a_scale_column(i),
                                          b_scale_column(i) + first_scale_column, accumulate);
    } else if constexpr (C.has_scales()) {
      ptx::tcgen05_mma_mxf8f6f4_1x<kCtas>(d, a, b, describe_instruction(i) | n, a_scale_column(0),
                                          b_scale_column(0) + first_scale_column, accumulate);
    }
  }

  /// NVFP4, k not a multiple of 64: an instruction's last two scales lie behind the end of K. The
  /// elements there are zeros, but what the caller left in the scales' padding may be NaN. Zeroes
  /// them in all CTAs of the pair, 16 bytes (four rows) a lane.
  __device__ void clear_padding(const Stage& stage, int i) const {
    for (std::uint32_t cta = rank; cta < rank + kCtas; ++cta) {
      for (int row = 0; row < 1 + Stage::kAtomsN; ++row) {
        const std::uint32_t atom =
            stage.a_scales() + (row * Stage::kAtomsK + i) * Stage::kAtomBytes;
        auto* local = static_cast<uint4*>(__cvta_shared_to_generic(atom)) + threadIdx.x % 32;
        uint4* line = kCtas == 2 ? ptx::mapa(local, cta) : local;
        const uint4 scales = *line;
        constexpr std::uint32_t kFirstTwo = 0xffff;
        *line = make_uint4(scales.x & kFirstTwo, scales.y & kFirstTwo, scales.z & kFirstTwo,
                           scales.w & kFirstTwo);
      }
    }
    if constexpr (kCtas == 2) {
      ptx::fence_proxy_async_shared_cluster();
    } else {
      ptx::fence_proxy_async_shared_cta();
    }
    __syncwarp();
  }

  __device__ void commit(std::uint32_t barrier, std::uint32_t cta_mask) const {
    if constexpr (kCtas == 2) {
      ptx::tcgen05_commit_multicast<2>(barrier, static_cast<std::uint16_t>(cta_mask));
    } else {
      ptx::tcgen05_commit(barrier);
    }
  }

  __device__ void multiply_step(std::int32_t step, std::int32_t first_step,
                                std::uint32_t first_scale_column) {
    const Ring<C.stages()> ring(shared.ring);
    const Stage stage = {ptx::shared_address(shared.stages[at.stage])};
    const std::int32_t left = params.k - step * C.step_k();
    const std::int32_t instructions =
        (min(left, C.step_k()) + C.instruction_k() - 1) / C.instruction_k();
    wait_pair<C>(ring.full(at), at.parity);
    wait_for_place();
    if (C.is_nvfp4() && left < C.step_k() && left % C.instruction_k() != 0)
      clear_padding(stage, instructions - 1);
    ptx::tcgen05_fence_after_thread_sync();
    if (is_issuing) {
      if constexpr (C.has_scales()) copy_scales(stage);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i < instructions) multiply(stage, i, first_scale_column, step > first_step || i > 0);
      }
      commit(ring.empty_barriers + at.stage * 8, (1u << C.tile.cluster()) - 1);
    }
    __syncwarp();
    at.advance();
    place.advance();
  }

  /// Until the accumulator may be written: the last tile in it has been read, or what it shares
  /// with the other one, whose tile came later.
  __device__ void wait_for_accumulator() {
    const std::uint32_t empty = ptx::shared_address(shared.accumulators.empty);
    if constexpr (Columns::kShared == 0) {
      wait_pair<C>(empty + accumulator.stage * 8, accumulator.parity ^ 1);
    } else if (is_first_tile) {
      is_first_tile = false;
    } else {
      wait_pair<C>(empty + read.stage * 8, read.parity);
      read.advance();
    }
  }

  __device__ void run() {
    const auto [begin, end] = steps_of<C>(params);
    const Ring<2> accumulators(shared.accumulators);
    if (end == 0) return;
    for_each_tile<C>(params, [&, begin = begin, end = end](const BlockScaledTileAt& tile) {
      wait_for_accumulator();
      const auto first_scale_column = static_cast<std::uint32_t>(tile.n * C.tile.n % 128 / 32);
      for (std::int32_t step = begin; step < end; ++step)
        multiply_step(step, begin, first_scale_column);
      if (is_issuing) commit(accumulators.full(accumulator), 0b11u << rank);
      __syncwarp();
      accumulator.advance();
    });
  }
};

}  // namespace tilewright::tile
