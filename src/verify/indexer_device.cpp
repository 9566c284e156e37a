#include "verify/indexer_device.h"

#include "base/error.h"
#include "formats/block_scale.h"
#include "formats/minifloat.h"
#include "reference/rotation/rope.h"
#include "reference/sparse_attention/indexer.h"
#include "verify/graph_times.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

using nlohmann::json;

namespace {

// Part of a buffer, from a device address in it on.
template <class T>
std::vector<T> read_part(const Buffer& buffer, const void* from, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  const std::ptrdiff_t offset = static_cast<const std::byte*>(from) - buffer.as<std::byte>();
  buffer.download(std::as_writable_bytes(std::span(values)), static_cast<std::size_t>(offset));
  return values;
}

reference::IndexerParams one_token(const IndexShape& shape) {
  return {.tokens = 1, .heads = shape.heads, .dim = kIndexDims};
}

}  // namespace

std::vector<std::int64_t> spread_tokens(std::int64_t tokens, std::int64_t count) {
  std::vector<std::int64_t> chosen;
  const std::int64_t most = std::min(tokens, count);
  for (std::int64_t i = 0; i < most; ++i)
    chosen.push_back(most == 1 ? 0 : i * (tokens - 1) / (most - 1));
  return chosen;
}

IndexOperands::IndexOperands(const Device& device, const IndexData& data, const Indexer& indexer)
    : device_(device),
      data_(data),
      indexer_(indexer),
      stream_(device),
      timer_(device),
      q_(Buffer::from(device, data.q)),
      weights_(Buffer::from(device, data.weights)),
      rope_(Buffer::from(device, data.rope)),
      positions_(Buffer::from(device, data.positions)),
      lengths_(Buffer::from(device, data.lengths)),
      pages_(Buffer::from(device, data.pages)),
      row_table_(Buffer::from(device, data.row_table)),
      workspace_(device, indexer.workspace_bytes(data.shape.tokens(), data.shape.batch)),
      rows_(device, static_cast<std::size_t>(data.shape.tokens() * data.shape.topk) * 4),
      counts_(device, static_cast<std::size_t>(data.shape.tokens()) * 4) {
  for (const auto& table : data.tables) tables_.push_back(Buffer::from(device, table));
  for (Buffer* buffer : {&workspace_, &rows_, &counts_}) buffer->poison();
}

IndexerArguments IndexOperands::arguments(std::size_t table) const {
  IndexerArguments a;
  a.tokens = data_.shape.tokens();
  a.sequences = {.batch = data_.shape.batch, .q_len = data_.shape.q_len};
  a.positions = positions_.as<std::int32_t>();
  a.lengths = lengths_.as<std::int32_t>();
  a.q = q_.data();
  a.weights = weights_.data();
  a.rope = {.angles = rope_.as<float>(),
            .positions = static_cast<std::int64_t>(data_.rope.size()) / kIndexRopeDims};
  a.key_pages = pages_.data();
  a.key_table = {.pages = tables_[table].as<std::int32_t>(), .blocks = data_.key_blocks()};
  a.row_table = {.pages = row_table_.as<std::int32_t>(), .blocks = data_.row_blocks()};
  a.rows = rows_.as<std::int32_t>();
  a.counts = counts_.as<std::int32_t>();
  a.workspace = workspace_.data();
  a.stream = stream_.handle();
  return a;
}

// The queries of a token as the codes in the workspace have them, without the scale that is in the
// weights.
std::vector<double> IndexOperands::found_query(std::int64_t token) const {
  const IndexerResults results = indexer_.results(arguments(0));
  const std::int64_t heads = data_.shape.heads;
  std::vector<double> values;
  if (data_.shape.format == NumberFormat::kFp8) {
    const auto* const from =
        static_cast<const std::uint8_t*>(results.codes) + token * heads * kIndexDims;
    for (const std::uint8_t code : read_part<std::uint8_t>(workspace_, from, heads * kIndexDims))
      values.push_back(decode(kE4m3, code));
    return values;
  }
  constexpr int kBytes = kIndexDims / 2;
  const auto codes = read_part<std::uint8_t>(
      workspace_, static_cast<const std::uint8_t*>(results.codes) + token * heads * kBytes,
      heads * kBytes);
  const auto scales = read_part<std::uint8_t>(
      workspace_, results.scales + token * heads * kIndexScaleBytes, heads * kIndexScaleBytes);
  for (std::size_t i = 0; i < codes.size() * 2; ++i) {
    const std::uint32_t code = i % 2 == 0 ? codes[i / 2] & 15 : codes[i / 2] >> 4;
    values.push_back(decode(kE2m1, code) * decode(kUe8m0, scales[i / kIndexMxfp4Block]));
  }
  return values;
}

std::vector<double> IndexOperands::found_weights(std::int64_t token) const {
  const IndexerResults results = indexer_.results(arguments(0));
  const auto weights =
      read_part<float>(workspace_, results.weights + token * data_.shape.heads, data_.shape.heads);
  return {weights.begin(), weights.end()};
}

// The float64 transform, in the units of found_query().
std::vector<double> IndexOperands::exact_query(std::int64_t token) const {
  const std::int64_t heads = data_.shape.heads, elems = heads * kIndexDims;
  std::vector<double> x;
  for (std::int64_t i = 0; i < elems; ++i)
    x.push_back(decode(kBf16, data_.q[static_cast<std::size_t>(token * elems + i)]));
  const std::vector<std::int32_t> positions = {data_.positions[static_cast<std::size_t>(token)]};
  const auto rotated = reference::rope(
      {.tokens = 1, .heads = heads, .head_dim = kIndexDims, .rotary_dim = kIndexRopeDims}, x,
      positions, reference::yarn_frequencies(kIndexRopeDims, 160000));
  const bool is_fp8 = data_.shape.format == NumberFormat::kFp8;
  const BlockFormat& block = block_format_by_name(is_fp8 ? "fp8_1x128_ue8m0" : "mxfp4_ceil");
  if (!is_fp8) return reference::indexer_transform(kIndexDims, rotated, true, &block);
  const auto plain = reference::indexer_transform(kIndexDims, rotated, true);
  const std::vector<float> numbers(plain.begin(), plain.end());
  const QuantizedTensor tensor = quantize(block, numbers, heads, kIndexDims);
  std::vector<double> codes;
  for (const std::uint8_t code : tensor.codes) codes.push_back(decode(kE4m3, code));
  return codes;
}

std::vector<double> IndexOperands::exact_logits(std::int64_t token, std::size_t table) const {
  const std::int64_t length = data_.lengths[static_cast<std::size_t>(token)];
  std::vector<double> keys;
  keys.reserve(static_cast<std::size_t>(length * kIndexDims));
  for (std::int64_t j = 0; j < length; ++j) {
    const auto key = data_.key(table, token / data_.shape.q_len, j);
    keys.insert(keys.end(), key.begin(), key.end());
  }
  const std::vector<std::int32_t> visible = {static_cast<std::int32_t>(length)};
  return reference::indexer_scores(one_token(data_.shape), found_query(token), keys,
                                   found_weights(token), visible);
}

std::vector<std::int32_t> IndexOperands::exact_rows(std::int64_t token,
                                                    std::span<const float> logits) const {
  const std::vector<double> scores(logits.begin(), logits.end());
  std::vector<std::int32_t> rows = reference::indexer_select(1, scores, data_.shape.topk);
  const auto page = static_cast<std::int32_t>(data_.shape.row_page);
  for (std::int32_t& row : rows) {
    if (row < 0) continue;
    const std::int64_t block = token / data_.shape.q_len * data_.row_blocks() + row / page;
    row = data_.row_table[static_cast<std::size_t>(block)] * page + row % page;
  }
  return rows;
}

json IndexOperands::check(std::int64_t tokens, std::size_t table) const {
  const IndexerResults results = indexer_.results(arguments(table));
  const auto rows = rows_.to_vector<std::int32_t>();
  const auto chosen = spread_tokens(data_.shape.tokens(), tokens);
  IndexDifference difference;
  for (const std::int64_t token : chosen) {
    difference.add_query(found_query(token), exact_query(token));
    const auto logits = read_part<float>(workspace_, results.logits + token * results.logits_stride,
                                         data_.lengths[static_cast<std::size_t>(token)]);
    difference.add_logits(logits, exact_logits(token, table));
    difference.add_rows(std::span(rows).subspan(static_cast<std::size_t>(token * data_.shape.topk),
                                                static_cast<std::size_t>(data_.shape.topk)),
                        exact_rows(token, logits));
  }
  return difference.log(fmt::format("float64, {} tokens", chosen.size()));
}

json IndexOperands::check_logits(const Buffer& logits, std::int64_t stride, std::int64_t tokens,
                                 std::size_t table) const {
  const auto chosen = spread_tokens(data_.shape.tokens(), tokens);
  IndexDifference difference;
  for (const std::int64_t token : chosen) {
    const auto found = read_part<float>(logits, logits.as<float>() + token * stride,
                                        data_.lengths[static_cast<std::size_t>(token)]);
    difference.add_logits(found, exact_logits(token, table));
  }
  return difference.log(fmt::format("float64 on the same codes, {} tokens", chosen.size()));
}

ClockedTimes IndexOperands::measure(const std::function<void(std::size_t)>& enqueue,
                                    int samples) const {
  constexpr double kSampleUs = 3000;
  const double once = time_us([&] { enqueue(0); });
  const auto sets = static_cast<int>(tables());
  const int rounds = std::clamp(static_cast<int>(kSampleUs / std::max(once, 1.0)) / sets, 1, 4);
  return graph_times(device_, stream_, {.calls = rounds * sets, .samples = samples},
                     [&](int i) { enqueue(static_cast<std::size_t>(i % sets)); });
}

}  // namespace tilewright::cli
