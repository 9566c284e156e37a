// Operands of decode attention on the host: drawn ones, and float64 results of single sequences.
#pragma once

#include "tilewright/attention_decode.h"

#include "reference/attention/attention.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace tilewright::cli {

/// A sequence in float64.
struct DecodeExact {
  reference::AttentionResult result;
  /// As rows of lse: a number that is rotated in fp32 may round to the other neighbour.
  std::vector<double> score_shift;
  double value_max = 0;
};

/// Numbers are N(0,1), in the caches a few million of them over and over: rows never repeat at the
/// same place, and caches of gigabytes need not be drawn.
struct DecodeData {
  AttentionDecodeProblem problem;  ///< complete
  std::vector<std::int32_t> lengths, table;
  std::vector<std::uint16_t> q, new_k, new_v;
  std::vector<std::uint8_t> numbers;  ///< codes of kv_dtype
  std::vector<float> cos, sin, sink;

  std::size_t elem_bytes() const { return problem.kv_dtype == DType::kF8_E4M3 ? 1 : 2; }
  /// Elements of each cache.
  std::int64_t cache_elems() const;
  /// Keys of a sequence, those appended included.
  std::int64_t total(std::int64_t batch_idx) const;
  /// [q_len, heads, head_dim] of a sequence; rows of lse [heads, q_len].
  DecodeExact exact(std::int64_t batch_idx) const;
  double bytes() const, flops() const;  ///< with these lengths
};

enum class DecodeLengths { kFull, kRandom };

/// `keys`: of the longest sequence before the call. The problem has everything but the room.
DecodeData draw_decode(AttentionDecodeProblem problem, std::int64_t keys, DecodeLengths lengths,
                       std::int64_t page_size);

/// How far results are off, in parts of the bound of reference/attention/bound.h.
struct DecodeDifference {
  double worst_of_bound = 0, max_out_error = 0, max_lse_error = 0;
  double bounds = 0, magnitudes = 0;  ///< sums over all elements; see AttentionErrors::is_decided
  std::int64_t sequences = 0;
  bool has_none = false;  ///< a batch of no sequences: nothing to compare is then right

  void add(const DecodeData& data, std::int64_t batch_idx, const std::vector<std::uint16_t>& out,
           const std::vector<float>& lse);
  nlohmann::json log() const;
};

}  // namespace tilewright::cli
