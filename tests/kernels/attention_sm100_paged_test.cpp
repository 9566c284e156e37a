// Stages D and G: attention over chosen tokens of a paged cache of 8-bit numbers, on the simulated
// B200.
#include "kernels/attention_sm100/stage_g_paged_pair.h"
#include "tests/kernels/attention_sm100_check.h"

namespace tilewright::kernels {
namespace {

struct PagedProblem {
  bool is_deepseek = true;  ///< else e4m3 with a scale per token
  int head_dim = 512;
  int batch = 1, heads = 64, q_len = 1, topk = 128;
  int pages = 4, page_tokens = 64;
  int padding_rows = 0;  ///< at the end of a page
  std::vector<int> key_counts = {};
  std::vector<float> sink = {};
  const FormatSpec* format = &kBf16;  ///< of queries and results, and of tokens once unpacked

  bool is_pair = false;  ///< stage G
  double scale = 0;      ///< 0: head_dim^-0.5
  double least_cosine = 0.999996;

  double scale_or_default() const { return scale != 0 ? scale : 1 / std::sqrt(head_dim); }

  int row_bytes() const { return is_deepseek ? 576 : head_dim; }
  int scale_bytes() const { return is_deepseek ? 8 : 4; }
  int slots() const { return pages * page_tokens; }
  /// A multiple of a row: what the map of the rows needs.
  int page_bytes() const {
    const int used = page_tokens * (row_bytes() + scale_bytes());
    return round_up(used, row_bytes()) + padding_rows * row_bytes();
  }
};

/// The bytes of a cache, and what they mean.
struct PagedCacheBytes {
  std::vector<std::uint8_t> bytes;
  std::vector<double> tokens;  ///< [slots, head_dim]

  explicit PagedCacheBytes(const PagedProblem& p)
      : bytes(static_cast<std::size_t>(p.pages) * p.page_bytes(), 0xff),
        tokens(static_cast<std::size_t>(p.slots()) * p.head_dim) {
    Random random(7);
    const std::vector<double> normal =
        draw_normal(3, static_cast<std::int64_t>(tokens.size()), kBf16);
    for (int slot = 0; slot < p.slots(); ++slot) {
      std::uint8_t* const page = bytes.data() + slot / p.page_tokens * p.page_bytes();
      const int token = slot % p.page_tokens;
      std::uint8_t* const row = page + token * p.row_bytes();
      std::uint8_t* const scales = page + p.page_tokens * p.row_bytes() + token * p.scale_bytes();
      float token_scale = static_cast<float>(random.uniform(0.001, 0.02));
      for (int c = 0; c < p.head_dim; ++c) {
        const std::size_t at = static_cast<std::size_t>(slot) * p.head_dim + c;
        if (p.is_deepseek && c >= 448) {
          const auto code = static_cast<std::uint16_t>(encode(kBf16, normal[at]));
          std::memcpy(row + 448 + (c - 448) * 2, &code, 2);
          tokens[at] = round_to(*p.format, normal[at]);
          continue;
        }
        if (p.is_deepseek && c % 64 == 0) {
          scales[c / 64] = static_cast<std::uint8_t>(118 + random.bits() % 6);
          token_scale = static_cast<float>(std::ldexp(1, scales[c / 64] - 127));
        }
        row[c] = static_cast<std::uint8_t>(encode(kE4m3, normal[at] / token_scale));
        const double value = decode(kE4m3, row[c]) * static_cast<double>(token_scale);
        tokens[at] = round_to(*p.format, static_cast<float>(value));
      }
      if (p.is_deepseek) scales[7] = 0;
      if (!p.is_deepseek) std::memcpy(scales, &token_scale, 4);
    }
  }
};

class Sm100StageD : public Sm100AttentionTest {
 protected:
  /// Slots in no order, with repetitions and holes.
  static std::vector<std::int32_t> draw_lists(const PagedProblem& p, bool has_holes) {
    Random random(11);
    std::vector<std::int32_t> lists;
    for (int i = 0; i < p.batch * p.q_len * p.topk; ++i) {
      const auto draw = static_cast<int>(random.bits() % 1000000);
      const bool is_hole = has_holes && draw % 7 == 0;
      lists.push_back(is_hole ? (draw % 2 == 0 ? -1 : p.slots() + draw % 5) : draw % p.slots());
    }
    return lists;
  }

  void check(const PagedProblem& p, bool has_holes = false) {
    SCOPED_TRACE(fmt::format("{} d{}, {} heads, topk = {}, pages of {}",
                             p.is_deepseek ? "deepseek" : "e4m3", p.head_dim, p.heads, p.topk,
                             p.page_tokens));
    const PagedCacheBytes cache(p);
    const std::vector<std::int32_t> lists = draw_lists(p, has_holes);
    const std::int64_t rows = std::int64_t{p.batch} * p.q_len * p.heads;
    const std::vector<double> q = draw_normal(1, rows * p.head_dim, *p.format);
    const AttentionOutputs got = run(p, cache, lists, q);
    compare(p, expected(p, cache, lists, q), cache, got);
  }

 private:
  static std::int64_t count_of(const PagedProblem& p, std::size_t query) {
    return p.key_counts.empty() ? p.topk : p.key_counts[query];
  }

  AttentionOutputs run(const PagedProblem& p, const PagedCacheBytes& cache,
                       const std::vector<std::int32_t>& lists, const std::vector<double>& q) {
    const AttentionProblem shape = {.batch = p.batch,
                                    .heads = p.heads,
                                    .kv_heads = p.is_pair ? 2 : 1,  // of a box of queries
                                    .q_len = p.q_len,
                                    .head_dim = p.head_dim};
    const AttentionStorage storage(shape, p.q_len, p.heads);
    const Buffer q_buffer = storage.upload(device(), *p.format, q);
    const Buffer cache_buffer = Buffer::from(device(), cache.bytes);
    const Buffer list_buffer = Buffer::from(device(), lists);
    const Buffer count_buffer = Buffer::from(device(), p.key_counts);
    const Buffer sink_buffer = Buffer::from(device(), p.sink);
    const Output<std::uint16_t> out(device(), static_cast<std::size_t>(storage.size));
    const Output<float> lse(device(), static_cast<std::size_t>(storage.size) / p.head_dim);
    StageDParams params = {};
    AttentionParams& attention = params.attention;
    attention.q_strides = attention.out_strides = storage.strides;
    const auto map_of = [&](const void* address) {
      return sm100_query_map(device(), address, storage.strides, shape, *p.format, 1);
    };
    store_map(attention.q_map, map_of(pointer_to<void>(q_buffer)));
    store_map(attention.out_map, map_of(out.pointer()));
    attention.out = out.pointer();
    attention.lse = lse.pointer();
    attention.sink = p.sink.empty() ? nullptr : pointer_to<const float>(sink_buffer);
    attention.lse_head_stride = p.q_len;
    attention.lse_batch_stride = std::int64_t{p.heads} * p.q_len;
    attention.batch = p.batch;
    attention.heads = p.heads;
    attention.kv_heads = 1;
    attention.q_len = p.q_len;
    attention.scale_log2 = static_cast<float>(std::numbers::log2e * p.scale_or_default());
    store_map(params.cache_map, row_map(p, cache_buffer));
    params.cache = pointer_to<const std::uint8_t>(cache_buffer);
    params.page_bytes = p.page_bytes();
    params.indices = pointer_to<const std::int32_t>(list_buffer);
    params.key_counts = p.key_counts.empty() ? nullptr : pointer_to<std::int32_t>(count_buffer);
    params.page_tokens = p.page_tokens;
    params.num_slots = p.slots();
    params.topk = p.topk;
    launch(p, params);
    return {storage.decode_all(*p.format, out.read()), lse.read()};
  }
  device::abi::CUtensorMap row_map(const PagedProblem& p, const Buffer& cache) {
    const auto bytes = static_cast<std::uint64_t>(p.row_bytes());
    return device::encode_tensor_map(
        device(),
        {.name = "rows of the cache",
         .type = device::TensorMapType::kUint32,
         .address = cache.address(),
         .dims = {bytes / 4, static_cast<std::uint64_t>(p.pages) * p.page_bytes() / bytes},
         .strides_bytes = {bytes},
         .box = {static_cast<std::uint32_t>(bytes / 4), 1}});
  }
  void launch(const PagedProblem& p, const StageDParams& params) {
    const auto extent = [](int n) { return static_cast<std::uint32_t>(n); };
    const std::string entry =
        fmt::format("attention_sm100_stage_{}_{}_{}", p.is_pair ? "g" : "d",
                    *p.format == kBf16 ? "bf16" : "f16",
                    p.is_deepseek ? "deepseek" : fmt::format("e4m3_d{}", p.head_dim));
    const int ctas = p.is_pair ? 2 : sm100_value_splits(p.head_dim);
    const int shared_bytes = p.is_pair ? stage_g_shared_bytes(p.row_bytes())
                                       : stage_d_shared_bytes(p.head_dim, p.row_bytes());
    static_assert(kStageDThreads == kStageGThreads);
    run_kernel(device(), entry,
               {.grid = {extent(p.q_len * ctas), 1, extent(p.batch)},
                .block = {kStageDThreads},
                .dynamic_shared_bytes = extent(shared_bytes)},
               params);
  }

  /// A list is a page table with pages of one token, and a query a batch of its own.
  static reference::AttentionResult expected(const PagedProblem& p, const PagedCacheBytes& cache,
                                             const std::vector<std::int32_t>& lists,
                                             const std::vector<double>& q) {
    const std::size_t queries = static_cast<std::size_t>(p.batch) * p.q_len;
    std::vector<std::int32_t> table(queries * p.topk), lengths(queries);
    for (std::size_t i = 0; i < queries; ++i) {
      for (std::int64_t l = 0; l < count_of(p, i); ++l) {
        const std::int32_t slot = lists[i * p.topk + l];
        if (slot >= 0 && slot < p.slots()) table[i * p.topk + lengths[i]++] = slot;
      }
    }
    const std::vector<double> sink(p.sink.begin(), p.sink.end());
    return reference::attention({.batch = static_cast<std::int64_t>(queries),
                                 .heads = p.heads,
                                 .kv_heads = 1,
                                 .q_len = 1,
                                 .kv_len = p.topk,
                                 .head_dim = p.head_dim,
                                 .v_head_dim = p.head_dim,
                                 .scale = p.scale_or_default(),
                                 .sink = sink,
                                 .kv_lens = lengths,
                                 .page_table = table,
                                 .page_size = 1,
                                 .magnitudes = true},
                                q, cache.tokens, cache.tokens);
  }

  static void compare(const PagedProblem& p, const reference::AttentionResult& exact,
                      const PagedCacheBytes& cache, const AttentionOutputs& got) {
    double largest = 0;
    for (const double x : cache.tokens) largest = std::max(largest, std::abs(x));
    const AttentionBound bound({.kv_len = p.topk, .head_dim = p.head_dim},
                               {.has_tensor_scores = true, .has_tensor_values = true}, *p.format,
                               kStageDKeys, largest);
    ASSERT_EQ(got.out.size(), exact.out.size());
    for (std::size_t i = 0; i < got.out.size(); ++i) {
      const std::size_t row = i / p.head_dim, head = row % p.heads, query = row / p.heads;
      const double sink = p.sink.empty() ? 0 : std::abs(p.sink[head]);
      const double scores = bound.of_scores(exact.score_magnitude[row], sink);
      ASSERT_LE(std::abs(got.out[i] - exact.out[i]),
                bound.of_out(scores, exact.out_magnitude[i], exact.out[i]))
          << "query " << query << ", head " << head << ", dimension " << i % p.head_dim << ": "
          << got.out[i] << " instead of " << exact.out[i];
      if (i % p.head_dim != 0) continue;
      const std::size_t at = (query / p.q_len * p.heads + head) * p.q_len + query % p.q_len;
      if (std::isinf(exact.lse[row])) {
        ASSERT_EQ(got.lse[at], exact.lse[row]) << "query " << query << ", head " << head;
      } else {
        ASSERT_LE(std::abs(got.lse[at] - exact.lse[row]),
                  bound.of_lse(scores, exact.score_magnitude[row], exact.lse[row]))
            << "query " << query << ", head " << head;
      }
    }
    EXPECT_FALSE(cosine(got.out, exact.out) < p.least_cosine) << cosine(got.out, exact.out);
  }
};
TILEWRIGHT_ON_EVERY_BLACKWELL(Sm100StageD);

TEST_P(Sm100StageD, DeepSeekPages) {
  check({.heads = 64, .topk = 128});
  check({.heads = 128, .topk = 64, .pages = 40, .page_tokens = 2}, true);
}

TEST_P(Sm100StageD, EightBitRowsWithAScalePerToken) {
  check({.is_deepseek = false,
         .head_dim = 128,
         .heads = 8,
         .q_len = 3,
         .topk = 100,
         .padding_rows = 1},
        true);
  check({.is_deepseek = false, .head_dim = 512, .heads = 16, .topk = 70});
}

TEST_P(Sm100StageD, QueriesInFp16) {
  check({.heads = 16, .topk = 80, .format = &kFp16});
  check({.is_deepseek = false, .head_dim = 128, .heads = 8, .topk = 70, .format = &kFp16}, true);
}

TEST_P(Sm100StageD, ListsOfAnyLengthAndSinks) {
  check({.is_deepseek = false,
         .head_dim = 128,
         .batch = 2,
         .heads = 5,
         .q_len = 2,
         .topk = 80,
         .key_counts = {0, 1, 80, 65},
         .sink = {0.5f, -2.0f, 3.0f, 20.0f, -100.0f}},
        true);
}

// One launch each, in which every ring goes around: tools/mutate.py runs them with changed kernels.
TEST_P(Sm100StageD, OneRaggedLaunch) {
  check({.heads = 16, .topk = 500}, true);
}
TEST_P(Sm100StageD, OneLongLaunch) {
  check({.batch = 2, .heads = 5, .topk = 1500, .key_counts = {1500, 70}}, true);
}

class Sm100StageG : public Sm100StageD {};
TILEWRIGHT_ON_EVERY_BLACKWELL(Sm100StageG);

TEST_P(Sm100StageG, DeepSeekPagesByPairs) {
  check({.heads = 128, .topk = 300, .is_pair = true}, true);
  check({.heads = 64, .topk = 130, .pages = 40, .page_tokens = 2, .is_pair = true});
  check({.heads = 16, .topk = 80, .format = &kFp16, .is_pair = true}, true);
}

// Scores that grow from tile to tile by more than the results can take.
TEST_P(Sm100StageG, RescalesWhenTheMaximumGrows) {
  check({.heads = 128, .topk = 300, .is_pair = true, .scale = 0.7, .least_cosine = 0.9999});
}

TEST_P(Sm100StageG, ListsOfAnyLengthSinksAndScalesPerToken) {
  check({.is_deepseek = false,
         .batch = 2,
         .heads = 6,
         .q_len = 2,
         .topk = 200,
         .padding_rows = 1,
         .key_counts = {0, 1, 200, 65},
         .sink = {0.5f, -2.0f, 3.0f, 20.0f, -100.0f, 0.0f},
         .is_pair = true},
        true);
}

TEST_P(Sm100StageG, OneRaggedLaunch) {
  check({.heads = 16, .topk = 500, .is_pair = true}, true);
}
TEST_P(Sm100StageG, OneLongLaunch) {
  check({.batch = 2,
         .heads = 6,
         .topk = 1500,
         .key_counts = {1500, 70},
         .is_pair = true,
         .scale = 0.7,
         .least_cosine = 0.9999},
        true);
}

}  // namespace
}  // namespace tilewright::kernels
