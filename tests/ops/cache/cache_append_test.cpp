// New tokens written to caches and turned, against float64: every type, pairs, pages, packed rows,
// offsets, scales; that nothing else is written, and what lengths and pages out of bounds do.
#include "tilewright/attention_decode.h"

#include "device/internal.h"
#include "formats/minifloat.h"
#include "tests/kernels/kernel_test.h"
#include "tests/ops/operator_test.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <span>

#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using device::Buffer;
using kernels::pointer_to;
using reference::expect_invalid;

const FormatSpec& format_of(DType type) {
  return type == DType::kF8_E4M3 ? kE4m3 : type == DType::kF16 ? kFp16 : kBf16;
}
std::size_t bytes_of(DType type) {
  return type == DType::kF8_E4M3 ? 1 : 2;
}
std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// Codes of rows of `dim` numbers, each `pitch` behind the last; between rows 0xff, NaNs.
struct Codes {
  DType type;
  std::int64_t dim, pitch;
  std::vector<std::byte> bytes;

  Codes(std::uint64_t seed, DType of, std::int64_t rows, std::int64_t d, std::int64_t gap)
      : type(of), dim(d), pitch(d + gap), bytes(at(rows * pitch) * bytes_of(of), std::byte{0xff}) {
    kernels::Random random(seed);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < dim; ++i)
        put(row, i, encode(format_of(type), random.uniform(-3, 3)));
  }
  Codes(DType of, std::int64_t d, std::int64_t gap, std::vector<std::byte> from)
      : type(of), dim(d), pitch(d + gap), bytes(std::move(from)) {}

  void put(std::int64_t row, std::int64_t i, std::uint32_t code) {
    std::memcpy(&bytes[at(row * pitch + i) * bytes_of(type)], &code, bytes_of(type));
  }
  std::uint32_t code(std::int64_t row, std::int64_t i) const {
    std::uint32_t found = 0;
    std::memcpy(&found, &bytes[at(row * pitch + i) * bytes_of(type)], bytes_of(type));
    return found;
  }
  double value(std::int64_t row, std::int64_t i) const {
    return decode(format_of(type), code(row, i));
  }
};

// An exact number, and how far fp32 may be from it.
struct Exact {
  double value = 0, error = 0;
};

struct Case {
  CacheAppendProblem problem;
  std::vector<std::int32_t> lengths, offsets, cu_new, cu_q, table;
  std::int64_t gap = 16;  ///< elements behind every row
};

struct Written {
  std::vector<std::byte> k, v, q;
  std::vector<std::int32_t> lengths;
};

class CacheAppendTest : public ChipTest<CacheAppendTest> {
 protected:
  void check(const Case& c) {
    case_ = c;
    CacheAppendProblem& p = case_.problem;
    dv_ = p.value_dim == 0 ? p.head_dim : p.value_dim;
    set_strides(p, c.gap);
    const CacheAppend append(*device_, p);
    SCOPED_TRACE(append.plan().to_string());
    const std::int64_t rows = p.is_packed ? p.total_new : p.batch * p.new_len;
    const std::int64_t queries = p.is_q_packed ? p.total_q : p.batch * p.q_len;
    const Codes k(1, p.dtype, rows * p.kv_heads, p.head_dim, c.gap);
    const Codes v(2, p.dtype, rows * p.kv_heads, dv_, c.gap);
    const Codes q(3, p.dtype, queries * p.heads, p.head_dim, c.gap);
    make_angles();
    const Written out = run(append, k, v, q, rows, queries);
    compare_cache(k, out.k, true);
    compare_cache(v, out.v, false);
    compare_queries(q, out.q, queries);
    for (std::int64_t b = 0; p.has_new_lengths && b < p.batch; ++b)
      EXPECT_EQ(out.lengths[at(b)],
                std::min<std::int64_t>(std::max(c.lengths[at(b)], 0) + added(b), 0x7fffffff));
  }

 private:
  std::int64_t pages() const {
    return case_.problem.page_size > 0 ? case_.problem.num_pages : case_.problem.batch;
  }
  std::int64_t slots() const {
    return case_.problem.page_size > 0 ? case_.problem.page_size : case_.problem.max_len;
  }
  std::int64_t added(std::int64_t b) const {
    return case_.problem.is_packed ? case_.cu_new[at(b + 1)] - case_.cu_new[at(b)]
                                   : case_.problem.new_len;
  }
  std::int64_t first_row(std::int64_t b) const {
    return case_.problem.is_packed ? case_.cu_new[at(b)] : b * case_.problem.new_len;
  }

  void set_strides(CacheAppendProblem& p, std::int64_t gap) const {
    const auto of = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim) {
      return Strides{rows * heads * (dim + gap), heads * (dim + gap), dim + gap};
    };
    const std::int64_t slots = p.page_size > 0 ? p.page_size : p.max_len;
    p.new_k_strides = of(p.new_len, p.kv_heads, p.head_dim);
    p.new_v_strides = of(p.new_len, p.kv_heads, dv_);
    p.k_cache_strides = of(slots, p.kv_heads, p.head_dim);
    p.v_cache_strides = of(slots, p.kv_heads, dv_);
    p.q_strides = p.turned_q_strides = of(p.q_len, p.heads, p.head_dim);
  }

  void make_angles() {
    const CacheAppendProblem& p = case_.problem;
    cos_.clear(), sin_.clear();
    for (std::int64_t i = 0; i < p.max_position * p.rotary_dim / 2; ++i) {
      const double angle = 0.37 * static_cast<double>(i % 101);
      cos_.push_back(static_cast<float>(std::cos(angle)));
      sin_.push_back(static_cast<float>(std::sin(angle)));
    }
    k_descale_.clear(), v_descale_.clear();
    if (p.descale == ScaleSharing::kNone) return;
    const std::int64_t scales = p.descale == ScaleSharing::kHead ? p.batch * p.kv_heads : 1;
    for (std::int64_t i = 0; i < scales; ++i) {
      k_descale_.push_back(0.011f * static_cast<float>(i + 1));
      v_descale_.push_back(0.07f * static_cast<float>(i + 1));
    }
  }

  Written run(const CacheAppend& append, const Codes& k, const Codes& v, const Codes& q,
              std::int64_t rows, std::int64_t queries) const {
    const CacheAppendProblem& p = case_.problem;
    const device::Device& inner = opened(*device_);
    const auto upload = [&](const auto& x) { return Buffer::from(inner, x); };
    const Buffer new_k = upload(k.bytes), new_v = upload(v.bytes), from_q = upload(q.bytes);
    const Buffer lengths = upload(case_.lengths), offsets = upload(case_.offsets);
    const Buffer cu_new = upload(case_.cu_new), cu_q = upload(case_.cu_q);
    const Buffer table = upload(case_.table), cos = upload(cos_), sin = upload(sin_);
    const Buffer k_descale = upload(k_descale_), v_descale = upload(v_descale_);
    const std::int64_t cached = pages() * slots() * p.kv_heads, unit = at(bytes_of(p.kv_dtype));
    const kernels::Output<std::byte> k_cache(inner, at(cached * k.pitch * unit));
    const kernels::Output<std::byte> v_cache(inner, at(cached * v.pitch * unit));
    const kernels::Output<std::byte> turned(inner, at(queries * p.heads * q.pitch * 2));
    const kernels::Output<std::int32_t> new_lengths(inner, at(p.batch));
    append.run(
        {.q = pointer_to<const void>(from_q),
         .new_k = rows > 0 ? pointer_to<const void>(new_k) : nullptr,
         .new_v = rows > 0 ? pointer_to<const void>(new_v) : nullptr,
         .turned_q = turned.pointer(),
         .k_cache = k_cache.pointer(),
         .v_cache = v_cache.pointer(),
         .lengths = pointer_to<const std::int32_t>(lengths),
         .rotary_lengths = pointer_to<const std::int32_t>(offsets),
         .new_lengths = new_lengths.pointer(),
         .block_table = pointer_to<const std::int32_t>(table),
         .cu_new = pointer_to<const std::int32_t>(cu_new),
         .cu_q = pointer_to<const std::int32_t>(cu_q),
         .k_descale = pointer_to<const float>(k_descale),
         .v_descale = pointer_to<const float>(v_descale),
         .rope = {.cos = pointer_to<const float>(cos), .sin = pointer_to<const float>(sin)}});
    device_->synchronize();
    return {k_cache.read(), v_cache.read(), turned.read(), new_lengths.read()};
  }

  // Element i of a row, turned by the angles of a position. In fp32: two products and a sum, which
  // contraction only makes fewer roundings of: at most 2 * 2^-24 of the sum of magnitudes.
  Exact turned(const Codes& x, std::int64_t row, std::int64_t i, std::int64_t position) const {
    const CacheAppendProblem& p = case_.problem;
    if (i >= p.rotary_dim) return {x.value(row, i), 0};
    const std::int64_t half = p.rotary_dim / 2;
    const bool is_split = p.rotary == RotaryPairs::kHalves;
    const std::int64_t pair = is_split ? i % half : i / 2;
    const std::int64_t first = is_split ? pair : 2 * pair,
                       second = is_split ? pair + half : first + 1;
    const std::size_t angle = at(std::min(position, p.max_position - 1) * half + pair);
    const double a = x.value(row, first), b = x.value(row, second), c = cos_[angle],
                 s = sin_[angle];
    const double one = i == first ? a * c : a * s, other = i == first ? -b * s : b * c;
    return {one + other, 2 * 0x1p-24 * (std::abs(one) + std::abs(other))};
  }

  // Rounding is monotone: what fp32 has is between both ends, and so are their codes.
  static void expect_rounded(std::uint32_t got, const Exact& exact, DType type, const char* what,
                             std::int64_t row, std::int64_t i) {
    const FormatSpec& format = format_of(type);
    const double value = decode(format, got);
    ASSERT_GE(value, decode(format, encode(format, exact.value - exact.error)))
        << what << ", row " << row << ", element " << i;
    ASSERT_LE(value, decode(format, encode(format, exact.value + exact.error)))
        << what << ", row " << row << ", element " << i;
  }

  std::int64_t position(std::int64_t b, std::int64_t further) const {
    const CacheAppendProblem& p = case_.problem;
    const auto& from = p.has_rotary_lengths ? case_.offsets : case_.lengths;
    return std::max(from[at(b)], 0) + further;
  }

  // Where key `key` of a sequence is, as a row of the cache; -1 if nowhere.
  std::int64_t place(std::int64_t b, std::int64_t key) const {
    const CacheAppendProblem& p = case_.problem;
    if (p.page_size == 0) return key < p.max_len ? b * p.max_len + key : -1;
    if (key >= p.page_size * p.max_pages) return -1;
    const std::int64_t page = case_.table[at(b * p.max_pages + key / p.page_size)];
    return page < 0 || page >= p.num_pages ? -1 : page * p.page_size + key % p.page_size;
  }

  void compare_cache(const Codes& from, const std::vector<std::byte>& bytes, bool is_key) const {
    const CacheAppendProblem& p = case_.problem;
    const Codes cache(p.kv_dtype, from.dim, case_.gap, bytes);
    std::vector<bool> is_written(cache.bytes.size());
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t j = 0; j < added(b); ++j) {
        const std::int64_t found = place(b, std::max(case_.lengths[at(b)], 0) + j);
        if (found < 0) continue;
        for (std::int64_t h = 0; h < p.kv_heads; ++h) {
          const std::int64_t row = (first_row(b) + j) * p.kv_heads + h;
          compare_row(from, row, cache, found * p.kv_heads + h, b, h, j, is_key);
          const auto first = is_written.begin() +
                             (found * p.kv_heads + h) * cache.pitch * at(bytes_of(p.kv_dtype));
          std::fill_n(first, at(from.dim) * bytes_of(p.kv_dtype), true);
        }
      }
    }
    for (std::size_t i = 0; i < is_written.size(); ++i) {
      if (is_written[i]) continue;
      ASSERT_EQ(bytes[i], Buffer::kPoison) << "byte " << i << " is no token's";
    }
  }

  void compare_row(const Codes& from, std::int64_t row, const Codes& cache, std::int64_t to,
                   std::int64_t b, std::int64_t h, std::int64_t j, bool is_key) const {
    const CacheAppendProblem& p = case_.problem;
    const std::size_t scale = p.descale == ScaleSharing::kHead ? at(b * p.kv_heads + h) : 0;
    const auto& descales = is_key ? k_descale_ : v_descale_;
    for (std::int64_t i = 0; i < from.dim; ++i) {
      const bool is_turned = is_key && i < p.rotary_dim;
      if (!is_turned && p.kv_dtype == p.dtype) {
        ASSERT_EQ(cache.code(to, i), from.code(row, i)) << "row " << row << ", element " << i;
        continue;
      }
      Exact exact = is_turned ? turned(from, row, i, position(b, j)) : Exact{from.value(row, i), 0};
      if (!descales.empty()) {  // the quotient's rounding, and the product's
        const double factor = 1 / static_cast<double>(descales[scale]);
        exact.error = exact.error * factor + 3 * 0x1p-24 * std::abs(exact.value) * factor;
        exact.value *= factor;
      }
      expect_rounded(cache.code(to, i), exact, p.kv_dtype, is_key ? "keys" : "values", row, i);
    }
  }

  void compare_queries(const Codes& q, const std::vector<std::byte>& bytes,
                       std::int64_t queries) const {
    const CacheAppendProblem& p = case_.problem;
    const Codes out(p.dtype, p.head_dim, case_.gap, bytes);
    for (std::int64_t token = 0; p.heads > 0 && token < queries; ++token) {
      std::int64_t b = p.is_q_packed ? 0 : token / p.q_len, i = token - b * p.q_len;
      if (p.is_q_packed) {
        while (token >= case_.cu_q[at(b + 1)]) ++b;
        i = token - case_.cu_q[at(b)];
      }
      for (std::int64_t row = token * p.heads; row < (token + 1) * p.heads; ++row)
        for (std::int64_t d = 0; d < p.head_dim; ++d)
          expect_rounded(out.code(row, d),
                         turned(q, row, d, position(b, p.is_one_position ? 0 : i)), p.dtype,
                         "queries", row, d);
    }
  }

  Case case_;
  std::int64_t dv_ = 0;
  std::vector<float> cos_, sin_, k_descale_, v_descale_;
};
TILEWRIGHT_ON_EVERY_CHIP(CacheAppendTest);

Case with(Case c, const std::function<void(Case&)>& change) {
  change(c);
  return c;
}

// Three sequences, five new tokens each, four queries, in pages of 4 that lie in no order.
Case small() {
  Case c;
  c.problem = {.batch = 3,
               .kv_heads = 2,
               .new_len = 5,
               .head_dim = 48,
               .page_size = 4,
               .num_pages = 13,
               .max_pages = 4};
  c.problem.has_new_lengths = true;
  c.lengths = {0, 3, 9};
  c.offsets = {7, 0, 2};
  c.table = {5, 2, 12, 0, 1, 11, 3, 4, 6, 10, 7, 9};
  return c;
}
Case turning() {
  return with(small(), [](Case& c) {
    CacheAppendProblem& p = c.problem;
    p.rotary = RotaryPairs::kInterleaved, p.rotary_dim = 32, p.max_position = 24;
    p.heads = 4, p.q_len = 4;
  });
}
void pack(Case& c) {
  c.problem.is_packed = true, c.problem.new_len = 0, c.problem.total_new = 11;
  c.cu_new = {0, 6, 6, 9};  // the last two rows are nobody's
}
void pack_queries(Case& c) {
  c.problem.is_q_packed = true, c.problem.q_len = 0, c.problem.total_q = 8;
  c.cu_q = {0, 0, 7, 8};
}

TEST_P(CacheAppendTest, EveryType) {
  for (const DType type : {DType::kBF16, DType::kF16, DType::kF8_E4M3}) {
    for (const DType kv : {type, DType::kF8_E4M3}) {
      for (const std::int64_t value_dim : {0, 80}) {
        check(with(small(), [&](Case& c) {
          c.problem.dtype = type, c.problem.kv_dtype = kv, c.problem.value_dim = value_dim;
        }));
      }
    }
  }
}

TEST_P(CacheAppendTest, EveryWayToTurn) {
  for (const RotaryPairs pairs : {RotaryPairs::kInterleaved, RotaryPairs::kHalves}) {
    for (const DType type : {DType::kBF16, DType::kF16}) {
      for (const bool is_one : {false, true}) {
        for (const bool has_own : {false, true}) {
          check(with(turning(), [&](Case& c) {
            c.problem.rotary = pairs, c.problem.dtype = c.problem.kv_dtype = type;
            c.problem.is_one_position = is_one, c.problem.has_rotary_lengths = has_own;
            if (is_one) c.problem.rotary_dim = 48;
          }));
        }
      }
    }
  }
}

TEST_P(CacheAppendTest, ScalesOfTheCache) {
  for (const ScaleSharing sharing : {ScaleSharing::kTensor, ScaleSharing::kHead}) {
    for (const DType type : {DType::kBF16, DType::kF16}) {
      check(with(turning(), [&](Case& c) {
        c.problem.dtype = type, c.problem.kv_dtype = DType::kF8_E4M3, c.problem.descale = sharing;
        c.problem.rotary = RotaryPairs::kHalves;
      }));
    }
  }
}

TEST_P(CacheAppendTest, PackedTokensAndQueries) {
  check(with(small(), pack));
  check(with(turning(), pack));
  check(with(turning(), pack_queries));
  check(with(turning(), [](Case& c) {
    pack(c), pack_queries(c);
    c.problem.has_rotary_lengths = true;
  }));
}

TEST_P(CacheAppendTest, WithoutPages) {
  for (const auto& make : {small, turning}) {
    check(with(make(), [](Case& c) {
      c.problem.page_size = c.problem.num_pages = c.problem.max_pages = 0, c.problem.max_len = 16;
      c.table.clear();
    }));
  }
}

// Queries alone are turned; tokens alone, without gaps.
TEST_P(CacheAppendTest, NoTokensOrNoQueries) {
  check(with(turning(), [](Case& c) { c.problem.new_len = 0; }));
  check(with(turning(), [](Case& c) { c.problem.heads = c.problem.q_len = 0; }));
  check(with(small(), [](Case& c) { c.gap = 0; }));
}

// What does not fit is left out; nothing else is written.
TEST_P(CacheAppendTest, LengthsAndPagesOutOfBounds) {
  check(with(turning(), [](Case& c) {
    c.lengths = {-5, 13,
                 2147483647};  // the last token of the second has room, the third's have none
    c.offsets = {-1, 2147483647, 22};  // and angles behind the last count as the last
    c.problem.has_rotary_lengths = true;
    c.table[1] = 13;
    c.table[7] = -1;
  }));
}

TEST_P(CacheAppendTest, RefusesWhatMakesNoSense) {
  const auto refuse = [&](const std::function<void(CacheAppendProblem&)>& change,
                          const std::vector<std::string>& parts) {
    CacheAppendProblem p = turning().problem;
    change(p);
    expect_invalid([&] { plan_cache_append(*device_, p); }, parts);
  };
  refuse([](auto& p) { p.head_dim = 12; }, {"cache append: head_dim = 12", "a multiple of 8"});
  refuse([](auto& p) { p.rotary_dim = 24; }, {"rotary_dim = 24", "a multiple of 16 up to"});
  refuse([](auto& p) { p.rotary = RotaryPairs::kNone; }, {"heads = 4", "0 without rotary pairs"});
  refuse([](auto& p) { p.kv_dtype = DType::kF16; }, {"kv_dtype", "dtype = BF16 or F8_E4M3"});
  refuse([](auto& p) { p.descale = ScaleSharing::kHead; }, {"descale", "scales belong to 16 bits"});
  refuse([](auto& p) { p.is_packed = true; },
         {"new_len = 5", "0: total_new counts rows of packed tokens"});
  refuse([](auto& p) { p.total_q = 3; },
         {"total_q = 3", "0: q_len counts tokens that are not packed"});
  refuse([](auto& p) { p.max_len = 3; }, {"max_len = 3", "max_pages says"});
  refuse([](auto& p) { p.v_cache_strides = {4, 4, 4}; }, {"v_cache_strides", "multiples of 8"});
  refuse([](auto& p) { p.dtype = p.kv_dtype = DType::kF8_E4M3; },
         {"rotary", "codes are not turned"});
  refuse([](auto& p) { p.new_len = 2147483647; }, {"new_len", "fewer than 2^34 elements"});
  const CacheAppend append(*device_, small().problem);
  expect_invalid([&] { append.run({}); }, {"cache append: the address of new_k is null"});
}

}  // namespace
}  // namespace tilewright::ops
