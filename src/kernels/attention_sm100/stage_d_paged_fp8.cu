// targets: sm_100f
//
// Stage D, a paged cache of 8-bit numbers: keys are gathered by index, and converted on their way
// to the tensor core.
//
// New against stage C: the tokens that a query sees are a list of slots, anywhere in the pages. A
// tensor copy of the form gather4 takes four row numbers instead of one; the whole cache is one map
// whose rows are tokens (which is why a page is a multiple of a row, and what fills it up must be
// readable memory), and a slot that does not exist is row -1, which arrives as zeros. A row is 576
// bytes for 512 numbers instead of 1024, so memory is read half as much. Four warps turn 16 tokens
// at a time into bf16 or fp16 where both products read them: a token's vector is key and value, so
// one tile is the operand of both, once with the tokens as rows of n, once as the reduction index.
//
//   warp 5, one thread    16 slots -> 4 gather4 -> ring of raw rows
//   warps 6-9             raw rows, scales -> 16 bits, swizzled boxes of 64 tokens; arrive k_ready
//   warp 4, one thread    S = Q K^T; commit s_full; wait p_ready; O += P K; commit k_free
//   warps 0-3             as in stage C; lists with holes are masked by a ballot of the slots
//
//   copies     | 0 1 2 | 3 |4 ..             16 tokens each, three in flight
//   convert      | 0 1 2 3 |                 | 4 5 6 7 |
//   tensor                 | Q K |    | P K |          | Q K | ...
//   rows                         | softmax |
//
// 128 rows of queries of 512 numbers are 128 KiB, a tile of 64 tokens 64 KiB, raw rows 27 KiB:
// there is one tile, and conversion waits for the products of the last. Rows are heads of one
// query; with 512 value columns two CTAs share them, as in stage C, and each converts all tokens.
//
// Limit: 64 tokens are 36 KiB from memory, 2 x 64 x 512 numbers to convert: at 16 to 32 a cycle and
// SM 1000 to 2000 cycles, as against 1536 of the tensor core at 128 heads (1024 of them
// for the scores that both CTAs make).
// Sources: the kernel suite's stage D; FlashMLA's page format; PTX ISA, ".tile::gather4".
#include "kernels/attention_sm100/one_tile.h"
#include "kernels/attention_sm100/paged_keys.h"
#include "kernels/attention_sm100/row_softmax.h"
#include "kernels/attention_sm100/stage_d_paged_fp8.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kKeys = kStageDKeys, kRawStages = kStageDRawStages;
constexpr int kFirstConverter = 6, kConverterThreads = 128;

using Columns = tile::TensorColumns<kKeys>;

template <class Element, class Format>
struct Kernel {
  static constexpr int kHeadDim = Format::kHeadDim;
  static constexpr int kValues = sm100_value_columns(kHeadDim);
  static constexpr int kSplits = kHeadDim / kValues;
  static constexpr int kColumns = Columns::allocated(kValues);

  using Raw = tile::RawRows<Format, kRawStages>;

  struct Shared {
    static constexpr int kKeyBoxes = kHeadDim / tile::kBoxElems;
    static constexpr int kValueBoxes = kValues / tile::kBoxElems;

    std::uint8_t q[kKeyBoxes][tile::kBoxBytes];
    std::uint8_t keys[kKeyBoxes][kKeys * tile::kBoxRowBytes];
    Raw raw;
    std::uint64_t q_full, k_ready, k_free, s_full, p_ready, o_full;
    std::uint32_t tensor_memory;

    __device__ void initialise() {
      raw.initialise();
      for (std::uint64_t* barrier : {&q_full, &k_free, &s_full, &o_full})
        ptx::mbarrier_init(ptx::shared_address(barrier), 1);
      ptx::mbarrier_init(ptx::shared_address(&k_ready), kConverterThreads);
      ptx::mbarrier_init(ptx::shared_address(&p_ready), tile::kRowThreads);
    }
  };
  static_assert(sizeof(Shared) <= stage_d_shared_bytes(kHeadDim, Format::kRowBytes));

  // A query with all its heads, and its list.
  struct Work : tile::GroupRows {
    tile::TokenList list;

    __device__ explicit Work(const StageDParams& params)
        : tile::GroupRows{params.attention.heads,
                          1,
                          static_cast<std::int32_t>(blockIdx.x) / kSplits,
                          0,
                          static_cast<std::int32_t>(blockIdx.z),
                          static_cast<std::int32_t>(blockIdx.x) % kSplits * kValues,
                          {0, params.attention.q_len, 0, params.topk}},
          list(params, batch, first_query) {}
    __device__ std::int32_t num_tiles() const { return (list.count + kKeys - 1) / kKeys; }
  };

  static __device__ void load(const StageDParams& params, Shared& shared, const Work& work) {
    if (work.num_tiles() <= 0) return;
    const std::uint32_t q_full = ptx::shared_address(&shared.q_full);
    ptx::mbarrier_arrive_expect_tx(q_full,
                                   Shared::kKeyBoxes * work.box_rows() * tile::kBoxRowBytes);
    tile::load_queries(params.attention, shared.q, work, q_full);
    tile::RingPosition<kRawStages> at;
    for (std::int32_t key = 0; key < work.num_tiles() * kKeys; key += Raw::kKeys)
      shared.raw.gather(params.cache_map, work.list, key, at);
  }

  static __device__ void convert(Shared& shared, const Work& work) {
    const std::uint32_t warp = threadIdx.x / 32 - kFirstConverter;
    tile::RingPosition<kRawStages> at;
    for (std::int32_t n = 0; n < work.num_tiles(); ++n) {
      // The products of the last tile have read the boxes; those of the first are free.
      ptx::mbarrier_wait_parity(ptx::shared_address(&shared.k_free), n & 1 ^ 1);
      for (int i = 0; i < kKeys; i += Raw::kKeys) {
        shared.raw.template convert<Element>(
            work.list, n * kKeys + i, warp, at,
            [&](const tile::KeyQuarter& lane, std::uint32_t box, std::uint32_t row,
                const uint4(&chunks)[2]) { lane.store(shared.keys[box], i + row, chunks); });
      }
      ptx::fence_proxy_async_shared_cta();
      ptx::mbarrier_arrive(ptx::shared_address(&shared.k_ready));
    }
  }

  static __device__ void multiply(Shared& shared, const Work& work, std::uint32_t columns) {
    if (work.num_tiles() <= 0) return;
    ptx::mbarrier_wait_parity(ptx::shared_address(&shared.q_full), 0);
    for (std::int32_t n = 0; n < work.num_tiles(); ++n) {
      ptx::mbarrier_wait_parity(ptx::shared_address(&shared.k_ready), n & 1);
#pragma unroll 1
      for (int box = 0; box < Shared::kKeyBoxes; ++box) {
        tile::issue_scores<Element, kKeys>(columns + Columns::kScores,
                                           ptx::shared_address(shared.q[box]),
                                           ptx::shared_address(shared.keys[box]), box > 0);
      }
      ptx::tcgen05_commit(ptx::shared_address(&shared.s_full));
      tile::wait_for_tensor_memory(ptx::shared_address(&shared.p_ready), n & 1);
#pragma unroll 1
      for (int box = 0; box < Shared::kValueBoxes; ++box) {
        tile::issue_values<Element, kKeys>(
            columns + Columns::kResults + box * tile::kBoxElems, columns + Columns::kOperand,
            ptx::shared_address(shared.keys[work.value_begin / tile::kBoxElems + box]), n > 0);
      }
      ptx::tcgen05_commit(ptx::shared_address(&shared.k_free));
    }
    ptx::tcgen05_commit(ptx::shared_address(&shared.o_full));
  }

  static __device__ void attend(const StageDParams& params, Shared& shared, const Work& work,
                                std::uint32_t columns, tile::RowSoftmax& softmax) {
    const float scale = params.attention.scale_log2;
    const std::uint32_t own = tile::own_lanes(columns);
    const bool has_rows = ptx::uniform(static_cast<std::int32_t>(threadIdx.x)) < work.rows();
    for (std::int32_t n = 0; n < work.num_tiles(); ++n) {
      tile::wait_for_tensor_memory(ptx::shared_address(&shared.s_full), n & 1);
      if (has_rows || n == 0) {
        float s[2][32] = {}, factor;
        if (has_rows) {
          tile::load_row(s, own + Columns::kScores);
          tile::hide_missing(s[0], work.list, n * kKeys);
          tile::hide_missing(s[1], work.list, n * kKeys + 32);
          if (softmax.raise(s, scale, factor) && n > 0)
            tile::scale_row<kValues>(own + Columns::kResults, factor);
          softmax.exponentiate(s, scale);
        }
        tile::store_operand<Element>(own + Columns::kOperand, s);
        ptx::tcgen05_wait_st_sync_aligned();
      }
      tile::hand_over_tensor_memory(ptx::shared_address(&shared.p_ready));
    }
    if (work.num_tiles() > 0) tile::wait_for_tensor_memory(ptx::shared_address(&shared.o_full), 0);
  }

  static __device__ void run(const StageDParams& params) {
    extern __shared__ __align__(1024) std::uint8_t dynamic[];
    auto& shared = *reinterpret_cast<Shared*>(dynamic);
    const Work work(params);
    tile::clear_rows_behind(shared.q, work.box_rows());
    const std::uint32_t columns =
        tile::open_tensor_memory<kColumns>(shared.tensor_memory, [&] { shared.initialise(); });
    const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
    if (warp < tile::kMmaWarp) {
      tile::RowSoftmax softmax;
      attend(params, shared, work, columns, softmax);
      tile::store_results<Element, Shared::kValueBoxes>(
          params.attention, shared.q, work, columns + Columns::kResults,
          tile::finish_group_row(params.attention, work, softmax), work.num_tiles() > 0);
    } else if (warp >= kFirstConverter) {
      convert(shared, work);
    } else if (ptx::elect_sync()) {
      if (warp == tile::kMmaWarp) {
        multiply(shared, work, columns);
      } else {
        load(params, shared, work);
      }
    }
    __syncwarp();
    tile::close_tensor_memory<kColumns>(columns);
  }
};

}  // namespace
#define TILEWRIGHT_STAGE_D(NAME, ELEMENT, ...)                    \
  TILEWRIGHT_KERNEL(attention_sm100_stage_d_##NAME, StageDParams, \
                    __launch_bounds__(kStageDThreads, 1),         \
                    Kernel<tile::ELEMENT, tile::__VA_ARGS__>::run)

TILEWRIGHT_STAGE_D(bf16_deepseek, Bf16, DeepSeekRows)
TILEWRIGHT_STAGE_D(bf16_e4m3_d128, Bf16, TokenScaledRows<128>)
TILEWRIGHT_STAGE_D(bf16_e4m3_d512, Bf16, TokenScaledRows<512>)
TILEWRIGHT_STAGE_D(f16_deepseek, Fp16, DeepSeekRows)
TILEWRIGHT_STAGE_D(f16_e4m3_d128, Fp16, TokenScaledRows<128>)

}  // namespace tilewright::kernels
