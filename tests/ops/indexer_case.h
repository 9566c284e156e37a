// What the tests of the indexer share: the query path on the host to the bit, and a call with its
// memory.
#pragma once

#include "tilewright/indexer.h"

// clang-format off: GCC takes enumerators of IndexFormat for a shadow of formats it already knows
#include "formats/index_page.h"
#include "formats/kv_page.h"
// clang-format on

#include "tilewright/tilewright.h"

#include "device/graph.h"
#include "device/internal.h"
#include "reference/sparse_attention/indexer.h"
#include "tests/ops/cache_case.h"

#include <bit>
#include <limits>
#include <optional>
#include <span>

namespace tilewright::ops {

inline constexpr std::int64_t kIndexPositions = 64;

/// Eight codes and scales of a row of 128 numbers.
struct IndexRow {
  std::vector<std::uint8_t> codes, scales;  ///< as a page has them
  std::vector<double> values;
};

inline IndexRow quantize_index_row(NumberFormat format, const std::vector<float>& row) {
  const bool is_fp8 = format == NumberFormat::kFp8;
  const BlockFormat& block = is_fp8 ? kFp8Block1x128Ue8m0 : kMxfp4Ceil;
  const QuantizedTensor tensor = quantize(block, row, 1, kIndexDims);
  IndexRow out;
  for (const float x : dequantize(block, tensor)) out.values.push_back(x);
  if (is_fp8) {
    out.codes = tensor.codes;
    const auto bits = std::bit_cast<std::uint32_t>(
        tensor.scales[0] == 0xff ? std::bit_cast<float>(0x7fffffffu)
                                 : static_cast<float>(decode(kUe8m0, tensor.scales[0])));
    for (int i = 0; i < 4; ++i) out.scales.push_back(static_cast<std::uint8_t>(bits >> 8 * i));
    return out;
  }
  out.codes = tensor.codes;  // two to a byte
  out.scales = tensor.scales;
  return out;
}

/// bf16(Hadamard(bf16(rotate(q)))), as kernels/sparse_attention/index_row.h computes it.
inline std::vector<float> transform_query(const std::uint16_t* q, const float* rope) {
  std::vector<float> x;
  for (int i = 0; i < kIndexDims; ++i) x.push_back(bf16_value(q[i]));
  const auto rounded = [](float v) { return static_cast<float>(round_to(kBf16, v)); };
  constexpr std::size_t kPlain = kIndexDims - kIndexRopeDims, kPairs = kIndexRopeDims / 2;
  for (std::size_t i = 0; i < kPairs; ++i) {
    const float c = rope[i], s = rope[kPairs + i];
    float &real = x[kPlain + 2 * i], &imaginary = x[kPlain + 2 * i + 1];
    const float turned = std::fma(-imaginary, s, real * c);
    imaginary = rounded(std::fma(imaginary, c, real * s));
    real = rounded(turned);
  }
  for (std::size_t distance = 1; distance < kIndexDims; distance *= 2) {
    for (std::size_t i = 0; i < kIndexDims; ++i) {
      if (i & distance) continue;
      const float a = x[i], b = x[i + distance];
      x[i] = a + b;
      x[i + distance] = a - b;
    }
  }
  for (float& v : x) v = rounded(v * 0x1.6a09e6p-4f);
  return x;
}

struct IndexerCase {
  NumberFormat format = NumberFormat::kFp8;
  std::int64_t heads = 64, topk = 64, max_len = 300, ratio = 4;
  std::int64_t batch = 1, q_len = 1;
  std::vector<std::int32_t> offsets = {};  ///< instead of q_len
  std::vector<std::int32_t> lengths = {};  ///< [tokens]; empty: by the positions
  std::vector<std::int32_t> positions = {};
  std::int64_t page_size = 64, row_page_size = 16;
  bool is_weights_f32 = false;
  bool has_wide_scales = false;  ///< MXFP4 keys whose blocks are far apart
  bool has_nan_keys = false;     ///< every third; there must be topk others
  bool has_nan_codes = false;    ///< FP8: one code of every third
  bool has_rows = true;          ///< else rows are entries
  bool has_counts = true, fills = true;
  /// Elements (bytes of a page of keys, 16 of them) that rows of every operand are further apart
  /// than they are long: NaN, and indices of no page, stand there. 0: contiguous.
  std::int64_t gap = 8;
};

/// A case on a device, and what it should give.
class IndexerRun {
 public:
  IndexerRun(const Device& device, IndexerCase c) : c_(std::move(c)), device_(device) {
    tokens_ = c_.offsets.empty() ? c_.batch * c_.q_len : c_.offsets.back();
    if (c_.positions.empty()) c_.positions.assign(static_cast<std::size_t>(tokens_), 5);
    draw_inputs();
    draw_keys();
  }

  void check() {
    const Indexer indexer(device_, problem());
    IndexerArguments a = call_arguments(indexer);
    indexer.run(a);
    check_results(indexer, a);
    const auto first = logits_;
    a.reuses_schedule = true;
    indexer.run(a);
    check_results(indexer, a);
    ASSERT_EQ(std::memcmp(first.data(), logits_.data(), first.size() * 4), 0) << "not repeatable";
  }

  /// Captured once, launched under these lengths and then others: the host knows neither.
  void check_captured(const std::vector<std::int32_t>& others) {
    const Indexer indexer(device_, problem());
    const device::Stream stream(opened(device_));
    IndexerArguments a = call_arguments(indexer);
    Buffer lengths = Buffer::from(opened(device_), c_.lengths);
    a.lengths = pointer_to<std::int32_t>(lengths);
    a.stream = stream.handle();
    const auto graph = device::Graph::capture(stream, [&] { indexer.run(a); });
    graph.launch(stream);
    stream.synchronize();
    check_results(indexer, a);
    c_.lengths = others;
    lengths.copy_from_host(std::as_bytes(std::span(others)));
    graph.launch(stream);
    stream.synchronize();
    check_results(indexer, a);
  }

  /// The same call through the C interface.
  void check_c_api(const char* spec) {
    const Indexer indexer(device_, problem());
    const IndexerArguments a = call_arguments(indexer);
    run_c_api(spec, indexer.problem(), a, indexer.workspace_bytes(tokens_, c_.batch));
    check_results(indexer, a);
  }

 private:
  std::int32_t sequence(std::int64_t token) const {
    if (c_.offsets.empty()) return static_cast<std::int32_t>(token / c_.q_len);
    std::int32_t b = 0;
    while (token >= c_.offsets[static_cast<std::size_t>(b) + 1]) ++b;
    return b;
  }
  std::int64_t length(std::int64_t token) const {
    const auto i = static_cast<std::size_t>(token);
    if (c_.positions[i] < 0 || c_.positions[i] >= kIndexPositions) return 0;
    const std::int64_t n =
        c_.lengths.empty() ? (c_.positions[i] + 1) / c_.ratio : std::max(c_.lengths[i], 0);
    return std::min(n, c_.max_len);
  }
  std::int64_t blocks() const { return (c_.max_len + c_.page_size - 1) / c_.page_size; }
  std::int64_t row_blocks() const { return (c_.max_len + c_.row_page_size - 1) / c_.row_page_size; }

  IndexerProblem problem() const {
    return {.format = c_.format,
            .heads = c_.heads,
            .topk = c_.topk,
            .ratio = c_.ratio,
            .max_len = c_.max_len,
            .keys = {.page_size = c_.page_size,
                     .num_pages = c_.batch * blocks() + 1,
                     .page_stride_bytes = key_page_stride()},
            .rows = c_.has_rows ? KvCacheLayout{.page_size = c_.row_page_size,
                                                .num_pages = c_.batch * row_blocks() + 1}
                                : KvCacheLayout{.num_pages = 0},
            .fill_logits = c_.fills};
  }

  IndexFormat index_format() const {
    return c_.format == NumberFormat::kFp8 ? IndexFormat::kFp8 : IndexFormat::kMxfp4;
  }
  std::int64_t key_page_stride() const {
    return index_default_page_stride(index_format(), c_.page_size) + 16 * c_.gap;
  }
  std::int64_t q_head_stride() const { return kIndexDims + c_.gap; }
  std::int64_t q_token_stride() const { return c_.heads * q_head_stride() + 2 * c_.gap; }
  std::int64_t weights_stride() const { return c_.heads + c_.gap; }
  std::int64_t rows_stride() const { return c_.topk + c_.gap; }

  void draw_inputs() {
    q_ = random_bf16(1, tokens_ * c_.heads * kIndexDims);
    for (const double w : reference::random_doubles(2, tokens_ * c_.heads, -1, 1))
      weights_.push_back(bf16_value(static_cast<std::uint16_t>(encode(kBf16, w))));
    rope_ = rope_table(kRopeCompressedLayers, kIndexPositions);
    // Pages in no order, none of them twice.
    for (std::int64_t i = 0; i < c_.batch * blocks(); ++i)
      table_.push_back(static_cast<std::int32_t>(c_.batch * blocks() - i));
    for (std::int64_t i = 0; i < c_.batch * row_blocks(); ++i)
      row_table_.push_back(static_cast<std::int32_t>((i * 7 + 3) % (c_.batch * row_blocks())));
  }

  void draw_keys() {
    const std::int64_t stride = key_page_stride();
    const IndexPageLayout at = {index_format(), static_cast<std::int32_t>(c_.page_size), stride};
    pages_.assign(static_cast<std::size_t>((c_.batch * blocks() + 1) * stride), 0xff);
    keys_.resize(static_cast<std::size_t>(c_.batch * c_.max_len));
    for (std::int64_t b = 0; b < c_.batch; ++b) {
      for (std::int64_t j = 0; j < c_.max_len; ++j) {
        auto& key = keys_[static_cast<std::size_t>(b * c_.max_len + j)];
        const auto drawn = reference::random_doubles(
            static_cast<std::uint64_t>(100 + b * c_.max_len + j), kIndexDims, -3, 3);
        std::vector<float> row;
        for (std::size_t i = 0; i < drawn.size(); ++i) {
          const double far = c_.has_wide_scales && j % 5 == 0 && i / 32 == 2 ? 0x1p-15 : 1.0;
          row.push_back(static_cast<float>(round_to(kBf16, drawn[i] * far)));
        }
        if (c_.has_nan_keys && j % 3 == 0) row[40] = std::numeric_limits<float>::quiet_NaN();
        key = quantize_index_row(c_.format, row);
        if (c_.has_nan_codes && j % 3 == 1) {
          const auto dim = static_cast<std::size_t>(j * 5 % kIndexDims);
          key.codes[dim] = j % 2 == 0 ? 0x7f : 0xff;
          key.values[dim] = std::numeric_limits<double>::quiet_NaN();
        }
        const std::int64_t page = table_[static_cast<std::size_t>(b * blocks() + j / c_.page_size)];
        const std::int64_t slot = j % c_.page_size;
        std::copy(key.codes.begin(), key.codes.end(), pages_.begin() + at.data_offset(page, slot));
        std::copy(key.scales.begin(), key.scales.end(),
                  pages_.begin() + at.scale_offset(page, slot));
      }
    }
  }

  Buffer allocate(std::size_t bytes) const {
    Buffer buffer(opened(device_), bytes);
    buffer.poison();
    return buffer;
  }
  template <class T>
  const T* upload(const std::vector<T>& values) {
    buffers_.push_back(Buffer::from(opened(device_), values));
    return pointer_to<T>(buffers_.back());
  }

  // With room for results.
  IndexerArguments call_arguments(const Indexer& indexer) {
    workspace_.emplace(allocate(indexer.workspace_bytes(tokens_, c_.batch)));
    rows_.emplace(allocate(static_cast<std::size_t>(tokens_ * rows_stride()) * 4));
    counts_.emplace(allocate(static_cast<std::size_t>(tokens_) * 4));
    IndexerArguments a = arguments();
    a.workspace = pointer_to<void>(*workspace_);
    a.rows = pointer_to<std::int32_t>(*rows_);
    a.rows_stride = rows_stride();
    if (c_.has_counts) a.counts = pointer_to<std::int32_t>(*counts_);
    return a;
  }

  static void run_c_api(const char* spec, const IndexerProblem& p, const IndexerArguments& a,
                        std::size_t workspace_bytes) {
    tw_indexer_problem problem;
    tw_indexer_problem_init(&problem);
    problem.format = p.format == NumberFormat::kFp8 ? TW_NUMBER_FORMAT_FP8 : TW_NUMBER_FORMAT_MXFP4;
    problem.heads = p.heads, problem.topk = p.topk;
    problem.ratio = p.ratio, problem.max_len = p.max_len;
    problem.keys.page_size = p.keys.page_size, problem.keys.num_pages = p.keys.num_pages;
    problem.keys.page_stride_bytes = p.keys.page_stride_bytes;
    problem.rows.page_size = p.rows.page_size, problem.rows.num_pages = p.rows.num_pages;
    problem.fill_logits = p.fill_logits ? 1 : 0;
    tw_indexer_arguments call;
    tw_indexer_arguments_init(&call);
    call.tokens = a.tokens;
    call.sequences.batch = a.sequences.batch, call.sequences.q_len = a.sequences.q_len;
    call.sequences.offsets = a.sequences.offsets;
    call.positions = a.positions, call.lengths = a.lengths;
    call.q = a.q, call.weights = a.weights;
    call.q_token_stride = a.q_token_stride, call.q_head_stride = a.q_head_stride;
    call.weights_stride = a.weights_stride, call.rows_stride = a.rows_stride;
    call.weights_dtype = a.weights_dtype == DType::kF32 ? TW_F32 : TW_BF16;
    call.rope = a.rope.angles, call.rope_positions = a.rope.positions;
    call.key_pages = a.key_pages;
    const auto set_table = [](tw_sequence_pages& to, const SequencePages& from) {
      to.pages = from.pages, to.blocks = from.blocks, to.stride = from.stride;
    };
    set_table(call.key_table, a.key_table);
    set_table(call.row_table, a.row_table);
    call.rows = a.rows, call.counts = a.counts, call.workspace = a.workspace;
    tw_device* device = nullptr;
    tw_indexer* indexer = nullptr;
    ASSERT_EQ(tw_device_open(spec, &device), TW_OK) << tw_last_error();
    ASSERT_EQ(tw_indexer_create(device, &problem, &indexer), TW_OK) << tw_last_error();
    EXPECT_EQ(tw_indexer_workspace_bytes(indexer, a.tokens, a.sequences.batch), workspace_bytes);
    EXPECT_EQ(tw_indexer_run(indexer, &call), TW_OK) << tw_last_error();
    tw_indexer_destroy(indexer);
    tw_device_close(device);
  }

  void check_results(const Indexer& indexer, const IndexerArguments& a) {
    device_.synchronize();
    const IndexerResults results = indexer.results(a);
    check_codes(results, *workspace_);
    check_logits(results, *workspace_);
    check_rows(rows_->to_vector<std::int32_t>(), counts_->to_vector<std::int32_t>());
  }

  IndexerArguments arguments() {
    IndexerArguments a;
    a.tokens = tokens_;
    a.sequences.batch = c_.batch;
    a.sequences.q_len = c_.q_len;
    if (!c_.offsets.empty()) a.sequences.offsets = upload(c_.offsets);
    a.positions = upload(c_.positions);
    if (!c_.lengths.empty()) a.lengths = upload(c_.lengths);
    a.q = upload(spread_rows(spread_rows(q_, kIndexDims, q_head_stride(), kNanCode),
                             c_.heads * q_head_stride(), q_token_stride(), kNanCode));
    a.q_head_stride = q_head_stride(), a.q_token_stride = q_token_stride();
    a.weights_stride = weights_stride();
    if (c_.is_weights_f32) {
      a.weights = upload(spread_rows(weights_, c_.heads, weights_stride(),
                                     std::numeric_limits<float>::quiet_NaN()));
      a.weights_dtype = DType::kF32;
    } else {
      Bf16s codes;
      for (const float w : weights_) codes.push_back(static_cast<std::uint16_t>(encode(kBf16, w)));
      a.weights = upload(spread_rows(codes, c_.heads, weights_stride(), kNanCode));
    }
    a.rope = {.angles = upload(rope_), .positions = kIndexPositions};
    a.key_pages = upload(pages_);
    const std::int64_t key_stride = blocks() + c_.gap, row_stride = row_blocks() + c_.gap;
    a.key_table = {.pages = upload(spread_rows(table_, blocks(), key_stride, kNoPage)),
                   .blocks = blocks(),
                   .stride = key_stride};
    if (!c_.has_rows) return a;
    a.row_table = {.pages = upload(spread_rows(row_table_, row_blocks(), row_stride, kNoPage)),
                   .blocks = row_blocks(),
                   .stride = row_stride};
    return a;
  }

  template <class T>
  static std::vector<T> read(const Buffer& workspace, const void* from, std::int64_t count) {
    const auto bytes = workspace.to_vector<std::byte>();
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(from) -
                                                 pointer_to<const std::byte>(workspace));
    std::vector<T> values(static_cast<std::size_t>(count));
    std::memcpy(values.data(), bytes.data() + offset, values.size() * sizeof(T));
    return values;
  }

  // Codes, scales and weights, to the bit; keeps the queries' values.
  void check_codes(const IndexerResults& results, const Buffer& workspace) {
    const bool is_fp8 = c_.format == NumberFormat::kFp8;
    const std::int64_t queries = tokens_ * c_.heads, bytes = is_fp8 ? 128 : 64;
    const auto codes = read<std::uint8_t>(workspace, results.codes, queries * bytes);
    const auto scales = read<std::uint8_t>(workspace, results.scales, queries * 4);
    const auto weights = read<float>(workspace, results.weights, queries);
    const auto factor = static_cast<float>(1 / std::sqrt(128.0 * static_cast<double>(c_.heads)));
    queries_.clear(), factored_.clear();
    for (std::int64_t i = 0; i < queries; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::int32_t position = c_.positions[at / static_cast<std::size_t>(c_.heads)];
      const bool is_token = position >= 0 && position < kIndexPositions;
      std::vector<float> row(kIndexDims, 0);
      if (is_token)
        row = transform_query(&q_[at * 128], &rope_[static_cast<std::size_t>(position) * 64]);
      const IndexRow expected = quantize_index_row(c_.format, row);
      const std::vector<std::uint8_t> found(codes.begin() + i * bytes,
                                            codes.begin() + (i + 1) * bytes);
      ASSERT_EQ(found, expected.codes) << "query " << i;
      float weight = is_token ? weights_[at] * factor : 0;
      float scale = 1;
      if (is_fp8) {
        std::memcpy(&scale, expected.scales.data(), 4);
      } else {
        const std::vector<std::uint8_t> bytes_found(scales.begin() + i * 4,
                                                    scales.begin() + (i + 1) * 4);
        ASSERT_EQ(bytes_found, expected.scales) << "query " << i;
      }
      ASSERT_EQ(weights[at], weight * scale) << "query " << i;
      factored_.push_back(weight);
      queries_.insert(queries_.end(), expected.values.begin(), expected.values.end());
    }
  }

  void check_logits(const IndexerResults& results, const Buffer& workspace) {
    const auto found = read<float>(workspace, results.logits, tokens_ * results.logits_stride);
    const reference::IndexerParams params = {.tokens = 1, .heads = c_.heads, .dim = kIndexDims};
    logits_.clear();
    for (std::int64_t t = 0; t < tokens_; ++t) {
      const std::int32_t b = sequence(t);
      std::vector<double> keys;
      for (std::int64_t j = 0; j < c_.max_len; ++j) {
        const auto& v = keys_[static_cast<std::size_t>(b * c_.max_len + j)].values;
        keys.insert(keys.end(), v.begin(), v.end());
      }
      const std::vector<double> q(queries_.begin() + t * c_.heads * kIndexDims,
                                  queries_.begin() + (t + 1) * c_.heads * kIndexDims);
      const std::vector<double> w(factored_.begin() + t * c_.heads,
                                  factored_.begin() + (t + 1) * c_.heads);
      const std::vector<std::int32_t> visible = {static_cast<std::int32_t>(length(t))};
      const auto expected = reference::indexer_scores(params, q, keys, w, visible);
      const auto sums = reference::indexer_scores(params, magnitudes(q), magnitudes(keys),
                                                  magnitudes(w), visible);
      for (std::int64_t j = 0; j < c_.max_len; ++j) {
        const float x = found[static_cast<std::size_t>(t * results.logits_stride + j)];
        const double y = expected[static_cast<std::size_t>(j)];
        logits_.push_back(j < length(t) ? x : -std::numeric_limits<float>::infinity());
        if (!c_.fills && j >= length(t)) continue;
        ASSERT_EQ(std::isinf(x), std::isinf(y)) << "token " << t << " entry " << j;
        ASSERT_EQ(std::isnan(x), std::isnan(y)) << "token " << t << " entry " << j;
        if (!std::isfinite(y)) continue;
        ASSERT_LE(std::abs(x - y), kLogitError * sums[static_cast<std::size_t>(j)] + 1e-30)
            << "token " << t << " entry " << j << ": " << x << ", not " << y;
      }
    }
  }
  /// Of the sum of all products' magnitudes: the tensor core keeps 13 bits behind the largest of
  /// each 32, and adds four such sums up.
  static constexpr double kLogitError = 1e-3;
  static std::vector<double> magnitudes(std::vector<double> values) {
    for (double& x : values) x = std::abs(x);
    return values;
  }

  void check_rows(const std::vector<std::int32_t>& rows, const std::vector<std::int32_t>& counts) {
    for (std::int64_t t = 0; t < tokens_; ++t) {
      const auto begin = logits_.begin() + t * c_.max_len;
      const auto chosen =
          reference::indexer_select(1, std::vector<double>(begin, begin + c_.max_len), c_.topk);
      if (c_.has_counts) {
        ASSERT_EQ(counts[static_cast<std::size_t>(t)], std::min(length(t), c_.topk));
      }
      for (std::int64_t i = 0; i < c_.topk; ++i) {
        const std::int32_t entry = chosen[static_cast<std::size_t>(i)];
        const std::int32_t row = rows[static_cast<std::size_t>(t * rows_stride() + i)];
        ASSERT_EQ(row, entry < 0 ? -1 : physical(sequence(t), entry))
            << "token " << t << " place " << i;
      }
      for (std::int64_t i = c_.topk; i < rows_stride(); ++i) {
        ASSERT_EQ(rows[static_cast<std::size_t>(t * rows_stride() + i)], -1)  // as it was
            << "behind the rows of token " << t;
      }
    }
  }
  std::int32_t physical(std::int32_t b, std::int32_t entry) const {
    if (!c_.has_rows) return entry;
    const auto size = static_cast<std::int32_t>(c_.row_page_size);
    const auto at = static_cast<std::size_t>(b * row_blocks() + entry / size);
    return row_table_[at] * size + entry % size;
  }

  static constexpr std::int32_t kNoPage = 1 << 20;

  IndexerCase c_;
  Device device_;
  std::int64_t tokens_ = 0;
  Bf16s q_;
  std::vector<float> weights_, rope_, logits_;
  std::vector<std::int32_t> table_, row_table_;
  std::vector<std::uint8_t> pages_;
  std::vector<IndexRow> keys_;
  std::vector<double> queries_, factored_;
  std::vector<Buffer> buffers_;
  std::optional<Buffer> workspace_, rows_, counts_;
};

}  // namespace tilewright::ops
