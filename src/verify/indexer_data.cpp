#include "verify/indexer_data.h"

#include "base/error.h"
#include "formats/block_scale.h"
#include "formats/minifloat.h"
#include "layout/int_tuple.h"
#include "reference/sparse_attention/indexer.h"
#include "verify/attention/data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

namespace tilewright::cli {

namespace {

constexpr std::int64_t kDistinctKeys = 1021;  // of a cache; the others are copies
constexpr std::int64_t kRopePositions = 4096;

const BlockFormat& index_block_format(NumberFormat format) {
  return block_format_by_name(format == NumberFormat::kFp8 ? "fp8_1x128_ue8m0" : "mxfp4_ceil");
}

struct EncodedKey {
  std::vector<std::uint8_t> codes, scales;
};

EncodedKey encode_index_key(NumberFormat format, std::span<const double> numbers,
                            std::vector<float>& values) {
  const BlockFormat& block = index_block_format(format);
  const std::vector<float> row(numbers.begin(), numbers.end());
  const QuantizedTensor tensor = quantize(block, row, 1, kIndexDims);
  const std::vector<float> back = dequantize(block, tensor);
  values.insert(values.end(), back.begin(), back.end());
  EncodedKey key = {tensor.codes, tensor.scales};
  if (format == NumberFormat::kFp8) {  // stored as fp32
    const auto scale = static_cast<float>(decode(kUe8m0, tensor.scales[0]));
    key.scales.resize(sizeof scale);
    std::memcpy(key.scales.data(), &scale, sizeof scale);
  }
  return key;
}

// Key number `row` of the whole cache is a copy of one of the distinct ones.
void fill_index_pages(IndexData& data, std::uint64_t seed) {
  const std::int64_t rows = data.problem.keys.num_pages * data.layout.page_size;
  const std::vector<std::uint16_t> drawn =
      draw_normal(kDistinctKeys * kIndexDims, seed, DType::kBF16);
  std::vector<EncodedKey> encoded;
  std::vector<double> numbers(kIndexDims);
  for (std::int64_t i = 0; i < kDistinctKeys; ++i) {
    for (int d = 0; d < kIndexDims; ++d)
      numbers[static_cast<std::size_t>(d)] =
          decode(kBf16, drawn[static_cast<std::size_t>(i * kIndexDims + d)]);
    encoded.push_back(encode_index_key(data.shape.format, numbers, data.key_values));
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t page = row / data.layout.page_size, slot = row % data.layout.page_size;
    const EncodedKey& key = encoded[static_cast<std::size_t>(row % kDistinctKeys)];
    std::copy(key.codes.begin(), key.codes.end(),
              data.pages.begin() + data.layout.data_offset(page, slot));
    std::copy(key.scales.begin(), key.scales.end(),
              data.pages.begin() + data.layout.scale_offset(page, slot));
  }
}

// Every page once, in no order.
std::vector<std::int32_t> shuffled_pages(std::int64_t pages) {
  std::int64_t step = 7919;
  while (std::gcd(pages, step) != 1) ++step;
  std::vector<std::int32_t> order;
  for (std::int64_t i = 0; i < pages; ++i)
    order.push_back(static_cast<std::int32_t>(i * step % pages));
  return order;
}

std::vector<std::int32_t> draw_index_lengths(const IndexShape& shape, std::uint64_t seed) {
  std::vector<std::int32_t> lengths;
  const std::vector<std::uint16_t> bits = draw_normal(shape.tokens(), seed, DType::kBF16);
  for (std::int64_t t = 0; t < shape.tokens(); ++t) {
    std::int64_t length = shape.keys;
    if (shape.lengths == IndexShape::Lengths::kCausal) {
      length = shape.keys * (t % shape.q_len + 1) / shape.q_len;
    } else if (shape.lengths == IndexShape::Lengths::kDrawn) {
      // The distribution of a normal number is uniform.
      const double x = decode(kBf16, bits[static_cast<std::size_t>(t)]);
      length = std::lround(0.5 * std::erfc(-x / std::sqrt(2.0)) * static_cast<double>(shape.keys));
    }
    lengths.push_back(static_cast<std::int32_t>(length));
  }
  return lengths;
}

}  // namespace

const char* to_string(IndexShape::Lengths lengths) noexcept {
  switch (lengths) {
    case IndexShape::Lengths::kFull:
      return "full";
    case IndexShape::Lengths::kDrawn:
      return "drawn";
    case IndexShape::Lengths::kCausal:
      return "causal";
  }
  return "";
}

IndexShape::Lengths index_lengths_from_string(const std::string& name) {
  using Lengths = IndexShape::Lengths;
  for (const Lengths lengths : {Lengths::kFull, Lengths::kDrawn, Lengths::kCausal})
    if (name == to_string(lengths)) return lengths;
  fail(ErrorKind::kInvalidArgument, "indexer: lengths = {}; expected full, drawn or causal", name);
}

std::int64_t IndexData::key_blocks() const {
  return ceil_div(shape.keys, shape.key_page);
}
std::int64_t IndexData::row_blocks() const {
  return ceil_div(shape.keys, shape.row_page);
}

namespace {
std::int64_t index_key_row(const IndexData& data, std::size_t table, std::int64_t b,
                           std::int64_t j) {
  const std::int64_t block = b * data.key_blocks() + j / data.shape.key_page;
  return data.tables[table][static_cast<std::size_t>(block)] * data.shape.key_page +
         j % data.shape.key_page;
}
}  // namespace

std::span<const float> IndexData::key(std::size_t table, std::int64_t b, std::int64_t j) const {
  const std::int64_t number = index_key_row(*this, table, b, j) % kDistinctKeys;
  return std::span(key_values).subspan(static_cast<std::size_t>(number * kIndexDims), kIndexDims);
}
const std::uint8_t* IndexData::key_codes(std::size_t table, std::int64_t b, std::int64_t j) const {
  const std::int64_t row = index_key_row(*this, table, b, j);
  return pages.data() + layout.data_offset(row / shape.key_page, row % shape.key_page);
}
const std::uint8_t* IndexData::key_scales(std::size_t table, std::int64_t b, std::int64_t j) const {
  const std::int64_t row = index_key_row(*this, table, b, j);
  return pages.data() + layout.scale_offset(row / shape.key_page, row % shape.key_page);
}

double IndexData::visible_keys() const {
  double count = 0;
  for (const std::int32_t length : lengths) count += length;
  return count;
}
double IndexData::flops() const {
  return 2.0 * kIndexDims * static_cast<double>(shape.heads) * visible_keys();
}
double IndexData::bytes() const {
  double keys = 0;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    const auto first = lengths.begin() + b * shape.q_len;
    keys += *std::max_element(first, first + shape.q_len);
  }
  const double key_bytes = index_data_bytes(layout.format) + kIndexScaleBytes;
  const double queries = static_cast<double>(shape.tokens() * shape.heads);
  return keys * key_bytes + queries * (index_data_bytes(layout.format) + 4) + visible_keys() * 4;
}

IndexData draw_index(const IndexShape& shape, std::size_t cache_bytes, std::size_t tables,
                     std::uint64_t seed) {
  IndexData data;
  data.shape = shape;
  const IndexFormat format =
      shape.format == NumberFormat::kFp8 ? IndexFormat::kFp8 : IndexFormat::kMxfp4;
  data.layout = {format, static_cast<std::int32_t>(shape.key_page),
                 index_default_page_stride(format, shape.key_page)};
  const std::int64_t used = shape.batch * data.key_blocks();
  const auto wanted = static_cast<std::int64_t>(cache_bytes) / data.layout.page_stride_bytes;
  const std::int64_t num_pages = std::max(used, wanted);
  data.problem = {
      .format = shape.format,
      .heads = shape.heads,
      .topk = shape.topk,
      .max_len = shape.keys,
      .keys = {.page_size = shape.key_page, .num_pages = num_pages},
      .rows = {.page_size = shape.row_page, .num_pages = shape.batch * data.row_blocks()}};
  data.pages.resize(static_cast<std::size_t>(num_pages * data.layout.page_stride_bytes));
  fill_index_pages(data, seed);
  const std::vector<std::int32_t> order = shuffled_pages(num_pages);
  const std::size_t sets = std::clamp<std::size_t>(
      static_cast<std::size_t>(num_pages / std::max<std::int64_t>(used, 1)), 1, tables);
  for (std::size_t set = 0; set < sets; ++set) {
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(set) * used;
    data.tables.emplace_back(first, first + used);
  }
  data.row_table = shuffled_pages(data.problem.rows.num_pages);
  data.q = draw_normal(shape.tokens() * shape.heads * kIndexDims, seed + 1, DType::kBF16);
  data.weights = draw_normal(shape.tokens() * shape.heads, seed + 2, DType::kBF16);
  data.rope = rope_table(kRopeCompressedLayers, kRopePositions);
  for (std::int64_t t = 0; t < shape.tokens(); ++t)
    data.positions.push_back(static_cast<std::int32_t>(t * 37 % kRopePositions));
  data.lengths = draw_index_lengths(shape, seed + 3);
  return data;
}

void IndexDifference::add_query(std::span<const double> found,
                                std::span<const double> exact) noexcept {
  for (std::size_t i = 0; i < found.size(); ++i) {
    ++codes_;
    if (found[i] != exact[i]) ++wrong_codes_;
  }
}

void IndexDifference::add_logits(std::span<const float> found,
                                 std::span<const double> exact) noexcept {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double x = found[i], y = exact[i];
    if (!std::isfinite(x)) {
      ++wrong_infinities_;  // keys of numbers have no such logits
      continue;
    }
    products_ += x * y;
    squares_ += x * x + y * y;
    max_logit_ = std::max(max_logit_, std::fabs(x - y));
  }
}

void IndexDifference::add_rows(std::span<const std::int32_t> found,
                               std::span<const std::int32_t> exact) noexcept {
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != exact[i]) ++wrong_rows_;
}

nlohmann::json IndexDifference::log(const std::string& reference) const {
  const double difference = squares_ > 0 ? 1 - 2 * products_ / squares_ : 0;
  const bool is_ok = wrong_codes_ * 1000 <= codes_ && wrong_infinities_ == 0 && wrong_rows_ == 0 &&
                     difference <= 5e-6;
  return {{"ok", is_ok},
          {"difference", difference},
          {"codes", codes_},
          {"wrong_codes", wrong_codes_},
          {"wrong_infinities", wrong_infinities_},
          {"wrong_rows", wrong_rows_},
          {"max_logit_error", max_logit_},
          {"reference", reference}};
}

}  // namespace tilewright::cli
