// Attention over keys in pages, and with lengths that only the device knows: each option against
// the float64 reference over the keys gathered from their pages, under all checks of the simulator.
#include "tests/ops/attention_case.h"
#include "tests/ops/operator_test.h"

#include <algorithm>
#include <random>

namespace tilewright::ops {
namespace {

/// Room for queries comes from q_rooms if they are packed, from q_len otherwise. Lengths may be
/// anything.
struct PagedCase {
  AttentionProblem problem;
  std::vector<std::int32_t> q_rooms, q_lengths, kv_lengths;
  bool has_missing_page = false;  ///< the first sequence's second page has no number: zeros
  std::int64_t page_gap = 0;      ///< rows between pages, as where values lie behind keys
  std::int64_t row_gap = 0;       ///< elements between rows
};

class PagedRun {
 public:
  PagedRun(const Device& device, PagedCase c) : device_(device), case_(std::move(c)) {
    AttentionProblem& p = case_.problem;
    p.batch = static_cast<std::int64_t>(case_.kv_lengths.size());
    p.has_kv_lengths = true;
    p.has_q_lengths = !case_.q_lengths.empty();
    p.is_packed = !case_.q_rooms.empty();
    if (p.is_packed) {
      p.q_len = *std::ranges::max_element(case_.q_rooms);
      p.total_q = running_sums(case_.q_rooms).back();
      if (p.page_size == 0) p.total_kv = p.batch * p.kv_len;
    } else {
      case_.q_rooms.assign(case_.kv_lengths.size(), static_cast<std::int32_t>(p.q_len));
    }
    for (std::size_t b = 0; b < case_.kv_lengths.size(); ++b) {
      const std::int32_t wanted = p.has_q_lengths ? case_.q_lengths[b] : case_.q_rooms[b];
      used_q_.push_back(std::clamp(wanted, 0, case_.q_rooms[b]));
      used_kv_.push_back(std::clamp(case_.kv_lengths[b], 0, static_cast<std::int32_t>(p.kv_len)));
    }
    deal_pages();
  }

  void check() {
    const AttentionProblem& p = case_.problem;
    const device::Device& inner = opened(device_);
    draw();
    const Buffer q = Buffer::from(inner, q_codes_), k = Buffer::from(inner, k_codes_),
                 v = Buffer::from(inner, v_codes_);
    const Buffer cu_q = Buffer::from(inner, running_sums(case_.q_rooms));
    const Buffer q_lengths = Buffer::from(inner, case_.q_lengths);
    const Buffer kv_lengths = Buffer::from(inner, case_.kv_lengths);
    const Buffer table = Buffer::from(inner, table_);
    const Buffer cu_kv = Buffer::from(inner, running_sums(rooms_kv()));
    const std::vector<double> sinks = sinks_of_heads();
    const Buffer sink = Buffer::from(inner, std::vector<float>(sinks.begin(), sinks.end()));
    const Attention attention(device_, p);
    const Buffer workspace(inner, attention.plan().workspace_bytes);
    const std::size_t lines = num_query_rows() * size(p.heads);
    const kernels::Output<std::uint16_t> out(inner, lines * size(value_dim_of(p)));
    const kernels::Output<float> lse(inner, lines);
    const device::Stream stream(inner);
    attention.run({.q = kernels::pointer_to<const void>(q),
                   .k = kernels::pointer_to<const void>(k),
                   .v = kernels::pointer_to<const void>(v),
                   .out = out.pointer(),
                   .lse = lse.pointer(),
                   .sink = kernels::pointer_to<const float>(sink),
                   .cu_q = kernels::pointer_to<const std::int32_t>(cu_q),
                   .cu_kv = kernels::pointer_to<const std::int32_t>(cu_kv),
                   .workspace = kernels::pointer_to<void>(workspace),
                   .stream = stream.handle(),
                   .q_lengths = kernels::pointer_to<const std::int32_t>(q_lengths),
                   .kv_lengths = kernels::pointer_to<const std::int32_t>(kv_lengths),
                   .block_table = kernels::pointer_to<const std::int32_t>(table)});
    stream.synchronize();
    compare(out.read(), lse.read());
  }

 private:
  static std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }
  const FormatSpec& format() const { return case_.problem.dtype == DType::kF16 ? kFp16 : kBf16; }

  std::vector<std::int32_t> rooms_kv() const {
    return std::vector<std::int32_t>(case_.kv_lengths.size(),
                                     static_cast<std::int32_t>(case_.problem.kv_len));
  }
  // Another one for each head: heads of a group lie in one tile.
  std::vector<double> sinks_of_heads() const {
    std::vector<double> sinks(size(case_.problem.heads));
    for (std::size_t i = 0; i < sinks.size(); ++i) sinks[i] = 0.5 * static_cast<double>(i % 8);
    return sinks;
  }

  // Every page belongs to one sequence, in no order; two to none.
  void deal_pages() {
    AttentionProblem& p = case_.problem;
    if (p.page_size == 0) return;
    p.max_pages = (p.kv_len + p.page_size - 1) / p.page_size;
    p.num_pages = p.batch * p.max_pages + 2;
    p.table_stride = p.max_pages + 3;
    const auto apart = [&](std::int64_t dim) {
      const std::int64_t row = p.kv_heads * dim + case_.row_gap;
      return Strides{(p.page_size + case_.page_gap) * row, row, dim};
    };
    if (case_.page_gap > 0 || case_.row_gap > 0) {
      p.k_strides = apart(p.head_dim);
      p.v_strides = apart(value_dim_of(p));
    }
    std::vector<std::int32_t> pages(size(p.num_pages));
    std::iota(pages.begin(), pages.end(), 0);
    std::ranges::shuffle(pages, std::mt19937(7));
    table_.assign(size(p.batch * p.table_stride), -5);
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const std::int64_t used = (used_kv_[size(b)] + p.page_size - 1) / p.page_size;
      for (std::int64_t i = 0; i < used; ++i)
        table_[size(b * p.table_stride + i)] = pages[size(b * p.max_pages + i)];
    }
    if (case_.has_missing_page) table_[1] = static_cast<std::int32_t>(p.num_pages + 1);
  }

  // Index of a key's row in k and v; none where its page has no number.
  std::optional<std::size_t> key_row(std::int64_t b, std::int64_t key) const {
    const AttentionProblem& p = case_.problem;
    if (p.page_size == 0) return size(b * p.kv_len + key);
    const std::int32_t page = table_[size(b * p.table_stride + key / p.page_size)];
    if (page < 0 || page >= p.num_pages) return std::nullopt;
    return size(page * (p.page_size + case_.page_gap) + key % p.page_size);
  }
  std::size_t query_row(std::int64_t b, std::int64_t query) const {
    const AttentionProblem& p = case_.problem;
    return size(p.is_packed ? running_sums(case_.q_rooms)[size(b)] + query : b * p.q_len + query);
  }
  std::size_t num_query_rows() const {
    const AttentionProblem& p = case_.problem;
    return size(p.is_packed ? p.total_q : p.batch * p.q_len);
  }

  // Random numbers where they are used, NaN elsewhere; and the same without what lies between.
  void draw() {
    const AttentionProblem& p = case_.problem;
    const std::size_t q_elems = size(p.heads * p.head_dim), k_elems = size(p.kv_heads * p.head_dim),
                      v_elems = size(p.kv_heads * value_dim_of(p));
    const std::size_t kv_rows =
        size(p.page_size > 0 ? p.num_pages * (p.page_size + case_.page_gap) : p.batch * p.kv_len);
    q_codes_.assign(num_query_rows() * q_elems, 0xffff);
    const std::size_t gap = size(case_.row_gap);
    k_codes_.assign(kv_rows * (k_elems + gap), 0xffff);
    v_codes_.assign(kv_rows * (v_elems + gap), 0xffff);
    const auto fill = [&](std::vector<double>& gathered, std::vector<std::uint16_t>& codes,
                          std::uint64_t seed, std::optional<std::size_t> row, std::size_t elems,
                          std::size_t between = 0) {
      const auto count = static_cast<std::int64_t>(elems);
      std::vector<double> numbers =
          kernels::draw_many(seed, count, kernels::Numbers::kUniform, format());
      if (!row) std::ranges::fill(numbers, 0.0);
      gathered.insert(gathered.end(), numbers.begin(), numbers.end());
      for (std::size_t i = 0; row && i < elems; ++i)
        codes[*row * (elems + between) + i] =
            static_cast<std::uint16_t>(encode(format(), numbers[i]));
    };
    std::uint64_t seed = 1;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t i = 0; i < used_q_[size(b)]; ++i)
        fill(q_, q_codes_, ++seed, query_row(b, i), q_elems);
      for (std::int64_t j = 0; j < used_kv_[size(b)]; ++j) {
        fill(k_, k_codes_, ++seed, key_row(b, j), k_elems, gap);
        fill(v_, v_codes_, ++seed, key_row(b, j), v_elems, gap);
      }
    }
  }

  // Queries and keys of each sequence; of chunks, of each chunk, which is one of its own: its last
  // query stands at its last key. Queries before the first key have none.
  std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> pieces() const {
    if (case_.problem.chunk == 0) return {used_q_, used_kv_};
    std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> made;
    const auto add = [&](std::int32_t queries, std::int32_t keys) {
      made.first.push_back(queries);
      made.second.push_back(keys);
    };
    const auto chunk = static_cast<std::int32_t>(case_.problem.chunk);
    for (std::size_t b = 0; b < used_q_.size(); ++b) {
      const std::int32_t first = used_kv_[b] - used_q_[b];
      add(std::max(-first, 0), 0);
      for (std::int32_t begin = 0; begin < used_kv_[b]; begin += chunk) {
        const std::int32_t end = std::min(begin + chunk, used_kv_[b]);
        add(std::max(end - std::max(begin, first), 0), end - begin);
      }
    }
    return made;
  }

  reference::AttentionResult expected() const {
    const AttentionProblem& p = case_.problem;
    const auto [q_lens, kv_lens] = pieces();
    const auto cu_q = running_sums(q_lens), cu_kv = running_sums(kv_lens);
    const std::vector<double> sink = p.has_sink ? sinks_of_heads() : std::vector<double>();
    const reference::AttentionParams params = {.batch = static_cast<std::int64_t>(q_lens.size()),
                                               .heads = p.heads,
                                               .kv_heads = p.kv_heads,
                                               .q_len = *std::ranges::max_element(q_lens),
                                               .kv_len = *std::ranges::max_element(kv_lens),
                                               .head_dim = p.head_dim,
                                               .v_head_dim = value_dim_of(p),
                                               .scale = p.scale,
                                               .softcap = p.softcap,
                                               .causal = p.causal,
                                               .window_left = p.window_left,
                                               .window_right = p.window_right,
                                               .sink = sink,
                                               .cu_seqlens_q = cu_q,
                                               .cu_seqlens_kv = cu_kv,
                                               .magnitudes = true};
    return reference::attention(params, q_, k_, v_);
  }

  void compare(std::vector<std::uint16_t> out, std::vector<float> lse) const {
    const reference::AttentionResult exact = expected();
    const AttentionProblem& p = case_.problem;
    const auto total = static_cast<std::size_t>(running_sums(used_q_).back());
    std::size_t row = 0;  // of all that are used
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t i = 0; i < used_q_[size(b)]; ++i, ++row) {
        for (std::size_t head = 0; head < size(p.heads); ++head) {
          SCOPED_TRACE(fmt::format("sequence {}, query {}, head {}", b, i, head));
          const std::size_t line = head * total + row;
          const std::size_t at = query_row(b, i) * size(p.heads) + head;
          compare_row(exact, line, (row * size(p.heads) + head) * size(value_dim_of(p)), out, at);
          if (p.has_lse) compare_lse(exact, line, lse[lse_index(b, i, head)]);
          lse[lse_index(b, i, head)] = NAN;
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
    EXPECT_TRUE(std::ranges::all_of(out, [](auto x) { return x == 0xffff; }))
        << "rows behind the queries were written";
    EXPECT_TRUE(std::ranges::all_of(lse, [](float x) { return std::isnan(x); }))
        << "lse was not asked for, or is of rows behind the queries";
  }

  std::size_t lse_index(std::int64_t b, std::int64_t query, std::size_t head) const {
    const AttentionProblem& p = case_.problem;
    if (p.is_packed) return head * size(p.total_q) + query_row(b, query);
    return (size(b * p.heads) + head) * size(p.q_len) + size(query);
  }

  reference::AttentionRow bounds_of(const reference::AttentionResult& exact,
                                    std::size_t line) const {
    const AttentionProblem& p = case_.problem;
    const double u = p.dtype == DType::kF16 ? reference::kRoundoffFp16 : reference::kRoundoffBf16;
    return {.head_dim = p.head_dim,
            .num_keys = p.kv_len,
            .score_magnitude = exact.score_magnitude[line],
            .row_max = exact.row_max[line],
            .softcap = p.softcap,
            .value_max = 2,
            .p_roundoff = u,
            .p_subnormal = p.dtype == DType::kF16 ? 0x1p-24 : 0,
            .out_roundoff = u};
  }

  // Row `at` of out, which is cleared.
  void compare_row(const reference::AttentionResult& exact, std::size_t line, std::size_t first,
                   std::vector<std::uint16_t>& out, std::size_t at) const {
    const reference::AttentionRow bounds = bounds_of(exact, line);
    const std::size_t dims = size(value_dim_of(case_.problem));
    for (std::size_t d = 0; d < dims; ++d) {
      std::uint16_t& code = out[at * dims + d];
      const double value = decode(format(), code), wanted = exact.out[first + d];
      ASSERT_LE(std::abs(value - wanted),
                reference::attention_out_bound(bounds, wanted, exact.out_magnitude[first + d]))
          << "dim " << d << ": " << value << " for " << wanted;
      code = 0xffff;
    }
  }
  void compare_lse(const reference::AttentionResult& exact, std::size_t line, float lse) const {
    if (std::isinf(exact.lse[line])) {
      ASSERT_EQ(lse, -INFINITY);
    } else {
      ASSERT_NEAR(lse, exact.lse[line],
                  reference::attention_lse_bound(bounds_of(exact, line), exact.lse[line]));
    }
  }

  const Device& device_;
  PagedCase case_;
  std::vector<std::int32_t> used_q_, used_kv_, table_;
  std::vector<std::uint16_t> q_codes_, k_codes_, v_codes_;
  std::vector<double> q_, k_, v_;
};

class AttentionPagedTest : public ChipTest<AttentionPagedTest> {
 protected:
  static void check(const PagedCase& c) { PagedRun(*device_, c).check(); }
  // Blackwell's forms are of 64, 128, and 192 with values of 128.
  static bool has_form(std::int64_t head_dim, std::int64_t value_dim) {
    return !is_blackwell() || std::max(head_dim, value_dim) <= 128 ||
           (head_dim <= 192 && value_dim <= 128 && value_dim != head_dim);
  }
};
TILEWRIGHT_ON_EVERY_CHIP(AttentionPagedTest);

// Parts of prompts and sequences that decode in one call: 70 queries cross a warpgroup, 150 keys a
// tile; one has no keys, one no queries.
PagedCase mixed(std::int64_t page_size, std::int64_t head_dim = 64) {
  return {{.heads = 2,
           .kv_heads = 1,
           .kv_len = 150,
           .head_dim = head_dim,
           .causal = true,
           .has_lse = true,
           .page_size = page_size},
          {70, 1, 0, 9},
          {},
          {150, 131, 20, 0}};
}

TEST_P(AttentionPagedTest, PagesOfAnySize) {
  for (const std::int64_t page_size : {2, 4, 7, 8, 32, 48, 100, 128, 256}) {
    SCOPED_TRACE(page_size);
    check(mixed(page_size));
  }
}
TEST_P(AttentionPagedTest, GatheredAndCopiedByWarpsAndByOneThread) {
  for (const std::int64_t page_size : {1, 16, 64}) {
    SCOPED_TRACE(page_size);
    check(mixed(page_size));
  }
}
TEST_P(AttentionPagedTest, EveryFormOfTheKernel) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    // Gathered, copied by warps and by one thread.
    for (const auto& [head_dim, page_size] :
         {std::pair{64, 64}, std::pair{96, 1}, std::pair{96, 16}, std::pair{96, 64},
          std::pair{128, 4}, std::pair{128, 16}, std::pair{128, 64}, std::pair{192, 1},
          std::pair{192, 16}, std::pair{192, 96}, std::pair{256, 4}, std::pair{256, 16},
          std::pair{256, 80}}) {
      if (!has_form(head_dim, head_dim)) continue;
      SCOPED_TRACE(fmt::format("{} {} pages of {}", to_string(dtype), head_dim, page_size));
      PagedCase c = mixed(page_size, head_dim);
      c.problem.dtype = dtype;
      check(c);
    }
  }
}
// Computed by the next wider form, with zeros that copies deliver. What lies behind a row of
// out is the next head's. Every second one is f16, every third one has no pages.
TEST_P(AttentionPagedTest, EveryMultipleOf8) {
  for (std::int64_t head_dim = 8; head_dim <= 256 && has_form(head_dim, head_dim); head_dim += 8) {
    SCOPED_TRACE(head_dim);
    const std::int64_t number = head_dim / 8;
    PagedCase c = mixed(number % 3 == 0 ? 0 : number % 5 == 0 ? 4 : 16, head_dim);
    c.problem.dtype = number % 2 == 0 ? DType::kBF16 : DType::kF16;
    c.problem.kv_len = 30;
    c.q_rooms = {20, 1, 0, 3};
    c.kv_lengths = {30, 11, 20, 0};
    check(c);
  }
}
// Values that are not as wide as keys: as the form has them, and narrower ones of both.
TEST_P(AttentionPagedTest, ValuesOfAnotherWidth) {
  for (const auto& [head_dim, value_dim, page_size] :
       {std::tuple{192, 128, 64}, std::tuple{192, 128, 1}, std::tuple{192, 128, 16},
        std::tuple{136, 104, 64}, std::tuple{40, 72, 8}, std::tuple{104, 240, 16}}) {
    if (!has_form(head_dim, value_dim)) continue;
    SCOPED_TRACE(fmt::format("{} and {}, pages of {}", head_dim, value_dim, page_size));
    PagedCase c = mixed(page_size, head_dim);
    AttentionProblem& p = c.problem;
    p.value_dim = value_dim;
    p.dtype = page_size == 64 ? DType::kBF16 : DType::kF16;
    p.heads = 4;
    p.has_sink = true;
    if (page_size == 16) p.window_left = 40;
    if (page_size == 8) c.page_gap = 8;
    check(c);
  }
}
// Heads that share keys share tiles of rows, as far as a power of two divides their number.
TEST_P(AttentionPagedTest, GroupsOfHeads) {
  for (const auto& [heads, kv_heads] :
       {std::pair{2, 2}, std::pair{3, 1}, std::pair{12, 2}, std::pair{16, 2}, std::pair{64, 1}}) {
    for (const std::int64_t page_size : {16, 64}) {
      SCOPED_TRACE(fmt::format("heads {}/{}, pages of {}", heads, kv_heads, page_size));
      PagedCase c = mixed(page_size);
      c.problem.heads = heads;
      c.problem.kv_heads = kv_heads;
      c.problem.has_sink = true;
      c.problem.window_left = 40;
      if (heads > 16) c.q_rooms = {5, 1, 0, 3};
      check(c);
    }
  }
}
TEST_P(AttentionPagedTest, EveryOption) {
  for (const bool is_packed : {false, true}) {
    for (const int option : {0, 1, 2, 3, 4}) {
      SCOPED_TRACE(fmt::format("packed {}, option {}", is_packed, option));
      PagedCase c = mixed(16);
      AttentionProblem& p = c.problem;
      if (!is_packed) {
        c.q_rooms.clear();
        p.q_len = 70;
      }
      p.causal = option != 0;
      if (option == 1) p.window_left = 33;
      if (option == 2) {
        p.causal = false;
        p.window_left = 20;
        p.window_right = 11;
      }
      if (option == 3) p.softcap = 5;
      p.has_sink = option == 4;
      p.has_lse = option != 4;
      check(c);
    }
  }
}
// Also of queries: what is behind them is not written. Lengths that make no sense count as none or
// all.
TEST_P(AttentionPagedTest, LengthsOfQueries) {
  for (const std::int64_t page_size : {0, 16}) {
    for (const bool is_packed : {false, true}) {
      SCOPED_TRACE(fmt::format("pages of {}, packed {}", page_size, is_packed));
      PagedCase c = mixed(page_size);
      if (!is_packed) c.q_rooms.clear();
      if (is_packed) c.q_rooms = {70, 70, 70, 70};
      c.problem.q_len = 70;
      c.q_lengths = {67, 1, -3, 1 << 30};
      c.kv_lengths = {149, 1 << 30, -1, 77};
      check(c);
    }
  }
}
TEST_P(AttentionPagedTest, PagesThatAreNotThereAreZeros) {
  for (const std::int64_t page_size : {4, 16}) {
    SCOPED_TRACE(page_size);
    PagedCase c = mixed(page_size);
    c.has_missing_page = true;
    check(c);
  }
}
// Whole prompts: the first tiles of queries see one tile of keys.
TEST_P(AttentionPagedTest, PromptsFromTheirBeginning) {
  for (const std::int64_t head_dim : {64, 128}) {
    for (const std::int64_t page_size : {1, 16, 128}) {
      SCOPED_TRACE(fmt::format("head_dim {}, pages of {}", head_dim, page_size));
      PagedCase c = mixed(page_size, head_dim);
      c.problem.kv_len = 300;
      c.q_rooms = c.kv_lengths = {300, 129, 256, 7};
      check(c);
    }
  }
}
// The last query stands at the last key, so queries that are more than the keys stand before the
// first one: a causal mask and a window leave some of them, or all, without a key. Their out is 0
// and their lse -inf, whatever the sink is.
TEST_P(AttentionPagedTest, QueriesThatSeeNoKey) {
  for (const auto& [left, right] : {std::pair{-1, 0}, std::pair{3, 0}, std::pair{2, 4}}) {
    for (const bool has_sink : {false, true}) {
      SCOPED_TRACE(fmt::format("window {}, {}, sink {}", left, right, has_sink));
      PagedCase c = mixed(16);
      AttentionProblem& p = c.problem;
      p.causal = false;
      p.window_left = left;
      p.window_right = right;
      p.has_sink = has_sink;
      c.q_rooms = {70, 33, 1, 9};
      c.kv_lengths = {20, 0, 0, 9};
      check(c);
    }
  }
}
// Chunks shorter than a tile of keys, as long as one, and longer; each begins where it begins, in a
// page or not, and without pages as well.
TEST_P(AttentionPagedTest, ChunksOfKeys) {
  for (const auto& [chunk, page_size] :
       {std::pair{1, 16}, std::pair{24, 16}, std::pair{96, 64}, std::pair{100, 1},
        std::pair{128, 64}, std::pair{149, 0}, std::pair{400, 16}}) {
    SCOPED_TRACE(fmt::format("chunks of {}, pages of {}", chunk, page_size));
    PagedCase c = mixed(page_size, chunk % 16 == 0 ? 128 : 64);
    c.problem.chunk = chunk;
    if (chunk == 149) c.q_lengths = {70, 1, 0, 4};
    check(c);
  }
}
TEST_P(AttentionPagedTest, ChunksAndWindows) {
  for (const auto& [left, right] : {std::pair{-1, -1}, std::pair{11, 30}, std::pair{70, 0}}) {
    SCOPED_TRACE(fmt::format("window {}, {}", left, right));
    PagedCase c = mixed(16);
    AttentionProblem& p = c.problem;
    p.causal = false;
    p.window_left = left;
    p.window_right = right;
    p.chunk = 50;
    c.q_rooms = {70, 33, 1, 9};  // of the second, 13 stand before the first key
    c.kv_lengths = {150, 20, 0, 9};
    check(c);
  }
}
// Strides that have no common measure as wide as a row: rows of short pages cannot be gathered as
// those of a matrix, and are copied one by one.
TEST_P(AttentionPagedTest, RowsOfNoMatrix) {
  for (const std::int64_t page_size : {1, 2, 16}) {
    SCOPED_TRACE(page_size);
    PagedCase c = mixed(page_size);
    c.row_gap = 8;
    check(c);
  }
}
// More than the threads of a CTA, most of them without queries.
TEST_P(AttentionPagedTest, ManySequences) {
  PagedCase c = mixed(16);
  c.problem.kv_len = 20;
  c.q_rooms.assign(520, 0);
  c.kv_lengths.assign(520, 1);
  for (const std::size_t b :
       {std::size_t{3}, std::size_t{40}, std::size_t{511}, std::size_t{519}}) {
    c.q_rooms[b] = 2;
    c.kv_lengths[b] = 17;
  }
  check(c);
}
TEST_P(AttentionPagedTest, PagesApart) {
  for (const std::int64_t page_size : {4, 16}) {
    SCOPED_TRACE(page_size);
    PagedCase c = mixed(page_size);
    c.page_gap = 16;
    check(c);
  }
}
TEST_P(AttentionPagedTest, NoPagesAtAll) {
  PagedCase c = mixed(16);
  c.problem.kv_len = 0;
  c.kv_lengths = {0, 5, 0, 0};
  check(c);
}

}  // namespace
}  // namespace tilewright::ops
