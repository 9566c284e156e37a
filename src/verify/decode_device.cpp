#include "verify/decode_device.h"

#include "verify/graph_times.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

constexpr double kColdBytes = 256e6;  // an H200 has 50 MB of L2
constexpr std::size_t kMostSets = 24;
// A GPU that has had nothing to do runs at a fraction of its clock for some 100 ms.
constexpr double kWarmUs = 150e3;

void* address_of(const std::unique_ptr<Buffer>& buffer) {
  return buffer ? buffer->data() : nullptr;
}

}  // namespace

std::size_t decode_cold_sets(const Device& device, const DecodeData& data) {
  if (device.is_simulated()) return 1;
  const double bytes =
      2 * static_cast<double>(data.cache_elems()) * static_cast<double>(data.elem_bytes());
  const double sets = kColdBytes / std::max(bytes, 1.0) + 1;
  return std::min(static_cast<std::size_t>(sets), kMostSets);
}

DecodeOperands::DecodeOperands(const Device& device, const DecodeData& data, std::size_t sets)
    : device_(device),
      data_(data),
      stream_(device),
      q_(Buffer::from(device, data.q)),
      new_k_(Buffer::from(device, data.new_k)),
      new_v_(Buffer::from(device, data.new_v)),
      lengths_(Buffer::from(device, data.lengths)),
      table_(Buffer::from(device, data.table)),
      cos_(Buffer::from(device, data.cos)),
      sin_(Buffer::from(device, data.sin)),
      sink_(Buffer::from(device, data.sink)),
      numbers_(device, 0) {
  const std::size_t bytes = static_cast<std::size_t>(data.cache_elems()) * data.elem_bytes();
  for (std::size_t i = 0; i < sets; ++i) {
    k_.emplace_back(device, bytes);
    v_.emplace_back(device, bytes);
    fill(k_.back(), 0);
    fill(v_.back(), data.cache_elems());
  }
}

void DecodeOperands::fill(Buffer& cache, std::int64_t first) const {
  const std::size_t period = data_.numbers.size();
  for (std::size_t at = 0; at < cache.size_bytes();) {
    const std::size_t from = (static_cast<std::size_t>(first) * data_.elem_bytes() + at) % period;
    const std::size_t count = std::min(period - from, cache.size_bytes() - at);
    cache.upload(std::as_bytes(std::span(data_.numbers)).subspan(from, count), at);
    at += count;
  }
}

void DecodeOperands::prepare(const AttentionDecodePlan& plan) {
  const AttentionDecodeProblem& p = data_.problem;
  const auto rows = static_cast<std::size_t>(p.batch * p.q_len * p.heads);
  out_ = std::make_unique<Buffer>(device_, rows * static_cast<std::size_t>(p.head_dim) * 2);
  lse_ = std::make_unique<Buffer>(device_, rows * 4);
  workspace_ = std::make_unique<Buffer>(device_, plan.workspace_bytes);
  for (Buffer* buffer : {out_.get(), lse_.get(), workspace_.get()}) buffer->poison();
}

void DecodeOperands::run(const AttentionDecode& decode, std::size_t set) const {
  decode.run({.q = q_.data(),
              .k_cache = k_[set].data(),
              .v_cache = v_[set].data(),
              .lengths = lengths_.as<std::int32_t>(),
              .block_table = table_.as<std::int32_t>(),
              .new_k = new_k_.data(),
              .new_v = new_v_.data(),
              .rope = {.cos = cos_.as<float>(), .sin = sin_.as<float>()},
              .out = address_of(out_),
              .lse = static_cast<float*>(address_of(lse_)),
              .sink = sink_.as<float>(),
              .workspace = address_of(workspace_),
              .stream = stream_.handle()});
}

nlohmann::json DecodeOperands::check(std::int64_t sequences) const {
  const auto out = out_->to_vector<std::uint16_t>();
  const auto lse = lse_->to_vector<float>();
  const std::int64_t all = data_.problem.batch, count = std::min(all, sequences);
  DecodeDifference difference;
  difference.has_none = all == 0;
  for (std::int64_t i = 0; i < count; ++i)
    difference.add(data_, count == 1 ? 0 : i * (all - 1) / (count - 1), out, lse);
  return difference.log();
}

ClockedTimes DecodeOperands::measure(const AttentionDecode& decode, int samples) const {
  const std::size_t calls = std::max<std::size_t>(sets(), 8);
  return graph_times(device_, stream_,
                     {.calls = static_cast<int>(calls), .samples = samples, .warm_us = kWarmUs},
                     [&](int i) { run(decode, static_cast<std::size_t>(i) % sets()); });
}

}  // namespace tilewright::cli
