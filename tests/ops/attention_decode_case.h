// One call of the decode operator on random tensors, compared with the float64 reference.
#pragma once

#include "tilewright/attention_decode.h"

#include "device/internal.h"
#include "reference/attention/attention.h"
#include "reference/attention/bound.h"
#include "reference/error_bound.h"
#include "reference/rotation/rotary_table.h"
#include "reference/round.h"
#include "tests/kernels/kernel_test.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

namespace tilewright::ops {

using device::Buffer;

/// What to run, on sequences of these lengths (before new tokens).
struct DecodeCase {
  AttentionDecodeProblem problem;
  std::vector<std::int32_t> lengths;
  std::vector<double> sink = {};
  bool has_exact_numbers = false;  ///< small integers, and a rotation without rounding
};

class DecodeRun {
 public:
  using Enqueue = std::function<void(const AttentionDecode&, const AttentionDecodeArguments&,
                                     const device::Stream&)>;

  DecodeRun(const Device& device, DecodeCase c)
      : device_(device),
        case_(std::move(c)),
        p_(plan_attention_decode(device, case_.problem).problem) {
    draw();
  }

  void check(const Enqueue& enqueue = run_once) {
    const AttentionDecode decode(device_, case_.problem);
    const device::Device& inner = opened(device_);
    const Buffer q = Buffer::from(inner, kernels::encode_all<std::uint16_t>(format(), q_));
    const Buffer new_k = Buffer::from(inner, kernels::encode_all<std::uint16_t>(format(), new_k_));
    const Buffer new_v = Buffer::from(inner, kernels::encode_all<std::uint16_t>(format(), new_v_));
    const Buffer k = Buffer::from(inner, k_codes_), v = Buffer::from(inner, v_codes_);
    const Buffer lengths = Buffer::from(inner, case_.lengths), table = Buffer::from(inner, table_);
    const Buffer k_descale = Buffer::from(inner, kernels::to_floats(k_descale_));
    const Buffer v_descale = Buffer::from(inner, kernels::to_floats(v_descale_));
    const Buffer cos = Buffer::from(inner, kernels::to_floats(cos_));
    const Buffer sin = Buffer::from(inner, kernels::to_floats(sin_));
    const Buffer sink = Buffer::from(inner, kernels::to_floats(case_.sink));
    Buffer workspace(inner, decode.plan().workspace_bytes);
    workspace.poison();
    const auto rows = static_cast<std::size_t>(p_.batch * p_.q_len * p_.heads);
    const kernels::Output<std::uint16_t> out(inner, rows * static_cast<std::size_t>(p_.head_dim));
    const kernels::Output<float> lse(inner, rows);
    const device::Stream stream(inner);
    using kernels::pointer_to;
    enqueue(decode,
            {.q = pointer_to<const void>(q),
             .k_cache = pointer_to<void>(k),
             .v_cache = pointer_to<void>(v),
             .lengths = pointer_to<const std::int32_t>(lengths),
             .block_table = pointer_to<const std::int32_t>(table),
             .k_descale = pointer_to<const float>(k_descale),
             .v_descale = pointer_to<const float>(v_descale),
             .new_k = pointer_to<const void>(new_k),
             .new_v = pointer_to<const void>(new_v),
             .rope = {.cos = pointer_to<const float>(cos),
                      .sin = pointer_to<const float>(sin),
                      .positions = p_.append.max_position},
             .out = out.pointer(),
             .lse = lse.pointer(),
             .sink = pointer_to<const float>(sink),
             .workspace = pointer_to<void>(workspace),
             .stream = stream.handle()},
            stream);
    stream.synchronize();
    out_ = out.read(), lse_ = lse.read();
    check_cache(k.to_vector<std::uint8_t>(), v.to_vector<std::uint8_t>());
    compare();
  }

  static void run_once(const AttentionDecode& decode, const AttentionDecodeArguments& arguments,
                       const device::Stream&) {
    decode.run(arguments);
  }
  /// Of the last check().
  const std::vector<std::uint16_t>& out() const { return out_; }
  const std::vector<float>& lse() const { return lse_; }

 private:
  using Numbers = kernels::Numbers;
  static constexpr double kKeyScale = 0.5, kValueScale = 4;  // first ones of descales

  const FormatSpec& format() const { return p_.dtype == DType::kF16 ? kFp16 : kBf16; }
  const FormatSpec& kv_format() const { return is_codes() ? kE4m3 : format(); }
  bool is_codes() const { return p_.kv_dtype == DType::kF8_E4M3; }
  std::size_t elem_bytes() const { return is_codes() ? 1 : 2; }
  std::int64_t room() const { return p_.page_size > 0 ? p_.max_pages * p_.page_size : p_.max_len; }
  std::int64_t page_rows() const { return p_.page_size > 0 ? p_.page_size : p_.max_len; }

  /// Keys of a sequence when it is attended to.
  std::int64_t total(std::int64_t b) const {
    const std::int64_t n = std::max(case_.lengths[static_cast<std::size_t>(b)], 0);
    return std::min(n + (p_.append.is_wanted ? p_.q_len : 0), room());
  }
  std::int64_t first_seen(std::int64_t b) const {
    const std::int64_t first = std::max<std::int64_t>(total(b) - p_.q_len, 0);
    const std::int64_t of_window =
        p_.window_left < 0 ? 0 : std::max<std::int64_t>(total(b) - p_.q_len - p_.window_left, 0);
    return std::max(of_window, p_.chunk == 0 ? 0 : first / p_.chunk * p_.chunk);
  }
  /// Element of the caches.
  std::size_t offset(std::int64_t b, std::int64_t key, std::int64_t head) const {
    const std::int64_t page =
        p_.page_size > 0 ? table_[static_cast<std::size_t>(b * p_.table_stride + key / page_rows())]
                         : b;
    const std::int64_t slot = p_.page_size > 0 ? key % page_rows() : key;
    return static_cast<std::size_t>(page * p_.cache_strides.batch + slot * p_.cache_strides.row +
                                    head * p_.cache_strides.head);
  }
  double descale(const std::vector<double>& of, std::int64_t b, std::int64_t head) const {
    if (p_.descale == ScaleSharing::kNone) return 1;
    return of[p_.descale == ScaleSharing::kTensor
                  ? 0
                  : static_cast<std::size_t>(b * p_.kv_heads + head)];
  }

  void put(std::vector<std::uint8_t>& codes, std::size_t elem, double x) const {
    const std::uint32_t code = encode(kv_format(), x);
    codes[elem * elem_bytes()] = static_cast<std::uint8_t>(code);
    if (!is_codes()) codes[elem * 2 + 1] = static_cast<std::uint8_t>(code >> 8);
  }
  double get(const std::vector<std::uint8_t>& codes, std::size_t elem) const {
    if (is_codes()) return decode(kE4m3, codes[elem]);
    return decode(format(), codes[2 * elem] | std::uint32_t{codes[2 * elem + 1]} << 8);
  }

  void draw() {
    const Numbers numbers = case_.has_exact_numbers ? Numbers::kIntegers : Numbers::kUniform;
    const std::int64_t tokens = p_.batch * p_.q_len;
    q_ = kernels::draw_many(1, tokens * p_.heads * p_.head_dim, numbers, format());
    new_k_ = kernels::draw_many(2, tokens * p_.kv_heads * p_.head_dim, numbers, format());
    new_v_ = kernels::draw_many(3, tokens * p_.kv_heads * p_.head_dim, numbers, format());
    const std::size_t factors = static_cast<std::size_t>(p_.batch * p_.kv_heads);
    for (std::size_t i = 0; i < std::max<std::size_t>(factors, 1); ++i) {
      k_descale_.push_back(kKeyScale * (i % 2 == 0 ? 1 : 2));
      v_descale_.push_back(kValueScale / (i % 3 == 0 ? 1 : 2));
    }
    if (p_.has_sink && case_.sink.empty())
      for (std::int64_t h = 0; h < p_.heads; ++h) case_.sink.push_back(0.5 * (h % 5) - 1);
    draw_pages();
    draw_caches(numbers);
    kernels::Random random(7);
    for (std::int64_t i = 0; i < p_.append.max_position * (p_.append.rotary_dim / 2); ++i) {
      const double angle = random.uniform(-3, 3);
      // Exact: halves, which are no rotation, but the same formula.
      cos_.push_back(case_.has_exact_numbers ? static_cast<double>(i % 5) / 2 - 1
                                             : std::cos(angle));
      sin_.push_back(case_.has_exact_numbers ? static_cast<double>(i % 3) / 2 - 0.5
                                             : std::sin(angle));
    }
    cos_ = as_floats(cos_), sin_ = as_floats(sin_);
  }
  static std::vector<double> as_floats(const std::vector<double>& x) {
    const std::vector<float> narrow = kernels::to_floats(x);
    return {narrow.begin(), narrow.end()};
  }

  // Pages in an order of their own; entries that no query needs name no page.
  void draw_pages() {
    if (p_.page_size == 0) return;
    std::vector<std::int32_t> pages(static_cast<std::size_t>(p_.num_pages));
    std::iota(pages.begin(), pages.end(), 0);
    kernels::Random random(5);
    for (std::size_t i = pages.size(); i > 1; --i)
      std::swap(pages[i - 1], pages[random.bits() % i]);
    table_.assign(static_cast<std::size_t>(p_.batch * p_.table_stride), 0x7fffffff);
    std::size_t next = 0;
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t i = first_seen(b) / p_.page_size; i * p_.page_size < total(b); ++i) {
        ASSERT_LT(next, pages.size()) << "the case has too few pages";
        table_[static_cast<std::size_t>(b * p_.table_stride + i)] = pages[next++];
      }
    }
  }

  // What no query sees is NaN.
  void draw_caches(Numbers numbers) {
    const std::int64_t pages = p_.page_size > 0 ? p_.num_pages : p_.batch;
    const std::int64_t last = std::max<std::int64_t>(pages - 1, 0) * p_.cache_strides.batch +
                              std::max<std::int64_t>(page_rows() - 1, 0) * p_.cache_strides.row +
                              (p_.kv_heads - 1) * p_.cache_strides.head + p_.head_dim;
    k_codes_.assign(static_cast<std::size_t>(last) * elem_bytes(), 0xff);
    v_codes_ = k_codes_;
    kernels::Random random(9);
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      const std::int64_t end =
          p_.append.is_wanted ? std::max(case_.lengths[static_cast<std::size_t>(b)], 0) : total(b);
      for (std::int64_t key = first_seen(b); key < std::min(end, total(b)); ++key) {
        for (std::int64_t i = 0; i < p_.kv_heads * p_.head_dim; ++i) {
          const std::size_t at =
              offset(b, key, i / p_.head_dim) + static_cast<std::size_t>(i % p_.head_dim);
          put(k_codes_, at, kernels::draw(random, numbers, kv_format()));
          put(v_codes_, at, kernels::draw(random, numbers, kv_format()));
        }
      }
    }
  }

  reference::RotaryTableParams rotation(std::int64_t heads) const {
    return {.tokens = p_.batch * p_.q_len,
            .heads = heads,
            .head_dim = p_.head_dim,
            .rotary_dim = p_.append.rotary_dim,
            .is_interleaved = p_.append.rotary == RotaryPairs::kInterleaved};
  }
  /// Behind the table of angles all are turned by its last row.
  std::vector<std::int64_t> positions() const {
    std::vector<std::int64_t> of_tokens;
    for (std::int64_t t = 0; t < p_.batch * p_.q_len; ++t)
      of_tokens.push_back(std::min(
          std::max(case_.lengths[static_cast<std::size_t>(t / p_.q_len)], 0) + t % p_.q_len,
          p_.append.max_position - 1));
    return of_tokens;
  }
  std::vector<double> rotate(const std::vector<double>& x, std::int64_t heads) const {
    if (p_.append.rotary == RotaryPairs::kNone) return x;
    return reference::rotary_table(rotation(heads), x, positions(), cos_, sin_);
  }
  /// Of the same in fp32.
  std::vector<double> rotation_error(const std::vector<double>& x, std::int64_t heads) const {
    if (p_.append.rotary == RotaryPairs::kNone || case_.has_exact_numbers)
      return std::vector<double>(x.size());
    return reference::rotary_table_error(rotation(heads), x, positions(), cos_, sin_);
  }

  /// New rows are in their places, and nothing else has changed. Later, the caches are as they are.
  void check_cache(std::vector<std::uint8_t> k, std::vector<std::uint8_t> v) {
    const std::vector<std::uint8_t> new_k = k, new_v = v;
    if (p_.append.is_wanted) {
      check_new_rows("k", k, k_codes_, rotate(new_k_, p_.kv_heads), k_descale_);
      check_new_rows("v", v, v_codes_, new_v_, v_descale_);
    }
    ASSERT_EQ(k, k_codes_) << "other keys have changed";
    ASSERT_EQ(v, v_codes_) << "other values have changed";
    k_codes_ = new_k, v_codes_ = new_v;
  }
  /// Compares new rows and puts what was there before back.
  void check_new_rows(const char* name, std::vector<std::uint8_t>& got,
                      const std::vector<std::uint8_t>& before, const std::vector<double>& rows,
                      const std::vector<double>& descales) const {
    const double u = is_codes()                ? reference::kRoundoffE4m3
                     : p_.dtype == DType::kF16 ? reference::kRoundoffFp16
                                               : reference::kRoundoffBf16;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t dim = at % p_.head_dim, head = at / p_.head_dim % p_.kv_heads;
      const std::int64_t token = at / p_.head_dim / p_.kv_heads, b = token / p_.q_len;
      const std::int64_t key =
          std::max(case_.lengths[static_cast<std::size_t>(b)], 0) + token % p_.q_len;
      if (key >= room()) continue;
      const std::size_t elem = offset(b, key, head) + static_cast<std::size_t>(dim);
      const double x = rows[i] / descale(descales, b, head), y = get(got, elem);
      // Rounded once from fp32, in which the rotation has 3 roundings of terms of at most 2; e4m3
      // below 2^-6 has a spacing of 2^-9.
      const double allowed =
          case_.has_exact_numbers
              ? 0
              : u * std::abs(x) + (is_codes() ? 0x1p-10 : 0x1p-25) + 4 * 4 * 0x1p-24;
      ASSERT_LE(std::abs(x - y), allowed) << "new " << name << " of token " << token << ", head "
                                          << head << ", dim " << dim << ": " << y << " for " << x;
      for (std::size_t byte = elem * elem_bytes(); byte < (elem + 1) * elem_bytes(); ++byte)
        got[byte] = before[byte];
    }
  }

  struct Expected {
    reference::AttentionResult result;
    std::vector<double> score_shift;  ///< as rows of lse
  };
  Expected expected(std::int64_t b) const {
    std::vector<double> k, v;
    const std::int64_t n = total(b), begin = first_seen(b);
    for (std::int64_t i = 0; i < n * p_.kv_heads * p_.head_dim; ++i) {
      const std::int64_t key = i / p_.head_dim / p_.kv_heads, head = i / p_.head_dim % p_.kv_heads;
      if (key < begin) {
        k.push_back(0), v.push_back(0);
        continue;
      }
      const std::size_t at = offset(b, key, head) + static_cast<std::size_t>(i % p_.head_dim);
      k.push_back(get(k_codes_, at) * descale(k_descale_, b, head));
      v.push_back(get(v_codes_, at) * descale(v_descale_, b, head));
    }
    std::vector<double> q = rotate(q_, p_.heads), doubt = rotation_error(q_, p_.heads);
    for (std::size_t i = 0; i < q.size(); ++i) {
      doubt[i] = reference::rounding_doubt(format(), q[i], doubt[i]);
      q[i] = round_to(format(), q[i]);
    }
    const auto each = static_cast<std::size_t>(p_.q_len * p_.heads * p_.head_dim);
    const std::size_t first = static_cast<std::size_t>(b) * each;
    const reference::AttentionParams params = {.batch = 1,
                                               .heads = p_.heads,
                                               .kv_heads = p_.kv_heads,
                                               .q_len = p_.q_len,
                                               .kv_len = n,
                                               .head_dim = p_.head_dim,
                                               .v_head_dim = p_.head_dim,
                                               .scale = p_.scale,
                                               .softcap = p_.softcap,
                                               .causal = p_.causal,
                                               .window_left = p_.window_left,
                                               .sink = case_.sink,
                                               .magnitudes = true};
    const std::span<const double> of_b = std::span(q).subspan(first, each);
    if (p_.chunk > 0) return in_chunks(params, of_b, std::span(doubt).subspan(first, each), k, v);
    return {reference::attention(params, of_b, k, v),
            reference::attention_score_shift(params, of_b, std::span(doubt).subspan(first, each), k,
                                             {})};
  }

  /// Query by query, over the keys of its chunk: the last one that a causal query sees is its own,
  /// and one that is not causal sees no window here.
  Expected in_chunks(reference::AttentionParams params, std::span<const double> q,
                     std::span<const double> doubt, std::span<const double> k,
                     std::span<const double> v) const {
    EXPECT_TRUE(p_.causal || p_.window_left < 0) << "in_chunks() has no such reference";
    const auto rows = static_cast<std::size_t>(p_.q_len * p_.heads);
    const std::int64_t n = params.kv_len, row = p_.kv_heads * p_.head_dim;
    const auto each = static_cast<std::size_t>(p_.heads * p_.head_dim);
    Expected all;
    for (auto* of_row :
         {&all.result.lse, &all.result.row_max, &all.result.score_magnitude, &all.score_shift})
      of_row->resize(rows);
    for (std::int64_t i = 0; i < p_.q_len; ++i) {
      const std::int64_t position = n - p_.q_len + i;
      const std::int64_t begin = std::max<std::int64_t>(position, 0) / p_.chunk * p_.chunk;
      const std::int64_t behind = p_.causal ? position + 1 : std::min(begin + p_.chunk, n);
      const std::int64_t end = position < 0 ? begin : behind;
      params.q_len = 1, params.kv_len = end - begin;
      const auto of_keys = [&](std::span<const double> x) {
        return x.subspan(static_cast<std::size_t>(begin * row),
                         static_cast<std::size_t>((end - begin) * row));
      };
      const std::size_t first = static_cast<std::size_t>(i) * each;
      const auto of_query = [&](std::span<const double> x) { return x.subspan(first, each); };
      const reference::AttentionResult one =
          reference::attention(params, of_query(q), of_keys(k), of_keys(v));
      const std::vector<double> shift =
          reference::attention_score_shift(params, of_query(q), of_query(doubt), of_keys(k), {});
      const auto behind_all = [](std::vector<double>& to, const std::vector<double>& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      behind_all(all.result.out, one.out);
      behind_all(all.result.out_magnitude, one.out_magnitude);
      for (std::int64_t h = 0; h < p_.heads; ++h) {
        const auto from = static_cast<std::size_t>(h);
        const auto line = static_cast<std::size_t>(h * p_.q_len + i);
        all.result.lse[line] = one.lse[from], all.result.row_max[line] = one.row_max[from];
        all.result.score_magnitude[line] = one.score_magnitude[from];
        all.score_shift[line] = shift[from];
      }
    }
    return all;
  }

  void compare() const {
    const bool is_f16 = p_.dtype == DType::kF16, weighs_in_f16 = is_f16 || is_codes();
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      const Expected want = expected(b);
      const reference::AttentionResult& exact = want.result;
      for (std::int64_t i = 0; i < p_.q_len * p_.heads; ++i) {
        const std::int64_t head = i % p_.heads, query = i / p_.heads;
        const auto line = static_cast<std::size_t>(head * p_.q_len + query);
        const reference::AttentionRow row = {
            .head_dim = p_.head_dim,
            .num_keys = total(b),
            .score_magnitude = exact.score_magnitude[line],
            .row_max = exact.row_max[line],
            .score_shift = want.score_shift[line],
            .softcap = p_.softcap,
            .value_max = 2 * kValueScale,
            .p_roundoff = weighs_in_f16 ? reference::kRoundoffFp16 : reference::kRoundoffBf16,
            .p_subnormal = weighs_in_f16 ? 0x1p-24 : 0,
            .out_roundoff = is_f16 ? reference::kRoundoffFp16 : reference::kRoundoffBf16};
        compare_row(b, query, head, row, exact, static_cast<std::size_t>(i), line);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
  void compare_row(std::int64_t b, std::int64_t query, std::int64_t head,
                   const reference::AttentionRow& row, const reference::AttentionResult& exact,
                   std::size_t i, std::size_t line) const {
    const auto dims = static_cast<std::size_t>(p_.head_dim);
    const std::size_t base = static_cast<std::size_t>(b * p_.q_len * p_.heads) + i;
    for (std::size_t d = 0; d < dims; ++d) {
      const double value = decode(format(), out_[base * dims + d]), want = exact.out[i * dims + d];
      ASSERT_LE(std::abs(value - want),
                reference::attention_out_bound(row, want, exact.out_magnitude[i * dims + d]))
          << "sequence " << b << ", query " << query << ", head " << head << ", dim " << d << ": "
          << value << " for " << want;
    }
    const float lse = lse_[static_cast<std::size_t>(b * p_.heads * p_.q_len) + line];
    if (!p_.has_lse) {
      ASSERT_TRUE(std::isnan(lse)) << "lse was not asked for";
    } else if (std::isinf(exact.lse[line])) {
      ASSERT_EQ(lse, -INFINITY) << "sequence " << b << ", query " << query << ", head " << head;
    } else {
      ASSERT_NEAR(lse, exact.lse[line], reference::attention_lse_bound(row, exact.lse[line]))
          << "sequence " << b << ", query " << query << ", head " << head;
    }
  }

  const Device& device_;
  DecodeCase case_;
  AttentionDecodeProblem p_;
  std::vector<double> q_, new_k_, new_v_, k_descale_, v_descale_, cos_, sin_;
  std::vector<std::uint8_t> k_codes_, v_codes_;
  std::vector<std::int32_t> table_;
  std::vector<std::uint16_t> out_;
  std::vector<float> lse_;
};

}  // namespace tilewright::ops
