// What the kernels keep of sequences: paged caches, states of compressors, and the pages of each.
#pragma once

#include "tilewright/cache_writer.h"
#include "tilewright/compressor.h"
#include "tilewright/indexer.h"

#include "model/kernel_weights.h"
#include "model/model.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tilewright::model {

/// Rows of a page, as FlashMLA's users have them.
inline constexpr std::int64_t kWindowPage = 64, kCsaPage = 64, kHcaPage = 2;

/// Pages for the rows of some sequences, all reserved from the start. Neighbouring pages belong to
/// different sequences.
class PageTable {
 public:
  PageTable(const Device& device, std::int64_t num_sequences, std::int64_t rows,
            std::int64_t page_size);

  SequencePages pages() const noexcept { return {.pages = table_.get(), .blocks = blocks_}; }
  std::int64_t page_size() const noexcept { return page_size_; }
  std::int64_t num_pages() const noexcept { return num_sequences_ * blocks_; }
  std::int64_t rows() const noexcept { return blocks_ * page_size_; }  ///< of a sequence
  /// The cache row of a sequence's logical row, and the inverse.
  std::int64_t physical(std::int64_t sequence, std::int64_t row) const noexcept;
  std::int64_t logical(std::int64_t physical_row) const noexcept;

 private:
  std::int64_t num_sequences_, blocks_, page_size_;
  IntArray table_;
};

/// A compressor, its pages, and what it keeps in one layer.
struct CompressedCache {
  CompressedCache(const Device& device, CompressorKind kind, NumberFormat format,
                  const Config& config, std::int64_t num_sequences, std::int64_t max_tokens,
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
  std::vector<LayerMemory> layers;

  std::int64_t ring() const noexcept { return window_table.rows(); }
  const CompressedCache* entries(LayerKind kind) const noexcept;
};

NumberFormat to_cache_format(KvFormat format) noexcept;

}  // namespace tilewright::model
