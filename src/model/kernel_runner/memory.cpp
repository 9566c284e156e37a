#include "model/kernel_runner/memory.h"

#include <algorithm>

namespace tilewright::model {

namespace {

bool has_kind(const Config& config, LayerKind kind) {
  return std::find(config.layers.begin(), config.layers.end(), kind) != config.layers.end();
}

std::int64_t blocks_of(std::int64_t rows, std::int64_t page_size) {
  return std::max<std::int64_t>(1, (rows + page_size - 1) / page_size);
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

std::int64_t cache_blocks(const RunnerOptions& options) noexcept {
  return (options.cache_tokens + kCacheBlock - 1) / kCacheBlock;
}

NumberFormat to_cache_format(KvFormat format) noexcept {
  return format == KvFormat::kBf16  ? NumberFormat::kBf16
         : format == KvFormat::kFp8 ? NumberFormat::kFp8
                                    : NumberFormat::kNvfp4;
}

PageTable::PageTable(const Device& device, std::int64_t num_sequences, std::int64_t rows,
                     std::int64_t page_size, std::int64_t pool)
    : blocks_(blocks_of(rows, page_size)),
      page_size_(page_size),
      num_pages_(pool > 0 ? pool : num_sequences * blocks_),
      host_(static_cast<std::size_t>(num_sequences * blocks_), -1),
      block_of_(static_cast<std::size_t>(num_pages_), -1),
      table_(device, std::ssize(host_)) {
  for (std::int64_t s = 0; pool == 0 && s < num_sequences; ++s) {
    std::vector<std::int32_t> pages;
    for (std::int64_t b = 0; b < blocks_; ++b)
      pages.push_back(static_cast<std::int32_t>(b * num_sequences + s));
    assign(s, pages);
  }
  upload();
}

void PageTable::assign(std::int64_t sequence, std::span<const std::int32_t> pages) {
  const auto row = std::span(host_).subspan(static_cast<std::size_t>(sequence * blocks_),
                                            static_cast<std::size_t>(blocks_));
  std::ranges::fill(row, -1);
  // A block of tokens may hold no whole entry.
  const std::size_t count = std::min(pages.size(), row.size());
  for (std::size_t b = 0; b < count; ++b) {
    row[b] = pages[b];
    block_of_[static_cast<std::size_t>(pages[b])] = static_cast<std::int32_t>(b);
  }
}

void PageTable::upload() {
  table_.buffer().upload(std::as_bytes(std::span(host_)));
}

std::int64_t PageTable::physical(std::int64_t sequence, std::int64_t row) const noexcept {
  const std::int64_t page = host_[static_cast<std::size_t>(sequence * blocks_ + row / page_size_)];
  return page < 0 ? -1 : page * page_size_ + row % page_size_;
}

std::int64_t PageTable::logical(std::int64_t physical_row) const noexcept {
  const std::int64_t block = block_of_[static_cast<std::size_t>(physical_row / page_size_)];
  return block < 0 ? -1 : block * page_size_ + physical_row % page_size_;
}

CompressedCache::CompressedCache(const Device& device, CompressorKind kind, NumberFormat format,
                                 const Config& config, std::int64_t num_sequences,
                                 const RunnerOptions& options, std::int64_t page_size)
    : table(device, num_sequences, options.max_tokens / compressor_ratio(kind), page_size,
            cache_blocks(options)),
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
      window_table(device, sequences, window_rows(config, step_tokens), kWindowPage),
      window_layout(layout_of(to_cache_format(*options.kv), window_table)),
      window_cache(device, window_layout) {
  const NumberFormat format = window_layout.format;
  if (has_kind(config, LayerKind::kCsa)) {
    csa.emplace(device, CompressorKind::kCsa, format, config, sequences, options, kCsaPage);
    index.emplace(device, index_kind(options.index), format, config, sequences, options, kCsaPage);
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
    hca.emplace(device, CompressorKind::kHca, format, config, sequences, options, kHcaPage);
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
  if (options.has_draft)
    layers.push_back({.window = byte_array(device, kv_cache_bytes(window_layout))});
}

void KernelMemory::assign(std::int64_t sequence, std::span<const std::int32_t> blocks) {
  for (std::optional<CompressedCache>* cache : {&csa, &hca, &index})
    if (*cache) (*cache)->table.assign(sequence, blocks);
  has_new_tables_ = true;
}

void KernelMemory::upload_tables() {
  if (!has_new_tables_) return;
  for (std::optional<CompressedCache>* cache : {&csa, &hca, &index})
    if (*cache) (*cache)->table.upload();
  has_new_tables_ = false;
}

const CompressedCache* KernelMemory::entries(LayerKind kind) const noexcept {
  if (kind == LayerKind::kCsa) return &*csa;
  if (kind == LayerKind::kHca) return &*hca;
  return nullptr;
}

}  // namespace tilewright::model
