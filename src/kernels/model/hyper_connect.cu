// targets: sm_90a sm_100f
//
// Hyper-connections of one or two tokens in one launch: what hyper_connection.cu does in two, and
// the sum over ranks before it. A cluster of 16 CTAs has the tokens, and a CTA a sixteenth of the
// columns.
//
//   8 warps | f, f of ranks | x' | products with fn | sums -> CTAs | gates | y, norm, out |
//           | (router: its columns of all experts | sums -> CTAs | logits)
//   1 warp  | fn | ................................. router's weights | Sinkhorn |
//
// fn does not come from the kernel before: its copy to shared memory, 96 KB a CTA for 4096 columns,
// is under way when that kernel ends. Products are those of fp32 units: a row of fn is 4 bytes and
// 2 flops a number, and splitting it for tensor cores takes more instructions than two tokens do. A
// lane has two columns of all streams in registers from the merge to the output; four warps have
// 256 columns. With one token two warps have the same columns, and half of the sums each.
//
// Sums go to all CTAs by st.async: it ends a phase of their barriers when it is there, where a
// barrier of the cluster would first wait for everything that a CTA has stored. The square of y
// goes with them: it is the sum over i, j of pre_i pre_j <x'_i, x'_j>, ten products more. Where
// streams cancel, so that it would be a small difference of large numbers, y is squared and summed
// in one more exchange.
//
// Limit: latency. Bytes of one token of 4096: 1.6 MB of fn, which are there, 64 KB of streams and
// 16 KB of f. Trips: mix and streams, shared memory of the CTA, that of the cluster.
#include "kernels/model/column4.h"
#include "kernels/model/hyper_mix.h"
#include "kernels/model/hyper_rank_sum.h"
#include "kernels/model/hyper_router.h"
#include "kernels/model/hyper_sums.h"
#include "ptx/address.h"
#include "ptx/async_store.h"
#include "ptx/bulk_copy.h"
#include "ptx/cluster.h"
#include "ptx/fence.h"
#include "ptx/grid_dependency.h"
#include "ptx/mbarrier.h"
#include "ptx/prefetch.h"
#include "ptx/warp_roles.h"
#include "tile/element.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

using namespace hyper;

constexpr int kCtas = kHyperConnectCtas, kTokens = kHyperConnectTokens;
constexpr int kWarps = kHyperConnectColumnWarps;
constexpr int kWarpColumns = 64;  // two of a lane
constexpr int kQuarters = 4, kGroups = kWarps / kQuarters;
constexpr int kPassColumns = kQuarters * kWarpColumns;
constexpr int kPasses = hyper_connect_columns(kHyperMaxHidden) / kPassColumns;
static_assert(kGroups == 2 && kTokens == kGroups && kTokens <= kCtas);

// On Hopper a CTA of a projection, with 80 registers for each of 512 threads, fits beside one.
constexpr int kHyperConnectRegisters = kHasRouter ? 80 : 128;

struct Shared {
  float4 parts[kTokens][kQuarters][kSumVectors];  // of this CTA's warps
  SumsOfCtas sums_of_ctas;
  LogitsOfCtas logits;
  float squares[kTokens][kQuarters];  // of y
  float squares_of_ctas[kCtas][kTokens];
  std::uint64_t has_fn, has_sums, has_squares[kTokens], has_weights, has_logits;
  std::uint64_t is_read;  // the mix of before, by all CTAs
};

// The token of a warp, its columns, and its halves of the sums.
struct Part {
  int token, first_half, end_half, first_column;
  bool is_first;  // of the two that have the same columns, or the only one

  __device__ Part(int tokens, int warp, int lane) {
    const int group = warp / kQuarters;
    token = tokens == 1 ? 0 : group;
    first_half = tokens == 1 ? group : 0;
    end_half = tokens == 1 ? group + 1 : 2;
    first_column = warp % kQuarters * kWarpColumns + 2 * lane;
    is_first = tokens > 1 || group == 0;
  }
};

// Two columns of the four streams of a token, in each pass.
struct StreamColumns {
  float v[kPasses][kHyperStreams][2];
};

// Calls action(pass, column of the CTA).
template <class Action>
__device__ void each_pass(const Part& of, const Columns& columns, const Action& action) {
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass)
    if (const int c = of.first_column + pass * kPassColumns; c < columns.count) action(pass, c);
}

__device__ std::uint32_t at_cta(const void* shared, int cta) {
  return ptx::mapa_shared_cluster(ptx::shared_address(shared), static_cast<std::uint32_t>(cta));
}

// Asks for this CTA's columns of all rows of fn. One warp.
__device__ void load_fn(const HyperMergeParams& p, const Columns& columns, float* fn,
                        std::uint32_t barrier, int lane) {
  const int rows = p.rows * kHyperStreams;
  const auto bytes = static_cast<std::uint32_t>(columns.count * 4);
  if (lane == 0) ptx::mbarrier_arrive_expect_tx(barrier, bytes * static_cast<std::uint32_t>(rows));
  __syncwarp();
  for (int row = lane; row < rows; row += 32)
    ptx::cp_async_bulk_shared_global(
        ptx::shared_address(fn + row * columns.stride),
        p.fn + static_cast<std::int64_t>(row) * p.hidden + columns.first, bytes, barrier);
}

// By one thread: what is to come is known from the start.
__device__ void init_barriers(const HyperConnectParams& params, const RouterPart& router, int cta,
                              Shared& shared) {
  const auto init = [](const std::uint64_t& barrier, std::uint32_t arrivals = 1) {
    ptx::mbarrier_init(ptx::shared_address(&barrier), arrivals);
  };
  init(shared.has_fn), init(shared.has_sums), init(shared.has_weights), init(shared.has_logits);
  for (const std::uint64_t& barrier : shared.has_squares) init(barrier);
  init(shared.is_read, kCtas);
  ptx::fence_mbarrier_init_release_cluster();
  const auto tokens = static_cast<std::uint32_t>(params.merge.tokens);
  ptx::mbarrier_arrive_expect_tx(ptx::shared_address(&shared.has_sums),
                                 kCtas * tokens * kSums * sizeof(float));
  for (const std::uint64_t& barrier : shared.has_squares)
    ptx::mbarrier_arrive_expect_tx(ptx::shared_address(&barrier), kCtas * sizeof(float));
  if (params.router.weights != nullptr)
    ptx::mbarrier_arrive_expect_tx(ptx::shared_address(&shared.has_logits),
                                   router.bytes_to_come(cta));
}

__device__ float2 load_pair(const void* from, std::int64_t index, bool is_f32) {
  if (is_f32) return *reinterpret_cast<const float2*>(static_cast<const float*>(from) + index);
  return tile::Bf16::unpack(
      *reinterpret_cast<const std::uint32_t*>(static_cast<const std::uint16_t*>(from) + index));
}

// Words of two columns of the streams.
__device__ std::uint32_t* stream_words(const void* streams, const HyperMergeParams& p, int token,
                                       int stream, int column) {
  const std::int64_t index = (std::int64_t{token} * kHyperStreams + stream) * p.hidden + column;
  return reinterpret_cast<std::uint32_t*>(
      const_cast<std::uint16_t*>(static_cast<const std::uint16_t*>(streams) + index));
}

// x' of a token, as the next reader finds it.
__device__ void merge(const HyperConnectParams& params, const Columns& columns, const Part& of,
                      int cta, StreamColumns& x) {
  const HyperMergeParams& p = params.merge;
  const bool has_ranks = params.peers.ranks > 1;
  float mix[kHyperMixRows];  // without pre
  float f[kPasses][2] = {};
  if (p.f != nullptr) {
    const auto* const from = reinterpret_cast<const float4*>(p.mix + of.token * kHyperMixRows);
#pragma unroll
    for (int i = 1; i < kHyperMixRows / 4; ++i) {
      const float4 four = from[i];
      mix[4 * i] = four.x, mix[4 * i + 1] = four.y, mix[4 * i + 2] = four.z,
              mix[4 * i + 3] = four.w;
    }
  }
  std::uint32_t words[kPasses][kHyperStreams];
  each_pass(of, columns, [&](int pass, int c) {
    const int column = columns.first + c;
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j)
      words[pass][j] = *stream_words(p.streams, p, of.token, j, column);
    if (p.f == nullptr) return;
    const float2 first = load_pair(p.f, of.token * p.f_stride + column, p.is_f_f32);
    f[pass][0] = first.x, f[pass][1] = first.y;
    if (p.g == nullptr) return;
    const float2 second = load_pair(p.g, of.token * p.g_stride + column, p.is_g_f32);
    f[pass][0] += second.x, f[pass][1] += second.y;
  });
  if (has_ranks) {
    const RankSum sum(params.peers, p.hidden, cta);
    const auto each_word = [&](const auto& action) {
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int c = of.first_column + pass * kPassColumns;
        action(columns.first + c, f[pass], c < columns.count);
      }
    };
    if (of.is_first)
      each_word([&](int column, float(&own)[2], bool is_there) {
        sum.send(of.token, column, own, is_there);
      });
    if (threadIdx.x >= kWarps / 2 * 32)
      sum.preset(columns, static_cast<int>(threadIdx.x) - kWarps / 2 * 32, kWarps / 2 * 32);
    each_word([&](int column, float(&own)[2], bool is_there) {
      sum.add_up(of.token, column, own, is_there);
    });
  }
  each_pass(of, columns, [&](int pass, int) {
    float before[kHyperStreams][2];
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j) {
      const float2 pair = tile::Bf16::unpack(words[pass][j]);
      before[j][0] = pair.x, before[j][1] = pair.y;
    }
#pragma unroll
    for (int k = 0; k < kHyperStreams; ++k) {
      float* const to = x.v[pass][k];
      if (p.f == nullptr) {
        to[0] = before[k][0], to[1] = before[k][1];
        continue;
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        to[i] = mix[4 + k] * f[pass][i];
#pragma unroll
        for (int j = 0; j < kHyperStreams; ++j)
          to[i] = fmaf(mix[8 + 4 * j + k], before[j][i], to[i]);
      }
      const float2 rounded = tile::Bf16::unpack(tile::Bf16::pack(to[0], to[1]));
      to[0] = rounded.x, to[1] = rounded.y;
    }
  });
}

// By the warps of a token; those with the same columns share the streams.
__device__ void store_streams(const HyperMergeParams& p, const Columns& columns, const Part& of,
                              const StreamColumns& x) {
  if (p.f == nullptr) return;
  each_pass(of, columns, [&](int pass, int c) {
#pragma unroll
    for (int k = 0; k < kHyperStreams; ++k)
      if (k / 2 >= of.first_half && k / 2 < of.end_half)
        *stream_words(p.merged, p, of.token, k, columns.first + c) =
            tile::Bf16::pack(x.v[pass][k][0], x.v[pass][k][1]);
  });
}

// This warp's part of a half of the sums.
template <int Half>
__device__ void add_up(const HyperMergeParams& p, const Columns& columns, const Part& of,
                       const float* fn, const StreamColumns& x, int lane, float4* parts) {
  float sums[kHalfSums] = {};
  each_pass(of, columns, [&](int pass, int c) {
#pragma unroll
    for (int r = 0; r < kHalfRows; ++r) {
      const int row = Half * kHalfRows + r;
      if (row >= kHyperHeadRows && p.rows == kHyperHeadRows) break;
#pragma unroll
      for (int j = 0; j < kHyperStreams; ++j) {
        const float2 weights =
            *reinterpret_cast<const float2*>(fn + (row * kHyperStreams + j) * columns.stride + c);
        sums[r] = fmaf(weights.x, x.v[pass][j][0], sums[r]);
        sums[r] = fmaf(weights.y, x.v[pass][j][1], sums[r]);
      }
    }
#pragma unroll
    for (int k = 0; k < kHalfPairs; ++k) {
      const auto [i, j] = stream_pair(Half * kHalfPairs + k);
      const auto &a = x.v[pass][i], &b = x.v[pass][j];
      float& sum = sums[kHalfRows + k];
      sum = fmaf(a[0], b[0], sum);
      sum = fmaf(a[1], b[1], sum);
    }
  });
  auto* const to = reinterpret_cast<float*>(parts) + Half * kHalf;
  const float last = tile::warp_sum(sums[kHalfSums - 1]);
  const float sum = spread_sums(sums, lane);
  if (lane % 2 == 0) to[lane / 2] = sum;
  if (lane == 1) to[kHalfSums - 1] = last;
  if (lane == 3) to[kHalfSums] = 0;
}

// The sums of this CTA to all.
__device__ void push_sums(Shared& shared, int tokens, int cta) {
  const int count = tokens * kSumVectors;
  const auto i = static_cast<int>(threadIdx.x);
  if (i >= count * kCtas) return;
  const int token = i % count / kSumVectors, vector = i % kSumVectors;
  float4 sum = {};
#pragma unroll
  for (int q = 0; q < kQuarters; ++q) {
    const float4 part = shared.parts[token][q][vector];
    sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
  }
  ptx::st_async_shared_cluster_v4_f32(at_cta(&shared.sums_of_ctas[cta][token][vector], i / count),
                                      sum, at_cta(&shared.has_sums, i / count));
}
static_assert(kTokens * kSumVectors * kCtas <= kHyperConnectThreads);

// The barrier of all threads. The roles pass it in branches of their own, where __syncthreads()
// would be two barriers to the rules of CUDA, each without some threads.
__device__ void sync_roles() {
  ptx::bar_sync<4, kHyperConnectThreads>();
}
// The barrier of the warps that do columns.
__device__ void sync_columns() {
  ptx::bar_sync<1, kWarps * 32>();
}

// Gates, y and its norm, by the warps that do columns.
class Output {
 public:
  __device__ Output(const HyperPreParams& p, const Columns& columns, const Part& of, int lane)
      : p_(p), columns_(columns), of_(of), lane_(lane), terms_(p, lane) {
    each_pass(of, columns, [&](int pass, int c) {
      weights_[pass] = *reinterpret_cast<const std::uint32_t*>(p.weight + columns.first + c);
    });
  }

  __device__ void write(Shared& shared, const StreamColumns& x, const RouterPart& router, int cta,
                        int quarter) const {
    const TokenSums sums(shared.sums_of_ctas, of_.token, lane_);
    const float own = gate(p_, terms_.logit(p_, sums.sum, sums.squares), lane_);
    float pre[kHyperStreams];
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j) pre[j] = __shfl_sync(~0u, own, j);
    float y[kPasses][2] = {};
    each_pass(of_, columns_, [&](int pass, int) {
#pragma unroll
      for (int j = 0; j < kHyperStreams; ++j) {
        y[pass][0] = fmaf(pre[j], x.v[pass][j][0], y[pass][0]);
        y[pass][1] = fmaf(pre[j], x.v[pass][j][1], y[pass][1]);
      }
    });
    float square = sums.square_of(pre, lane_);
    if (cancels(sums, pre, square)) square = sum_of_squares(shared, y, cta, quarter);
    const float factor = rsqrtf(square / static_cast<float>(p_.hidden) + p_.norm_eps);
    if (!of_.is_first) return;
    each_pass(of_, columns_, [&](int pass, int c) {
      const float2 weight = tile::Bf16::unpack(weights_[pass]);
      const std::uint32_t word =
          tile::Bf16::pack(y[pass][0] * factor * weight.x, y[pass][1] * factor * weight.y);
      *reinterpret_cast<std::uint32_t*>(p_.out + of_.token * p_.out_stride + columns_.first + c) =
          word;
      if (router.is_there()) *reinterpret_cast<std::uint32_t*>(router.out(of_.token) + c) = word;
    });
  }

 private:
  // Whether a square is too small against what it is the sum of. Its terms have errors of about
  // 2^-22 of that, so what passes is known to 2^-16.
  __device__ bool cancels(const TokenSums& sums, const float (&pre)[kHyperStreams],
                          float square) const {
    constexpr float kLeast = 0x1p-6f;
    const float largest = fmaxf(fmaxf(pre[0], pre[1]), fmaxf(pre[2], pre[3]));
    return !(square >= kLeast * largest * largest * sums.squares);
  }

  // All CTAs come here for a token, or none.
  __device__ float sum_of_squares(Shared& shared, const float (&y)[kPasses][2], int cta,
                                  int quarter) const {
    float sum = 0;
    each_pass(of_, columns_, [&](int pass, int) {
      sum = fmaf(y[pass][0], y[pass][0], sum);
      sum = fmaf(y[pass][1], y[pass][1], sum);
    });
    sum = tile::warp_sum(sum);
    if (lane_ == 0 && of_.is_first) shared.squares[of_.token][quarter] = sum;
    if (of_.end_half - of_.first_half == 1)
      sync_columns();
    else if (of_.token == 0)
      ptx::bar_sync<2, kQuarters * 32>();
    else
      ptx::bar_sync<3, kQuarters * 32>();
    const std::uint64_t& has_squares = shared.has_squares[of_.token];
    if (of_.is_first && quarter == 0 && lane_ < kCtas) {
      float of_cta = 0;
#pragma unroll
      for (int q = 0; q < kQuarters; ++q) of_cta += shared.squares[of_.token][q];
      ptx::st_async_shared_cluster_f32(at_cta(&shared.squares_of_ctas[cta][of_.token], lane_),
                                       of_cta, at_cta(&has_squares, lane_));
    }
    ptx::mbarrier_wait_parity(ptx::shared_address(&has_squares), 0);
    float total = 0;
#pragma unroll
    for (int c = 0; c < kCtas; ++c) total += shared.squares_of_ctas[c][of_.token];
    return total;
  }

  const HyperPreParams& p_;
  const Columns& columns_;
  const Part& of_;
  int lane_;
  MixTerms terms_;
  std::uint32_t weights_[kPasses];
};

// Lines that are read late, and that no kernel before writes.
__device__ void prefetch_weights(const HyperPreParams& p, const Columns& columns, int lane) {
  constexpr int kLine = 64;  // numbers of bf16
  for (int c = lane * kLine; c < columns.count; c += 32 * kLine)
    ptx::prefetch_global_L2(p.weight + columns.first + c);
  if (lane == 0) ptx::prefetch_global_L2(p.base);
  if (lane == 1) ptx::prefetch_global_L2(p.scale);
}

// Everything of a call by one of the warps that do columns, once the kernel before has ended.
__device__ void do_columns(const HyperConnectParams& params, const Columns& columns, const Part& of,
                           const RouterPart& router, const float* fn, int cta, int warp, int lane,
                           Shared& shared) {
  const HyperMergeParams& p = params.merge;
  StreamColumns x = {};
  merge(params, columns, of, cta, x);
  ptx::barrier_cluster_wait_aligned();  // barriers are there, of this CTA and of the others
  ptx::mbarrier_wait_parity(ptx::shared_address(&shared.has_fn), 0);
  const int quarter = warp % kQuarters;
  float4* const parts = shared.parts[of.token][quarter];
  if (of.first_half == 0) add_up<0>(p, columns, of, fn, x, lane, parts);
  if (of.end_half == 2) add_up<1>(p, columns, of, fn, x, lane, parts);
  sync_roles();
  push_sums(shared, p.tokens, cta);
  store_streams(p, columns, of, x);
  const Output output(params.pre, columns, of, lane);  // reads while sums travel
  if (params.peers.ranks > 1 && threadIdx.x == 0) RankSum(params.peers, p.hidden, cta).keep_next();
  RouterPart::Granules ahead = {};
  if (router.is_there() && warp < params.router.bricks) ahead = router.ahead(warp, lane);
  ptx::mbarrier_wait_parity(ptx::shared_address(&shared.has_sums), 0);
  output.write(shared, x, router, cta, quarter);
  if (!router.is_there()) return;
  sync_columns();
  const std::uint32_t has_logits = ptx::shared_address(&shared.has_logits);
  router.multiply(p.tokens, cta, warp, lane, ahead, ptx::shared_address(&shared.has_weights),
                  has_logits);
  ptx::mbarrier_wait_parity(has_logits, 0);
  router.store(p.tokens, cta);
}

// The same of the other warp.
__device__ void do_mix(const HyperConnectParams& params, const RouterPart& router, int cta,
                       int lane, Shared& shared) {
  const HyperPreParams& p = params.pre;
  const MixTerms terms(p, lane);
  ptx::barrier_cluster_wait_aligned();
  sync_roles();
  push_sums(shared, p.tokens, cta);
  if (lane < p.tokens) ptx::mbarrier_arrive_remote(at_cta(&shared.is_read, lane));
  if (router.is_there()) router.copy(ptx::shared_address(&shared.has_weights), lane);
  ptx::mbarrier_wait_parity(ptx::shared_address(&shared.has_sums), 0);
  if (cta < p.tokens) {
    // The mix of before may be the same memory. That sums of all CTAs are here says nothing of what
    // their threads have read: an asynchronous store is not ordered behind its thread's loads.
    ptx::mbarrier_wait_parity_cluster(ptx::shared_address(&shared.is_read), 0);
    const TokenSums sums(shared.sums_of_ctas, cta, lane);
    store_mix(p, cta, terms.logit(p, sums.sum, sums.squares), lane);
  }
}

__device__ void connect(const HyperConnectParams& params) {
  extern __shared__ __align__(128) float dynamic[];
  __shared__ Shared shared;
  const HyperMergeParams& p = params.merge;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = ptx::uniform(static_cast<int>(threadIdx.x / 32));
  const int cta = static_cast<int>(ptx::cluster_ctarank());
  const Columns columns(p.hidden, cta);
  float* const fn = dynamic;
  auto* const out =
      reinterpret_cast<std::uint16_t*>(fn + kHyperMixRows * kHyperStreams * columns.stride);
  const RouterPart router(params.router, columns, fn, out, shared.logits);
  if (warp == kWarps) {
    if (lane == 0) init_barriers(params, router, cta, shared);
    __syncwarp();
  }
  // That barriers are there is waited for when they are needed. Copies come behind this arrival:
  // they are issued one by one, and it would wait for that.
  ptx::barrier_cluster_arrive_relaxed_aligned();
  if (warp == kWarps) {
    load_fn(p, columns, fn, ptx::shared_address(&shared.has_fn), lane);
    if (router.is_there()) router.prefetch(lane);
    ptx::griddepcontrol_launch_dependents();  // its copies come behind these
    ptx::griddepcontrol_wait();
    return do_mix(params, router, cta, lane, shared);
  }
  const Part of(p.tokens, warp, lane);
  if (warp == 0) prefetch_weights(params.pre, columns, lane);
  ptx::griddepcontrol_wait();
  do_columns(params, columns, of, router, fn, cta, warp, lane, shared);
}

}  // namespace

TILEWRIGHT_KERNEL(hyper_connect, HyperConnectParams,
                  __cluster_dims__(kHyperConnectCtas) __maxnreg__(kHyperConnectRegisters), connect)

}  // namespace tilewright::kernels
