// One attention layer of the model in float64, with what it remembers of a sequence.
#pragma once

#include "model/float64/rows.h"
#include "model/float64/stages.h"
#include "model/float64/weights64.h"
#include "model/model.h"
#include "reference/sparse_attention/compressor.h"

#include <cstdint>
#include <optional>
#include <span>

namespace tilewright::model {

/// Entries that a compressor has made, and the tokens on their way into the next.
struct Compressed64 {
  explicit Compressed64(const reference::CompressorParams& p)
      : params(p), state(p, kMostTakenBack) {}

  /// Removes the last tokens, and the entries that they completed.
  void take_back(std::int64_t tokens);

  reference::CompressorParams params;
  reference::CompressorState state;
  Doubles rows;  ///< [entries, dim], as attention reads them
};

/// What a layer remembers of a sequence.
struct LayerMemory64 {
  LayerMemory64(const Config& config, LayerKind kind);

  /// Removes the last tokens.
  void take_back(std::int64_t tokens);

  Doubles kv;  ///< [tokens, head_dim], as attention reads them; all tokens
  std::optional<Compressed64> compressed, index_keys;

 private:
  std::int64_t head_dim_;
};

class Attention64 {
 public:
  Attention64(const Config& config, const RunnerOptions& options, LayerKind kind,
              const Layer64& weights, Rows rows);

  /// The layer's output [rows, hidden] for its input x [rows, hidden], the tokens from position
  /// `first` on; appends to the memory.
  Doubles run(std::span<const double> x, std::int64_t first, LayerMemory64& memory,
              const Stages& stages) const;

 private:
  struct Call;
  Doubles query(const Call& call, std::span<const double> qr) const;
  void append_kv(const Call& call) const;
  void append_entries(const Call& call, const Compressor64& weights, std::int64_t dim,
                      Compressed64& to) const;
  std::vector<std::int32_t> select(const Call& call, std::span<const double> qr) const;
  std::vector<std::int32_t> visible_lists(const Call& call, std::span<const double> qr,
                                          std::int64_t& width) const;
  Doubles attend(const Call& call, std::span<const double> q, std::span<const std::int32_t> entries,
                 std::int64_t width) const;
  Doubles project(const Call& call, std::span<const double> o) const;
  Doubles rotated(std::span<const double> x, std::int64_t heads, std::int64_t dim,
                  std::span<const std::int32_t> positions, bool is_inverse = false) const;
  void round_cache_rows(Doubles& rows) const;
  void report_cache_rows(const Stages& stages, const char* name, std::int64_t first,
                         std::span<const double> rows, bool is_entries) const;

  const Config& config_;
  const RunnerOptions& options_;
  LayerKind kind_;
  const Layer64& weights_;
  Rows rows_;
  Doubles frequencies_;
};

}  // namespace tilewright::model
