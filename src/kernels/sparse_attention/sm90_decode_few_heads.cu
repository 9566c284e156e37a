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

/// Of each tile of 8 heads a lane has heads 2 t and 2 t + 1.
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
  std::uint32_t warp, piece, half, g, t;  ///< half: of the dimensions of the warp's scores
  Position at = {};
  std::uint32_t buffer = 0;
  float o[4][Tiles][4];  ///< dimensions 64 warp + 8 g + 2 i (0, 1) and + 1 (2, 3)
  PerHead<Tiles> reference, sum, largest;

  __device__ Consumer(const SparseDecodeParams& params, Shared& memory, std::uint32_t warp_number)
      : p(params),
        shared(memory),
        ring(*reinterpret_cast<tile::RingBarriers<kStages>*>(memory.full)),
        warp(warp_number),
        piece(warp % kFewHeadsPieces),
        half(warp / kFewHeadsPieces),
        g(threadIdx.x % 32 / 4),
        t(threadIdx.x % 4) {}

  __device__ std::uint32_t rows_of(Position at_piece) const {
    return ptx::shared_address(shared.rows) + at_piece.stage * (kFewHeadsPieceKeys * kPitch);
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

  /// x += the four products of a block, in as many chains as there are tiles of heads.
  __device__ void multiply_query(float (&x)[Tiles][4], const tile::KeyFragments& a,
                                 std::uint32_t block) const {
    const std::uint32_t q =
        ptx::shared_address(shared.fixed.q) + g * kFewHeadsQueryPitch + block * 128 + t * 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      uint4 b[Tiles];
#pragma unroll
      for (int n = 0; n < Tiles; ++n)
        b[n] = ptx::ld_shared_v4_u32(q + n * (8 * kFewHeadsQueryPitch) + i * 16);
#pragma unroll
      for (int n = 0; n < Tiles; ++n)
        ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(x[n], a[2 * i], {b[n].x, b[n].y}, x[n]);
#pragma unroll
      for (int n = 0; n < Tiles; ++n)
        ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(x[n], a[2 * i + 1], {b[n].z, b[n].w},
                                                         x[n]);
    }
  }

  /// A block of 64 plain dimensions, number `i` of the warp's half.
  __device__ void score_block(float (&s)[Tiles][4], const tile::ScoreRows& rows,
                              const std::uint32_t (&scales)[2], int i) const {
    const std::uint32_t block = half * 4 + static_cast<std::uint32_t>(i);
    tile::KeyFragments a;
    Keys::load_scores(a, rows, block, t);
    if constexpr (kScalesSums) {
      float x[Tiles][4] = {};
      multiply_query(x, a, block);
      const float factors[2] = {Keys::sum_factor(scales[0], i), Keys::sum_factor(scales[1], i)};
#pragma unroll
      for (int n = 0; n < Tiles; ++n) {
#pragma unroll
        for (int c = 0; c < 4; ++c) s[n][c] = fmaf(x[n][c], factors[c / 2], s[n][c]);
      }
    } else {
      if constexpr (Keys::kHasFactors) scale_codes(a, scales, i);
      multiply_query(s, a, block);
    }
  }
  __device__ static void scale_codes(tile::KeyFragments& a, const std::uint32_t (&scales)[2],
                                     int i) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::uint32_t factor = Keys::code_factor(scales[r], i) * 0x10001u;
#pragma unroll
      for (int k = 0; k < 8; ++k)
        a[k / 2][k % 2 * 2 + r] = tile::mul_bf16x2(a[k / 2][k % 2 * 2 + r], factor);
    }
  }

  /// Sums over the warp's half of the dimensions, of keys few_heads_key(g) (0, 1) and that and 8
  /// (2, 3) of its piece, times 1 / kScore.
  __device__ void score(float (&s)[Tiles][4], std::uint32_t rows) const {
    const std::uint32_t key = few_heads_key(g);
    const tile::ScoreRows mine = {rows + key * kPitch, rows + (key + 8) * kPitch};
    std::uint32_t scales[2] = {};
    if constexpr (Keys::kHasFactors) {
      scales[0] = ptx::ld_shared_u32(mine[0] + kv_data_bytes(Format) + half * 4);
      scales[1] = ptx::ld_shared_u32(mine[1] + kv_data_bytes(Format) + half * 4);
    }
#pragma unroll
    for (int n = 0; n < Tiles; ++n) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.0f;
#pragma unroll
    for (int i = 0; i < 3; ++i) score_block(s, mine, scales, i);
    if (half == 0) {
      score_block(s, mine, scales, 3);
    } else {
      tile::KeyFragments a;
      tile::load_bf16_scores(a, mine, kv_plain_bytes(Format), t);
      multiply_query(s, a, kPlainBlocks);
    }
  }

  /// Of two warps with the same keys each gets all dimensions of half of the keys, and x of them.
  __device__ void exchange(PerHead<Tiles>& x, const float (&s)[Tiles][4]) {
    const std::uint32_t lane = threadIdx.x % 32;
    auto& to = shared.fixed.scores[warp];
    const auto& from = shared.fixed.scores[warp ^ kFewHeadsPieces];
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
      const float2 other =
          half == 0 ? make_float2(s[n][2], s[n][3]) : make_float2(s[n][0], s[n][1]);
      *reinterpret_cast<float2*>(to[n][lane]) = other;
    }
    ptx::bar_sync<64>(2 + piece);
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
      const float2 other = *reinterpret_cast<const float2*>(from[n][lane]);
      x[n][0] = (half == 0 ? s[n][0] : s[n][2]) + other.x;
      x[n][1] = (half == 0 ? s[n][1] : s[n][3]) + other.y;
    }
  }

  /// What the values of the warp's piece are to be multiplied with beside their weights.
  __device__ void store_value_factors(std::uint32_t rows) {
    if constexpr (Keys::kHasFactors) {
      const std::uint32_t lane = threadIdx.x % 32, row = lane % 16, first = lane / 16 * 2;
      const std::uint32_t scales =
          ptx::ld_shared_u32(rows + row * kPitch + kv_data_bytes(Format) + half * 4) >> 8 * first;
      const std::uint32_t to = piece * kFewHeadsPieceKeys + few_heads_position(row);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t block = half * 4 + first + static_cast<std::uint32_t>(i);
        if (block < kPlainBlocks)
          shared.fixed.factors[buffer][block][to] =
              static_cast<std::uint16_t>(Keys::code_factor(scales, i));
      }
    }
  }

  /// Scores of the warp's eight keys become weights in shared memory. `mine`: what these are
  /// relative to.
  __device__ void weigh(PerHead<Tiles>& x, bool exists, PerHead<Tiles>& mine) {
    const float scale = p.scale_log2 * Keys::kScore;
    bool grows = false;
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        x[n][h] = exists ? x[n][h] * scale : -INFINITY;
        float top = x[n][h];
#pragma unroll
        for (int step = 4; step < 32; step *= 2)
          top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, step));
        if constexpr (Format == KvFormat::kBf16) largest[n][h] = fmaxf(largest[n][h], top);
        const bool has_grown = top > reference[n][h] + kTolerated;
        mine[n][h] = has_grown ? top : reference[n][h];
        grows |= has_grown;
      }
    }
    const std::uint32_t key = few_heads_key(g) + half * 8;
    std::uint8_t* const weights =
        shared.fixed.weights[buffer] + (piece * kFewHeadsPieceKeys + few_heads_position(key)) * 2;
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const std::uint32_t head = n * 8 + t * 2 + static_cast<std::uint32_t>(h);
        const float weight = ptx::ex2_approx_ftz_f32(x[n][h] - mine[n][h]);
        sum[n][h] = fmaf(sum[n][h], ptx::ex2_approx_ftz_f32(reference[n][h] - mine[n][h]), weight);
        *reinterpret_cast<std::uint16_t*>(weights + head * kFewHeadsWeightPitch) =
            static_cast<std::uint16_t>(tile::Bf16::pack(weight, 0.0f));
        if (g == 0) shared.fixed.references[buffer][warp][head] = mine[n][h];
      }
    }
    grows = __any_sync(kAllLanes, grows);
    if (threadIdx.x % 32 == 0) shared.fixed.has_changed[buffer][warp] = grows ? 1 : 0;
  }

  __device__ float common_reference(std::uint32_t head) const {
    const auto& all = shared.fixed.references[buffer];
    float common = all[0][head];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) common = fmaxf(common, all[w][head]);
    return common;
  }
  /// After some warp has raised its reference: the largest is everybody's.
  __device__ void agree(const PerHead<Tiles>& mine) {
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float common = common_reference(n * 8 + t * 2 + static_cast<std::uint32_t>(h));
        const float factor = ptx::ex2_approx_ftz_f32(reference[n][h] - common);
        sum[n][h] *= ptx::ex2_approx_ftz_f32(mine[n][h] - common);
        reference[n][h] = common;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          o[i][n][h] *= factor;
          o[i][n][2 + h] *= factor;
        }
      }
    }
  }

  /// Weights of a piece as B operands; if references differ, relative to the common one.
  __device__ void load_weights(std::uint32_t (&b)[Tiles][2], std::uint32_t of_piece,
                               bool has_changed) const {
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
      const std::uint32_t head = n * 8 + g;
      const uint2 words = ptx::ld_shared_v2_u32(ptx::shared_address(shared.fixed.weights[buffer]) +
                                                head * kFewHeadsWeightPitch +
                                                of_piece * (kFewHeadsPieceKeys * 2) + t * 8);
      b[n][0] = words.x, b[n][1] = words.y;
      if (has_changed) {
        const auto& all = shared.fixed.references[buffer];
        const float common = common_reference(head);
        const std::uint32_t factors = tile::Bf16::pack(
            ptx::ex2_approx_ftz_f32(all[of_piece][head] - common),
            ptx::ex2_approx_ftz_f32(all[of_piece + kFewHeadsPieces][head] - common));
        b[n][0] = tile::mul_bf16x2(b[n][0], factors), b[n][1] = tile::mul_bf16x2(b[n][1], factors);
      }
    }
  }

  /// o += the warp's 64 dimensions of one piece times its weights.
  template <bool IsRope>
  __device__ void add_piece(std::uint32_t of_piece, std::uint32_t rows, bool has_changed) {
    tile::ValueRows mine;
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i)
      mine[i] = rows + (t + tile::few_heads_value_key(i)) * kPitch;
    std::uint32_t b[Tiles][2];
    load_weights(b, of_piece, has_changed);
    tile::KeyFragments a;
    if constexpr (IsRope) {
      tile::load_bf16_values(a, mine, kv_plain_bytes(Format), g);
    } else {
      Keys::load_values(a, mine, warp, g);
      if constexpr (Keys::kHasFactors) {
        const uint2 factors = ptx::ld_shared_v2_u32(
            ptx::shared_address(shared.fixed.factors[buffer]) + warp * (kSparseBlockKeys * 2) +
            of_piece * (kFewHeadsPieceKeys * 2) + t * 8);
#pragma unroll
        for (int n = 0; n < Tiles; ++n) {
          b[n][0] = tile::mul_bf16x2(b[n][0], factors.x);
          b[n][1] = tile::mul_bf16x2(b[n][1], factors.y);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int n = 0; n < Tiles; ++n)
        ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(o[i][n], a[i], b[n], o[i][n]);
    }
  }
  template <bool IsRope>
  __device__ void add_values(bool has_changed) {
    Position from = at;
#pragma unroll
    for (std::uint32_t i = 0; i < kFewHeadsPieces; ++i) {
      add_piece<IsRope>(i, rows_of(from), has_changed);
      from.advance();
    }
  }

  __device__ void add_block() {
    const Position own = tile::ahead(at, piece);
    ring.wait_full(own);
    float s[Tiles][4];
    PerHead<Tiles> x, mine;
    score(s, rows_of(own));
    store_value_factors(rows_of(own));
    exchange(x, s);
    weigh(x, (shared.valid[own.stage][half] >> g * 4 & 1) != 0, mine);
    ptx::bar_sync<1, kWarps * 32>();
    const auto changed = *reinterpret_cast<const std::uint64_t*>(shared.fixed.has_changed[buffer]);
    if (changed != 0) agree(mine);
#pragma unroll
    for (std::uint32_t i = 0; i < kFewHeadsPieces; ++i) ring.wait_full(tile::ahead(at, i));
    if (warp == kWarps - 1) {
      add_values<true>(changed != 0);
    } else {
      add_values<false>(changed != 0);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kFewHeadsPieces; ++i) ring.release(tile::ahead(at, i));
    at = tile::ahead(at, kFewHeadsPieces);
    buffer ^= 1;
  }

  __device__ void begin() {
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        reference[n][h] = kNoKey, sum[n][h] = 0.0f, largest[n][h] = -INFINITY;
#pragma unroll
        for (int i = 0; i < 4; ++i) o[i][n][h] = o[i][n][2 + h] = 0.0f;
      }
    }
  }

  /// The warp's 64 dimensions of a head, eight a lane.
  __device__ void store_head(const tile::SparseQuery& query, std::int32_t partial, int n, int h,
                             std::int32_t head, float factor) const {
    const float scale = warp == kWarps - 1 ? factor : factor * Keys::kValue;
    const std::uint32_t dim = warp * 64 + g * 8;
    float x[8];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[2 * i] = o[i][n][h] * scale;
      x[2 * i + 1] = o[i][n][2 + h] * scale;
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
  /// The largest score is not what weights are relative to.
  __device__ void store_largest(const tile::SparseQuery& query, std::int32_t partial,
                                std::uint32_t head) const {
    if (p.max_logits == nullptr || partial >= 0) return;
    float all = -INFINITY;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) all = fmaxf(all, shared.fixed.maxima[w][head]);
    p.max_logits[query.offset(p.lse_strides, static_cast<std::int32_t>(head))] = all * tile::kLn2;
  }

  /// Sums of all keys' weights, which the lanes of a quad, the quads and the warps have parts of.
  __device__ void share_sums() {
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int step = 4; step < 32; step *= 2)
          sum[n][h] += __shfl_xor_sync(kAllLanes, sum[n][h], step);
        const std::uint32_t head = n * 8 + t * 2 + static_cast<std::uint32_t>(h);
        if (g != 0) continue;
        shared.fixed.sums[warp][head] = sum[n][h];
        if constexpr (Format == KvFormat::kBf16) shared.fixed.maxima[warp][head] = largest[n][h];
      }
    }
    ptx::bar_sync<1, kWarps * 32>();
  }

  __device__ void finish(const tile::SparseQuery& query, std::int32_t partial) {
    share_sums();
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const std::uint32_t column = n * 8 + t * 2 + static_cast<std::uint32_t>(h);
        const auto head = static_cast<std::int32_t>(column);
        if (head >= p.heads) continue;
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) total += shared.fixed.sums[w][column];
        const bool is_empty = reference[n][h] == kNoKey;
        const tile::SparseRowSum row = {is_empty ? -INFINITY : reference[n][h], total};
        store_head(query, partial, n, h, head, row.factor(partial < 0 ? p.sink : nullptr, head));
        if (warp != 0 || g != 0) continue;
        tile::store_sparse_row_sum(p, query, partial, head, row);
        if constexpr (Format == KvFormat::kBf16) store_largest(query, partial, column);
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
constexpr int kLoaderRegisters = Residents == 1 ? 64 : 32;
template <int Residents>
constexpr int kConsumerRegisters = Residents == 1 ? 208 : 104;

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
    Consumer<Format, Heads / 8>(params, shared, warp).run();
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
