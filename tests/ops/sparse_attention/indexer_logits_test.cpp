// Logits of the indexer from given codes, on every device: against float64 on the same codes, and
// what is not to be written untouched.
#include "tilewright/indexer_logits.h"

// clang-format off: GCC takes enumerators of IndexFormat for a shadow of formats it already knows
#include "formats/index_page.h"
// clang-format on

#include "tilewright/tilewright.h"

#include "device/graph.h"
#include "formats/minifloat.h"
#include "tests/ops/cache_case.h"

#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

namespace tilewright::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::uint32_t kPoison = 0xffffffff;  // what poison() leaves

struct LogitsCase {
  NumberFormat format = NumberFormat::kFp8;
  std::int64_t heads = 64, tokens = 1, columns = 0;
  std::int64_t page_size = 0;              // 0: without pages
  std::int64_t batch = 1;                  // with pages
  std::vector<std::int32_t> offsets = {};  // with pages, instead of tokens / batch
  std::int64_t num_keys = 0;               // without pages
  std::vector<std::int32_t> starts = {};   // without pages; empty: null
  std::vector<std::int32_t> ends;
  bool is_compressed = false, fills = false;
  bool has_nan = false;  // some codes and scales of keys
  bool has_far_scales =
      false;                 // MXFP4: blocks of keys and queries that e4m3 does not hold together
  bool lacks_pages = false;  // the second page of each sequence is none
  std::int64_t scale_offset = 0;  // words that scales are behind a multiple of 16 bytes
  std::int64_t gap = 3;           // elements between rows of logits
};

// Rows of codes with their scales, and what they stand for.
struct CodedRows {
  std::vector<std::uint8_t> codes, scales;  // 4 bytes of scales a row; of e4m3 an fp32
  std::vector<double> values;               // with MXFP4's scales
};

// Any codes: no bf16 numbers have to give them.
CodedRows draw_rows(NumberFormat format, std::uint64_t seed, std::int64_t rows, const LogitsCase& c,
                    bool is_keys) {
  Random random(seed);
  CodedRows out;
  for (std::int64_t row = 0; row < rows; ++row) {
    const bool is_wrong = c.has_nan && is_keys && row % 5 == 3;
    if (format == NumberFormat::kFp8) {
      for (int i = 0; i < kIndexDims; ++i) {
        auto code = static_cast<std::uint8_t>(random.bits() % 0x78 | (random.bits() % 2) << 7);
        if (is_wrong && i == row % kIndexDims) code = row % 2 == 0 ? 0x7f : 0xff;
        out.codes.push_back(code);
        out.values.push_back(decode(kE4m3, code));
      }
      float scale = static_cast<float>(random.uniform(0.001, 3));
      if (c.has_nan && row % 7 == 5) scale = std::numeric_limits<float>::quiet_NaN();
      if (row % 11 == 4) scale = 0;
      for (int i = 0; i < 4; ++i)
        out.scales.push_back(
            static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(scale) >> 8 * i));
      continue;
    }
    std::vector<std::uint8_t> scales;
    for (int block = 0; block < 4; ++block) {
      auto scale = static_cast<std::uint8_t>(121 + random.bits() % 9);
      if (c.has_far_scales && row % 3 == 1 && block == row % 4) scale = 105;
      if (is_wrong && block == row % 4) scale = 0xff;
      scales.push_back(scale);
    }
    for (int i = 0; i < kIndexDims / 2; ++i) {
      const auto code = static_cast<std::uint8_t>(random.bits() % 256);
      out.codes.push_back(code);
      const double scale = decode(kUe8m0, scales[static_cast<std::size_t>(i / 16)]);
      out.values.push_back(decode(kE2m1, code & 15) * scale);
      out.values.push_back(decode(kE2m1, code >> 4) * scale);
    }
    out.scales.insert(out.scales.end(), scales.begin(), scales.end());
  }
  return out;
}

class LogitsRun {
 public:
  LogitsRun(const Device& device, LogitsCase c) : c_(std::move(c)), device_(device) {
    c_.tokens = std::ssize(c_.ends);
    sequences_ = has_pages() ? c_.batch : 1;
    keys_of_sequence_ = has_pages() ? blocks() * c_.page_size : c_.num_keys;
    queries_ = draw_rows(c_.format, 1, c_.tokens * c_.heads, c_, false);
    keys_ = draw_rows(c_.format, 2, sequences_ * keys_of_sequence_, c_, true);
    for (const double w : reference::random_doubles(3, c_.tokens * c_.heads, -1, 1))
      weights_.push_back(static_cast<float>(w));
    place_keys();
  }

  void check() {
    const IndexerLogits op(device_, problem());
    IndexerLogitsArguments a = arguments(op);
    op.run(a);
    check_results();
    const auto first = logits_->to_vector<std::uint32_t>();
    logits_->poison();
    a.reuses_schedule = true;
    op.run(a);
    device_.synchronize();
    ASSERT_EQ(first, logits_->to_vector<std::uint32_t>()) << "not repeatable";
  }

  /// Captured once, launched with these starts and ends and then others: the host knows neither.
  void check_captured(const std::vector<std::int32_t>& starts,
                      const std::vector<std::int32_t>& ends) {
    const IndexerLogits op(device_, problem());
    const device::Stream stream(opened(device_));
    IndexerLogitsArguments a = arguments(op);
    Buffer of_starts = Buffer::from(opened(device_), c_.starts),
           of_ends = Buffer::from(opened(device_), c_.ends);
    a.starts = pointer_to<std::int32_t>(of_starts);
    a.ends = pointer_to<std::int32_t>(of_ends);
    a.stream = stream.handle();
    const auto graph = device::Graph::capture(stream, [&] { op.run(a); });
    graph.launch(stream);
    stream.synchronize();
    check_results();
    c_.starts = starts, c_.ends = ends;
    of_starts.copy_from_host(std::as_bytes(std::span(starts)));
    of_ends.copy_from_host(std::as_bytes(std::span(ends)));
    logits_->poison();
    graph.launch(stream);
    stream.synchronize();
    check_results();
  }

  void check_c_api(const char* spec) {
    const IndexerLogits op(device_, problem());
    const IndexerLogitsArguments a = arguments(op);
    const IndexerLogitsProblem p = problem();
    tw_indexer_logits_problem problem;
    tw_indexer_logits_problem_init(&problem);
    problem.format = p.format == NumberFormat::kFp8 ? TW_NUMBER_FORMAT_FP8 : TW_NUMBER_FORMAT_MXFP4;
    problem.heads = p.heads, problem.max_len = p.max_len;
    problem.keys.page_size = p.keys.page_size, problem.keys.num_pages = p.keys.num_pages;
    problem.is_compressed = p.is_compressed, problem.fill_logits = p.fill_logits;
    tw_indexer_logits_arguments call;
    tw_indexer_logits_arguments_init(&call);
    call.tokens = a.tokens, call.columns = a.columns, call.num_keys = a.num_keys;
    call.sequences.batch = a.sequences.batch, call.sequences.q_len = a.sequences.q_len;
    call.starts = a.starts, call.ends = a.ends;
    call.q = a.q, call.q_scales = a.q_scales, call.weights = a.weights;
    call.keys = a.keys, call.key_scales = a.key_scales;
    call.key_table.pages = a.key_table.pages, call.key_table.blocks = a.key_table.blocks;
    call.logits = a.logits, call.logits_stride = a.logits_stride;
    call.workspace = a.workspace;
    tw_device* device = nullptr;
    tw_indexer_logits* logits = nullptr;
    ASSERT_EQ(tw_device_open(spec, &device), TW_OK) << tw_last_error();
    ASSERT_EQ(tw_indexer_logits_create(device, &problem, &logits), TW_OK) << tw_last_error();
    EXPECT_EQ(tw_indexer_logits_workspace_bytes(logits, a.tokens, c_.batch),
              op.workspace_bytes(a.tokens, c_.batch));
    EXPECT_EQ(tw_indexer_logits_workspace_bytes(logits, -1, 1), 0u);
    EXPECT_EQ(tw_indexer_logits_workspace_bytes(nullptr, 1, 1), 0u);
    EXPECT_EQ(tw_indexer_logits_run(logits, &call), TW_OK) << tw_last_error();
    tw_indexer_logits_destroy(logits);
    tw_device_close(device);
    check_results();
  }

  IndexerLogitsProblem problem() const {
    return {.format = c_.format,
            .heads = c_.heads,
            .max_len = c_.columns + 5,
            .keys = {.page_size = has_pages() ? c_.page_size : 64,
                     .num_pages = has_pages() ? c_.batch * blocks() + 1 : 0},
            .is_compressed = c_.is_compressed,
            .fill_logits = c_.fills};
  }

  // With room for results.
  IndexerLogitsArguments arguments(const IndexerLogits& op) {
    workspace_.emplace(opened(device_), op.workspace_bytes(c_.tokens, c_.batch));
    workspace_->poison();
    logits_.emplace(opened(device_), static_cast<std::size_t>(c_.tokens * stride()) * 4);
    logits_->poison();
    IndexerLogitsArguments a;
    a.tokens = c_.tokens, a.columns = c_.columns;
    a.ends = upload(c_.ends);
    a.q = upload(queries_.codes);
    if (c_.format == NumberFormat::kMxfp4) a.q_scales = upload(queries_.scales);
    a.weights = upload(weights_);
    if (has_pages()) {
      a.sequences.batch = c_.batch;
      a.sequences.q_len = c_.tokens / c_.batch;
      if (!c_.offsets.empty()) a.sequences.offsets = upload(c_.offsets);
      a.keys = upload(pages_);
      a.key_table = {.pages = upload(table_), .blocks = blocks()};
    } else {
      if (!c_.starts.empty()) a.starts = upload(c_.starts);
      a.num_keys = c_.num_keys;
      a.keys = upload(keys_.codes);
      std::vector<std::uint8_t> behind(static_cast<std::size_t>(4 * c_.scale_offset), 0xff);
      behind.insert(behind.end(), keys_.scales.begin(), keys_.scales.end());
      a.key_scales = upload(behind) + 4 * c_.scale_offset;
    }
    a.logits = pointer_to<float>(*logits_);
    a.logits_stride = stride();
    a.workspace = pointer_to<void>(*workspace_);
    return a;
  }

 private:
  bool has_pages() const { return c_.page_size > 0; }
  // Fewer than the columns ask for, where page sizes do not divide them.
  std::int64_t blocks() const { return (c_.columns + c_.page_size - 1) / c_.page_size; }
  std::int64_t stride() const { return c_.columns + c_.gap; }
  IndexFormat index_format() const {
    return c_.format == NumberFormat::kFp8 ? IndexFormat::kFp8 : IndexFormat::kMxfp4;
  }
  std::int64_t sequence(std::int64_t token) const {
    if (!has_pages()) return 0;
    if (c_.offsets.empty()) return token / (c_.tokens / c_.batch);
    std::int64_t b = 0;
    while (token >= c_.offsets[static_cast<std::size_t>(b) + 1]) ++b;
    return b;
  }
  bool is_missing(std::int64_t key) const { return c_.lacks_pages && key / c_.page_size == 1; }

  // Pages in no order, none of them twice, NaN around them.
  void place_keys() {
    if (!has_pages()) return;
    const std::int64_t stride = index_default_page_stride(index_format(), c_.page_size);
    const IndexPageLayout at = {index_format(), static_cast<std::int32_t>(c_.page_size), stride};
    pages_.assign(static_cast<std::size_t>((c_.batch * blocks() + 1) * stride), 0xff);
    for (std::int64_t i = 0; i < c_.batch * blocks(); ++i)
      table_.push_back(static_cast<std::int32_t>(c_.batch * blocks() - i));
    const std::int64_t bytes = index_data_bytes(index_format());
    for (std::int64_t i = 0; i < c_.batch * keys_of_sequence_; ++i) {
      const std::int64_t page = table_[static_cast<std::size_t>(i / c_.page_size)];
      const std::int64_t slot = i % c_.page_size;
      std::copy_n(keys_.codes.begin() + i * bytes, bytes,
                  pages_.begin() + at.data_offset(page, slot));
      std::copy_n(keys_.scales.begin() + i * 4, 4, pages_.begin() + at.scale_offset(page, slot));
    }
    if (!c_.lacks_pages) return;
    for (std::int64_t b = 0; b < c_.batch; ++b)
      table_[static_cast<std::size_t>(b * blocks() + 1)] = b % 2 == 0 ? -1 : 1 << 20;
  }

  template <class T>
  const T* upload(const std::vector<T>& values) {
    buffers_.push_back(Buffer::from(opened(device_), values));
    return pointer_to<T>(buffers_.back());
  }

  struct Expected {
    double value, magnitude;  // of all products
  };
  Expected logit(std::int64_t token, std::int64_t key) const {
    if (has_pages() && is_missing(key)) return {-kInfinity, 0};
    const std::int64_t row = sequence(token) * keys_of_sequence_ + key;
    const double* const k = &keys_.values[static_cast<std::size_t>(row * kIndexDims)];
    Expected sum = {0, 0};
    for (std::int64_t h = 0; h < c_.heads; ++h) {
      const auto at = static_cast<std::size_t>(token * c_.heads + h);
      const double* const q = &queries_.values[at * kIndexDims];
      double dot = 0, size = 0;
      for (int i = 0; i < kIndexDims; ++i) dot += q[i] * k[i], size += std::abs(q[i] * k[i]);
      sum.value += weights_[at] * (std::isnan(dot) || dot > 0 ? dot : 0);
      sum.magnitude += std::abs(weights_[at]) * size;
    }
    if (c_.format != NumberFormat::kFp8) return sum;
    float scale;
    std::memcpy(&scale, &keys_.scales[static_cast<std::size_t>(row * 4)], 4);
    return {sum.value * scale, sum.magnitude * scale};
  }

  void check_results() {
    device_.synchronize();
    const auto found = logits_->to_vector<std::uint32_t>();
    for (std::int64_t t = 0; t < c_.tokens; ++t) {
      const auto at = static_cast<std::size_t>(t);
      const std::int64_t start = c_.starts.empty() ? 0 : std::max(c_.starts[at], 0);
      const std::int64_t shift = c_.is_compressed ? start : 0;
      const std::int64_t end =
          std::min<std::int64_t>(c_.ends[at], has_pages() ? c_.columns : c_.num_keys);
      for (std::int64_t column = 0; column < stride(); ++column) {
        const std::uint32_t bits = found[static_cast<std::size_t>(t * stride() + column)];
        const std::int64_t key = column + shift;
        if (column < c_.columns && key >= start && key < end) {
          check_logit(t, key, std::bit_cast<float>(bits));
        } else if (column < c_.columns && c_.fills) {
          ASSERT_EQ(std::bit_cast<float>(bits), -kInfinity)
              << "token " << t << " column " << column;
        } else {
          ASSERT_EQ(bits, kPoison) << "written: token " << t << " column " << column;
        }
      }
    }
  }
  void check_logit(std::int64_t token, std::int64_t key, float x) {
    const Expected expected = logit(token, key);
    const double y = expected.value;
    ASSERT_EQ(std::isnan(x), std::isnan(y)) << "token " << token << " key " << key;
    ASSERT_EQ(std::isinf(x), std::isinf(y)) << "token " << token << " key " << key;
    if (std::isfinite(y)) {
      ASSERT_LE(std::abs(x - y), kLogitError * expected.magnitude + 1e-30)
          << "token " << token << " key " << key << ": " << x << ", not " << y;
    }
  }
  /// Of the sum of all products' magnitudes: the tensor core keeps 13 bits behind the largest of
  /// each 32, and adds four such sums up.
  static constexpr double kLogitError = 1e-3;

  LogitsCase c_;
  Device device_;
  std::int64_t sequences_ = 1, keys_of_sequence_ = 0;
  CodedRows queries_, keys_;
  std::vector<float> weights_;
  std::vector<std::uint8_t> pages_;
  std::vector<std::int32_t> table_;
  std::vector<Buffer> buffers_;
  std::optional<Buffer> workspace_, logits_;
};

class IndexerLogitsTest : public CacheTest {
 protected:
  static void check(const LogitsCase& c) {
    SCOPED_TRACE(fmt::format("{}, {} heads, page {}, {} keys, {} tokens, compressed {}, fills {}",
                             to_string(c.format), c.heads, c.page_size, c.num_keys, c.ends.size(),
                             c.is_compressed, c.fills));
    LogitsRun(device(), c).check();
  }
};
TILEWRIGHT_ON_EVERY_CHIP(IndexerLogitsTest);

constexpr NumberFormat kBothFormats[] = {NumberFormat::kFp8, NumberFormat::kMxfp4};

TEST_P(IndexerLogitsTest, PagesOfAnySize) {
  for (const NumberFormat format : kBothFormats) {
    for (const std::int64_t page_size : {1, 7, 16, 64}) {
      check({.format = format,
             .heads = page_size == 16 ? 32 : 64,
             .columns = page_size == 1 ? 9 : 70,
             .page_size = page_size,
             .batch = 2,
             .ends = {70, 3},
             .fills = page_size != 64});
    }
  }
}
TEST_P(IndexerLogitsTest, EveryNumberOfHeadsInPages) {
  for (const std::int64_t heads : {1, 12, 32, 40}) {
    check({.format = kBothFormats[heads % 3 % 2],
           .heads = heads,
           .columns = 40,
           .page_size = 32,
           .batch = 1,
           .ends = {40, -3, 17},
           .fills = heads % 8 == 0});
  }
}
// An end may be any number.
TEST_P(IndexerLogitsTest, EndsBehindAllKeys) {
  constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();
  for (const NumberFormat format : kBothFormats) {
    const LogitsCase c = {.format = format,
                          .heads = 16,
                          .columns = 40,
                          .page_size = 16,
                          .batch = 2,
                          .ends = {kLargest, kLargest - 1, -kLargest - 1, 40}};
    check(c);
    check({.format = format,
           .heads = 16,
           .columns = 40,
           .num_keys = 40,
           .starts = {-kLargest - 1, 7, kLargest, 0},
           .ends = c.ends,
           .fills = true});
  }
}
TEST_P(IndexerLogitsTest, RaggedSequencesLackPages) {
  for (const NumberFormat format : kBothFormats) {
    check({.format = format,
           .heads = 32,
           .columns = 50,
           .page_size = 16,
           .batch = 3,
           .offsets = {0, 1, 1, 11},
           .ends = {50, 1, 0, 9, 33, 34, 35, 36, 37, 49, 1000},
           .fills = true,
           .has_nan = true,
           .lacks_pages = true});
  }
}
TEST_P(IndexerLogitsTest, RangesOfKeysWithoutPages) {
  for (const NumberFormat format : kBothFormats) {
    for (const bool is_compressed : {false, true}) {
      for (const bool fills : {false, true}) {
        // Inside of a chunk, empty, turned round, before the first key, beyond the last.
        check({.format = format,
               .heads = fills ? 64 : 32,
               .columns = is_compressed ? 40 : 301,
               .num_keys = 301,
               .starts = {0, 17, 270, 30, 80, -5, 299, 400},
               .ends = {5, 49, 301, 30, 20, 12, 1000, 500},
               .is_compressed = is_compressed,
               .fills = fills,
               .scale_offset = fills ? 1 : 0});
      }
    }
  }
}
TEST_P(IndexerLogitsTest, PackedPrompts) {
  // Sequences of 3, 11 and 6 tokens over 30, 600 and 12 keys: units end where they do.
  std::vector<std::int32_t> starts, ends;
  for (const auto& [tokens, first, last] :
       {std::array{3, 0, 30}, std::array{11, 30, 630}, std::array{6, 630, 642}}) {
    for (int i = 0; i < tokens; ++i) {
      starts.push_back(first);
      ends.push_back(last - tokens + 1 + i);
    }
  }
  for (const NumberFormat format : kBothFormats) {
    check({.format = format,
           .heads = 32,
           .columns = 644,
           .num_keys = 644,
           .starts = starts,
           .ends = ends,
           .fills = true});
  }
}
TEST_P(IndexerLogitsTest, FewerColumnsThanKeysAndNoStarts) {
  for (const std::int64_t heads : {5, 33}) {
    check({.format = kBothFormats[heads % 2],
           .heads = heads,
           .columns = 60,
           .num_keys = 72,
           .ends = {72, 59, 61},
           .fills = heads == 5});
    check({.heads = heads, .columns = 1, .num_keys = 1, .ends = {1}, .gap = 0});
  }
}
TEST_P(IndexerLogitsTest, NanStaysNan) {
  for (const NumberFormat format : kBothFormats) {
    check({.format = format,
           .heads = 64,
           .columns = 68,
           .num_keys = 68,
           .starts = {0, 33},
           .ends = {68, 60},
           .has_nan = true});
  }
}
TEST_P(IndexerLogitsTest, ScalesFarApartInRanges) {
  check({.format = NumberFormat::kMxfp4,
         .heads = 9,
         .columns = 70,
         .num_keys = 70,
         .starts = {3, 20, 64},
         .ends = {70, 50, 70},
         .has_far_scales = true});
  check({.format = NumberFormat::kMxfp4,
         .heads = 9,
         .columns = 50,
         .num_keys = 70,
         .starts = {3, 20, 64},
         .ends = {70, 50, 70},
         .is_compressed = true,
         .has_far_scales = true});
}
TEST_P(IndexerLogitsTest, RunsInAGraphUnderAnyRanges) {
  LogitsRun(device(), {.heads = 8,
                       .columns = 70,
                       .num_keys = 300,
                       .starts = {0, 10, 260},
                       .ends = {50, 80, 300},
                       .is_compressed = true,
                       .fills = true})
      .check_captured({299, 5, 4}, {300, 5, 70});
}
TEST_P(IndexerLogitsTest, TheCInterfaceDoesTheSame) {
  LogitsRun(
      device(),
      {.heads = 12, .columns = 30, .page_size = 16, .batch = 2, .ends = {30, 4}, .fills = true})
      .check_c_api(GetParam());
  LogitsRun(device(), {.format = NumberFormat::kMxfp4,
                       .heads = 12,
                       .columns = 20,
                       .num_keys = 30,
                       .starts = {7, 29},
                       .ends = {20, 30},
                       .is_compressed = true,
                       .fills = true})
      .check_c_api(GetParam());
}
TEST_P(IndexerLogitsTest, RefusesProblems) {
  const auto expect = [&](const IndexerLogitsProblem& problem, const char* what) {
    reference::expect_invalid([&] { IndexerLogits(device(), problem); },
                              {"indexer logits: ", what});
  };
  expect({.heads = 65, .max_len = 1}, "heads = 65; expected 1 to 64");
  expect({.format = NumberFormat::kNvfp4, .max_len = 1}, "format = nvfp4; expected fp8 or mxfp4");
  expect({.max_len = 0}, "max_len = 0");
  expect({.max_len = 1, .keys = {.num_pages = 2, .page_stride_bytes = 4356}},
         "keys.page_stride_bytes = 4356");
  expect({.max_len = 1, .keys = {.num_pages = -1}}, "keys.num_pages = -1");
  expect({.max_len = 1, .keys = {.num_pages = 2}, .is_compressed = true},
         "is_compressed = true; expected false with pages (keys.num_pages = 2)");
}
TEST_P(IndexerLogitsTest, RefusesCalls) {
  const auto expect = [&](const LogitsCase& c, const char* what, const auto& spoil) {
    LogitsRun run(device(), c);
    const IndexerLogits op(device(), run.problem());
    IndexerLogitsArguments a = run.arguments(op);
    spoil(a);
    reference::expect_invalid([&] { op.run(a); }, {"indexer logits: ", what});
  };
  const LogitsCase ranges = {.heads = 4, .columns = 9, .num_keys = 9, .ends = {9}};
  using A = IndexerLogitsArguments;
  expect(ranges, "tokens = -1", [](A& a) { a.tokens = -1; });
  expect(ranges, "num_keys = 0", [](A& a) { a.num_keys = 0; });
  expect(ranges, "columns = 15; expected 1 to 14", [](A& a) { a.columns = 15; });
  expect(ranges, "logits_stride = 8; expected at least columns = 9, or 0",
         [](A& a) { a.logits_stride = 8; });
  expect(ranges, "the address of ends is null", [](A& a) { a.ends = nullptr; });
  expect(ranges, "the address of key_scales is null", [](A& a) { a.key_scales = nullptr; });
  expect(ranges, "the address of keys is",
         [](A& a) { a.keys = static_cast<const std::uint8_t*>(a.keys) + 8; });
  expect(ranges, "the address of weights is null", [](A& a) { a.weights = nullptr; });
  expect(ranges, "tokens = 1048576, with up to 1073741824 keys each; expected fewer", [](A& a) {
    a.tokens = 1 << 20;
    a.num_keys = 1 << 30;
  });
  LogitsCase mxfp4 = ranges;
  mxfp4.format = NumberFormat::kMxfp4;
  expect(mxfp4, "the address of q_scales is null", [](A& a) { a.q_scales = nullptr; });
  const LogitsCase pages = {.heads = 4, .columns = 9, .page_size = 8, .batch = 1, .ends = {9}};
  expect(pages, "starts are given, but keys are in pages", [](A& a) { a.starts = a.ends; });
  expect(pages, "1 sequences of 2 tokens do not make 1", [](A& a) { a.sequences.q_len = 2; });
  expect(pages, "sequences.batch = 0", [](A& a) { a.sequences.batch = 0; });
  expect(pages, "table.blocks = 0", [](A& a) { a.key_table.blocks = 0; });
  reference::expect_invalid([&] { (void)plan_indexer_logits(device(), {.max_len = 1}, 1, 70000); },
                            {"indexer logits: batch = 70000; expected 0 to 65535"});
}
TEST_P(IndexerLogitsTest, PlansSayWhatIsLaunched) {
  const IndexerLogitsProblem problem = {.heads = 8, .max_len = 100};
  const IndexerLogitsPlan plan = plan_indexer_logits(device(), problem, 3, 1);
  ASSERT_EQ(plan.launches.size(), 2u);
  EXPECT_EQ(plan.launches[0].entry, "indexer_range_schedule");
  EXPECT_EQ(plan.launches[1].entry, std::string(is_blackwell() ? "sm100_indexer_range_logits_fp8"
                                                               : "indexer_range_logits_fp8_h32"));
  // Keys, queries and weights, logits.
  EXPECT_EQ(plan.bytes, 100 * 132 + 3 * (8 * 132 + 4 * 100));
  EXPECT_EQ(plan.flops, 2.0 * 128 * 8 * 3 * 100);
  EXPECT_EQ(plan.workspace_bytes, IndexerLogits(device(), problem).workspace_bytes(3, 1));
  EXPECT_TRUE(plan_indexer_logits(device(), problem, 0, 0).launches.empty());
}

}  // namespace
}  // namespace tilewright::ops
