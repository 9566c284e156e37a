// targets: sm_100f
//
// Stage G, stage D by pairs of CTAs: every token is gathered and converted once, by one of the two.
//
// In stage D both CTAs of a query make all scores, and for that each converts all tokens; a tile of
// them fills what the queries leave of shared memory, so conversion and products take turns. A pair
// that multiplies together (M = 128, stage F) has 64 heads a CTA: half of the queries' memory, half
// of the keys each, and room for two tiles. Each CTA gathers half of a tile's tokens. As keys they
// stay where they are; as values the second product wants all tokens of half of the columns, so
// half of what a CTA converts is stored into the other's shared memory, too.
//
//   warp 5, one thread    32 tokens of a tile -> 8 gather4 -> ring of raw rows
//   warps 6-9             raw rows, scales -> 16 bits -> keys here, values here or there; a warp
//                         arrives at k_ready, in the first CTA
//   warp 4, one thread    in the first CTA, whichever is ready: S of the next tile, or O += P V of
//                         the last; commits arrive in both
//   warps 0-3             as in stage F; a warp looks at the slots of its 32 keys
//
//   copies     | 0 | 1 | 2 |   | 3 |            half a tile each
//   convert        | 0 | 1 |       | 2 | 3 |
//   tensor             | S0 | S1 | O0 |  O1 | S2 | ..
//   rows                    | 0  | 1  |         | 2 |
//
//   shared memory, a tile    keys: 32 tokens by 512 columns      32 KiB
//                            values: 64 tokens by 256 columns    32 KiB
//   (Own tokens of own columns lie there twice: one descriptor serves both CTAs, so that keys must
//   begin at the same place in both, and values must have the same order.)
//   columns of Tensor Memory   S 0..31, 32..63, O 64..319, six of eight boxes of Q 320..511. P goes
//                              where the first two of those were.
//
//   barriers   k_ready[2], p_ready[2], q_ready: in the first, a warp an arrival
//              s_full[2], k_free[2]: in both, by commit. k_free also says that the values of its
//              tile are in the results: rescaling waits for the last, and so does the end
//
// Counted, cycles of an SM for 64 tokens and 128 heads (bf16, DeepSeek's pages):
//
//   stage                    tensor   special   issue   shared memory   KiB gathered
//   D, half of the columns     1536       512    1714            2944             36
//   G, half of the heads       1024       256     979            1672             18
//
// D's shared memory and special function unit take turns, 3456; here the largest counts. Limit: a
// tile goes through four hands, and two are in flight, so that the bound wants the four within
// 3344 cycles: 500 to 1000 to convert 32 tokens, 1024 for the products, the rest for a softmax.
// Sources: stages D and F; FlashMLA exchanges converted keys in the pair on Hopper.
#include "kernels/attention_sm100/paged_keys.h"
#include "kernels/attention_sm100/row_softmax.h"
#include "kernels/attention_sm100/stage_g_paged_pair.h"
#include "kernels/attention_sm100/tensor_attention_pair.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kHeadDim = 512, kKeys = kStageGKeys, kRawStages = kStageGRawStages;
constexpr int kOwnKeys = kKeys / tile::kPairCtas;
constexpr int kFirstConverter = 6, kConverterWarps = 4;
constexpr int kBoxes = kHeadDim / tile::kBoxElems, kOwnBoxes = kBoxes / tile::kPairCtas;
constexpr int kHalfBoxBytes = tile::kHalfRows * tile::kBoxRowBytes;

// Columns of Tensor Memory: two tiles of scores, results, and as many boxes of queries as fit.
constexpr int kColumns = 512, kScores = kKeys / 2, kResults = 2 * kScores;
constexpr int kHeld = kResults + kHeadDim / 2, kHeldBoxes = (kColumns - kHeld) / 32;

template <class Element, class Format>
struct Kernel {
  static_assert(Format::kHeadDim == kHeadDim);
  using Raw = tile::RawRows<Format, kRawStages>;

  struct Shared {
    std::uint8_t q[kBoxes][kHalfBoxBytes];  // 0 and 1 become P, once they are in Tensor Memory
    std::uint8_t keys[2][kBoxes][kOwnKeys * tile::kBoxRowBytes];    // own tokens, all columns
    std::uint8_t values[2][kOwnBoxes][kKeys * tile::kBoxRowBytes];  // all tokens, own columns
    Raw raw;
    float exchanged[2][tile::kRowThreads];
    std::uint64_t q_full, q_ready, k_ready[2], k_free[2], s_full[2], p_ready[2];
    std::uint32_t tensor_memory;

    __device__ void initialise() {
      raw.initialise();
      for (std::uint64_t* barrier : {&q_full, &s_full[0], &s_full[1], &k_free[0], &k_free[1]})
        ptx::mbarrier_init(ptx::shared_address(barrier), 1);
      for (std::uint64_t* barrier : {&q_ready, &p_ready[0], &p_ready[1]})
        ptx::mbarrier_init(ptx::shared_address(barrier), tile::kPairWarps);
      for (std::uint64_t& barrier : k_ready)
        ptx::mbarrier_init(ptx::shared_address(&barrier), tile::kPairCtas * kConverterWarps);
    }
  };
  static_assert(sizeof(Shared) <= stage_g_shared_bytes(Format::kRowBytes));
  static_assert(kHeldBoxes >= 2);

  // Half of a query's heads, and its list.
  struct Work : tile::GroupRows {
    std::uint32_t rank;
    tile::TokenList list;

    __device__ Work(const StageDParams& params, std::uint32_t rank_in_pair)
        : tile::GroupRows{params.attention.heads / tile::kPairCtas,
                          1,
                          static_cast<std::int32_t>(blockIdx.x) / tile::kPairCtas,
                          static_cast<std::int32_t>(rank_in_pair),
                          static_cast<std::int32_t>(blockIdx.z),
                          0,
                          {0, params.attention.q_len, 0, params.topk}},
          rank(rank_in_pair),
          list(params, batch, first_query) {}
    __device__ std::int32_t steps() const { return (list.count + kKeys - 1) / kKeys; }
    /// Number in the list of the first token of a tile that this CTA converts.
    __device__ std::int32_t own_tokens(std::int32_t step) const {
      return step * kKeys + static_cast<std::int32_t>(rank) * kOwnKeys;
    }
  };

  static __device__ void load(const StageDParams& params, Shared& shared, const Work& work) {
    if (work.steps() <= 0) return;
    const std::uint32_t q_full = ptx::shared_address(&shared.q_full);
    ptx::mbarrier_arrive_expect_tx(q_full, kBoxes * work.box_rows() * tile::kBoxRowBytes);
    tile::load_queries(params.attention, shared.q, work, q_full);
    tile::RingPosition<kRawStages> at;
    for (std::int32_t step = 0; step < work.steps(); ++step) {
      for (int i = 0; i < kOwnKeys; i += Raw::kKeys)
        shared.raw.gather(params.cache_map, work.list, work.own_tokens(step) + i, at);
    }
  }

  // A token's numbers go to the keys of this CTA, and to the values of the CTA that has those
  // columns: of every 256 the first half is the first CTA's.
  static __device__ void convert(Shared& shared, const Work& work) {
    const std::uint32_t warp = threadIdx.x / 32 - kFirstConverter;
    const std::uint32_t owner = warp / 2;  // of boxes warp and warp + 4
    tile::RingPosition<kRawStages> at;
    for (std::int32_t step = 0; step < work.steps(); ++step) {
      const int buffer = step % 2;
      ptx::mbarrier_wait_parity_cluster(ptx::shared_address(&shared.k_free[buffer]),
                                        (step / 2 & 1) ^ 1);
      std::uint8_t* const values = ptx::mapa(&shared.values[buffer][0][0], owner);
      for (int i = 0; i < kOwnKeys; i += Raw::kKeys) {
        shared.raw.template convert<Element>(
            work.list, work.own_tokens(step) + i, warp, at,
            [&](const tile::KeyQuarter& lane, std::uint32_t box, std::uint32_t row,
                const uint4(&chunks)[2]) {
              const std::uint32_t own_box = box / 4 * 2 + box % 2;
              lane.store(shared.keys[buffer][box], i + row, chunks);
              lane.store(values + own_box * kKeys * tile::kBoxRowBytes,
                         work.rank * kOwnKeys + i + row, chunks);
            });
      }
      ptx::fence_proxy_async_shared_cluster();
      tile::hand_over_to_leader(shared.k_ready[buffer]);
    }
  }

  // One thread of the first CTA multiplies for both; it takes what is ready first.
  struct Multiplier {
    Shared& shared;
    std::uint32_t columns;

    static __device__ bool is_done(std::uint64_t& barrier, std::int32_t step) {
      return ptx::mbarrier_try_wait_parity_cluster(ptx::shared_address(&barrier), step / 2 & 1);
    }
    __device__ void score(std::int32_t step) const {
      const std::uint32_t s = columns + step % 2 * kScores;
      ptx::tcgen05_fence_after_thread_sync();
#pragma unroll
      for (int box = 0; box < kBoxes; ++box) {
        const std::uint32_t k = ptx::shared_address(shared.keys[step % 2][box]);
        if (box < kHeldBoxes) {
          tile::issue_scores_of_halves<Element, kKeys>(s, columns + kHeld + box * 32, k, box > 0);
        } else {
          tile::issue_scores<Element, kKeys, tile::kTensorRows, tile::kPairCtas>(
              s, ptx::shared_address(shared.q[box]), k, true);
        }
      }
      tile::commit_to_pair(shared.s_full[step % 2]);
    }
    __device__ void add_values(std::int32_t step) const {
      ptx::tcgen05_fence_after_thread_sync();
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        tile::issue_values_of_halves<Element, kKeys>(
            columns + kResults + i * tile::kTensorRows, ptx::shared_address(shared.q[step % 2]),
            ptx::shared_address(shared.values[step % 2][i * 2]), step > 0);
      }
      tile::commit_to_pair(shared.k_free[step % 2]);
    }
    __device__ void run(std::int32_t steps) const {
      if (steps <= 0) return;
      tile::wait_for_pair(ptx::shared_address(&shared.q_ready), 0);
      std::int32_t scored = 0, added = 0;
      while (added < steps) {
        if (added < scored && is_done(shared.p_ready[added % 2], added)) {
          add_values(added++);
        } else if (scored < steps && scored < added + 2 &&
                   is_done(shared.k_ready[scored % 2], scored)) {
          score(scored++);
        }
      }
    }
  };

  // Scores of a thread's 32 keys of its row become an operand.
  static __device__ void weigh(const StageDParams& params, Shared& shared, const Work& work,
                               std::uint32_t own, tile::RowSoftmax& softmax, std::int32_t step) {
    const float scale = params.attention.scale_log2;
    const auto part = static_cast<std::int32_t>(threadIdx.x / tile::kHalfRows);
    float s[1][32], factor;
    tile::load_row(s, own + step % 2 * kScores);
    tile::hide_missing(s[0], work.list, step * kKeys + part * kOwnKeys);
    float largest = tile::largest_of(s, softmax.reference);
    largest = fmaxf(largest, tile::exchange_in_row(shared.exchanged, step, largest));
    if (softmax.raise_to(largest, scale, factor) && step > 0) {
      wait_for_values(shared, step - 1);
      tile::scale_row<kHeadDim / 2>(own + kResults, factor);
    }
    softmax.exponentiate(s, scale);
    tile::store_operand_of_halves<Element>(shared.q[step % 2], s);
    ptx::tcgen05_wait_st_sync_aligned();
  }
  // The same for a warp without rows.
  static __device__ void weigh_nothing(Shared& shared, std::int32_t step) {
    tile::exchange_in_row(shared.exchanged, step, -INFINITY);
    const float nothing[1][32] = {};
    tile::store_operand_of_halves<Element>(shared.q[step % 2], nothing);
  }
  static __device__ void wait_for_values(Shared& shared, std::int32_t step) {
    tile::wait_for_pair(ptx::shared_address(&shared.k_free[step % 2]), step / 2 & 1);
  }

  static __device__ void attend(const StageDParams& params, Shared& shared, const Work& work,
                                std::uint32_t columns, tile::RowSoftmax& softmax) {
    const std::int32_t steps = work.steps();
    if (steps <= 0) return;
    const std::uint32_t own = tile::own_lanes(columns);
    const auto row = static_cast<std::int32_t>(threadIdx.x % tile::kHalfRows);
    const bool has_rows = ptx::uniform(row) < work.rows();
    ptx::mbarrier_wait_parity(ptx::shared_address(&shared.q_full), 0);
    tile::hold_queries<kHeldBoxes>(shared.q, own + kHeld);
    tile::hand_over_to_leader(shared.q_ready);
    for (std::int32_t step = 0; step < steps; ++step) {
      tile::wait_for_pair(ptx::shared_address(&shared.s_full[step % 2]), step / 2 & 1);
      if (has_rows) {
        weigh(params, shared, work, own, softmax, step);
      } else {
        weigh_nothing(shared, step);
      }
      tile::hand_over_to_leader(shared.p_ready[step % 2]);
    }
    if (steps > 1) wait_for_values(shared, steps - 2);
    wait_for_values(shared, steps - 1);
  }

  static __device__ void finish(const StageDParams& params, Shared& shared, const Work& work,
                                std::uint32_t columns, tile::RowSoftmax& softmax) {
    softmax.sum += tile::exchange_in_row(shared.exchanged, work.steps(), softmax.sum);
    const float factor = tile::finish_group_row<tile::kHalfRows>(params.attention, work, softmax);
    tile::store_results<Element, kBoxes, tile::kHalfRows>(
        params.attention, shared.q, work, columns + kResults, factor, work.steps() > 0);
  }

  static __device__ void run(const StageDParams& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<Shared*>(dynamic);
    const Work work(params, ptx::cluster_ctarank());
    tile::clear_rows_behind(shared.q, work.box_rows());
    const std::uint32_t columns = tile::open_tensor_memory<kColumns, tile::kPairCtas>(
        shared.tensor_memory, [&] { shared.initialise(); });
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
    if (warp < tile::kMmaWarp) {
      tile::RowSoftmax softmax;
      attend(params, shared, work, columns, softmax);
      finish(params, shared, work, columns, softmax);
    } else if (warp >= kFirstConverter) {
      convert(shared, work);
    } else if (ptx::elect_sync()) {
      if (warp == tile::kLoadWarp) {
        load(params, shared, work);
      } else if (work.rank == 0) {
        Multiplier{shared, columns}.run(work.steps());
      }
    }
    __syncwarp();
    tile::close_tensor_memory<kColumns, tile::kPairCtas>(columns);
  }
};

}  // namespace
#define TILEWRIGHT_STAGE_G(NAME, ELEMENT, ...)                                      \
  TILEWRIGHT_KERNEL(attention_sm100_stage_g_##NAME, StageDParams,                   \
                    __cluster_dims__(2, 1, 1) __launch_bounds__(kStageGThreads, 1), \
                    Kernel<tile::ELEMENT, tile::__VA_ARGS__>::run)

TILEWRIGHT_STAGE_G(bf16_deepseek, Bf16, DeepSeekRows)
TILEWRIGHT_STAGE_G(bf16_e4m3_d512, Bf16, TokenScaledRows<512>)
TILEWRIGHT_STAGE_G(f16_deepseek, Fp16, DeepSeekRows)

}  // namespace tilewright::kernels
