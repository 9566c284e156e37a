// A call of attention over keys in pages, or with lengths that only the device knows, against the
// float64 reference over the keys gathered from their pages.
#pragma once

#include "reference/attention/fp8_bound.h"
#include "tests/kernels/gemm_check.h"
#include "tests/ops/attention_case.h"
#include "tests/ops/operator_test.h"

#include <algorithm>
#include <random>

namespace tilewright::ops {

/// Room for queries comes from q_rooms if they are packed, from q_len otherwise. Lengths may be
/// anything.
struct PagedCase {
  AttentionProblem problem;
  std::vector<std::int32_t> q_rooms, q_lengths, kv_lengths;
  bool has_missing_page = false;   ///< the first sequence's second page has no number: zeros
  std::int64_t page_gap = 0;       ///< rows between pages, as where values lie behind keys
  std::int64_t row_gap = 0;        ///< elements between rows
  std::int64_t query_gap = 0;      ///< elements between heads of q, and of out
  bool has_heads_outside = false;  ///< rows of a head of q and out follow each other
  std::string kernel = {};         ///< that the plan must name; empty: any
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
    if (case_.query_gap > 0 || case_.has_heads_outside) {
      p.q_strides = strides_of_queries(p.head_dim);
      p.out_strides = strides_of_queries(value_dim_of(p));
    }
  }

  void check() {
    const AttentionProblem& p = case_.problem;
    const device::Device& inner = opened(device_);
    draw();
    const Buffer q = Buffer::from(inner, q_codes_.bytes), k = Buffer::from(inner, k_codes_.bytes),
                 v = Buffer::from(inner, v_codes_.bytes);
    const Buffer q_scales = Buffer::from(inner, q_scales_),
                 k_scales = Buffer::from(inner, k_scales_),
                 v_scales = Buffer::from(inner, v_scales_);
    const Buffer cu_q = Buffer::from(inner, running_sums(case_.q_rooms));
    const Buffer q_lengths = Buffer::from(inner, case_.q_lengths);
    const Buffer kv_lengths = Buffer::from(inner, case_.kv_lengths);
    const Buffer table = Buffer::from(inner, table_);
    const Buffer cu_kv = Buffer::from(inner, running_sums(rooms_kv()));
    const std::vector<double> sinks = sinks_of_heads();
    const Buffer sink = Buffer::from(inner, std::vector<float>(sinks.begin(), sinks.end()));
    const Attention attention(device_, p);
    if (!case_.kernel.empty()) {
      EXPECT_EQ(attention.plan().kernel, case_.kernel);
    }
    plan_ = attention.plan();
    const Buffer workspace(inner, attention.plan().workspace_bytes);
    const std::size_t lines = num_query_rows() * size(p.heads);
    const kernels::Output<std::uint16_t> out(inner,
                                             lines * size(value_dim_of(p) + case_.query_gap));
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
                   .q_descale = kernels::pointer_to<const float>(q_scales),
                   .k_descale = kernels::pointer_to<const float>(k_scales),
                   .v_descale = kernels::pointer_to<const float>(v_scales),
                   .q_lengths = kernels::pointer_to<const std::int32_t>(q_lengths),
                   .kv_lengths = kernels::pointer_to<const std::int32_t>(kv_lengths),
                   .block_table = kernels::pointer_to<const std::int32_t>(table)});
    stream.synchronize();
    compare(out.read(), lse.read());
  }

 private:
  static std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }
  // Codes of a tensor, NaN where none was written.
  struct Codes {
    FormatSpec format;
    std::vector<std::uint8_t> bytes;

    std::size_t size_of_one() const { return format == kE4m3 ? 1 : 2; }
    void resize(std::size_t elems) { bytes.assign(elems * size_of_one(), 0xff); }
    void set(std::size_t at, double number) {
      const std::uint64_t code = encode(format, number);
      for (std::size_t i = 0; i < size_of_one(); ++i)
        bytes[at * size_of_one() + i] = static_cast<std::uint8_t>(code >> (8 * i));
    }
  };
  static const FormatSpec& format_of(DType dtype) {
    return dtype == DType::kF16 ? kFp16 : dtype == DType::kBF16 ? kBf16 : kE4m3;
  }
  bool is_e4m3() const { return case_.problem.dtype == DType::kF8_E4M3; }
  DType kv_dtype() const { return case_.problem.kv_dtype.value_or(case_.problem.dtype); }
  const FormatSpec& out_format() const {
    const DType given = case_.problem.out_dtype.value_or(case_.problem.dtype);
    return given == DType::kF16 ? kFp16 : kBf16;
  }
  // That of a head of keys, of those that a tensor has.
  double scale_of(const std::vector<float>& scales, std::int64_t b, std::size_t head) const {
    if (scales.empty()) return 1;
    const bool is_of_heads = case_.problem.fp8.scales == ScaleSharing::kHead;
    return scales[is_of_heads ? size(b * case_.problem.kv_heads) + head : 0];
  }

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
    // Behind the last key's page stand pages that a sequence had before: of NaNs, here.
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t i = 0; i < p.max_pages; ++i)
        table_[size(b * p.table_stride + i)] = pages[size(b * p.max_pages + i)];
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
  Strides strides_of_queries(std::int64_t dim) const {
    const AttentionProblem& p = case_.problem;
    const std::int64_t elems = dim + case_.query_gap, rows = p.is_packed ? p.total_q : p.q_len;
    if (case_.has_heads_outside) return {p.heads * rows * elems, elems, rows * elems};
    return {p.heads * rows * elems, p.heads * elems, elems};
  }
  // Element of q or out where a query's head begins, of which rows have so many elements.
  std::size_t query_element(std::int64_t b, std::int64_t query, std::int64_t head,
                            std::int64_t dim) const {
    const Strides s = strides_of_queries(dim);
    const bool is_packed = case_.problem.is_packed;
    const auto row = is_packed ? static_cast<std::int64_t>(query_row(b, query)) : query;
    return size((is_packed ? 0 : b * s.batch) + row * s.row + head * s.head);
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
    q_codes_.format = format_of(p.dtype);
    k_codes_.format = v_codes_.format = format_of(kv_dtype());
    q_codes_.resize(num_query_rows() * (q_elems + size(p.heads * case_.query_gap)));
    const std::size_t gap = size(case_.row_gap);
    k_codes_.resize(kv_rows * (k_elems + gap));
    v_codes_.resize(kv_rows * (v_elems + gap));
    if (is_e4m3()) draw_scales(q_scales_, 11);
    if (kv_dtype() == DType::kF8_E4M3) draw_scales(k_scales_, 12), draw_scales(v_scales_, 13);
    // Of e4m3 queries and keys no product is rounded: integers (kernels::Fp8AttentionInputs).
    const auto of_scores = is_e4m3() ? kernels::Numbers::kIntegers : kernels::Numbers::kUniform;
    std::uint64_t seed = 1;
    std::int64_t sequence = 0;
    // `place`: that of a head in codes; nothing where it is nowhere.
    const auto fill = [&](std::vector<double>& gathered, Codes& codes, kernels::Numbers kind,
                          const auto& place, std::size_t elems, std::int64_t heads,
                          const std::vector<float>& scales) {
      std::vector<double> numbers =
          kernels::draw_many(++seed, static_cast<std::int64_t>(elems), kind, codes.format);
      const std::size_t dim = elems / size(heads);
      for (std::size_t i = 0; i < elems; ++i) {
        const std::optional<std::size_t> at = place(static_cast<std::int64_t>(i / dim));
        if (at) codes.set(*at + i % dim, numbers[i]);
        if (!at) numbers[i] = 0.0;
      }
      const std::size_t of_key_head = elems / size(heads) * size(heads / p.kv_heads);
      for (std::size_t i = 0; i < elems; ++i)
        gathered.push_back(numbers[i] * scale_of(scales, sequence, i / of_key_head));
    };
    for (std::int64_t& b = sequence; b < p.batch; ++b) {
      for (std::int64_t i = 0; i < used_q_[size(b)]; ++i)
        fill(
            q_, q_codes_, of_scores,
            [&](std::int64_t head) { return std::optional(query_element(b, i, head, p.head_dim)); },
            q_elems, p.heads, q_scales_);
      for (std::int64_t j = 0; j < used_kv_[size(b)]; ++j) {
        const auto of_row = [&](std::size_t elems, std::int64_t dim) {
          return [row = key_row(b, j), elems, dim](std::int64_t head) {
            return row ? std::optional(*row * elems + size(head * dim)) : std::nullopt;
          };
        };
        fill(k_, k_codes_, of_scores, of_row(k_elems + gap, p.head_dim), k_elems, p.kv_heads,
             k_scales_);
        fill(v_, v_codes_, kernels::Numbers::kUniform, of_row(v_elems + gap, value_dim_of(p)),
             v_elems, p.kv_heads, v_scales_);
      }
    }
  }
  void draw_scales(std::vector<float>& scales, std::uint64_t seed) const {
    const bool is_of_heads = case_.problem.fp8.scales == ScaleSharing::kHead;
    kernels::Random random(seed);
    scales.resize(is_of_heads ? size(case_.problem.batch * case_.problem.kv_heads) : 1);
    for (float& scale : scales) scale = static_cast<float>(random.uniform(0.4, 1.2));
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
          const std::size_t at =
              query_element(b, i, static_cast<std::int64_t>(head), value_dim_of(p));
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
            // Times the scale of keys: one rounding more.
            .score_shift = k_scales_.empty() ? 0 : exact.score_magnitude[line] * 0x1p-23,
            .softcap = p.softcap,
            .value_max = 2,
            .p_roundoff = u,
            .p_subnormal = p.dtype == DType::kF16 ? 0x1p-24 : 0,
            .out_roundoff = u};
  }

  // The row at element `at` of out, which is cleared.
  void compare_row(const reference::AttentionResult& exact, std::size_t line, std::size_t first,
                   std::vector<std::uint16_t>& out, std::size_t at) const {
    const std::size_t dims = size(value_dim_of(case_.problem));
    for (std::size_t d = 0; d < dims; ++d) {
      std::uint16_t& code = out[at + d];
      const double value = decode(out_format(), code), wanted = exact.out[first + d];
      ASSERT_LE(std::abs(value - wanted),
                out_bound(exact, line, wanted, exact.out_magnitude[first + d]))
          << "dim " << d << ": " << value << " for " << wanted;
      code = 0xffff;
    }
  }
  void compare_lse(const reference::AttentionResult& exact, std::size_t line, float lse) const {
    if (std::isinf(exact.lse[line])) {
      ASSERT_EQ(lse, -INFINITY);
    } else {
      const double bound =
          is_e4m3()
              ? reference::attention_fp8_lse_bound(fp8_bounds_of(exact, line), exact.lse[line])
              : reference::attention_lse_bound(bounds_of(exact, line), exact.lse[line]);
      ASSERT_NEAR(lse, exact.lse[line], bound);
    }
  }

  double out_bound(const reference::AttentionResult& exact, std::size_t line, double wanted,
                   double magnitude) const {
    if (!is_e4m3())
      return reference::attention_out_bound(bounds_of(exact, line), wanted, magnitude);
    // The tensor core adds up all keys, or those of a flush.
    const std::int64_t tiles = case_.problem.kv_len / plan_.tile_keys + 2;
    const std::int64_t summed =
        plan_.accumulation_keys > 0 ? plan_.accumulation_keys : tiles * plan_.tile_keys;
    const double loss =
        kernels::tensor_core_bound(reference::kHopperE4m3TensorCore, static_cast<int>(summed), 1);
    return reference::attention_fp8_out_bound(fp8_bounds_of(exact, line), loss, wanted, magnitude);
  }
  reference::AttentionFp8Row fp8_bounds_of(const reference::AttentionResult& exact,
                                           std::size_t line) const {
    const AttentionProblem& p = case_.problem;
    return {.num_keys = p.kv_len,
            .num_tiles = p.kv_len / plan_.tile_keys + 2,
            .score_magnitude = exact.score_magnitude[line],
            .score_loss = 0,  // integers: products are exact
            .sink = p.has_sink ? 4.0 : 0.0,
            .softcap = p.softcap,
            .top_share = std::exp(exact.row_max[line] - exact.lse[line]),
            .value_max = 2 * 1.2,
            .out_roundoff = std::ldexp(1, -out_format().mantissa_bits - 1),
            .out_subnormal = out_format() == kFp16 ? 0x1p-24 : 0.0};
  }

  const Device& device_;
  PagedCase case_;
  std::vector<std::int32_t> used_q_, used_kv_, table_;
  Codes q_codes_, k_codes_, v_codes_;
  std::vector<float> q_scales_, k_scales_, v_scales_;
  AttentionPlan plan_;
  std::vector<double> q_, k_, v_;
};

// 12 heads over 2; packed queries of four sequences, one of them without, or 40 of each.
inline void give_ragged_rooms(PagedCase& c, bool is_packed) {
  c.problem.heads = 12;
  c.problem.kv_heads = 2;
  c.problem.kv_len = 100;
  c.q_rooms = {40, 1, 0, 9};
  c.kv_lengths = {100, 51, 20, 0};
  if (!is_packed) c.problem.q_len = 40, c.q_rooms.clear();
}

// Parts of prompts and sequences that decode in one call: 70 queries cross a warpgroup, 150 keys a
// tile; one has no keys, one no queries.
inline PagedCase mixed(std::int64_t page_size, std::int64_t head_dim = 64) {
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

}  // namespace tilewright::ops
