#include "comm/communicator.h"

#include "base/error.h"

#include <algorithm>

namespace tilewright::comm {

namespace {

constexpr ErrorKind kInvalid = ErrorKind::kInvalidArgument;

std::vector<std::int64_t> list(std::span<const std::int64_t> counts) {
  return {counts.begin(), counts.end()};
}

void check_counts(const Exchange& e, const std::vector<std::int64_t>& counts, std::size_t length) {
  require(counts.size() == length, kInvalid, "{}: {} counts; expected {}, one for each rank",
          to_string(e), counts.size(), length);
  for (const std::int64_t count : counts)
    require(count >= 0, kInvalid, "{}: a count of {}; expected 0 or more", to_string(e), count);
}

bool is_sum(ExchangeKind kind) {
  return kind == ExchangeKind::kAllReduce || kind == ExchangeKind::kReduceScatter;
}

}  // namespace

void Communicator::all_reduce(const void* in, void* out, std::int64_t count, DType dtype,
                              void* stream) {
  run_checked({.kind = ExchangeKind::kAllReduce, .dtype = dtype, .counts = {count}}, in, out,
              stream);
}

void Communicator::all_gather(const void* in, void* out, std::span<const std::int64_t> bytes,
                              void* stream) {
  run_checked({.kind = ExchangeKind::kAllGather, .counts = list(bytes)}, in, out, stream);
}

void Communicator::reduce_scatter(const void* in, void* out, std::span<const std::int64_t> counts,
                                  DType dtype, void* stream) {
  run_checked({.kind = ExchangeKind::kReduceScatter, .dtype = dtype, .counts = list(counts)}, in,
              out, stream);
}

void Communicator::all_to_all(const void* in, void* out, std::span<const std::int64_t> sent,
                              std::span<const std::int64_t> received, void* stream) {
  run_checked({.kind = ExchangeKind::kAllToAll, .counts = list(sent), .received = list(received)},
              in, out, stream);
}

void Communicator::broadcast(void* data, std::int64_t bytes, int root, void* stream) {
  run_checked({.kind = ExchangeKind::kBroadcast, .counts = {bytes}, .root = root}, data, data,
              stream);
}

void Communicator::run_checked(const Exchange& e, const void* in, void* out, void* stream) {
  const auto ranks = static_cast<std::size_t>(size());
  const bool has_one_count =
      e.kind == ExchangeKind::kAllReduce || e.kind == ExchangeKind::kBroadcast;
  check_counts(e, e.counts, has_one_count ? 1 : ranks);
  if (e.kind == ExchangeKind::kAllToAll) check_counts(e, e.received, ranks);
  require(!is_sum(e.kind) || e.dtype == DType::kF32 || e.dtype == DType::kBF16, kInvalid,
          "{}: sums are of F32 or BF16; convert first", to_string(e));
  require(e.root >= 0 && e.root < size(), kInvalid, "{}: expected a rank from 0 to {}",
          to_string(e), size() - 1);
  require(in != nullptr || in_bytes(e, rank()) == 0, kInvalid,
          "{}: the address of what is sent is null; expected {} bytes of device memory",
          to_string(e), in_bytes(e, rank()));
  require(out != nullptr || out_bytes(e, rank()) == 0, kInvalid,
          "{}: the address of the result is null; expected {} bytes of device memory", to_string(e),
          out_bytes(e, rank()));
  run(e, in, out, stream);
}

}  // namespace tilewright::comm
