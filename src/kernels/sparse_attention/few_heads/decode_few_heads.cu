// targets: sm_90a sm_100f
//
// Sparse attention for up to 8, 16 or 32 heads, none of them padded to 64: keys and dimensions are
// the rows of mma.sync, heads its 8 columns. What changed against the naive rung: tensor cores,
// rows that come ahead through a ring, and codes converted by all warps, once for scores and once
// for values, straight into operands.
//
//   warps 8 to 11   loaders: warp w the rows of piece w (16 keys) of each block of 64
//   warps 0 to 7    scores: warp w piece w % 4, half w / 4 of the dimensions; values: dimensions
//                   64 w to 64 w + 63 of all 64 keys (warp 7 the rotated ones, always bf16)
//
//   time ->   | scores | halves <-> pair | maxima, P       | all eight | values | release ...
//   loaders   | rows of the blocks after it, as stages become free ...
//
// fp8: codes become f16 by the converter, three instructions for four with the one that moves the
// upper pair. Scales are powers of two: for scores they multiply the sums over 64 products, for
// values the probabilities, in f16 relative to the largest scale so far. Keys with scales too far
// below it (2^10) take bf16 probabilities and codes moved into bf16 instead. q is scaled by a power
// of two per head, so that f16 holds it. nvfp4: bf16 by moves and one multiplication, scales
// included.
// 32 heads are two teams of eight warps with 16 heads each, which share the rows.
//
// Probabilities are relative to a running maximum that stays until a score is more than 2^8 above
// it. A block with such scores computes them twice, behind one more barrier.
//
// Limits, fp8, per key and SM: 608 bytes, of HBM 34 cycles at 4.2 TB/s and 1.55 GHz;
// some 22 issue slots of each scheduler at 8 heads; shared memory 20 cycles; products 4 to 5 cycles
// a scheduler and 8 heads.
// Measured (H200, whole calls with a schedule made before, dependent launches, cold rows, two
// queries of 128 + 512 keys a sequence, fp8, us for 2 / 64 / 128 / 256 sequences): 8 heads 9.9 /
// 25.9 / 34.9 / 65.5, 16 heads 11.6 / 33.4 / 42.1 / 78.1. FlashMLA, padded to 64 heads, in the same
// run: 13.3 / 42.7 / 84.6 / 169 (bench/results/2026-11-22-sparse-attention.json, this form but for
// max_logits). For 32 heads plan() takes sm90_decode_wgmma from 64 sequences on.
// No entry spills: 80 registers, 96 for 32 heads.
// docs/notes/2026-11-22-dsv4-few-heads.md has the forms before, and what waits.
// Sources: DeepSeek-V4's formulas; FlashMLA for lists and lse; the ideas of
// docs/06-deepseek-v4.md.
#include "kernels/sparse_attention/few_heads/decode_few_heads.h"
#include "kernels/sparse_attention/few_heads/keys.h"
#include "kernels/sparse_attention/few_heads/loader.h"
#include "kernels/sparse_attention/few_heads/query.h"
#include "kernels/sparse_attention/few_heads/result.h"
#include "kernels/sparse_attention/walk.h"
#include "ptx/address.h"
#include "ptx/grid_dependency.h"
#include "ptx/math.h"
#include "ptx/mma_sync.h"
#include "ptx/warp_roles.h"
#include "tile/element.h"
#include "tile/entry.h"

#include <cstdint>

#include <math.h>

namespace tilewright::kernels {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kWarps = kFewHeadsConsumers;
constexpr int kPlainBlocks = kKvPlainDims / 64;
/// Growth of a score, as a power of 2, up to which the running maximum stays.
constexpr float kTolerated = 8.0f;
/// fp8: scales may be 2^kHeadroom above o's unit, where weights times these stay below f16's 2^16,
/// and 2^kDepth below it before f16 loses more of the weights than bf16 has.
constexpr std::uint32_t kHeadroom = 6, kDepth = 10;

template <KvFormat Format, int Heads>
struct Consumer {
  static constexpr int kTeams = few_heads_teams(Heads), Tiles = Heads / kTeams / 8;
  using Keys = tile::FewHeadsKeys<Format>;
  using Shared = FewHeadsShared<Format, Heads>;
  static constexpr int kStages = Shared::kStages, kPitch = few_heads_row_pitch(Format);
  using Position = tile::RingPosition<kStages>;
  static_assert(kStages > kFewHeadsPieces);

  const SparseDecodeParams& p;
  Shared& shared;
  FewHeadsFixed<Heads / kTeams>& fixed;
  tile::Ring<kStages> ring;
  std::uint32_t team, warp, piece, half, g, t;  ///< half: of the dimensions of the warp's scores
  Position at = {};
  std::uint32_t buffer = 0;
  float o[4][Tiles][4];  ///< dimensions 64 warp + 8 g + 2 i (0, 1) and + 1 (2, 3)
  tile::PerHead<Tiles> reference, sum;
  std::uint32_t ceiling = 0;  ///< fp8: o is in units of 2^(ceiling - 127)

  __device__ Consumer(const SparseDecodeParams& params, Shared& memory, std::uint32_t warp_number)
      : p(params),
        shared(memory),
        fixed(memory.fixed[warp_number / kWarps]),
        ring(*reinterpret_cast<tile::RingBarriers<kStages>*>(memory.full)),
        team(warp_number / kWarps),
        warp(warp_number % kWarps),
        piece(warp % kFewHeadsPieces),
        half(warp / kFewHeadsPieces),
        g(threadIdx.x % 32 / 4),
        t(threadIdx.x % 4) {}

  /// Of the team's heads.
  __device__ std::uint32_t head_of(int n, int h) const {
    return static_cast<std::uint32_t>(n * 8 + h) + t * 2;
  }
  __device__ std::int32_t first_head() const { return static_cast<std::int32_t>(team) * Tiles * 8; }
  __device__ std::uint32_t rows_of(Position at_piece) const {
    return ptx::shared_address(shared.rows) + at_piece.stage * (kFewHeadsPieceKeys * kPitch);
  }

  template <bool IsF16>
  __device__ static void multiply(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    if constexpr (IsF16) {
      ptx::mma_sync_aligned_m16n8k16_f32_f16_f16_f32(d, a, b, d);
    } else {
      ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(d, a, b, d);
    }
  }
  /// x += the four products of a block, in as many chains as there are tiles of heads.
  template <bool IsF16>
  __device__ void multiply_query(float (&x)[Tiles][4], const tile::KeyFragments& a,
                                 std::uint32_t block) const {
    const std::uint32_t at_q =
        ptx::shared_address(fixed.q) + g * kFewHeadsQueryPitch + block * 128 + t * 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      uint4 b[Tiles];
#pragma unroll
      for (int n = 0; n < Tiles; ++n)
        b[n] = ptx::ld_shared_v4_u32(at_q + n * (8 * kFewHeadsQueryPitch) + i * 16);
#pragma unroll
      for (int n = 0; n < Tiles; ++n) multiply<IsF16>(x[n], a[2 * i], {b[n].x, b[n].y});
#pragma unroll
      for (int n = 0; n < Tiles; ++n) multiply<IsF16>(x[n], a[2 * i + 1], {b[n].z, b[n].w});
    }
  }

  /// A block of 64 plain dimensions, number `i` of the warp's half.
  __device__ void score_block(float (&s)[Tiles][4], const tile::ScoreRows& rows,
                              const std::uint32_t (&scales)[2], int i) const {
    const std::uint32_t block = half * 4 + static_cast<std::uint32_t>(i);
    tile::KeyFragments a;
    Keys::load_scores(a, rows, block, t);
    if constexpr (Keys::kIsF16) {
      float x[Tiles][4] = {};
      multiply_query<true>(x, a, block);
      const float factors[2] = {Keys::sum_factor(scales[0], i), Keys::sum_factor(scales[1], i)};
#pragma unroll
      for (int n = 0; n < Tiles; ++n) {
#pragma unroll
        for (int c = 0; c < 4; ++c) s[n][c] = fmaf(x[n][c], factors[c / 2], s[n][c]);
      }
    } else {
      multiply_query<false>(s, a, block);
    }
  }

  /// Sums over the warp's half of the dimensions, of keys few_heads_key(g) (0, 1) and that and 8
  /// (2, 3) of its piece.
  __device__ void score(float (&s)[Tiles][4], std::uint32_t rows) const {
    const std::uint32_t key = few_heads_key(g);
    const tile::ScoreRows mine = {rows + key * kPitch, rows + (key + 8) * kPitch};
    std::uint32_t scales[2] = {};
    if constexpr (Keys::kIsF16) {
      scales[0] = ptx::ld_shared_u32(mine[0] + kv_data_bytes(Format) + half * 4);
      scales[1] = ptx::ld_shared_u32(mine[1] + kv_data_bytes(Format) + half * 4);
    }
#pragma unroll
    for (int n = 0; n < Tiles; ++n) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.0f;
// Not unrolled: two blocks' operands at once are more registers than there are.
#pragma unroll 1
    for (int i = 0; i < 3; ++i) score_block(s, mine, scales, i);
    if (half == 0) {
      score_block(s, mine, scales, 3);
    } else {
      tile::KeyFragments a;
      tile::load_bf16_scores(a, mine, kv_plain_bytes(Format), t);
      multiply_query<false>(s, a, kPlainBlocks);
    }
  }

  /// Of two warps with the same keys each gets all dimensions of half of the keys, and x of them.
  __device__ void exchange(tile::PerHead<Tiles>& x, const float (&s)[Tiles][4]) {
    const std::uint32_t lane = threadIdx.x % 32;
    auto& to = fixed.scores[warp];
    const auto& from = fixed.scores[warp ^ kFewHeadsPieces];
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
      const float2 other =
          half == 0 ? make_float2(s[n][2], s[n][3]) : make_float2(s[n][0], s[n][1]);
      *reinterpret_cast<float2*>(to[n][lane]) = other;
    }
    ptx::bar_sync<64>(kPieceBarrier + team * kFewHeadsPieces + piece);
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
      const float2 other = *reinterpret_cast<const float2*>(from[n][lane]);
      x[n][0] = (half == 0 ? s[n][0] : s[n][2]) + other.x;
      x[n][1] = (half == 0 ? s[n][1] : s[n][3]) + other.y;
    }
  }

  /// Weights of the warp's eight keys, relative to the references, to shared memory.
  __device__ void weigh(tile::PerHead<Tiles>& weights, const tile::PerHead<Tiles>& x) {
    const std::uint32_t key = few_heads_key(g) + half * 8;
    std::uint8_t* const to =
        fixed.weights[buffer] + (piece * kFewHeadsPieceKeys + few_heads_position(key)) * 2;
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        weights[n][h] = ptx::ex2_approx_ftz_f32(x[n][h] - reference[n][h]);
        *reinterpret_cast<std::uint16_t*>(to + head_of(n, h) * kFewHeadsWeightPitch) =
            static_cast<std::uint16_t>(tile::Bf16::pack(weights[n][h], 0.0f));
      }
    }
  }
  /// x: scores, in units of log2 from here on. Their maxima go to shared memory, and whether one is
  /// far above its running maximum.
  __device__ void find_maxima(tile::PerHead<Tiles>& x, bool exists) {
    bool grows = false;
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float unit = Keys::kIsF16 ? fixed.units[head_of(n, h)] : p.scale_log2;
        x[n][h] = exists ? x[n][h] * unit : -INFINITY;
        float top = x[n][h];
#pragma unroll
        for (int step = 4; step < 32; step *= 2)
          top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, step));
        grows |= top > reference[n][h] + kTolerated;
        if (g == 0) fixed.maxima[warp][head_of(n, h)] = top;
      }
    }
    grows = __any_sync(kAllLanes, grows);
    if (threadIdx.x % 32 == 0) fixed.grows[buffer][warp] = grows ? 1 : 0;
  }
  /// Running maxima lie below the largest score. Calls that ask for max_logits pay for it, one lane
  /// per head.
  __device__ void keep_largest() {
    const std::uint32_t head = threadIdx.x % 32;
    if (head >= Tiles * 8) return;
    fixed.largest[warp][head] = fmaxf(fixed.largest[warp][head], fixed.maxima[warp][head]);
  }
  /// After some warp has found a score far above: references become the maxima.
  __device__ void raise_references() {
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float top = reference[n][h];
#pragma unroll
        for (int w = 0; w < kWarps; ++w) top = fmaxf(top, fixed.maxima[w][head_of(n, h)]);
        const float factor = ptx::ex2_approx_ftz_f32(reference[n][h] - top);
        reference[n][h] = top;
        sum[n][h] *= factor;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          o[i][n][h] *= factor;
          o[i][n][2 + h] *= factor;
        }
      }
    }
  }

  /// fp8: what makes good the scales of the warp's 64 dimensions of a block's keys, relative to o's
  /// unit, which rises if it must. True if f16 would lose much of the least of them.
  __device__ bool find_value_factors() {
    const std::uint32_t lane = threadIdx.x % 32, row = lane % 16;
    std::uint32_t bytes[2], top = 0, bottom = 255;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Position from = tile::ahead(at, lane / 16 + static_cast<std::uint32_t>(2 * i));
      const std::uint32_t scales =
          ptx::ld_shared_u32(rows_of(from) + row * kPitch + kv_data_bytes(Format) + (warp & 4));
      bytes[i] = scales >> warp % 4 * 8 & 255u;
      top = max(top, bytes[i]);
      bottom = min(bottom, bytes[i] == 0 ? 255u : bytes[i]);  // 0: there is no such key
    }
    top = __reduce_max_sync(kAllLanes, top);
    bottom = __reduce_min_sync(kAllLanes, bottom);
    if (top > ceiling + kHeadroom) raise_ceiling(top);
    const bool is_wide = bottom + kDepth < ceiling;
    const std::uint32_t bias = (is_wide ? 127 + 60 : 127 - 112) - ceiling;
#pragma unroll
    for (std::uint32_t i = 0; i < 2; ++i) {
      const auto exponent = static_cast<std::int32_t>(bytes[i] + bias);
      const std::uint32_t to = (lane / 16 + 2 * i) * kFewHeadsPieceKeys + few_heads_position(row);
      fixed.factors[warp][to] = static_cast<std::uint16_t>(max(exponent, 0) << 7);
    }
    __syncwarp();
    return is_wide;
  }
  __device__ void raise_ceiling(std::uint32_t top) {
    const std::uint32_t by = top - ceiling;
    const float factor = by < 127 ? __uint_as_float((127 - by) << 23) : 0.0f;
    ceiling = top;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int n = 0; n < Tiles; ++n) {
#pragma unroll
        for (int c = 0; c < 4; ++c) o[i][n][c] *= factor;
      }
    }
  }

  /// Weights of a piece as B operands, times the values' factors.
  template <bool HasFactors, bool IsWide>
  __device__ void load_weights(std::uint32_t (&b)[Tiles][2], std::uint32_t of_piece) const {
    const std::uint32_t keys = of_piece * (kFewHeadsPieceKeys * 2) + t * 8;
    uint2 factors = {};
    if constexpr (HasFactors)
      factors = ptx::ld_shared_v2_u32(ptx::shared_address(fixed.factors[warp]) + keys);
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
      const uint2 words = ptx::ld_shared_v2_u32(ptx::shared_address(fixed.weights[buffer]) +
                                                (n * 8 + g) * kFewHeadsWeightPitch + keys);
      b[n][0] = words.x, b[n][1] = words.y;
      if constexpr (HasFactors) {
        // Positive bf16 times 2^-112, three bits further up, are f16.
        constexpr int kShift = IsWide ? 0 : 3;
        b[n][0] = tile::mul_bf16x2(words.x, factors.x) << kShift;
        b[n][1] = tile::mul_bf16x2(words.y, factors.y) << kShift;
      }
    }
  }
  /// o += the warp's 64 dimensions of a block's keys times their weights.
  template <bool IsRope, bool IsWide>
  __device__ void add_values() {
    constexpr bool kIsF16 = Keys::kIsF16 && !IsRope && !IsWide;
    Position from = at;
#pragma unroll(IsWide ? 1 : Format == KvFormat::kBf16 ? 2 : kFewHeadsPieces)
    for (std::uint32_t piece_of = 0; piece_of < kFewHeadsPieces; ++piece_of) {
      tile::ValueRows mine;
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i)
        mine[i] = rows_of(from) + (t + tile::few_heads_value_key(i)) * kPitch;
      from.advance();
      std::uint32_t b[Tiles][2];
      load_weights<Keys::kIsF16 && !IsRope, IsWide>(b, piece_of);
      tile::KeyFragments a;
      if constexpr (IsRope) {
        tile::load_bf16_values(a, mine, kv_plain_bytes(Format), g);
      } else {
        Keys::template load_values<IsWide>(a, mine, warp, g);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int n = 0; n < Tiles; ++n) multiply<kIsF16>(o[i][n], a[i], b[n]);
      }
    }
  }
  __device__ void add_plain_values() {
    if constexpr (Keys::kIsF16) {
      if (find_value_factors()) {
        add_values<false, true>();
        return;
      }
    }
    add_values<false, false>();
  }

  __device__ void add_block() {
    const Position own = tile::ahead(at, piece);
    ring.wait_full(own);
    float s[Tiles][4];
    tile::PerHead<Tiles> x, weights;
    score(s, rows_of(own));
    exchange(x, s);
    find_maxima(x, (shared.valid[own.stage][half] >> g * 4 & 1) != 0);
    weigh(weights, x);
    // With this barrier all pieces have come: each has been waited for.
    ptx::bar_sync<kWarps * 32>(kTeamBarrier + team);
    if (*reinterpret_cast<const std::uint64_t*>(fixed.grows[buffer]) != 0) {
      raise_references();
      weigh(weights, x);
      ptx::bar_sync<kWarps * 32>(kTeamBarrier + team);
    }
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) sum[n][h] += weights[n][h];
    }
    if (warp == kWarps - 1) {
      add_values<true, false>();
    } else {
      add_plain_values();
    }
    __syncwarp();
    if (p.max_logits != nullptr) keep_largest();
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane < kFewHeadsPieces) ptx::mbarrier_arrive(ring.empty(tile::ahead(at, lane)));
    at = tile::ahead(at, kFewHeadsPieces);
    buffer ^= 1;
  }

  /// After the barrier behind the query's load.
  __device__ void begin() {
    ceiling = 0;
    if (threadIdx.x % 32 < Tiles * 8) fixed.largest[warp][threadIdx.x % 32] = -INFINITY;
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        reference[n][h] = tile::kFewHeadsNoKey, sum[n][h] = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i) o[i][n][h] = o[i][n][2 + h] = 0.0f;
      }
    }
  }

  __device__ void run() {
    const std::int32_t mine = static_cast<std::int32_t>(threadIdx.x) - team * kWarps * 32;
    if (p.sink != nullptr && mine < Tiles * 8 && first_head() + mine < p.heads)
      fixed.sinks[mine] = p.sink[first_head() + mine];
    SparseWork work;
    for (tile::SparseWalk walk(p, static_cast<std::int32_t>(blockIdx.x)); walk.next(work);) {
      tile::FewHeadsQuery<Format, Tiles>{p, fixed, first_head(), warp}.load(
          tile::SparseQuery(p, work.query));
      if (mine == 0) fixed.work = work;  // and out of registers
      ptx::bar_sync<kWarps * 32>(kTeamBarrier + team);
      begin();
      const std::int32_t end = min(work.end_block, tile::SparseQuery(p, work.query).num_blocks());
      for (std::int32_t left = end - work.begin_block; left > 0; --left) add_block();
      work = fixed.work;
      tile::FewHeadsResult<Format, Tiles>{
          p, fixed, first_head(), warp, g, t, kTeamBarrier + team, o, reference, sum, ceiling}
          .store(tile::SparseQuery(p, work.query), work.partial);
    }
  }
};

/// Registers of a thread: nearly all of the SM's, most to the warps that multiply.
constexpr int kLoaderRegisters = 32;
template <int Heads>
constexpr int kConsumerRegisters = few_heads_residents(Heads) == 1 ? 112 : 104;

template <KvFormat Format, int Heads>
__device__ void attend(const SparseDecodeParams& params) {
  using Shared = FewHeadsShared<Format, Heads>;
  constexpr int kConsumers = Shared::kTeams * kWarps;
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<Shared*>(shared_bytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shared::kStages; ++i) {
      ptx::mbarrier_init(ptx::shared_address(&shared.full[i]),
                         33);  // the loader's copies; its word
      ptx::mbarrier_init(ptx::shared_address(&shared.empty[i]), kConsumers);
    }
  }
  __syncthreads();
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  if (warp < kConsumers) {
    ptx::setmaxnreg_inc_sync_aligned<kConsumerRegisters<Heads>>();
    Consumer<Format, Heads>(params, shared, warp).run();
  } else {
    ptx::setmaxnreg_dec_sync_aligned<kLoaderRegisters>();
    tile::FewHeadsLoader<Format, Shared::kStages>{
        tile::Ring<Shared::kStages>(
            *reinterpret_cast<tile::RingBarriers<Shared::kStages>*>(shared.full)),
        ptx::shared_address(shared.rows), reinterpret_cast<uint2*>(shared.valid)}
        .run(params, warp - kConsumers);
  }
}

}  // namespace
#define TILEWRIGHT_ENTRY(NAME, FORMAT, HEADS)                                                \
  TILEWRIGHT_KERNEL(sparse_few_heads_##NAME, SparseDecodeParams,                             \
                    __launch_bounds__(few_heads_threads(HEADS), few_heads_residents(HEADS)), \
                    attend<KvFormat::FORMAT, HEADS>)

TILEWRIGHT_ENTRY(fp8_h8, kFp8, 8)
TILEWRIGHT_ENTRY(fp8_h16, kFp8, 16)
TILEWRIGHT_ENTRY(fp8_h32, kFp8, 32)
TILEWRIGHT_ENTRY(nvfp4_h8, kNvfp4, 8)
TILEWRIGHT_ENTRY(nvfp4_h16, kNvfp4, 16)
TILEWRIGHT_ENTRY(nvfp4_h32, kNvfp4, 32)
TILEWRIGHT_ENTRY(bf16_h8, kBf16, 8)
TILEWRIGHT_ENTRY(bf16_h16, kBf16, 16)
TILEWRIGHT_ENTRY(bf16_h32, kBf16, 32)

}  // namespace tilewright::kernels
