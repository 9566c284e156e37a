#include "model/kernel_runner/stages.h"

#include "base/error.h"
#include "formats/index_page.h"
#include "formats/kv_layout.h"
#include "formats/minifloat.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>

namespace tilewright::model {

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes fetch(const Device& device, const void* data, std::int64_t bytes) {
  Bytes copy(static_cast<std::size_t>(bytes));
  copy_to_host(device, data, std::as_writable_bytes(std::span(copy)));
  return copy;
}

double number_at(const std::uint8_t* data, DType dtype) {
  if (dtype == DType::kBF16) {
    std::uint16_t code = 0;
    std::memcpy(&code, data, sizeof code);
    return decode(kBf16, code);
  }
  std::uint32_t word = 0;
  std::memcpy(&word, data, sizeof word);
  if (dtype == DType::kI32) return static_cast<std::int32_t>(word);
  require(dtype == DType::kF32, ErrorKind::kInternal, "stages: a tensor of {}", to_string(dtype));
  return static_cast<double>(std::bit_cast<float>(word));
}

std::int64_t product(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) count *= dim;
  return count;
}

KvPageLayout page_layout(const KvCacheLayout& layout) {
  const KvFormat format = layout.format == NumberFormat::kBf16  ? KvFormat::kBf16
                          : layout.format == NumberFormat::kFp8 ? KvFormat::kFp8
                                                                : KvFormat::kNvfp4;
  return {format, static_cast<std::int32_t>(layout.page_size), layout.page_stride_bytes};
}

// Number i of a row of MXFP4.
double index_value(const std::uint8_t* codes, const std::uint8_t* scales, int i) {
  return decode(kE2m1, codes[i / 2] >> 4 * (i % 2) & 15U) *
         decode(kUe8m0, scales[i / kIndexMxfp4Block]);
}

// Entries that were completed by the new tokens of a sequence.
struct Entries {
  std::int64_t first, count;
};
Entries new_entries(const NewTokens& tokens, std::int64_t ratio) {
  const std::int64_t first = tokens.start / ratio;
  return {first, (tokens.start + tokens.count) / ratio - first};
}

}  // namespace

struct StageTap::CacheRows {
  const PageTable& table;
  const KvCacheLayout& layout;
  const ByteArray& pages;
  std::int64_t ring;   // of logical rows; 0: none
  std::int64_t ratio;  // tokens of a row
};

void StageTap::emit(std::string_view name, std::int64_t layer, const NewTokens& tokens,
                    std::int64_t first_row, std::vector<std::int64_t> shape,
                    const std::vector<double>& values) const {
  if (shape[0] == 0) return;
  sink_({.name = name,
         .layer = layer,
         .sequence = tokens.sequence,
         .first_row = first_row,
         .shape = std::move(shape),
         .values = values});
}

std::vector<double> StageTap::fetch_rows(const NewTokens& tokens, const TappedRows& rows) const {
  const std::int64_t outer = rows.shape[0], inner = product(rows.shape) / outer;
  const std::int64_t inner_stride = rows.inner_stride == 0 ? inner : rows.inner_stride;
  const std::int64_t stride = rows.stride == 0 ? outer * inner : rows.stride;
  const std::int64_t bytes = bits_per_elem(rows.dtype) / 8;
  const auto* const first =
      static_cast<const std::uint8_t*>(rows.data) + tokens.first_row * stride * bytes;
  const std::int64_t elems = (tokens.count - 1) * stride + (outer - 1) * inner_stride + inner;
  const Bytes copy = fetch(device_, first, elems * bytes);
  std::vector<double> values;
  for (std::int64_t t = 0; t < tokens.count; ++t)
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i)
        values.push_back(
            number_at(copy.data() + (t * stride + o * inner_stride + i) * bytes, rows.dtype));
  return values;
}

void StageTap::rows(std::string_view name, std::int64_t layer, const TappedRows& rows,
                    const Change& change) const {
  device_.synchronize();
  for (const NewTokens& tokens : tokens_) {
    if (tokens.count == 0) continue;
    std::vector<double> values = fetch_rows(tokens, rows);
    if (change) change(values);
    std::vector<std::int64_t> shape = {tokens.count};
    shape.insert(shape.end(), rows.shape.begin(), rows.shape.end());
    emit(name, layer, tokens, tokens.start, std::move(shape), values);
  }
}

void StageTap::sum_of_rows(std::string_view name, std::int64_t layer, const TappedRows& rows,
                           const TappedRows* more) const {
  device_.synchronize();
  for (const NewTokens& tokens : tokens_) {
    if (tokens.count == 0) continue;
    std::vector<double> values = fetch_rows(tokens, rows);
    if (more != nullptr)
      std::ranges::transform(values, fetch_rows(tokens, *more), values.begin(), std::plus<>());
    emit(name, layer, tokens, tokens.start, {tokens.count, rows.shape[0]}, values);
  }
}

void StageTap::cache_rows(std::string_view prefix, std::int64_t layer,
                          const CacheRows& rows) const {
  device_.synchronize();
  const Bytes bytes = fetch(device_, rows.pages.get(), rows.pages.count());
  const KvPageLayout at = page_layout(rows.layout);
  const std::string name(prefix);
  const std::int64_t plain = kv_plain_bytes(at.format), scales = kv_scales(at.format);
  for (const NewTokens& tokens : tokens_) {
    const Entries e = new_entries(tokens, rows.ratio);
    std::vector<double> codes, scale_bytes, rope, whole;
    for (std::int64_t j = e.first; j < e.first + e.count; ++j) {
      const std::int64_t row =
          rows.table.physical(tokens.sequence, rows.ring == 0 ? j : j % rows.ring);
      const std::int64_t page = row / at.page_size, slot = row % at.page_size;
      const std::uint8_t* const data = bytes.data() + at.data_offset(page, slot);
      for (std::int64_t i = 0; i < plain; ++i) codes.push_back(data[i]);
      for (std::int64_t i = 0; i < scales; ++i)
        scale_bytes.push_back(bytes[static_cast<std::size_t>(at.scale_offset(page, slot) + i)]);
      for (std::int64_t i = 0; i < kKvRopeDims; ++i)
        rope.push_back(number_at(data + plain + 2 * i, DType::kBF16));
      if (at.format == KvFormat::kBf16)
        for (std::int64_t i = 0; i < kKvDims; ++i)
          whole.push_back(number_at(data + 2 * i, DType::kBF16));
    }
    if (at.format == KvFormat::kBf16) {
      emit(name, layer, tokens, e.first, {e.count, kKvDims}, whole);
      continue;
    }
    emit(name + (at.format == KvFormat::kFp8 ? "_fp8" : "_nvfp4"), layer, tokens, e.first,
         {e.count, plain}, codes);
    emit(name + "_scale", layer, tokens, e.first, {e.count, scales}, scale_bytes);
    emit(name + "_rope", layer, tokens, e.first, {e.count, kKvRopeDims}, rope);
  }
}

void StageTap::window_rows(std::int64_t layer, const KernelMemory& memory) const {
  const LayerMemory& at = memory.layers[static_cast<std::size_t>(layer)];
  cache_rows("kv", layer, {memory.window_table, memory.window_layout, at.window, memory.ring(), 1});
}

void StageTap::entries(std::int64_t layer, const CompressedCache& cache,
                       const ByteArray& pages) const {
  const std::int64_t ratio = compressor_ratio(cache.compressor.problem().kind);
  cache_rows("comp", layer, {cache.table, cache.layout, pages, 0, ratio});
}

void StageTap::index_keys(std::int64_t layer, const CompressedCache& cache, const ByteArray& pages,
                          bool is_fp8) const {
  device_.synchronize();
  const Bytes bytes = fetch(device_, pages.get(), pages.count());
  const auto format = is_fp8 ? tilewright::IndexFormat::kFp8 : tilewright::IndexFormat::kMxfp4;
  const IndexPageLayout at = {format, static_cast<std::int32_t>(cache.layout.page_size),
                              index_default_page_stride(format, cache.layout.page_size)};
  for (const NewTokens& tokens : tokens_) {
    const Entries e = new_entries(tokens, compressor_ratio(cache.compressor.problem().kind));
    std::vector<double> keys;
    for (std::int64_t j = e.first; j < e.first + e.count; ++j) {
      const std::int64_t row = cache.table.physical(tokens.sequence, j);
      const std::int64_t page = row / at.page_size, slot = row % at.page_size;
      const std::uint8_t* const data = bytes.data() + at.data_offset(page, slot);
      const std::uint8_t* const scale = bytes.data() + at.scale_offset(page, slot);
      for (int i = 0; i < kIndexDims; ++i) {
        keys.push_back(is_fp8 ? decode(kE4m3, data[i]) * number_at(scale, DType::kF32)
                              : index_value(data, scale, i));
      }
    }
    emit("idx_k", layer, tokens, e.first, {e.count, kIndexDims}, keys);
  }
}

void StageTap::index_queries(std::int64_t layer, const IndexerResults& results,
                             std::int64_t heads) const {
  device_.synchronize();
  for (const NewTokens& tokens : tokens_) {
    if (tokens.count == 0) continue;
    const std::int64_t first = tokens.first_row * heads, rows = tokens.count * heads;
    const auto* const codes = static_cast<const std::uint8_t*>(results.codes);
    const Bytes code_bytes = fetch(device_, codes + first * kIndexDims / 2, rows * kIndexDims / 2);
    const Bytes scale_bytes =
        fetch(device_, results.scales + first * kIndexScaleBytes, rows * kIndexScaleBytes);
    std::vector<double> values;
    for (std::int64_t r = 0; r < rows; ++r)
      for (int i = 0; i < kIndexDims; ++i)
        values.push_back(index_value(code_bytes.data() + r * kIndexDims / 2,
                                     scale_bytes.data() + r * kIndexScaleBytes, i));
    emit("idx_q", layer, tokens, tokens.start, {tokens.count, heads, kIndexDims}, values);
  }
}

void StageTap::index_scores(std::int64_t layer, const IndexerResults& results) const {
  device_.synchronize();
  constexpr auto kRatio = static_cast<std::int64_t>(LayerKind::kCsa);
  for (const NewTokens& tokens : tokens_) {
    const std::int64_t entries = (tokens.start + tokens.count) / kRatio;
    if (entries == 0 || tokens.count == 0) continue;
    std::vector<double> values;
    for (std::int64_t t = 0; t < tokens.count; ++t) {
      const std::int64_t visible = (tokens.start + t + 1) / kRatio;
      const float* const from = results.logits + (tokens.first_row + t) * results.logits_stride;
      const Bytes row = fetch(device_, from, visible * 4);
      for (std::int64_t j = 0; j < entries; ++j)
        values.push_back(j < visible ? number_at(row.data() + 4 * j, DType::kF32)
                                     : -std::numeric_limits<double>::infinity());
    }
    emit("idx_scores", layer, tokens, tokens.start, {tokens.count, entries}, values);
  }
}

void StageTap::selection(std::int64_t layer, const CompressedCache& cache, const IntArray& list,
                         const IntArray& lengths, std::int64_t list_len) const {
  device_.synchronize();
  const auto rows = list.buffer().to_vector<std::int32_t>();
  const auto counts = lengths.buffer().to_vector<std::int32_t>();
  for (const NewTokens& tokens : tokens_) {
    std::vector<double> values;
    for (std::int64_t t = tokens.first_row; t < tokens.first_row + tokens.count; ++t) {
      std::vector<double> chosen;
      for (std::int64_t i = 0; i < counts[static_cast<std::size_t>(t)]; ++i) {
        const std::int32_t row = rows[static_cast<std::size_t>(t * list_len + i)];
        if (row >= 0) chosen.push_back(static_cast<double>(cache.table.logical(row)));
      }
      std::ranges::sort(chosen);
      chosen.resize(static_cast<std::size_t>(list_len), -1);
      values.insert(values.end(), chosen.begin(), chosen.end());
    }
    emit("idx_selected", layer, tokens, tokens.start, {tokens.count, list_len}, values);
  }
}

}  // namespace tilewright::model
