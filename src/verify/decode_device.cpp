#include "verify/decode_device.h"

#include "device/internal.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

using device::Buffer;

constexpr double kColdBytes = 256e6;  // an H200 has 50 MB of L2
constexpr std::size_t kMostSets = 24;

template <class T>
T* decode_address(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.address());
}
template <class T>
T* decode_address(const std::unique_ptr<Buffer>& buffer) {
  return buffer ? decode_address<T>(*buffer) : nullptr;
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
      stream_(opened(device)),
      begin_(opened(device)),
      end_(opened(device)),
      q_(Buffer::from(opened(device), data.q)),
      new_k_(Buffer::from(opened(device), data.new_k)),
      new_v_(Buffer::from(opened(device), data.new_v)),
      lengths_(Buffer::from(opened(device), data.lengths)),
      table_(Buffer::from(opened(device), data.table)),
      cos_(Buffer::from(opened(device), data.cos)),
      sin_(Buffer::from(opened(device), data.sin)),
      sink_(Buffer::from(opened(device), data.sink)),
      numbers_(opened(device), 0) {
  const std::size_t bytes = static_cast<std::size_t>(data.cache_elems()) * data.elem_bytes();
  for (std::size_t i = 0; i < sets; ++i) {
    k_.emplace_back(opened(device), bytes);
    v_.emplace_back(opened(device), bytes);
    fill(k_.back(), 0);
    fill(v_.back(), data.cache_elems());
  }
}

void DecodeOperands::fill(const Buffer& cache, std::int64_t first) const {
  const std::size_t period = data_.numbers.size();
  auto& to = const_cast<Buffer&>(cache);
  for (std::size_t at = 0; at < cache.size_bytes();) {
    const std::size_t from = (static_cast<std::size_t>(first) * data_.elem_bytes() + at) % period;
    const std::size_t count = std::min(period - from, cache.size_bytes() - at);
    to.copy_from_host(std::as_bytes(std::span(data_.numbers)).subspan(from, count), at);
    at += count;
  }
}

void DecodeOperands::prepare(const AttentionDecodePlan& plan) {
  const device::Device& device = opened(device_);
  const AttentionDecodeProblem& p = data_.problem;
  const auto rows = static_cast<std::size_t>(p.batch * p.q_len * p.heads);
  out_ = std::make_unique<Buffer>(device, rows * static_cast<std::size_t>(p.head_dim) * 2);
  lse_ = std::make_unique<Buffer>(device, rows * 4);
  workspace_ = std::make_unique<Buffer>(device, plan.workspace_bytes);
  for (Buffer* buffer : {out_.get(), lse_.get(), workspace_.get()}) buffer->poison();
}

void DecodeOperands::run(const AttentionDecode& decode, std::size_t set) const {
  decode.run({.q = decode_address<void>(q_),
              .k_cache = decode_address<void>(k_[set]),
              .v_cache = decode_address<void>(v_[set]),
              .lengths = decode_address<std::int32_t>(lengths_),
              .block_table = decode_address<std::int32_t>(table_),
              .new_k = decode_address<void>(new_k_),
              .new_v = decode_address<void>(new_v_),
              .cos = decode_address<float>(cos_),
              .sin = decode_address<float>(sin_),
              .out = decode_address<void>(out_),
              .lse = decode_address<float>(lse_),
              .sink = decode_address<float>(sink_),
              .workspace = decode_address<void>(workspace_),
              .stream = stream_.handle()});
}

nlohmann::json DecodeOperands::check(std::int64_t sequences) const {
  const auto out = out_->to_vector<std::uint16_t>();
  const auto lse = lse_->to_vector<float>();
  const std::int64_t all = data_.problem.batch, count = std::min(all, sequences);
  DecodeDifference difference;
  for (std::int64_t i = 0; i < count; ++i)
    difference.add(data_, count == 1 ? 0 : i * (all - 1) / (count - 1), out, lse);
  return difference.log();
}

std::vector<double> DecodeOperands::measure(const AttentionDecode& decode, int samples) const {
  const std::size_t calls = std::max<std::size_t>(sets(), 8);
  const auto graph = device::Graph::capture(stream_, [&] {
    for (std::size_t i = 0; i < calls; ++i) run(decode, i % sets());
  });
  const auto launch_us = [&] {
    begin_.record(stream_);
    graph.launch(stream_);
    end_.record(stream_);
    end_.synchronize();
    return 1e3 * static_cast<double>(device::elapsed_ms(begin_, end_));
  };
  // A GPU that has had nothing to do runs at a fraction of its clock for some 100 ms.
  for (double warm_us = 0; warm_us < 150e3;) warm_us += launch_us();
  std::vector<double> us;
  for (int i = 0; i < samples; ++i) us.push_back(launch_us() / static_cast<double>(calls));
  return us;
}

}  // namespace tilewright::cli
