// The logits of the lightning indexer on Blackwell: 128 keys are the rows of a product, the heads
// of up to four tokens (256 columns) its columns, accumulated in Tensor Memory.
//
//   warps 9, 10   every other tile of keys: pages | place free? | tensor copies, scales | three
//                 tiles later: scales there, fence, handed over
//   warp 11       queries of the next part: tensor copies of codes, weights, scales, lengths
//   warp 8        one thread: [MXFP4: scales to Tensor Memory] products of a tile | commits
//   warps 0-7     weights to registers, once a part | key there? accumulator there? Tensor Memory
//                 -> registers | free | relu, weights, sums over heads in the thread, two numbers
//                 an instruction | [e4m3: x key scale] store
//
//   Tensor Memory   e4m3: four accumulators of 128 columns; a product has one or two
//                   MXFP4: three of 128 | scales of two parts' queries | of each stage of keys
//
// Accumulators are the two warpgroups' in turn: a tile of one or two tokens of 64 heads is summed
// by four warps, which pay once for waits, scale and addresses, and the next by the other four.
//
// A thread has all heads of its key: sums need no other thread, and logits of 32 keys are 128
// bytes. Units of more tokens are done in parts of four (of 64 heads), since 128 weights are what
// the registers hold; from shared memory they would cost more than the products.
//
// Floors and counts per 128 keys x 128 columns: docs/notes/2026-11-24-blackwell-gemm.md.
// Sources: PTX ISA, tcgen05; keys as M is DeepGEMM's choice.
#pragma once

#include "kernels/sparse_attention/indexer/sm100/loaders.h"
#include "kernels/sparse_attention/indexer/sm100/multiplier.h"
#include "kernels/sparse_attention/indexer/sm100/sums.h"
#include "ptx/grid_dependency.h"
#include "ptx/warp_roles.h"

#include <cstdint>

namespace tilewright::tile {

template <IndexFormat Format, int Heads, class Params>
__device__ void sum_parts(const Params& params, const TensorIndexerRings<Format>& rings,
                          std::uint32_t tmem) {
  TensorIndexerSums<Format, Heads, Params> sums(params, rings, tmem);
  for_each_part(params, [&](const TensorIndexerPart& part, std::int32_t begin, std::int32_t end) {
    sums.run(part, begin, end);
  });
}

/// Warps 8 to 11.
template <IndexFormat Format, class Params>
__device__ void serve(const Params& params, const TensorIndexerRings<Format>& rings,
                      std::uint32_t tmem, std::uint32_t warp) {
  if (warp == kTensorMultiplyingWarp) {
    if (ptx::elect_sync()) {
      TensorIndexerMultiplier<Format, Params> multiplier = {params, rings, tmem};
      for_each_part(params, [&](const TensorIndexerPart& part, std::int32_t begin,
                                std::int32_t end) { multiplier.run(part, begin, end); });
      multiplier.finish();
    }
    __syncwarp();
  } else if (warp == kTensorQueryWarp) {
    TensorQueryLoader<Format, Params> loader = {params, rings};
    for_each_part(params, [&](const TensorIndexerPart& part, std::int32_t, std::int32_t) {
      loader.run(part);
    });
  } else {
    TensorKeyLoader<Format, decltype(params.logits)> loader(
        params.logits, rings, static_cast<std::int32_t>(warp - kTensorKeyWarp));
    for_each_part(params, [&](const TensorIndexerPart& part, std::int32_t begin, std::int32_t end) {
      loader.run(part, begin, end);
    });
    loader.finish();
  }
}

template <IndexFormat Format, class Params>
__device__ void tensor_indexer_logits(const Params& params) {
  extern __shared__ __align__(1024) unsigned char tensor_indexer_shared[];
  using Traits = TensorIndexerTraits<Format>;
  // What is small comes first, so that its addresses are constants.
  auto& shared = *reinterpret_cast<TensorIndexerShared*>(tensor_indexer_shared);
  const std::uint32_t tiles =
      ptx::shared_address(tensor_indexer_shared) + kernels::TensorIndexerMemory::kSmallBytes;
  const std::uint32_t tmem = open_tensor_memory<512>(shared.tmem, [&] { shared.initialise(); });
  const auto stages = ptx::uniform(static_cast<std::uint32_t>(params.stages));
  const TensorIndexerRings<Format> rings = {
      tiles, ptx::uniform(tiles + stages * Traits::kTileBytes), shared, stages};
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  const bool fetches_keys = warp >= kTensorKeyWarp && warp < kTensorKeyWarp + kTensorKeyWarps;
  // Only queries come from the preceding launch, if the caller says so.
  if (!fetches_keys || params.logits.is_behind_queries == 0) ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  if (warp >= kTensorSummingWarps) {
    ptx::setmaxnreg_dec_sync_aligned<kTensorServingRegisters>();
    serve<Format>(params, rings, tmem, warp);
  } else {
    ptx::setmaxnreg_inc_sync_aligned<kTensorSummingRegisters>();
    if (params.head_slots == 64) {
      sum_parts<Format, 64>(params, rings, tmem);
    } else if (params.head_slots == 32) {
      sum_parts<Format, 32>(params, rings, tmem);
    } else if (params.head_slots == 16) {
      sum_parts<Format, 16>(params, rings, tmem);
    } else {
      sum_parts<Format, 8>(params, rings, tmem);
    }
  }
  if constexpr (kernels::kHasRanges<decltype(params.logits)>) {
    if (params.logits.is_filled != 0)
      fill_outside(params.logits, kernels::kTensorIndexerThreads / 32);
  } else {
    if (params.logits.is_filled != 0) fill_behind(params.logits);
  }
  close_tensor_memory<512>(tmem);
}

}  // namespace tilewright::tile

/// Entry sm100_NAME, for TensorIndexerParams or TensorIndexerRangeParams.
#define TILEWRIGHT_TENSOR_INDEXER_LOGITS(NAME, PARAMS, FORMAT)                                \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::kTensorIndexerThreads, 1) \
      sm100_##NAME(const __grid_constant__ tilewright::kernels::PARAMS params) {              \
    tilewright::tile::tensor_indexer_logits<tilewright::IndexFormat::FORMAT>(params);         \
  }
