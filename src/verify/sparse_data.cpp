#include "verify/sparse_data.h"

#include "base/error.h"
#include "formats/kv_row.h"
#include "formats/minifloat.h"
#include "reference/sparse_attention/sparse_attention.h"
#include "verify/attention/data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

constexpr std::int64_t kDistinctSparseRows = 1021;  // of a cache; the others are copies
constexpr std::int64_t kMostSparseRows = std::int64_t{1} << 20;

// FlashMLA's timed shapes of DeepSeek-V4, what its 64 heads are the padding of, and V3.2's.
const SparseShape kSparseShapes[] = {
    {.name = "flash"},
    {.name = "pro", .heads = 128, .compressed = 1024},
    {.name = "flash-len",
     .compressed = 1024,
     .compressed_page = 2,
     .lengths = SparseLengths::kPerBatch},
    {.name = "pro-len",
     .heads = 128,
     .compressed = 1024,
     .compressed_page = 2,
     .lengths = SparseLengths::kPerBatch},
    {.name = "peak64", .window = 16384, .window_page = 64, .compressed = 0},
    {.name = "peak128", .heads = 128, .window = 16384, .window_page = 64, .compressed = 0},
    {.name = "flash8", .heads = 8},
    {.name = "flash16", .heads = 16},
    {.name = "flash32", .heads = 32},
    {.name = "prefill64",
     .q_len = 1,
     .window = 512,
     .window_page = 1,
     .compressed = 0,
     .is_prefill = true},
    {.name = "prefill128",
     .heads = 128,
     .q_len = 1,
     .window = 1024,
     .window_page = 1,
     .compressed = 0,
     .is_prefill = true},
    {.name = "v32",
     .heads = 128,
     .q_len = 1,
     .window = 2048,
     .window_page = 64,
     .compressed = 0,
     .head_dim = kKvMlaDims},
    {.name = "prefill-v32",
     .heads = 128,
     .q_len = 1,
     .window = 2048,
     .window_page = 1,
     .compressed = 0,
     .is_prefill = true,
     .head_dim = kKvMlaDims},
    {.name = "small",
     .heads = 8,
     .window = 64,
     .window_page = 64,
     .compressed = 40,
     .compressed_page = 2},
};

std::uint64_t mix_sparse_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class SparseDice {
 public:
  explicit SparseDice(std::uint64_t seed) : state_(seed) {}
  double uniform() {
    return static_cast<double>(mix_sparse_bits(state_ += 0x9e3779b97f4a7c15) >> 11) * 0x1p-53;
  }
  std::int32_t below(double count) { return static_cast<std::int32_t>(uniform() * count); }

 private:
  std::uint64_t state_;
};

float sparse_from_bf16(std::uint16_t code) {
  return static_cast<float>(decode(kBf16, code));
}

std::vector<std::uint16_t> draw_clamped_queries(std::int64_t count, std::uint64_t seed) {
  std::vector<std::uint16_t> codes = draw_normal(count, seed, DType::kBF16);
  for (std::uint16_t& code : codes)
    code =
        static_cast<std::uint16_t>(encode(kBf16, std::clamp(sparse_from_bf16(code), -1.0f, 1.0f)));
  return codes;
}

// Encodes some rows and copies them over the cache.
void fill_pages(SparseListData& data, std::uint64_t seed) {
  const std::int64_t rows = data.list.cache.num_pages * data.list.cache.page_size;
  const std::int64_t distinct = std::min(rows, kDistinctSparseRows);
  const int dims = kv_dims(data.layout.format);
  const std::vector<std::uint16_t> codes = draw_normal(distinct * dims, seed, DType::kBF16);
  const KvPageLayout source = {data.layout.format, static_cast<std::int32_t>(distinct),
                               kv_default_page_stride(data.layout.format, distinct)};
  std::vector<std::uint8_t> encoded(static_cast<std::size_t>(source.page_stride_bytes));
  std::vector<float> numbers(static_cast<std::size_t>(dims));
  for (std::int64_t row = 0; row < distinct; ++row) {
    for (int i = 0; i < dims; ++i)
      numbers[static_cast<std::size_t>(i)] = std::clamp(
          sparse_from_bf16(codes[static_cast<std::size_t>(row * dims + i)]) / 10, -1.0f, 1.0f);
    encode_kv_row(source, numbers, row, encoded.data());
  }
  const KvFormat format = data.layout.format;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t page = row / data.layout.page_size, slot = row % data.layout.page_size;
    const std::int64_t from = row % distinct;
    std::memcpy(data.pages.data() + data.layout.data_offset(page, slot),
                encoded.data() + source.data_offset(0, from),
                static_cast<std::size_t>(kv_data_bytes(format)));
    std::memcpy(data.pages.data() + data.layout.scale_offset(page, slot),
                encoded.data() + source.scale_offset(0, from),
                static_cast<std::size_t>(kv_scale_bytes(format)));
  }
}

SparseListData draw_sparse_list(const SparseShape& shape, NumberFormat format, std::int64_t topk,
                                std::int64_t page, std::int64_t batch, std::size_t sets,
                                std::uint64_t seed) {
  SparseListData data;
  if (topk == 0) return data;
  const std::int64_t per_sequence = std::max<std::int64_t>(2 * topk, 2048);
  const std::int64_t rows =
      std::min(kMostSparseRows, shape.is_prefill ? 65536 : batch * per_sequence);
  const KvFormat of_rows = kv_format(format, shape.head_dim);
  data.list = {.cache = {.format = format,
                         .page_size = page,
                         .num_pages = (rows + page - 1) / page,
                         .page_stride_bytes = kv_default_page_stride(of_rows, page)},
               .topk = topk,
               .index_stride = topk,
               .lengths = shape.lengths};
  data.list.cache = complete(data.list.cache);
  data.layout = {of_rows, static_cast<std::int32_t>(page), data.list.cache.page_stride_bytes};
  data.pages.resize(kv_cache_bytes(data.list.cache));
  fill_pages(data, seed);
  SparseDice dice(seed + 1);
  for (std::size_t set = 0; set < sets; ++set) {
    std::vector<std::int32_t>& indices = data.indices.emplace_back();
    for (std::int64_t i = 0; i < batch * shape.q_len * topk; ++i)
      indices.push_back(dice.uniform() < shape.invalid ? -1
                                                       : dice.below(static_cast<double>(rows)));
  }
  // As FlashMLA draws them: anything up to the full list.
  const bool is_per_query = shape.lengths == SparseLengths::kPerQuery;
  if (shape.lengths != SparseLengths::kFull)
    for (std::int64_t i = 0; i < (is_per_query ? batch * shape.q_len : batch); ++i)
      data.lengths.push_back(dice.below(static_cast<double>(topk) + 1));
  return data;
}

// The rows of one query's list, and the list as numbers of them.
struct QueryRows {
  std::vector<double> rows;
  std::vector<std::int32_t> indices;
  std::vector<std::int32_t> length;

  QueryRows(const SparseListData& data, const SparseAttentionProblem& p, std::int64_t query,
            std::size_t set) {
    if (data.is_absent()) return;
    std::int64_t count = data.list.topk;
    if (!data.lengths.empty())
      count = data.lengths[static_cast<std::size_t>(
          data.list.lengths == SparseLengths::kPerQuery ? query : query / p.q_len)];
    length = {static_cast<std::int32_t>(std::clamp<std::int64_t>(count, 0, data.list.topk))};
    const std::int64_t rows_of_cache = data.list.cache.num_pages * data.list.cache.page_size;
    for (std::int64_t i = 0; i < data.list.topk; ++i) {
      const std::int32_t row =
          data.indices[set][static_cast<std::size_t>(query * data.list.index_stride + i)];
      const bool is_valid = row >= 0 && row < rows_of_cache && i < length[0];
      const auto dims = static_cast<std::size_t>(kv_dims(data.layout.format));
      indices.push_back(is_valid ? static_cast<std::int32_t>(rows.size() / dims) : -1);
      if (!is_valid) continue;
      rows.resize(rows.size() + dims);
      decode_kv_row(data.layout, data.pages.data(), row, std::span(rows).last(dims));
    }
  }
  reference::SparseKeys keys(std::int64_t topk) const {
    return {.rows = rows, .indices = indices, .topk = topk, .lengths = length};
  }
};

}  // namespace

SparseShape find_sparse_shape(const std::string& name) {
  const auto* const at = std::ranges::find(kSparseShapes, name, &SparseShape::name);
  require(at != std::end(kSparseShapes), ErrorKind::kInvalidArgument,
          "sparse: there is no shape {}; expected one of {}", name,
          fmt::join(sparse_shape_names(), ", "));
  return *at;
}

std::vector<std::string> sparse_shape_names() {
  std::vector<std::string> names;
  for (const SparseShape& shape : kSparseShapes) names.push_back(shape.name);
  return names;
}

SparseData draw_sparse(const SparseShape& shape, NumberFormat format, std::int64_t batch,
                       std::size_t sets, std::uint64_t seed) {
  if (shape.is_prefill) format = NumberFormat::kBf16;
  SparseData data;
  data.window = draw_sparse_list(shape, format, shape.window, shape.window_page, batch, sets, seed);
  data.compressed = draw_sparse_list(shape, format, shape.compressed, shape.compressed_page, batch,
                                     sets, seed + 10);
  data.problem = {.batch = shape.is_prefill ? 1 : batch,
                  .q_len = shape.is_prefill ? batch : shape.q_len,
                  .heads = shape.heads,
                  .scale = std::pow(static_cast<double>(shape.head_dim), -0.55),
                  .window = data.window.list,
                  .compressed = data.compressed.list,
                  .has_sink = true,
                  .has_lse = true,
                  .head_dim = shape.head_dim};
  data.q = draw_clamped_queries(batch * shape.q_len * shape.heads * shape.head_dim, seed + 20);
  for (const std::uint16_t code : draw_normal(shape.heads, seed + 21, DType::kBF16))
    data.sink.push_back(sparse_from_bf16(code));
  return data;
}

SparseData::Exact SparseData::exact(std::int64_t query, std::size_t set) const {
  const QueryRows first(window, problem, query, set), second(compressed, problem, query, set);
  std::vector<double> numbers;
  const std::int64_t elems = problem.heads * problem.head_dim;
  for (std::int64_t i = 0; i < elems; ++i)
    numbers.push_back(sparse_from_bf16(q[static_cast<std::size_t>(query * elems + i)]));
  const std::vector<double> sinks(sink.begin(), sink.end());
  auto result = reference::sparse_attention({.queries = 1,
                                             .heads = problem.heads,
                                             .head_dim = problem.head_dim,
                                             .v_head_dim = kKvDims,
                                             .scale = problem.scale.value_or(0),
                                             .sink = sinks,
                                             .positive_empty_lse = problem.positive_empty_lse},
                                            numbers, first.keys(window.list.topk),
                                            second.keys(compressed.list.topk));
  return {std::move(result.out), std::move(result.lse)};
}

namespace {

// What is no number is wrong without measure; JSON has no infinity.
double error_of(double found, double exact) {
  const double error = std::fabs(found - exact);
  return std::isfinite(error) ? error : 1e300;
}

}  // namespace

void SparseDifference::add_out(double found, double exact) noexcept {
  const double error = error_of(found, exact);
  const bool is_near = error < (is_prefill_ ? 8e-4 : 1e-3) ||
                       error < (is_prefill_ ? 3.01 : 2.01) / 128 * std::fabs(exact);
  if (!is_near) ++wrong_out_;
  max_out_ = std::max(max_out_, error);
  products_ += found * exact;
  squares_ += found * found + exact * exact;
}

void SparseDifference::add_lse(double found, double exact) noexcept {
  if (!std::isfinite(exact)) {
    if (found != exact) ++wrong_lse_;
    return;
  }
  // fp32 rounds scores by 2^-24 of their size: beyond 2^16 that alone changes weights by 2^-8, half
  // of what results may be off.
  constexpr double kLargestScore = 1 << 16;
  if (std::fabs(exact) > kLargestScore) is_decided_ = false;
  const double error = error_of(found, exact);
  const bool is_near =
      error < 1e-6 || error < (is_prefill_ ? 2.01 : 8.01) / 65536 * std::fabs(exact);
  if (!is_near) ++wrong_lse_;
  max_lse_ = std::max(max_lse_, error);
}

nlohmann::json SparseDifference::log(const std::string& reference) const {
  double difference = squares_ > 0 ? 1 - 2 * products_ / squares_ : 0;
  if (!std::isfinite(difference)) difference = 1;
  const bool is_ok = is_decided_ && wrong_out_ == 0 && wrong_lse_ == 0 &&
                     difference <= (is_prefill_ ? 7e-6 : 5e-6);
  return {{"ok", is_ok},
          {"decided", is_decided_},
          {"difference", difference},
          {"wrong_out", wrong_out_},
          {"wrong_lse", wrong_lse_},
          {"max_out_error", max_out_},
          {"max_lse_error", max_lse_},
          {"reference", reference}};
}

}  // namespace tilewright::cli
