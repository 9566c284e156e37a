#include "model/kernel_memory.h"

#include <algorithm>

namespace tilewright::model {

namespace {

bool has_kind(const Config& config, LayerKind kind) {
  return std::find(config.layers.begin(), config.layers.end(), kind) != config.layers.end();
}

std::int64_t blocks_of(std::int64_t rows, std::int64_t page_size) {
  return std::max<std::int64_t>(1, (rows + page_size - 1) / page_size);
}

std::vector<std::int32_t> alternating_pages(std::int64_t num_sequences, std::int64_t blocks) {
  std::vector<std::int32_t> pages;
  for (std::int64_t s = 0; s < num_sequences; ++s)
    for (std::int64_t b = 0; b < blocks; ++b)
      pages.push_back(static_cast<std::int32_t>(b * num_sequences + s));
  return pages;
}

ByteArray byte_array(const Device& device, std::size_t bytes) {
  return {device, static_cast<std::int64_t>(bytes)};
}

KvCacheLayout layout_of(NumberFormat format, const PageTable& table) {
  return complete(
      {.format = format, .page_size = table.page_size(), .num_pages = table.num_pages()});
}

CompressorKind index_kind(IndexFormat format) {
  return format == IndexFormat::kFp8 ? CompressorKind::kIndexFp8 : CompressorKind::kIndexMxfp4;
}

}  // namespace

NumberFormat to_cache_format(KvFormat format) noexcept {
  return format == KvFormat::kBf16  ? NumberFormat::kBf16
         : format == KvFormat::kFp8 ? NumberFormat::kFp8
                                    : NumberFormat::kNvfp4;
}

PageTable::PageTable(const Device& device, std::int64_t num_sequences, std::int64_t rows,
                     std::int64_t page_size)
    : num_sequences_(num_sequences),
      blocks_(blocks_of(rows, page_size)),
      page_size_(page_size),
      table_(device, std::span<const std::int32_t>(alternating_pages(num_sequences, blocks_))) {}

std::int64_t PageTable::physical(std::int64_t sequence, std::int64_t row) const noexcept {
  return (row / page_size_ * num_sequences_ + sequence) * page_size_ + row % page_size_;
}

std::int64_t PageTable::logical(std::int64_t physical_row) const noexcept {
  return physical_row / page_size_ / num_sequences_ * page_size_ + physical_row % page_size_;
}

CompressedCache::CompressedCache(const Device& device, CompressorKind kind, NumberFormat format,
                                 const Config& config, std::int64_t num_sequences,
                                 std::int64_t max_tokens, std::int64_t page_size)
    : table(device, num_sequences, max_tokens / compressor_ratio(kind), page_size),
      layout(layout_of(format, table)),
      compressor(device, {.kind = kind,
                          .cache = kind == CompressorKind::kCsa || kind == CompressorKind::kHca
                                       ? layout
                                       : KvCacheLayout{.format = format,
                                                       .page_size = table.page_size(),
                                                       .num_pages = table.num_pages()},
                          .state_slots = num_sequences,
                          .eps = config.norm_eps}) {}

KernelMemory::KernelMemory(const Device& device, const Config& config, const RunnerOptions& options,
                           std::int64_t sequences, std::int64_t step_tokens)
    : num_sequences(sequences),
      max_tokens(options.max_tokens),
      window_table(device, sequences, config.window + step_tokens - 1, kWindowPage),
      window_layout(layout_of(to_cache_format(*options.kv), window_table)),
      window_cache(device, window_layout) {
  const NumberFormat format = window_layout.format;
  if (has_kind(config, LayerKind::kCsa)) {
    csa.emplace(device, CompressorKind::kCsa, format, config, sequences, options.max_tokens,
                kCsaPage);
    index.emplace(device, index_kind(options.index), format, config, sequences, options.max_tokens,
                  kCsaPage);
    indexer.emplace(
        device, IndexerProblem{.format = options.index == IndexFormat::kFp8 ? NumberFormat::kFp8
                                                                            : NumberFormat::kMxfp4,
                               .heads = config.index_heads,
                               .topk = config.index_topk,
                               .ratio = compressor_ratio(CompressorKind::kCsa),
                               .max_len = index->table.rows(),
                               .keys = index->compressor.problem().cache,
                               .rows = csa->layout});
  }
  if (has_kind(config, LayerKind::kHca)) {
    hca.emplace(device, CompressorKind::kHca, format, config, sequences, options.max_tokens,
                kHcaPage);
    hca_cache.emplace(device, hca->layout);
  }
  for (const LayerKind kind : config.layers) {
    LayerMemory layer = {.window = byte_array(device, kv_cache_bytes(window_layout))};
    if (const CompressedCache* cache = entries(kind)) {
      layer.entries.emplace(byte_array(device, cache->compressor.cache_bytes()));
      layer.state.emplace(byte_array(device, cache->compressor.state_bytes()));
    }
    if (kind == LayerKind::kCsa) {
      layer.index_keys.emplace(byte_array(device, index->compressor.cache_bytes()));
      layer.index_state.emplace(byte_array(device, index->compressor.state_bytes()));
    }
    layers.push_back(std::move(layer));
  }
}

const CompressedCache* KernelMemory::entries(LayerKind kind) const noexcept {
  if (kind == LayerKind::kCsa) return &*csa;
  if (kind == LayerKind::kHca) return &*hca;
  return nullptr;
}

}  // namespace tilewright::model
