// Operands of the lightning indexer on the host: shapes, drawn queries and paged keys, and float64
// results of single tokens.
#pragma once

#include "tilewright/indexer.h"

// clang-format off: GCC takes enumerators of IndexFormat for a shadow of formats it already knows
#include "formats/index_page.h"
// clang-format on

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace tilewright::cli {

struct IndexShape {
  /// How many keys a token sees: all, a drawn number, or those before it in a prompt.
  enum class Lengths { kFull, kDrawn, kCausal };

  NumberFormat format = NumberFormat::kFp8;
  std::int64_t batch = 2, q_len = 1, heads = 64, keys = 256, topk = 512;
  std::int64_t key_page = 64, row_page = 64;
  Lengths lengths = Lengths::kFull;

  std::int64_t tokens() const { return batch * q_len; }
};
/// "full", "drawn", "causal".
const char* to_string(IndexShape::Lengths lengths) noexcept;
/// Errors   InvalidArgument
IndexShape::Lengths index_lengths_from_string(const std::string& name);

/// Queries and keys of N(0,1), quantised as the compressor does it; weights of N(0,1).
struct IndexData {
  IndexShape shape;
  IndexerProblem problem;
  IndexPageLayout layout;
  std::vector<std::uint16_t> q, weights;  ///< bf16
  std::vector<float> rope;
  std::vector<std::int32_t> positions, lengths;  ///< [tokens]
  std::vector<std::uint8_t> pages;
  /// [batch, blocks] each, over different pages, to be taken in turn.
  std::vector<std::vector<std::int32_t>> tables;
  std::vector<std::int32_t> row_table;
  std::vector<float> key_values;  ///< [distinct, 128] what codes stand for

  std::int64_t key_blocks() const;
  std::int64_t row_blocks() const;
  /// Key j of sequence b under a table, as numbers.
  std::span<const float> key(std::size_t table, std::int64_t b, std::int64_t j) const;
  /// The same as a cache has it: codes and scale bytes.
  const std::uint8_t* key_codes(std::size_t table, std::int64_t b, std::int64_t j) const;
  const std::uint8_t* key_scales(std::size_t table, std::int64_t b, std::int64_t j) const;

  double visible_keys() const;  ///< of all tokens
  double flops() const;         ///< 2 * 128 for each head and visible key
  double bytes() const;         ///< keys once a sequence, queries, logits
};

/// Caches of at least so many bytes, so that tables over them find cold ones; `tables` at most.
IndexData draw_index(const IndexShape& shape, std::size_t cache_bytes, std::size_t tables,
                     std::uint64_t seed);

/// What a run must give. Codes: those of the float64 transform, but where fp32 rounds a bf16 the
/// other way, at most one in a thousand. Logits: 1 - 2 xy / (xx + yy) at most 5e-6, DeepGEMM's
/// bound. Rows: exactly those of the largest of the logits that were found.
class IndexDifference {
 public:
  void add_query(std::span<const double> found, std::span<const double> exact) noexcept;
  void add_logits(std::span<const float> found, std::span<const double> exact) noexcept;
  void add_rows(std::span<const std::int32_t> found, std::span<const std::int32_t> exact) noexcept;
  nlohmann::json log(const std::string& reference) const;

 private:
  std::int64_t codes_ = 0, wrong_codes_ = 0, wrong_infinities_ = 0, wrong_rows_ = 0;
  double products_ = 0, squares_ = 0, max_logit_ = 0;
};

}  // namespace tilewright::cli
