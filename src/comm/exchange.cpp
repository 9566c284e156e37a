#include "comm/exchange.h"

#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::comm {

namespace {

const char* name_of(ExchangeKind kind) {
  switch (kind) {
    case ExchangeKind::kAllReduce:
      return "all_reduce";
    case ExchangeKind::kAllGather:
      return "all_gather";
    case ExchangeKind::kReduceScatter:
      return "reduce_scatter";
    case ExchangeKind::kAllToAll:
      return "all_to_all";
    case ExchangeKind::kBroadcast:
      return "broadcast";
  }
  return "?";
}

}  // namespace

std::string to_string(const Exchange& e) {
  std::string text = fmt::format("{} of {} {}", name_of(e.kind), fmt::join(e.counts, ", "),
                                 tilewright::to_string(e.dtype));
  if (e.kind == ExchangeKind::kAllToAll)
    text += fmt::format(", {} received", fmt::join(e.received, ", "));
  if (e.kind == ExchangeKind::kBroadcast) text += fmt::format(" from rank {}", e.root);
  return text;
}

std::int64_t bytes_of(DType dtype, std::int64_t count) noexcept {
  return count * bits_per_elem(dtype) / 8;
}

std::int64_t sum_of(const std::vector<std::int64_t>& counts) noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::int64_t in_bytes(const Exchange& e, int rank) noexcept {
  const bool is_one_part = e.kind == ExchangeKind::kAllGather;
  return bytes_of(e.dtype, is_one_part ? e.counts[rank_idx(rank)] : sum_of(e.counts));
}

std::int64_t out_bytes(const Exchange& e, int rank) noexcept {
  if (e.kind == ExchangeKind::kReduceScatter) return bytes_of(e.dtype, e.counts[rank_idx(rank)]);
  return bytes_of(e.dtype, sum_of(e.kind == ExchangeKind::kAllToAll ? e.received : e.counts));
}

}  // namespace tilewright::comm
