// What the kernels keep of sequences: paged caches, states of compressors, and the pages of each.
#pragma once

#include "tilewright/cache_writer.h"
#include "tilewright/compressor.h"
#include "tilewright/indexer.h"

#include "model/kernel_runner/weights.h"
#include "model/model.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tilewright::model {

/// Rows of a page, as FlashMLA's users have them.
inline constexpr std::int64_t kWindowPage = 64, kCsaPage = 64, kHcaPage = 2;
static_assert(kCsaPage * static_cast<std::int64_t>(LayerKind::kCsa) == kCacheBlock &&
              kHcaPage * static_cast<std::int64_t>(LayerKind::kHca) == kCacheBlock);

/// Window rows of a sequence, in steps of up to `step_tokens` of its tokens: those that the first
/// of them sees, or that are seen after kMostTakenBack were taken back.
constexpr std::int64_t window_rows(const Config& config, std::int64_t step_tokens) {
  return config.window + std::max(step_tokens - 1, kMostTakenBack);
}

/// Pages for the rows of some sequences. Without a pool each has all from the start, and
/// neighbouring pages belong to different sequences; of a pool they get what assign() says.
class PageTable {
 public:
  /// `pool`: pages for all sequences; 0: as many as all need.
  PageTable(const Device& device, std::int64_t num_sequences, std::int64_t rows,
            std::int64_t page_size, std::int64_t pool = 0);

  SequencePages pages() const noexcept { return {.pages = table_.get(), .blocks = blocks_}; }
  std::int64_t page_size() const noexcept { return page_size_; }
  std::int64_t num_pages() const noexcept { return num_pages_; }
  std::int64_t rows() const noexcept { return blocks_ * page_size_; }  ///< of a sequence
  /// The cache row of a sequence's logical row, and the inverse; -1: none.
  std::int64_t physical(std::int64_t sequence, std::int64_t row) const noexcept;
  std::int64_t logical(std::int64_t physical_row) const noexcept;

  /// Its pages in order; none after the last. The device knows after upload().
  void assign(std::int64_t sequence, std::span<const std::int32_t> pages);
  /// No kernel may be reading.
  void upload();

 private:
  std::int64_t blocks_, page_size_, num_pages_;
  std::vector<std::int32_t> host_;      // [sequences, blocks]; -1: none
  std::vector<std::int32_t> block_of_;  // a page's place in its sequence
  IntArray table_;
};

/// A compressor, its pages, and what it keeps in one layer.
struct CompressedCache {
  CompressedCache(const Device& device, CompressorKind kind, NumberFormat format,
                  const Config& config, std::int64_t num_sequences, const RunnerOptions& options,
                  std::int64_t page_size);

  PageTable table;
  KvCacheLayout layout;
  Compressor compressor;
};

struct LayerMemory {
  ByteArray window;
  std::optional<ByteArray> entries = {}, state = {};           ///< CSA, HCA
  std::optional<ByteArray> index_keys = {}, index_state = {};  ///< CSA
};

class KernelMemory {
 public:
  /// `step_tokens`: the most new tokens of a sequence in a step.
  KernelMemory(const Device& device, const Config& config, const RunnerOptions& options,
               std::int64_t num_sequences, std::int64_t step_tokens);

  std::int64_t num_sequences, max_tokens;
  PageTable window_table;  ///< of the ring
  KvCacheLayout window_layout;
  KvCache window_cache;
  std::optional<CompressedCache> csa, hca, index;  ///< if a layer has it
  std::optional<KvCache> hca_cache;
  std::optional<Indexer> indexer;
  std::vector<LayerMemory> layers;  ///< that of the draft layer last

  std::int64_t ring() const noexcept { return window_table.rows(); }
  const CompressedCache* entries(LayerKind kind) const noexcept;

  /// The blocks of kCacheBlock tokens that a sequence has of the pool, in all caches.
  void assign(std::int64_t sequence, std::span<const std::int32_t> blocks);
  /// To the device, if something was assigned. No kernel may be reading.
  void upload_tables();

 private:
  bool has_new_tables_ = false;
};

/// Blocks of the pool; 0: there is none.
std::int64_t cache_blocks(const RunnerOptions& options) noexcept;

NumberFormat to_cache_format(KvFormat format) noexcept;

}  // namespace tilewright::model
