// What the roles of the linear layer for many bf16 tokens share: the rank of a CTA in its cluster,
// its part of k, and the offsets in shared memory.
#pragma once

#include "formats/packed_weight.h"
#include "kernels/linear/wide/parts.h"
#include "kernels/linear/wide/schedule.h"
#include "kernels/linear/wide/sm90_wide_bf16.h"
#include "ptx/address.h"
#include "ptx/cluster.h"
#include "tile/deep_position.h"

#include <cstdint>

namespace tilewright::tile {

using kernels::WeightFormat;

/// Steps of 64 that have a block scale in common.
inline constexpr int kWideBf16BlockSteps = kernels::kFp8BlockK / kernels::kWideBf16Step;

template <WeightFormat WeightsFormat, kernels::WordOrder Order, bool IsTall>
struct WideBf16Config {
  static constexpr WeightFormat kFormat = WeightsFormat;
  static constexpr kernels::WordOrder kOrder = Order;
  static constexpr int kRows = IsTall ? kernels::kWideBf16TallRows : kernels::kWideBf16Rows;
  static constexpr int kMaxTokens =
      IsTall ? kernels::kWideBf16TallMaxTokens : kernels::kWideBf16MaxTokens;
  static constexpr int kThreads =
      IsTall ? kernels::kWideBf16TallThreads : kernels::kWideBf16Threads;
  static constexpr int kConsumers = kThreads - 128;
  static constexpr int kProducerRegisters = IsTall ? 32 : 40;
  static constexpr int kConsumerRegisters = IsTall ? 112 : 232;
  static constexpr int kAccumulators = kMaxTokens / 2;
  static constexpr int kRowBricks = kRows / kernels::kBrickRows;
  static constexpr int kBrickBytes = kernels::brick_bytes(WeightsFormat);
  static constexpr int kWeightBytes = kRowBricks * kBrickBytes;  // of a stage
};

// Place of the CTA in its cluster.
struct WideCluster {
  std::int32_t row, rows;      // among those that share tokens
  std::int32_t split, splits;  // among those that share results

  __device__ explicit WideCluster(const kernels::WideBf16Params& params)
      : rows(params.cluster_rows), splits(params.splits) {
    const auto rank = static_cast<std::int32_t>(ptx::cluster_ctarank());
    row = rank % rows;
    split = rank / rows;
  }
  // A CTA without a cluster that does a part of k.
  __device__ WideCluster(std::int32_t of_split, std::int32_t of_splits)
      : row(0), rows(1), split(of_split), splits(of_splits) {}
  __device__ bool is_alone() const { return rows * splits == 1; }
  // The CTAs that share tokens.
  __device__ std::uint16_t mask() const {
    return static_cast<std::uint16_t>(((1 << rows) - 1) << (split * rows));
  }
};

// Shared memory, and the stages of the ring.
template <class C>
struct WideBf16Memory {
  std::uint32_t x, weights, staging, full, empty;
  WideDeal* deal;
  std::int32_t* table;
  std::uint32_t x_bytes, stages;

  __device__ WideBf16Memory(std::uint8_t* dynamic, const kernels::WideBf16Params& params) {
    x_bytes = static_cast<std::uint32_t>(params.tile_tokens * kernels::kWideBf16Step * 2);
    stages = static_cast<std::uint32_t>(params.stages);
    x = ptx::shared_address(dynamic);
    weights = x + stages * x_bytes;
    staging = weights + stages * C::kWeightBytes;
    full = staging + C::kRows / 64 * kernels::kWideStagingBytes;
    empty = full + kernels::WideBf16Layout::kMaxStages * 8;
    using Layout = kernels::WideBf16Layout;
    static_assert(sizeof(WideDeal) <= Layout::kDealBytes);
    std::uint8_t* const behind = dynamic + (full - x) + Layout::kBarrierBytes;
    deal = reinterpret_cast<WideDeal*>(behind);
    table = reinterpret_cast<std::int32_t*>(behind + Layout::kDealBytes);
  }
};

// Steps of k that a CTA does of a piece: all, or its share if its cluster splits k.
struct WideSteps {
  std::int32_t begin, end;

  __device__ WideSteps(const WidePiece& piece, const WideCluster& cluster) {
    const std::int32_t all = piece.end - piece.begin;
    begin = piece.begin + cluster.split * all / cluster.splits;
    end = piece.begin + (cluster.split + 1) * all / cluster.splits;
  }
};

}  // namespace tilewright::tile
