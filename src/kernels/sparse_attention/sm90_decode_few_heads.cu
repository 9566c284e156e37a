// targets: sm_90a
#include "kernels/sparse_attention/sm90_decode_few_heads.h"
#include "ptx/address.h"
#include "ptx/grid_dependency.h"
#include "ptx/math.h"
#include "ptx/mma_sync.h"
#include "ptx/warp_roles.h"
#include "tile/element.h"
#include "tile/few_heads_keys.h"
#include "tile/few_heads_loader.h"
#include "tile/sparse_finish.h"
#include "tile/sparse_work.h"

#include <cstdint>

#include <math.h>

namespace tilewright::kernels {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kWarps = kFewHeadsConsumers;
constexpr int kPlainBlocks = kKvPlainDims / 64;
/// What weights are relative to before the first key: weights relative to it would be 0.
constexpr float kNoKey = -1e30f;
/// Growth of a score, as a power of 2, up to which the reference stays.
constexpr float kTolerated = 8.0f;

/// Two scores a tile of 8 heads, as a lane has them: heads 2 t and 2 t + 1.
template <int Tiles>
using PerHead = float[Tiles][2];

template <KvFormat Format, int Tiles>
struct Consumer {
  using Keys = tile::FewHeadsKeys<Format>;
  using Shared = FewHeadsShared<Format, Tiles * 8>;
  static constexpr int kStages = Shared::kStages, kPitch = few_heads_row_pitch(Format);
  using Position = tile::RingPosition<kStages>;
  /// Scales of fp8 go to sums of 64 products, or where there are as many sums as codes, to these.
  static constexpr bool kScalesSums = Keys::kHasFactors && Tiles < 4;
  static constexpr std::uint32_t kQuery = Keys::kHasFactors && !kScalesSums ? 0 : Keys::kQuery;
  static_assert(kStages > kFewHeadsPieces);

  const SparseDecodeParams& p;
  Shared& shared;
  tile::Ring<kStages> ring;
  std::uint32_t warp, g, t, key;  ///< key: of a piece, the lane's first; the other is 8 further
  Position at = {};
  std::uint32_t buffer = 0;
  float o[2][4][Tiles][4];  ///< of 64 dimensions each
  PerHead<Tiles> reference, sum;
  float maxima[Tiles][2];

  __device__ Consumer(const SparseDecodeParams& params, Shared& memory)
      : p(params),
        shared(memory),
        ring(*reinterpret_cast<tile::RingBarriers<kStages>*>(memory.full)),
        warp(ptx::uniform(threadIdx.x / 32)),
        g(threadIdx.x % 32 / 4),
        t(threadIdx.x % 4),
        key((g & 4) | (g & 1) << 1 | (g >> 1 & 1)) {}

  __device__ std::uint32_t rows_of(Position piece) const {
    return ptx::shared_address(shared.rows) + piece.stage * (kFewHeadsPieceKeys * kPitch);
  }

  /// All heads of a query, in the order that the products want, zeros for heads that are none.
  __device__ void load_query(const tile::SparseQuery& query) {
    constexpr int kChunks = Tiles * 8 * kKvDims / 8;
    for (int i = static_cast<int>(threadIdx.x); i < kChunks; i += kWarps * 32) {
      const int head = i / 64, chunk = i % 64;
      uint4 q = {};
      if (head < p.heads)
        q = reinterpret_cast<const uint4*>(p.q + query.offset(p.q_strides, head))[chunk];
      const bool is_rope = chunk >= kKvPlainDims / 8 || Format == KvFormat::kBf16;
      const std::uint32_t factor = is_rope ? Keys::kRopeQuery : kQuery;
      if (!is_rope) q = Keys::order(q);
      if (factor != 0) {
        q.x = tile::mul_bf16x2(q.x, factor), q.y = tile::mul_bf16x2(q.y, factor);
        q.z = tile::mul_bf16x2(q.z, factor), q.w = tile::mul_bf16x2(q.w, factor);
      }
      // Of bf16 keys a lane has dimensions 8 t and on, and 32 + 8 t and on.
      const int to = is_rope ? chunk / 8 * 8 + chunk % 4 * 2 + chunk / 4 % 2 : chunk;
      *reinterpret_cast<uint4*>(shared.fixed.q + head * kFewHeadsQueryPitch + to * 16) = q;
    }
  }

  __device__ void multiply_query(float (&x)[Tiles][4], const tile::KeyFragments& a,
                                 int block) const {
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
      const std::uint32_t q = ptx::shared_address(shared.fixed.q) +
                              (n * 8 + g) * kFewHeadsQueryPitch +
                              static_cast<std::uint32_t>(block) * 128 + t * 32;
      const uint4 u = ptx::ld_shared_v4_u32(q), v = ptx::ld_shared_v4_u32(q + 16);
      const std::uint32_t b[4][2] = {{u.x, u.y}, {u.z, u.w}, {v.x, v.y}, {v.z, v.w}};
#pragma unroll
      for (int i = 0; i < 4; ++i)
        ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(x[n], a[i], b[i], x[n]);
    }
  }

  /// s: keys `key` (0, 1) and `key` + 8 (2, 3) of the warp's piece, times 1 / kScore.
  __device__ void score(float (&s)[Tiles][4], std::uint32_t rows) const {
    const tile::ScoreRows mine = {rows + key * kPitch, rows + (key + 8) * kPitch};
    uint2 scales[2] = {};
    if constexpr (Keys::kHasFactors) {
      scales[0] = ptx::ld_shared_v2_u32(mine[0] + kv_data_bytes(Format));
      scales[1] = ptx::ld_shared_v2_u32(mine[1] + kv_data_bytes(Format));
    }
    tile::KeyFragments a;
    tile::load_bf16_scores(a, mine, kv_plain_bytes(Format), t);
#pragma unroll
    for (int n = 0; n < Tiles; ++n) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.0f;
    multiply_query(s, a, kPlainBlocks);
#pragma unroll
    for (int block = 0; block < kPlainBlocks; ++block) {
      Keys::load_scores(a, mine, block, t);
      if constexpr (kScalesSums || Tiles == 1) {
        float x[Tiles][4] = {};
        multiply_query(x, a, block);
        add_scaled(s, x, scales, block);
      } else {
        if constexpr (Keys::kHasFactors) scale_codes(a, scales, block);
        multiply_query(s, a, block);
      }
    }
  }
  __device__ static void add_scaled(float (&s)[Tiles][4], const float (&x)[Tiles][4],
                                    const uint2 (&scales)[2], int block) {
    float factors[2] = {1.0f, 1.0f};
    if constexpr (kScalesSums) {
      factors[0] = Keys::sum_factor(scales[0], block);
      factors[1] = Keys::sum_factor(scales[1], block);
    }
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) s[n][c] = fmaf(x[n][c], factors[c / 2], s[n][c]);
    }
  }
  __device__ static void scale_codes(tile::KeyFragments& a, const uint2 (&scales)[2], int block) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::uint32_t factor = Keys::code_factor_pair(scales[r], block);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        a[i / 2][i % 2 * 2 + r] = tile::mul_bf16x2(a[i / 2][i % 2 * 2 + r], factor);
    }
  }

  /// What the values of the warp's piece are to be multiplied with beside their weights.
  __device__ void store_value_factors(std::uint32_t rows) {
    if constexpr (Keys::kHasFactors) {
      const std::uint32_t lane = threadIdx.x % 32, row = lane % 16, first = lane / 16 * 4;
      const std::uint32_t bytes =
          ptx::ld_shared_u32(rows + row * kPitch + kv_data_bytes(Format) + first);
      auto& factors = shared.fixed.factors[buffer];
      const std::uint32_t to = warp * kFewHeadsPieceKeys + few_heads_position(row);
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        if (i < 3 || first == 0)
          factors[first + i][to] =
              static_cast<std::uint16_t>(Keys::code_factor(bytes >> i * 8 & 255u));
      }
    }
  }

  /// Scores of the warp's piece become weights in shared memory. `mine`: what they are relative to.
  __device__ void weigh(float (&s)[Tiles][4], const std::uint32_t (&valid)[2],
                        PerHead<Tiles>& mine) {
    const float scale = p.scale_log2 * Keys::kScore;
    const bool exists[2] = {(valid[0] >> key * 4 & 1) != 0, (valid[1] >> key * 4 & 1) != 0};
    bool grows = false;
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float &first = s[n][h], &second = s[n][2 + h];
        first = exists[0] ? first * scale : -INFINITY;
        second = exists[1] ? second * scale : -INFINITY;
        float top = fmaxf(first, second);
#pragma unroll
        for (int step = 4; step < 32; step *= 2)
          top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, step));
        if constexpr (Format == KvFormat::kBf16) maxima[n][h] = fmaxf(maxima[n][h], top);
        const bool has_grown = top > reference[n][h] + kTolerated;
        mine[n][h] = has_grown ? top : reference[n][h];
        grows |= has_grown;
      }
    }
    std::uint8_t* const weights = shared.fixed.weights[buffer] + warp * (kFewHeadsPieceKeys * 2) +
                                  few_heads_position(key) * 2;
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float x = ptx::ex2_approx_ftz_f32(s[n][h] - mine[n][h]);
        const float y = ptx::ex2_approx_ftz_f32(s[n][2 + h] - mine[n][h]);
        sum[n][h] = fmaf(sum[n][h], ptx::ex2_approx_ftz_f32(reference[n][h] - mine[n][h]), x + y);
        *reinterpret_cast<std::uint32_t*>(weights + (n * 8 + t * 2 + h) * kFewHeadsWeightPitch) =
            tile::Bf16::pack(x, y);
        if (g == 0) shared.fixed.references[buffer][warp][n * 8 + t * 2 + h] = mine[n][h];
      }
    }
    grows = __any_sync(kAllLanes, grows);
    if (threadIdx.x % 32 == 0) shared.fixed.has_changed[buffer][warp] = grows;
  }

  __device__ float common_reference(std::uint32_t head) const {
    const auto& all = shared.fixed.references[buffer];
    return fmaxf(fmaxf(all[0][head], all[1][head]), fmaxf(all[2][head], all[3][head]));
  }
  /// After some warp has raised its reference: the largest is everybody's.
  __device__ void agree(const PerHead<Tiles>& mine) {
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float common = common_reference(n * 8 + t * 2 + h);
        const float factor = ptx::ex2_approx_ftz_f32(reference[n][h] - common);
        sum[n][h] *= ptx::ex2_approx_ftz_f32(mine[n][h] - common);
        reference[n][h] = common;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          o[i / 4][i % 4][n][h] *= factor;
          o[i / 4][i % 4][n][2 + h] *= factor;
        }
      }
    }
  }

  /// o += the warp's 128 dimensions of one piece times its weights.
  __device__ void add_piece(std::uint32_t piece, std::uint32_t rows, bool has_changed) {
    std::uint32_t b[Tiles][2];
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
      const uint2 words = ptx::ld_shared_v2_u32(ptx::shared_address(shared.fixed.weights[buffer]) +
                                                (n * 8 + g) * kFewHeadsWeightPitch +
                                                piece * (kFewHeadsPieceKeys * 2) + t * 8);
      b[n][0] = words.x, b[n][1] = words.y;
      if (has_changed) {
        const float mine = shared.fixed.references[buffer][piece][n * 8 + g];
        const float factor = ptx::ex2_approx_ftz_f32(mine - common_reference(n * 8 + g));
        const std::uint32_t both = tile::Bf16::pack(factor, factor);
        b[n][0] = tile::mul_bf16x2(b[n][0], both), b[n][1] = tile::mul_bf16x2(b[n][1], both);
      }
    }
    tile::ValueRows mine;
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) mine[i] = rows + (t + tile::few_heads_key(i)) * kPitch;
#pragma unroll
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t block = warp * 2 + half;
      tile::KeyFragments a;
      std::uint32_t scaled[Tiles][2];
      uint2 factors = {};
      const bool is_rope = half == 1 && warp == kWarps - 1;
      if (is_rope) {
        tile::load_bf16_values(a, mine, kv_plain_bytes(Format), g);
      } else {
        Keys::load_values(a, mine, block, g);
        if constexpr (Keys::kHasFactors)
          factors = ptx::ld_shared_v2_u32(ptx::shared_address(shared.fixed.factors[buffer]) +
                                          block * (kSparseBlockKeys * 2) +
                                          piece * (kFewHeadsPieceKeys * 2) + t * 8);
      }
#pragma unroll
      for (int n = 0; n < Tiles; ++n) {
        scaled[n][0] = b[n][0], scaled[n][1] = b[n][1];
        if (Keys::kHasFactors && !is_rope) {
          scaled[n][0] = tile::mul_bf16x2(b[n][0], factors.x);
          scaled[n][1] = tile::mul_bf16x2(b[n][1], factors.y);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int n = 0; n < Tiles; ++n)
          ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(o[half][i][n], a[i], scaled[n],
                                                           o[half][i][n]);
      }
    }
  }

  __device__ void add_block() {
    const Position own = tile::ahead(at, warp);
    ring.wait_full(own);
    float s[Tiles][4];
    PerHead<Tiles> mine;
    score(s, rows_of(own));
    store_value_factors(rows_of(own));
    weigh(s, shared.valid[own.stage], mine);
    ptx::bar_sync<1, kWarps * 32>();
    const uint4 changed = *reinterpret_cast<const uint4*>(shared.fixed.has_changed[buffer]);
    const bool has_changed = (changed.x | changed.y | changed.z | changed.w) != 0;
    if (has_changed) agree(mine);
#pragma unroll 1
    for (std::uint32_t piece = 0; piece < kFewHeadsPieces; ++piece) {
      ring.wait_full(at);
      add_piece(piece, rows_of(at), has_changed);
      ring.release(at);
      at.advance();
    }
    buffer ^= 1;
  }

  __device__ void begin() {
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        reference[n][h] = kNoKey, sum[n][h] = 0.0f, maxima[n][h] = -INFINITY;
#pragma unroll
        for (int i = 0; i < 8; ++i) o[i / 4][i % 4][n][h] = o[i / 4][i % 4][n][2 + h] = 0.0f;
      }
    }
  }

  /// The warp's 128 dimensions of a head, eight of 64 a lane.
  __device__ void store_head(const tile::SparseQuery& query, std::int32_t partial, int n, int h,
                             std::int32_t head, float factor) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool is_rope = half == 1 && warp == kWarps - 1;
      const float scale = is_rope ? factor : factor * Keys::kValue;
      const std::uint32_t dim = (warp * 2 + half) * 64 + g * 8;
      float x[8];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[2 * i] = o[half][i][n][h] * scale;
        x[2 * i + 1] = o[half][i][n][2 + h] * scale;
      }
      if (partial >= 0) {
        const std::int64_t to = (std::int64_t{partial} * p.heads + head) * kKvDims + dim;
        auto* const out = reinterpret_cast<float4*>(p.partial_out + to);
        out[0] = make_float4(x[0], x[1], x[2], x[3]);
        out[1] = make_float4(x[4], x[5], x[6], x[7]);
      } else {
        std::uint16_t* const to = p.out + query.offset(p.out_strides, head) + dim;
        *reinterpret_cast<uint4*>(to) = tile::pack_chunk<tile::Bf16>(x, 1.0f);
      }
    }
  }

  /// The largest score is not what weights are relative to.
  __device__ void store_maximum(const tile::SparseQuery& query, std::int32_t partial,
                                std::uint32_t head) const {
    if (p.max_logits == nullptr || partial >= 0) return;
    const auto& all = shared.fixed.maxima;
    const float largest =
        fmaxf(fmaxf(all[0][head], all[1][head]), fmaxf(all[2][head], all[3][head]));
    p.max_logits[query.offset(p.lse_strides, static_cast<std::int32_t>(head))] =
        largest * tile::kLn2;
  }

  __device__ void finish(const tile::SparseQuery& query, std::int32_t partial) {
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int step = 4; step < 32; step *= 2)
          sum[n][h] += __shfl_xor_sync(kAllLanes, sum[n][h], step);
        if (g == 0) {
          shared.fixed.sums[warp][n * 8 + t * 2 + h] = sum[n][h];
          if constexpr (Format == KvFormat::kBf16)
            shared.fixed.maxima[warp][n * 8 + t * 2 + h] = maxima[n][h];
        }
      }
    }
    ptx::bar_sync<1, kWarps * 32>();
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const std::uint32_t column = n * 8 + t * 2 + h;
        const auto head = static_cast<std::int32_t>(column);
        if (head >= p.heads) continue;
        const auto& sums = shared.fixed.sums;
        const float total =
            (sums[0][column] + sums[1][column]) + (sums[2][column] + sums[3][column]);
        const bool is_empty = reference[n][h] == kNoKey;
        const tile::SparseRowSum row = {is_empty ? -INFINITY : reference[n][h], total};
        store_head(query, partial, n, h, head, row.factor(partial < 0 ? p.sink : nullptr, head));
        if (warp == 0 && g == 0) {
          tile::store_sparse_row_sum(p, query, partial, head, row);
          if constexpr (Format == KvFormat::kBf16) store_maximum(query, partial, column);
        }
      }
    }
  }

  __device__ void run() {
    SparseWork piece;
    for (tile::SparseWalk walk(p, static_cast<std::int32_t>(blockIdx.x)); walk.next(piece);) {
      const tile::SparseQuery query(p, piece.query);
      const std::int32_t end = min(piece.end_block, query.num_blocks());
      load_query(query);
      begin();
      ptx::bar_sync<1, kWarps * 32>();
      for (std::int32_t i = piece.begin_block; i < end; ++i) add_block();
      finish(query, piece.partial);
    }
  }
};

/// Registers of a thread: all 64 K of the multiprocessor, most to those who have accumulators.
template <int Residents>
constexpr int kLoaderRegisters = 56;
template <int Residents>
constexpr int kConsumerRegisters = Residents == 1 ? 240 : 200;

template <KvFormat Format, int Heads>
__device__ void attend(const SparseDecodeParams& params) {
  using Shared = FewHeadsShared<Format, Heads>;
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<Shared*>(shared_bytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shared::kStages; ++i) {
      ptx::mbarrier_init(ptx::shared_address(&shared.full[i]),
                         33);  // the loader's copies; its word
      ptx::mbarrier_init(ptx::shared_address(&shared.empty[i]), kWarps);
    }
  }
  __syncthreads();
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  if (warp < kWarps) {
    ptx::setmaxnreg_inc_sync_aligned<kConsumerRegisters<few_heads_residents(Format, Heads)>>();
    Consumer<Format, Heads / 8>(params, shared).run();
  } else {
    ptx::setmaxnreg_dec_sync_aligned<kLoaderRegisters<few_heads_residents(Format, Heads)>>();
    tile::FewHeadsLoader<Format, Shared::kStages>{
        tile::Ring<Shared::kStages>(
            *reinterpret_cast<tile::RingBarriers<Shared::kStages>*>(shared.full)),
        ptx::shared_address(shared.rows), reinterpret_cast<uint2*>(shared.valid)}
        .run(params, warp - kWarps);
  }
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_ENTRY(NAME, FORMAT, HEADS)                                        \
  extern "C" __global__ void __launch_bounds__(                                      \
      tilewright::kernels::kFewHeadsThreads,                                         \
      tilewright::kernels::few_heads_residents(tilewright::KvFormat::FORMAT, HEADS)) \
      sparse_few_heads_##NAME(                                                       \
          const __grid_constant__ tilewright::kernels::SparseDecodeParams params) {  \
    tilewright::kernels::attend<tilewright::KvFormat::FORMAT, HEADS>(params);        \
  }

TILEWRIGHT_ENTRY(fp8_h8, kFp8, 8)
TILEWRIGHT_ENTRY(fp8_h16, kFp8, 16)
TILEWRIGHT_ENTRY(fp8_h32, kFp8, 32)
TILEWRIGHT_ENTRY(nvfp4_h8, kNvfp4, 8)
TILEWRIGHT_ENTRY(nvfp4_h16, kNvfp4, 16)
TILEWRIGHT_ENTRY(nvfp4_h32, kNvfp4, 32)
TILEWRIGHT_ENTRY(bf16_h8, kBf16, 8)
TILEWRIGHT_ENTRY(bf16_h16, kBf16, 16)
TILEWRIGHT_ENTRY(bf16_h32, kBf16, 32)
