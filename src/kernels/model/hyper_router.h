// The router's product in hyper_connect: a CTA's columns of all experts.
#pragma once

#include "formats/packed_weight.h"
#include "kernels/model/hyper_rank_sum.h"
#include "ptx/address.h"
#include "ptx/async_store.h"
#include "ptx/bulk_copy.h"
#include "ptx/bulk_prefetch.h"
#include "ptx/cluster.h"
#include "ptx/load_store.h"
#include "ptx/mbarrier.h"
#include "ptx/mma_sync.h"

#include <cstdint>

namespace tilewright::kernels::hyper {

inline constexpr int kRouterSlots =
    (kHyperRouterBricks + kHyperConnectCtas - 1) / kHyperConnectCtas;  // bricks a CTA adds up

// Blackwell's weights are not packed: no router comes there.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
inline constexpr bool kHasRouter = false;
#else
inline constexpr bool kHasRouter = true;
#endif

// Sums of parts of a row, of every CTA.
using LogitsOfCtas = float[kHyperConnectCtas][kRouterSlots][kBrickRows][kHyperConnectTokens];

// Blocks of K, each of all bricks of rows. The first of them come to shared memory where fn was,
// the others are read where they are; all are in L2 by then.
class RouterPart {
 public:
  // A lane's words of a brick.
  struct Granules {
    uint4 of[4];
  };

  // `room`: where fn is, of `room_bytes`; `out`: rows of a CTA's columns.
  __device__ RouterPart(const HyperRouter& router, const Columns& columns, const void* room,
                        std::uint16_t* out, LogitsOfCtas& logits)
      : router_(router),
        room_(ptx::shared_address(room)),
        logits_(&logits),
        out_(out),
        stride_(columns.stride),
        blocks_(columns.stride / kBrickK),
        copied_(min(blocks_, static_cast<int>(hyper_connect_fn_bytes(columns.stride)) /
                                 (max(router.bricks, 1) * kBytesOfBrick))),
        weights_(router.weights +
                 std::int64_t{columns.first} / kBrickK * router.bricks * kBytesOfBrick) {}

  __device__ bool is_there() const { return kHasRouter && router_.weights != nullptr; }
  // One warp each.
  __device__ void prefetch(int lane) const {
    const int bytes = blocks_ * router_.bricks * kBytesOfBrick / 32;
    ptx::cp_async_bulk_prefetch_L2_global(weights_ + std::int64_t{lane} * bytes,
                                          static_cast<std::uint32_t>(bytes));
  }
  // Once nobody reads fn any more.
  __device__ void copy(std::uint32_t barrier, int lane) const {
    const int bytes = copied_ * router_.bricks * kBytesOfBrick;
    if (lane == 0) ptx::mbarrier_arrive_expect_tx(barrier, static_cast<std::uint32_t>(bytes));
    __syncwarp();
    const int part = bytes / 32;
    if (part > 0)
      ptx::cp_async_bulk_shared_global(room_ + static_cast<std::uint32_t>(lane * part),
                                       weights_ + std::int64_t{lane} * part,
                                       static_cast<std::uint32_t>(part), barrier);
  }

  // Bytes of the bricks that this CTA adds up, from all CTAs.
  __device__ std::uint32_t bytes_to_come(int cta) const {
    const int bricks = (router_.bricks - cta + kHyperConnectCtas - 1) / kHyperConnectCtas;
    return static_cast<std::uint32_t>(max(bricks, 0)) * (sizeof(LogitsOfCtas) / kRouterSlots);
  }

  // What it multiplies: columns of a token, as they are stored.
  __device__ std::uint16_t* out(int token) const { return out_ + token * stride_; }

  // The first block of the first brick of a warp that is not copied: asked for long before it is
  // multiplied.
  __device__ Granules ahead(int warp, int lane) const {
    return copied_ < blocks_ ? load(copied_, warp, lane) : Granules{};
  }

  // Sums over the columns of this CTA, each brick's to the CTA that adds them up.
  __device__ void multiply(int tokens, int cta, int warp, int lane, Granules direct,
                           std::uint32_t has_weights, std::uint32_t has_logits) const {
    ptx::mbarrier_wait_parity(has_weights, 0);
#pragma unroll 1
    for (int brick = warp; brick < router_.bricks; brick += kHyperConnectColumnWarps) {
      Granules next = {};
      if (copied_ < blocks_ && brick + kHyperConnectColumnWarps < router_.bricks)
        next = load(copied_, brick + kHyperConnectColumnWarps, lane);
      float sum[2][4] = {};
#pragma unroll 1
      for (int block = 0; block < copied_; ++block)
        add(sum, load_copied(block, brick, lane), tokens, block, lane);
      if (copied_ < blocks_) add(sum, direct, tokens, copied_, lane);
#pragma unroll 1
      for (int block = copied_ + 1; block < blocks_; ++block)
        add(sum, load(block, brick, lane), tokens, block, lane);
      push(sum, brick, cta, lane, has_logits);
      direct = next;
    }
  }

  // All parts are there.
  __device__ void store(int tokens, int cta) const {
    const int i = static_cast<int>(threadIdx.x), token = i % kHyperConnectTokens,
              row = i / kHyperConnectTokens % kBrickRows,
              slot = i / (kHyperConnectTokens * kBrickRows);
    const int brick = slot * kHyperConnectCtas + cta;
    if (token >= tokens || slot >= kRouterSlots || brick >= router_.bricks) return;
    float sum = 0;
#pragma unroll
    for (int c = 0; c < kHyperConnectCtas; ++c) sum += (*logits_)[c][slot][row][token];
    router_.logits[token * router_.logits_stride + brick * kBrickRows + row] = sum * router_.alpha;
  }

 private:
  static constexpr int kBytesOfBrick = brick_bytes(WeightFormat::kBf16);

  static __device__ int granule(int q, int lane) {
    return q * kGranules + granule_position(lane / 4, lane % 4);
  }
  __device__ Granules load(int block, int brick, int lane) const {
    const auto* const from = reinterpret_cast<const uint4*>(
        weights_ + (std::int64_t{block} * router_.bricks + brick) * kBytesOfBrick);
    return {{from[granule(0, lane)], from[granule(1, lane)], from[granule(2, lane)],
             from[granule(3, lane)]}};
  }
  __device__ Granules load_copied(int block, int brick, int lane) const {
    const std::uint32_t from =
        room_ + static_cast<std::uint32_t>((block * router_.bricks + brick) * kBytesOfBrick);
    const auto at = [&](int q) {
      return ptx::ld_shared_v4_u32(from + static_cast<std::uint32_t>(granule(q, lane)) * 16);
    };
    return {{at(0), at(1), at(2), at(3)}};
  }

  // Two sums, so that products do not all wait for each other.
  __device__ void add(float (&sum)[2][4], const Granules& pairs, int tokens, int block,
                      int lane) const {
    std::uint32_t b[4][2] = {};
    if (const int token = lane / 4; token < tokens)
      read_tokens(b, ptx::shared_address(out(token)) +
                         static_cast<std::uint32_t>(block * 128 + lane % 4 * 32));
    std::uint32_t a[4][4];  // group, register
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const std::uint32_t words[4] = {pairs.of[q].x, pairs.of[q].y, pairs.of[q].z, pairs.of[q].w};
#pragma unroll
      for (int j = 0; j < 4; ++j) a[j][q / 2 + q % 2 * 2] = words[j];
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
      ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(sum[j % 2], a[j], b[j], sum[j % 2]);
  }

  __device__ void push(const float (&sum)[2][4], int brick, int cta, int lane,
                       std::uint32_t has_logits) const {
    if (lane % 4 == 0) {
      const auto to = static_cast<std::uint32_t>(brick % kHyperConnectCtas);
      const std::uint32_t barrier = ptx::mapa_shared_cluster(has_logits, to);
      auto& rows = (*logits_)[cta][brick / kHyperConnectCtas];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        ptx::st_async_shared_cluster_v2_f32(
            ptx::mapa_shared_cluster(ptx::shared_address(rows[lane / 4 + half * 8]), to),
            {sum[0][2 * half] + sum[1][2 * half], sum[0][2 * half + 1] + sum[1][2 * half + 1]},
            barrier);
    }
    __syncwarp();
  }

  static __device__ void read_tokens(std::uint32_t (&b)[4][2], std::uint32_t from) {
    const uint4 first = ptx::ld_shared_v4_u32(from), second = ptx::ld_shared_v4_u32(from + 16);
    b[0][0] = first.x, b[1][0] = first.y, b[2][0] = first.z, b[3][0] = first.w;
    b[0][1] = second.x, b[1][1] = second.y, b[2][1] = second.z, b[3][1] = second.w;
  }

  const HyperRouter& router_;
  std::uint32_t room_;
  LogitsOfCtas* logits_;
  std::uint16_t* out_;
  int stride_, blocks_, copied_;
  const std::uint8_t* weights_;
};

}  // namespace tilewright::kernels::hyper
