// What ranks exchange, as a value: the same of all implementations.
#pragma once

#include "tilewright/tensor.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::comm {

enum class ExchangeKind { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast };

/// One collective call. Counts are elements of `dtype`; bytes are kU8.
struct Exchange {
  ExchangeKind kind = ExchangeKind::kAllReduce;
  DType dtype = DType::kU8;
  /// All-reduce, broadcast: one number. All-gather, reduce-scatter: of every rank, the same list on
  /// all. All-to-all: what this rank sends to each.
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> received = {};  ///< all-to-all: what this rank gets from each
  int root = 0;                             ///< broadcast

  auto operator<=>(const Exchange&) const = default;
};

inline std::size_t rank_idx(int rank) noexcept {
  return static_cast<std::size_t>(rank);
}

/// "all_reduce of 64 F32", "all_gather of 3, 0, 5 U8"
std::string to_string(const Exchange& exchange);

std::int64_t bytes_of(DType dtype, std::int64_t count) noexcept;
std::int64_t sum_of(const std::vector<std::int64_t>& counts) noexcept;
/// Bytes that `rank` gives and gets.
std::int64_t in_bytes(const Exchange& exchange, int rank) noexcept;
std::int64_t out_bytes(const Exchange& exchange, int rank) noexcept;

}  // namespace tilewright::comm
