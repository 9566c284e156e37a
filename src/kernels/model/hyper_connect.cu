// targets: sm_90a sm_100f
//
// Hyper-connections of one or two tokens in one launch: what hyper_connection.cu does in two, and
// the sum over ranks before it. A cluster of 16 CTAs has the tokens, and a CTA a sixteenth of the
// columns, so that sums over all columns go through shared memory of the cluster.
//
//   8 warps | wait for f, f of ranks | x' to shared memory | 3 rows of fn each | sums -> CTAs |
//           | gates | y^2 | sums -> CTAs | y, out | (router: its columns of all experts |
//           | sums -> CTAs | logits)
//   1 warp  | fn | ............................ squares of x' .............. Sinkhorn of a token |
//
// fn does not come from the kernel before: its copy to shared memory, 96 KB a CTA for 4096 columns,
// is under way when that kernel ends. Products are those of fp32 units: a row of fn is 4 bytes and
// 2 flops a number, and splitting it for tensor cores takes more instructions than two tokens do.
//
// Limit: latency. Bytes of one token of 4096: 1.6 MB of fn, which are there, 64 KB of streams and
// 16 KB of f. Trips: mix and streams, shared memory of the CTA three times, of the cluster twice.
#include "formats/packed_weight.h"
#include "kernels/model/column4.h"
#include "kernels/model/hyper_mix.h"
#include "kernels/model/hyper_rank_sum.h"
#include "ptx/address.h"
#include "ptx/bulk_copy.h"
#include "ptx/bulk_prefetch.h"
#include "ptx/cluster.h"
#include "ptx/fence.h"
#include "ptx/grid_dependency.h"
#include "ptx/load_store.h"
#include "ptx/mbarrier.h"
#include "ptx/mma_sync.h"
#include "ptx/prefetch.h"
#include "ptx/warp_roles.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

using namespace hyper;

constexpr int kCtas = kHyperConnectCtas, kTokens = kHyperConnectTokens;
constexpr int kWarps = kHyperConnectColumnWarps;
constexpr int kRowsOfWarp = kHyperMixRows / kWarps;
constexpr int kSums = kHyperMixRows + 1;  // dot products, sum of squares
constexpr int kLaneColumns = 4, kWarpColumns = 32 * kLaneColumns;
static_assert(kRowsOfWarp * kWarps == kHyperMixRows && kSums - 1 == kHyperSquares);
static_assert(kTokens == 2 && kTokens <= kCtas, "a CTA for Sinkhorn of each token");

// A CTA of a projection, with 80 registers for each of 512 threads, fits beside one of these.
constexpr int kHyperConnectRegisters = 80;
constexpr int kRouterSlots = (kHyperRouterBricks + kCtas - 1) / kCtas;  // bricks that a CTA adds up

struct Shared {
  float sums[kTokens][kSums];  // of this CTA
  float sums_of_ctas[kCtas][kTokens][kSums];
  float gates[kTokens][kHyperStreams];
  float squares[kWarps];  // of y
  float squares_of_ctas[kCtas][kTokens];
  std::uint64_t has_fn;
};

// The warps that have a token, and this warp's place among them: all or half.
struct TokenWarps {
  int token, place, count;

  __device__ TokenWarps(int tokens, int warp) {
    count = tokens == 1 ? kWarps : kWarps / kTokens;
    token = warp / count;
    place = warp % count;
  }
  // Of four neighbours that begin at `column` of the CTA.
  template <class Action>
  __device__ void each(const Columns& columns, int lane, const Action& action) const {
    for (int c = place * kWarpColumns + lane * kLaneColumns; c < columns.count;
         c += count * kWarpColumns)
      action(c);
  }
};

// To the same place in the shared memory of CTA `rank` of the cluster.
__device__ void push(const float* to, float x, int rank) {
  ptx::st_shared_cluster_f32(
      ptx::mapa_shared_cluster(ptx::shared_address(to), static_cast<std::uint32_t>(rank)), x);
}

// Asks for this CTA's columns of all rows of fn. One warp.
__device__ void load_fn(const HyperMergeParams& p, const Columns& columns, float* fn,
                        std::uint32_t barrier, int lane) {
  const int rows = p.rows * kHyperStreams;
  const auto bytes = static_cast<std::uint32_t>(columns.count * 4);
  if (lane == 0) {
    ptx::mbarrier_init(barrier, 1);
    ptx::fence_mbarrier_init_release_cluster();
    ptx::mbarrier_arrive_expect_tx(barrier, bytes * static_cast<std::uint32_t>(rows));
  }
  __syncwarp();
  for (int row = lane; row < rows; row += 32)
    ptx::cp_async_bulk_shared_global(
        ptx::shared_address(fn + row * columns.stride),
        p.fn + static_cast<std::int64_t>(row) * p.hidden + columns.first, bytes, barrier);
}

__device__ tile::Column4 load_result(const HyperMergeParams& p, std::int64_t token, int column) {
  tile::Column4 f = tile::load4(p.f, token * p.f_stride + column, p.is_f_f32);
  if (p.g == nullptr) return f;
  const tile::Column4 g = tile::load4(p.g, token * p.g_stride + column, p.is_g_f32);
#pragma unroll
  for (int i = 0; i < 4; ++i) f.v[i] += g.v[i];
  return f;
}

// The new streams of four columns, to global memory and as the next reader finds them to `x`.
__device__ void merge_columns(const HyperMergeParams& p, int token, int column,
                              const tile::Column4& f, const float* mix,
                              tile::Column4 (&x)[kHyperStreams]) {
  tile::Column4 merged[kHyperStreams];
#pragma unroll
  for (int k = 0; k < kHyperStreams; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) merged[k].v[i] = mix[4 + k] * f.v[i];
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j) {
      const float comb = mix[8 + 4 * j + k];
#pragma unroll
      for (int i = 0; i < 4; ++i) merged[k].v[i] = fmaf(comb, x[j].v[i], merged[k].v[i]);
    }
  }
  auto* const to = static_cast<std::uint16_t*>(p.merged) +
                   std::int64_t{token} * kHyperStreams * p.hidden + column;
#pragma unroll
  for (int k = 0; k < kHyperStreams; ++k) {
    x[k] = merged[k];
    tile::store4(to + static_cast<std::int64_t>(k) * p.hidden, x[k]);
  }
}

// x' of this warp's token and columns to shared memory.
__device__ void merge(const HyperConnectParams& params, const Columns& columns,
                      const TokenWarps& of, float* streams, int cta, int lane) {
  const HyperMergeParams& p = params.merge;
  const bool has_ranks = params.peers.ranks > 1;
  if (of.token < p.tokens) {
    float mix[kHyperMixRows] = {};
    if (p.f != nullptr) {
#pragma unroll
      for (int i = 4; i < kHyperMixRows; ++i) mix[i] = p.mix[of.token * kHyperMixRows + i];
    }
    of.each(columns, lane, [&](int c) {
      const int column = columns.first + c;
      const auto* const from = static_cast<const std::uint16_t*>(p.streams) +
                               std::int64_t{of.token} * kHyperStreams * p.hidden + column;
      tile::Column4 x[kHyperStreams];
#pragma unroll
      for (int j = 0; j < kHyperStreams; ++j)
        x[j] = tile::load4(from + static_cast<std::int64_t>(j) * p.hidden);
      if (p.f != nullptr) {
        tile::Column4 f = load_result(p, of.token, column);
        if (has_ranks) f = RankSum(params.peers, p.hidden, cta).add_up(of.token, column, f);
        merge_columns(p, of.token, column, f, mix, x);
      }
#pragma unroll
      for (int j = 0; j < kHyperStreams; ++j)
        tile::store4(streams + (of.token * kHyperStreams + j) * columns.stride + c, x[j]);
    });
  }
  if (has_ranks) RankSum(params.peers, p.hidden, cta).preset(columns);
}

// Sums over this CTA's columns: this warp's rows of fn, or the squares.
template <bool IsSquares>
__device__ void add_up(const HyperMergeParams& p, const Columns& columns, const float* fn,
                       const float* streams, Shared& shared, int warp, int lane) {
  constexpr int kRows = IsSquares ? 1 : kRowsOfWarp;
  const int first = IsSquares ? kHyperSquares : warp * kRowsOfWarp;
  if (!IsSquares && first >= p.rows) return;
  float sums[kTokens][kRows] = {};
  for (int j = 0; j < kHyperStreams; ++j) {
    for (int c = lane * kLaneColumns; c < columns.count; c += kWarpColumns) {
      tile::Column4 row[kRows];
      if constexpr (!IsSquares) {
#pragma unroll
        for (int r = 0; r < kRows; ++r)
          if (first + r < p.rows)
            row[r] = tile::load4(fn + ((first + r) * kHyperStreams + j) * columns.stride + c);
          else
            row[r] = {};
      }
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        if (t >= p.tokens) break;
        const tile::Column4 x = tile::load4(streams + (t * kHyperStreams + j) * columns.stride + c);
#pragma unroll
        for (int r = 0; r < kRows; ++r)
          sums[t][r] = tile::dot4(x, IsSquares ? x : row[r], sums[t][r]);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    if (t >= p.tokens) break;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float sum = tile::warp_sum(sums[t][r]);
      if (lane == 0) shared.sums[t][first + r] = sum;
    }
  }
}

__device__ void push_sums(Shared& shared, int tokens, int cta) {
  const int count = tokens * kSums;
  for (int i = static_cast<int>(threadIdx.x); i < count * kCtas; i += kHyperConnectThreads)
    push(&shared.sums_of_ctas[cta][0][0] + i % count, (&shared.sums[0][0])[i % count], i / count);
}

// Sum number `lane` of a token over all columns: CTAs in order.
__device__ float sum_of_ctas(const Shared& shared, int token, int lane) {
  float sum = 0;
  if (lane < kSums) {
#pragma unroll
    for (int c = 0; c < kCtas; ++c) sum += shared.sums_of_ctas[c][token][lane];
  }
  return sum;
}

// y of four columns.
__device__ tile::Column4 weighted(const Shared& shared, const Columns& columns,
                                  const float* streams, int token, int c) {
  tile::Column4 y = {};
#pragma unroll
  for (int j = 0; j < kHyperStreams; ++j) {
    const tile::Column4 x = tile::load4(streams + (token * kHyperStreams + j) * columns.stride + c);
#pragma unroll
    for (int i = 0; i < 4; ++i) y.v[i] = fmaf(shared.gates[token][j], x.v[i], y.v[i]);
  }
  return y;
}

// The barrier of the warps that do columns.
__device__ void sync_columns() {
  ptx::bar_sync<1, kWarps * 32>();
}

// The router's weights for the columns of this CTA: blocks of K, each of all bricks of rows. What
// it needs of shared memory lies where fn was, which no CTA reads once the cluster has met.
class RouterPart {
 public:
  __device__ RouterPart(const HyperRouter& router, const Columns& columns, float* fn)
      : router_(router),
        logits_(reinterpret_cast<LogitsOfCtas*>(fn)),
        out_(reinterpret_cast<std::uint16_t*>(fn + sizeof(LogitsOfCtas) / sizeof(float))),
        stride_(columns.stride),
        blocks_(columns.stride / kBrickK),
        weights_(router.weights +
                 std::int64_t{columns.first} / kBrickK * router.bricks * kBytesOfBrick) {}

  __device__ bool is_there() const { return router_.weights != nullptr; }
  // One warp.
  __device__ void prefetch(int lane) const {
    const int bytes = blocks_ * router_.bricks * kBytesOfBrick / 32;
    ptx::cp_async_bulk_prefetch_L2_global(weights_ + std::int64_t{lane} * bytes,
                                          static_cast<std::uint32_t>(bytes));
  }

  // What it multiplies: columns of a token, as they are stored.
  __device__ std::uint16_t* out(int token) const { return out_ + token * stride_; }

  // Sums over the columns of this CTA, each brick's to the CTA that adds them up.
  __device__ void multiply(int tokens, int cta, int warp, int lane) const {
    const int token = lane / 4;
    const std::uint32_t from = ptx::shared_address(out(token < tokens ? token : 0)) +
                               static_cast<std::uint32_t>(lane % 4) * 32;
    for (int brick = warp; brick < router_.bricks; brick += kWarps) {
      float sum[4] = {};
#pragma unroll 2
      for (int block = 0; block < blocks_; ++block) {
        std::uint32_t a[4][4], b[4][2] = {};
        load(a, block, brick, lane);
        if (token < tokens) read_tokens(b, from + static_cast<std::uint32_t>(block) * 128);
#pragma unroll
        for (int j = 0; j < 4; ++j)
          ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(sum, a[j], b[j], sum);
      }
      auto& to = (*logits_)[cta][brick / kCtas];
      if (lane % 4 == 0) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          push(&to[lane / 4 + i / 2 * 8][i % kTokens], sum[i], brick % kCtas);
      }
      __syncwarp();
    }
  }

  // All warps have met since.
  __device__ void store(int tokens, int cta) const {
    const int i = static_cast<int>(threadIdx.x), token = i % kTokens,
              row = i / kTokens % kBrickRows, slot = i / (kTokens * kBrickRows);
    const int brick = slot * kCtas + cta;
    if (token >= tokens || slot >= kRouterSlots || brick >= router_.bricks) return;
    float sum = 0;
#pragma unroll
    for (int c = 0; c < kCtas; ++c) sum += (*logits_)[c][slot][row][token];
    router_.logits[token * router_.logits_stride + brick * kBrickRows + row] = sum * router_.alpha;
  }

 private:
  using LogitsOfCtas = float[kCtas][kRouterSlots][kBrickRows][kTokens];
  static constexpr int kBytesOfBrick = brick_bytes(WeightFormat::kBf16);

  // A fragments of a brick: group t, word j.
  __device__ void load(std::uint32_t (&a)[4][4], int block, int brick, int lane) const {
    const auto* const granules = reinterpret_cast<const uint4*>(
        weights_ + (std::int64_t{block} * router_.bricks + brick) * kBytesOfBrick);
    const int at = granule_position(lane / 4, lane % 4);
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const uint4 pairs = granules[q * kGranules + at];
      const std::uint32_t words[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) a[j][q / 2 + q % 2 * 2] = words[j];
    }
  }
  static __device__ void read_tokens(std::uint32_t (&b)[4][2], std::uint32_t from) {
    const uint4 first = ptx::ld_shared_v4_u32(from), second = ptx::ld_shared_v4_u32(from + 16);
    b[0][0] = first.x, b[1][0] = first.y, b[2][0] = first.z, b[3][0] = first.w;
    b[0][1] = second.x, b[1][1] = second.y, b[2][1] = second.z, b[3][1] = second.w;
  }

  const HyperRouter& router_;
  LogitsOfCtas* logits_;
  std::uint16_t* out_;
  int stride_, blocks_;
  const std::uint8_t* weights_;
};

// Gates, y and its norm, by the warps that do columns.
__device__ void write_output(const HyperPreParams& p, const Columns& columns, const TokenWarps& of,
                             const float* streams, Shared& shared, const RouterPart& router,
                             int cta, int warp, int lane) {
  if (warp < p.tokens) {
    const float own = gate(p, mix_logit(p, sum_of_ctas(shared, warp, lane), lane), lane);
    if (lane < kHyperStreams) shared.gates[warp][lane] = own;
  }
  sync_columns();
  float squares = 0;
  if (of.token < p.tokens)
    of.each(columns, lane, [&](int c) {
      const tile::Column4 y = weighted(shared, columns, streams, of.token, c);
      squares = tile::dot4(y, y, squares);
    });
  squares = tile::warp_sum(squares);
  if (lane == 0) shared.squares[warp] = squares;
  sync_columns();
  if (const auto i = static_cast<int>(threadIdx.x); i < p.tokens * kCtas) {
    const int token = i / kCtas;
    float sum = 0;
    for (int w = 0; w < of.count; ++w) sum += shared.squares[token * of.count + w];
    push(&shared.squares_of_ctas[cta][token], sum, i % kCtas);
  }
  ptx::cluster_sync();
  if (of.token >= p.tokens) return;
  float total = 0;
#pragma unroll
  for (int c = 0; c < kCtas; ++c) total += shared.squares_of_ctas[c][of.token];
  const float factor = rsqrtf(total / static_cast<float>(p.hidden) + p.norm_eps);
  of.each(columns, lane, [&](int c) {
    const tile::Column4 y = weighted(shared, columns, streams, of.token, c);
    const tile::Column4 weight = tile::load4(p.weight + columns.first + c);
    tile::Column4 out;
#pragma unroll
    for (int i = 0; i < 4; ++i) out.v[i] = y.v[i] * factor * weight.v[i];
    tile::store4(p.out + of.token * p.out_stride + columns.first + c, out);
    if (router.is_there()) tile::store4(router.out(of.token) + c, out);
  });
}

// Lines that are read late, and that no kernel before writes.
__device__ void prefetch_weights(const HyperPreParams& p, const Columns& columns, int lane) {
  constexpr int kLine = 64;  // numbers of bf16
  for (int c = lane * kLine; c < columns.count; c += 32 * kLine)
    ptx::prefetch_global_L2(p.weight + columns.first + c);
  if (lane == 0) ptx::prefetch_global_L2(p.base);
  if (lane == 1) ptx::prefetch_global_L2(p.scale);
}

__device__ void connect(const HyperConnectParams& params) {
  extern __shared__ __align__(16) float dynamic[];
  __shared__ Shared shared;
  const HyperMergeParams& p = params.merge;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = ptx::uniform(static_cast<int>(threadIdx.x / 32));
  const int cta = static_cast<int>(ptx::cluster_ctarank());
  const Columns columns(p.hidden, cta);
  const TokenWarps of(p.tokens, warp);
  float* const fn = dynamic;
  float* const streams = dynamic + kHyperMixRows * kHyperStreams * columns.stride;
  const std::uint32_t has_fn = ptx::shared_address(&shared.has_fn);
  ptx::barrier_cluster_arrive_aligned();  // before anybody pushes
  ptx::griddepcontrol_launch_dependents();
  if (warp == kWarps) load_fn(p, columns, fn, has_fn, lane);
  if (warp == 0) prefetch_weights(params.pre, columns, lane);
  if (const RouterPart router(params.router, columns, fn); warp == 1 && router.is_there())
    router.prefetch(lane);
  ptx::griddepcontrol_wait();

  if (warp < kWarps) merge(params, columns, of, streams, cta, lane);
  __syncthreads();
  if (params.peers.ranks > 1 && threadIdx.x == 0) RankSum(params.peers, p.hidden, cta).keep_next();
  if (warp == kWarps) {
    add_up<true>(p, columns, fn, streams, shared, warp, lane);
  } else {
    ptx::mbarrier_wait_parity(has_fn, 0);
    add_up<false>(p, columns, fn, streams, shared, warp, lane);
  }
  __syncthreads();
  ptx::barrier_cluster_wait_aligned();
  push_sums(shared, p.tokens, cta);
  ptx::cluster_sync();

  const RouterPart router(params.router, columns, fn);
  if (warp < kWarps) {
    write_output(params.pre, columns, of, streams, shared, router, cta, warp, lane);
    if (!router.is_there()) return;
    sync_columns();
    router.multiply(p.tokens, cta, warp, lane);
    ptx::cluster_sync();
    router.store(p.tokens, cta);
    return;
  }
  // The mix of before, which may be the same memory, has been read by all.
  ptx::barrier_cluster_arrive_aligned();
  if (cta < p.tokens)
    store_mix(params.pre, cta, mix_logit(params.pre, sum_of_ctas(shared, cta, lane), lane), lane);
  ptx::barrier_cluster_wait_aligned();
  if (router.is_there()) ptx::cluster_sync();
}

}  // namespace

TILEWRIGHT_KERNEL(hyper_connect, HyperConnectParams,
                  __cluster_dims__(kHyperConnectCtas) __maxnreg__(kHyperConnectRegisters), connect)

}  // namespace tilewright::kernels
