// The merge of partial results against float64: every type, option and layout, parts without keys,
// and that two calls over a shared prefix and what follows it are one call over both.
#include "tilewright/attention_merge.h"

#include "tilewright/attention.h"

#include "device/internal.h"
#include "reference/attention/attention.h"
#include "reference/attention/bound.h"
#include "reference/attention/merge.h"
#include "reference/error_bound.h"
#include "tests/kernels/kernel_test.h"
#include "tests/ops/operator_test.h"

#include <cmath>
#include <cstring>
#include <span>

#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using device::Buffer;
using ::testing::HasSubstr;

AttentionMergeProblem with(AttentionMergeProblem p, auto change) {
  change(p);
  return p;
}

const FormatSpec& format_of(DType type) {
  return type == DType::kF16 ? kFp16 : kBf16;
}

// Numbers in memory as a type, and back.
std::vector<std::byte> encode_all(const std::vector<double>& x, DType type) {
  std::vector<std::byte> bytes;
  const auto append = [&](const auto& value) {
    const auto* const first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
  };
  for (const double value : x) {
    if (type == DType::kF32) {
      append(static_cast<float>(value));
    } else {
      append(static_cast<std::uint16_t>(encode(format_of(type), value)));
    }
  }
  return bytes;
}
double decode_at(const std::vector<std::byte>& bytes, std::int64_t i, DType type) {
  if (type == DType::kF32) {
    float value;
    std::memcpy(&value, bytes.data() + 4 * i, 4);
    return value;
  }
  std::uint16_t code;
  std::memcpy(&code, bytes.data() + 2 * i, 2);
  return decode(format_of(type), code);
}

// Parts as [parts, batch, rows, heads, dim] without gaps, lse as [parts, batch, rows, heads].
struct MergeCase {
  AttentionMergeProblem problem;
  std::vector<double> out, lse, sink;
  std::int64_t gap = 0;   ///< elements behind every row of parts and out
  bool is_apart = false;  ///< the second of two parts has memory and strides of its own

  explicit MergeCase(const AttentionMergeProblem& p) : problem(p) {
    kernels::Random random(7);
    const std::int64_t lines = p.parts * p.batch * p.rows * p.heads;
    const FormatSpec& format = format_of(p.part_dtype);
    for (std::int64_t i = 0; i < lines * p.head_dim; ++i) {
      const double x = random.uniform(-2, 2);
      out.push_back(p.part_dtype == DType::kF32 ? static_cast<float>(x)
                                                : decode(format, encode(format, x)));
    }
    for (std::int64_t i = 0; i < lines; ++i)
      lse.push_back(static_cast<float>(random.uniform(-6, 9)));
    if (p.has_sink)
      for (std::int64_t h = 0; h < p.heads; ++h) sink.push_back(0.5 * (h % 5) + 1);
  }
};

class AttentionMergeTest : public ChipTest<AttentionMergeTest> {
 protected:
  static void check(MergeCase c) {
    AttentionMergeProblem& p = c.problem;
    const std::int64_t row = p.head_dim + c.gap, lines = p.batch * p.rows * p.heads;
    p.part_strides = p.out_strides = {p.rows * p.heads * row, p.heads * row, row};
    p.part_stride = lines * row;
    p.lse_part_strides = {p.rows * p.heads, p.heads, 1};
    const AttentionMerge merge(*device_, p);
    SCOPED_TRACE(merge.plan().to_string());
    const device::Device& inner = opened(*device_);
    const auto upload = [&](const auto& x) { return Buffer::from(inner, x); };
    const std::int64_t first_lines = c.is_apart ? lines : p.parts * lines;
    const Buffer parts = upload(encode_all(spread(c, 0, first_lines), p.part_dtype));
    const Buffer other = upload(encode_all(spread(c, first_lines, p.parts * lines), p.part_dtype));
    const auto floats = kernels::to_floats(c.lse);
    const auto middle = floats.begin() + first_lines;
    const Buffer part_lse = upload(std::vector(floats.begin(), middle));
    const Buffer other_lse = upload(std::vector(middle, floats.end()));
    const Buffer sink = upload(kernels::to_floats(c.sink));
    const std::int64_t elem_bytes = p.out_dtype == DType::kF32 ? 4 : 2;
    const kernels::Output<std::byte> out(inner, static_cast<std::size_t>(lines * row * elem_bytes));
    const kernels::Output<float> lse(inner, static_cast<std::size_t>(lines));
    merge.run({.part_out = kernels::pointer_to<const void>(parts),
               .part_lse = kernels::pointer_to<const float>(part_lse),
               .other_out = c.is_apart ? kernels::pointer_to<const void>(other) : nullptr,
               .other_lse = c.is_apart ? kernels::pointer_to<const float>(other_lse) : nullptr,
               .out = out.pointer(),
               .lse = lse.pointer(),
               .sink = kernels::pointer_to<const float>(sink)});
    device_->synchronize();
    compare(c, out.read(), lse.read());
  }

 private:
  // Lines [begin, end) with the gap behind each: NaN.
  static std::vector<double> spread(const MergeCase& c, std::int64_t begin, std::int64_t end) {
    std::vector<double> x;
    for (std::int64_t line = begin; line < end; ++line) {
      const auto first = c.out.begin() + line * c.problem.head_dim;
      x.insert(x.end(), first, first + c.problem.head_dim);
      x.insert(x.end(), static_cast<std::size_t>(c.gap), NAN);
    }
    return x;
  }

  // A weight e^-d, relative to the largest, is off by less than 2 d e^-d roundings of the exponent
  // (its subtraction, and its product with log2 e) and 4 of ex2 and its products: less than
  // 8 * 2^-24 of the largest weight, which is at most the sum. One addition a part; the same of the
  // sum that divides, and 8 roundings more of it and of the sink. Then out is rounded.
  static void compare(const MergeCase& c, const std::vector<std::byte>& out,
                      const std::vector<float>& lse) {
    const AttentionMergeProblem& p = c.problem;
    const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    const std::int64_t lines = p.batch * p.rows * p.heads;
    const reference::MergedAttention exact = reference::merge_attention({.parts = p.parts,
                                                                         .lines = lines,
                                                                         .heads = p.heads,
                                                                         .head_dim = p.head_dim,
                                                                         .sink = c.sink},
                                                                        c.out, c.lse);
    const auto parts = static_cast<double>(p.parts);
    const double unit = 0x1p-24, of_weights = (8 + parts) * unit;
    const double roundoff = p.out_dtype == DType::kF32   ? unit
                            : p.out_dtype == DType::kF16 ? reference::kRoundoffFp16
                                                         : reference::kRoundoffBf16;
    for (std::int64_t line = 0; line < lines; ++line) {
      for (std::int64_t d = 0; d < p.head_dim; ++d) {
        const std::size_t i = at(line * p.head_dim + d);
        const double bound = of_weights * exact.magnitude[i] +
                             ((8 + parts) * parts + 8) * unit * std::abs(exact.out[i]) +
                             roundoff * std::abs(exact.out[i]) + 0x1p-25;
        const double value = decode_at(out, line * (p.head_dim + c.gap) + d, p.out_dtype);
        ASSERT_LE(std::abs(value - exact.out[i]), bound)
            << "line " << line << ", dim " << d << ": " << value << " for " << exact.out[i];
      }
      check_gap(c, out, line);
      // lse [batch, heads, rows]: that of a line of [batch, rows, heads]
      const std::int64_t head = line % p.heads, row = line / p.heads % p.rows;
      const float got = lse[at((line / p.heads / p.rows * p.heads + head) * p.rows + row)];
      if (!p.has_lse) {
        ASSERT_TRUE(std::isnan(got)) << "lse was not asked for";
      } else if (std::isinf(exact.lse[at(line)])) {
        ASSERT_EQ(got, -INFINITY);
      } else {  // of the sum, of ln, and three roundings of what is added
        ASSERT_NEAR(got, exact.lse[at(line)],
                    ((8 + parts) * parts + 8 + 4 * std::abs(exact.lse[at(line)])) * unit);
      }
    }
  }
  static void check_gap(const MergeCase& c, const std::vector<std::byte>& out, std::int64_t line) {
    const std::int64_t bytes = c.problem.out_dtype == DType::kF32 ? 4 : 2;
    const std::int64_t row = (c.problem.head_dim + c.gap) * bytes;
    for (std::int64_t i = line * row + c.problem.head_dim * bytes; i < (line + 1) * row; ++i)
      ASSERT_EQ(out[static_cast<std::size_t>(i)], Buffer::kPoison) << "between rows of out";
  }
};
TILEWRIGHT_ON_EVERY_CHIP(AttentionMergeTest);

const AttentionMergeProblem kSmall = {
    .parts = 3, .batch = 2, .rows = 5, .heads = 3, .head_dim = 40, .has_lse = true};

TEST_P(AttentionMergeTest, EveryTypeAndNumberOfParts) {
  const DType types[] = {DType::kF32, DType::kBF16, DType::kF16};
  for (const DType part : types) {
    for (const DType out : types) {
      for (const std::int64_t parts : {1, 2, 37}) {
        check(MergeCase(with(kSmall, [&](auto& p) {
          p.part_dtype = part, p.out_dtype = out, p.parts = parts;
          p.has_sink = parts == 2, p.has_lse = parts != 37;
        })));
      }
    }
  }
}
TEST_P(AttentionMergeTest, StridesWithGapsAndASecondPartElsewhere) {
  for (const DType type : {DType::kF32, DType::kF16}) {
    MergeCase c(with(kSmall, [&](auto& p) {
      p.parts = 2, p.has_sink = true, p.part_dtype = p.out_dtype = type;
    }));
    c.gap = 8;
    check(c);
    c.is_apart = true;
    check(c);
  }
}
// A part without keys has an infinite lse, of either sign, and values that nobody wrote.
TEST_P(AttentionMergeTest, PartsWithoutKeysAreNotRead) {
  for (const bool has_sink : {false, true}) {
    MergeCase c(with(kSmall, [&](auto& p) { p.has_sink = has_sink; }));
    const std::size_t lines = c.lse.size() / 3, dims = static_cast<std::size_t>(kSmall.head_dim);
    const auto empty = [&](std::size_t part, std::size_t line, double lse) {
      c.lse[part * lines + line] = lse;
      std::fill_n(c.out.begin() + static_cast<std::ptrdiff_t>((part * lines + line) * dims), dims,
                  NAN);
    };
    empty(0, 1, -INFINITY), empty(1, 2, INFINITY), empty(0, 3, INFINITY), empty(2, 3, -INFINITY);
    for (const std::size_t part : {0, 1, 2}) empty(part, 7, -INFINITY);  // none has keys
    check(c);
  }
}
TEST_P(AttentionMergeTest, FarApartAndLarge) {
  MergeCase c(with(kSmall, [](auto& p) { p.part_dtype = p.out_dtype = DType::kBF16; }));
  const std::size_t lines = c.lse.size() / 3;
  for (std::size_t line = 0; line < lines; ++line) {
    c.lse[line] = static_cast<float>(1000 + 0.3 * double(line));
    c.lse[lines + line] = -3000;
  }
  check(c);
}

// A NaN stays in its row.
TEST_P(AttentionMergeTest, ANanStaysInItsRow) {
  const AttentionMergeProblem p = {.part_dtype = DType::kF32,
                                   .out_dtype = DType::kF32,
                                   .rows = 2,
                                   .head_dim = 8,
                                   .has_lse = true};
  const AttentionMerge merge(*device_, p);
  const device::Device& inner = opened(*device_);
  const Buffer parts = Buffer::from(inner, std::vector<float>(32, 1.0f));
  const Buffer part_lse = Buffer::from(inner, std::vector<float>{NAN, 1, 1, 1});
  const kernels::Output<float> out(inner, 16), lse(inner, 2);
  merge.run({.part_out = kernels::pointer_to<const void>(parts),
             .part_lse = kernels::pointer_to<const float>(part_lse),
             .out = out.pointer(),
             .lse = lse.pointer()});
  device_->synchronize();
  const auto values = out.read(), sums = lse.read();
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[7]) && std::isnan(sums[0]));
  EXPECT_TRUE(values[8] == 1 && values[15] == 1 && std::isfinite(sums[1]));
}

// Cascade: three sequences share a prefix. All their queries see it in one call, then each its own
// keys; merged, that is attention over prefix and own keys. With a sink it is applied by the merge.
struct Cascade {
  static constexpr std::int64_t kSequences = 3, kQueries = 9, kPrefix = 70, kOwn = 9, kHeads = 4,
                                kKvHeads = 2, kDims = 64;
  std::vector<double> q, prefix_k, prefix_v, k, v, sink;

  Cascade() {
    const auto draw = [](std::uint64_t seed, std::int64_t count) {
      return kernels::draw_many(seed, count, kernels::Numbers::kUniform, kBf16);
    };
    q = draw(1, kSequences * kQueries * kHeads * kDims);
    prefix_k = draw(2, kPrefix * kKvHeads * kDims), prefix_v = draw(3, kPrefix * kKvHeads * kDims);
    k = draw(4, kSequences * kOwn * kKvHeads * kDims);
    v = draw(5, kSequences * kOwn * kKvHeads * kDims);
    sink = {1, -1, 0.5, 2};
  }
  // Of one sequence: keys of the prefix, if wanted, then its own, if wanted.
  reference::AttentionResult expected(std::int64_t sequence, bool has_prefix, bool has_own) const {
    const auto joined = [&](const std::vector<double>& first, const std::vector<double>& own) {
      std::vector<double> x;
      if (has_prefix) x = first;
      const std::int64_t count = kOwn * kKvHeads * kDims;
      if (has_own)
        x.insert(x.end(), own.begin() + sequence * count, own.begin() + (sequence + 1) * count);
      return x;
    };
    const std::int64_t count = kQueries * kHeads * kDims;
    const bool is_whole = has_prefix && has_own;
    return reference::attention(
        {.batch = 1,
         .heads = kHeads,
         .kv_heads = kKvHeads,
         .q_len = kQueries,
         .kv_len = (has_prefix ? kPrefix : 0) + (has_own ? kOwn : 0),
         .head_dim = kDims,
         .v_head_dim = kDims,
         .scale = 1 / std::sqrt(double{kDims}),
         .causal = has_own,
         .sink = is_whole ? sink : std::vector<double>{},
         .magnitudes = true},
        std::vector<double>(q.begin() + sequence * count, q.begin() + (sequence + 1) * count),
        joined(prefix_k, k), joined(prefix_v, v));
  }
};

TEST_P(AttentionMergeTest, CascadeIsOneCall) {
  const Cascade c;
  const device::Device& inner = opened(*device_);
  const auto upload = [&](const std::vector<double>& x) {
    return Buffer::from(inner, encode_all(x, DType::kBF16));
  };
  const Buffer q = upload(c.q), prefix_k = upload(c.prefix_k), prefix_v = upload(c.prefix_v);
  const Buffer k = upload(c.k), v = upload(c.v);
  const Buffer sink = Buffer::from(inner, kernels::to_floats(c.sink));
  constexpr std::int64_t kRows = Cascade::kSequences * Cascade::kQueries;
  constexpr std::size_t kElems = kRows * Cascade::kHeads * Cascade::kDims;
  const kernels::Output<std::uint16_t> of_prefix(inner, kElems), own(inner, kElems),
      out(inner, kElems);
  const kernels::Output<float> prefix_lse(inner, kRows * Cascade::kHeads),
      own_lse(inner, kRows * Cascade::kHeads);
  const AttentionProblem shared = {.heads = Cascade::kHeads,
                                   .kv_heads = Cascade::kKvHeads,
                                   .q_len = kRows,
                                   .kv_len = Cascade::kPrefix,
                                   .head_dim = Cascade::kDims,
                                   .has_lse = true};
  AttentionProblem each = shared;
  each.batch = Cascade::kSequences, each.q_len = Cascade::kQueries, each.kv_len = Cascade::kOwn;
  each.causal = true;
  const Attention attend_prefix(*device_, shared), attend_own(*device_, each);
  const Buffer workspace(
      inner, std::max(attend_prefix.plan().workspace_bytes, attend_own.plan().workspace_bytes));
  const auto attend = [&](const Attention& attention, const Buffer& keys, const Buffer& values,
                          const auto& result, const auto& lse) {
    attention.run({.q = kernels::pointer_to<const void>(q),
                   .k = kernels::pointer_to<const void>(keys),
                   .v = kernels::pointer_to<const void>(values),
                   .out = result.pointer(),
                   .lse = lse.pointer(),
                   .workspace = kernels::pointer_to<void>(workspace)});
  };
  attend(attend_prefix, prefix_k, prefix_v, of_prefix, prefix_lse);
  attend(attend_own, k, v, own, own_lse);
  // lse of the prefix is [heads, sequences * queries], of the others [sequences, heads, queries].
  const AttentionMerge merge(
      *device_, {.part_dtype = DType::kBF16,
                 .batch = Cascade::kSequences,
                 .rows = Cascade::kQueries,
                 .heads = Cascade::kHeads,
                 .head_dim = Cascade::kDims,
                 .has_sink = true,
                 .lse_part_strides = {Cascade::kQueries, 1, kRows},
                 .lse_other_strides = {Cascade::kHeads * Cascade::kQueries, 1, Cascade::kQueries}});
  merge.run({.part_out = of_prefix.pointer(),
             .part_lse = prefix_lse.pointer(),
             .other_out = own.pointer(),
             .other_lse = own_lse.pointer(),
             .out = out.pointer(),
             .sink = kernels::pointer_to<const float>(sink)});
  device_->synchronize();
  // Each part is off by its own bound, and weighs at most 1; both lse, and with them the weights,
  // by theirs, of values up to 2; out is rounded to bf16 once more.
  const std::vector<std::uint16_t> codes = out.read();
  for (std::int64_t s = 0; s < Cascade::kSequences; ++s) {
    const auto whole = c.expected(s, true, true), prefix = c.expected(s, true, false),
               alone = c.expected(s, false, true);
    for (std::size_t i = 0; i < whole.out.size(); ++i) {
      const std::size_t head = i / Cascade::kDims % Cascade::kHeads;
      const std::size_t line = head * Cascade::kQueries + i / Cascade::kDims / Cascade::kHeads;
      double bound = 2 * reference::kRoundoffBf16 * std::abs(whole.out[i]) + 0x1p-18;
      for (const auto& [part, keys] :
           {std::pair(&prefix, Cascade::kPrefix), std::pair(&alone, Cascade::kOwn)}) {
        const reference::AttentionRow row = {.head_dim = Cascade::kDims,
                                             .num_keys = keys,
                                             .score_magnitude = part->score_magnitude[line],
                                             .row_max = part->row_max[line],
                                             .value_max = 2,
                                             .p_roundoff = reference::kRoundoffBf16,
                                             .out_roundoff = reference::kRoundoffBf16};
        const double weight = std::exp(part->lse[line] - whole.lse[line]);
        bound += weight * reference::attention_out_bound(row, part->out[i], part->out_magnitude[i]);
        bound += 2 * 2 * reference::attention_lse_bound(row, part->lse[line]);
      }
      const double value = decode(kBf16, codes[static_cast<std::size_t>(s) * whole.out.size() + i]);
      ASSERT_LE(std::abs(value - whole.out[i]), bound) << "sequence " << s << ", element " << i;
    }
  }
}

TEST_P(AttentionMergeTest, RefusesWithValueRuleAndRemedy) {
  const auto refused = [&](auto change, const char* part) {
    try {
      const AttentionMerge merge(*device_, with(kSmall, change));
      ADD_FAILURE() << "not refused: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  };
  refused([](auto& p) { p.part_dtype = DType::kF8_E4M3; }, "part_dtype = F8_E4M3; expected F32");
  refused([](auto& p) { p.out_dtype = DType::kF8_E4M3; }, "out_dtype = F8_E4M3; expected F32");
  refused([](auto& p) { p.parts = 0; }, "parts = 0; expected 1 to 1024");
  refused([](auto& p) { p.head_dim = 44; }, "head_dim = 44; expected a multiple of 8");
  refused([](auto& p) { p.rows = -1; }, "rows = -1");
  refused([](auto& p) { p.rows = std::int64_t{1} << 31; }, "rows = 2147483648");
  refused([](auto& p) { p.rows = p.batch = 1 << 30; }, "fewer than 2^42 elements, with batch = 1");
  // The strides of a sequence would not fit 64 bits, though the batch has none.
  refused(
      [](auto& p) { p.batch = 0, p.rows = p.heads = 0x7fffffff, p.head_dim = 4096; },
      "rows = 2147483647; expected so few that a sequence, also of an empty batch, has fewer than "
      "2^42 elements, with heads = 2147483647 and head_dim = 4096. Split them.");
  refused([](auto& p) { p.part_strides = {600, 122, 40}; }, "part_strides.row = 122");
  refused([](auto& p) { p.lse_strides = {-1, 1, 5}; }, "lse_strides.batch = -1");
  refused([](auto& p) { p.part_stride = 2; }, "part_stride = 2; expected a multiple of 4");
  const AttentionMerge merge(*device_, kSmall);
  const auto message = [&](const AttentionMergeArguments& a) -> std::string {
    try {
      merge.run(a);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  auto* const address = reinterpret_cast<float*>(std::uintptr_t{4096});
  AttentionMergeArguments a;
  EXPECT_THAT(message(a), HasSubstr("the address of part_out is null"));
  a.part_out = a.out = address, a.part_lse = address;
  EXPECT_THAT(message(a), HasSubstr("the address of lse is null"));
  a.lse = address, a.other_out = address;
  EXPECT_THAT(message(a), HasSubstr("parts = 3; expected parts = 2"));
}
TEST_P(AttentionMergeTest, NoRowsLaunchNothing) {
  const AttentionMerge merge(*device_, with(kSmall, [](auto& p) { p.rows = 0; }));
  EXPECT_TRUE(merge.plan().launches.empty());
  merge.run({});
  const AttentionMerge none(*device_, with(kSmall, [](auto& p) {
    p.batch = 0, p.rows = 0x7fffffff, p.heads = 1, p.head_dim = 8;
  }));
  EXPECT_TRUE(none.plan().launches.empty()) << "sequences may be long where there are none";
}

}  // namespace
}  // namespace tilewright::ops
