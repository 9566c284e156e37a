#include "verify/linear_device.h"

#include "base/error.h"
#include "formats/minifloat.h"
#include "report/operator_report.h"
#include "verify/graph_times.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

std::vector<std::uint16_t> to_bf16_codes(std::span<const float> x) {
  std::vector<std::uint16_t> codes;
  codes.reserve(x.size());
  for (const float value : x)
    codes.push_back(static_cast<std::uint16_t>(encode(kBf16, static_cast<double>(value))));
  return codes;
}

}  // namespace

double linear_floor_us(const LinearPlan& plan) {
  constexpr double kBytesPerUs = 4.3e6, kBf16FlopsPerUs = 790e6, kFp8FlopsPerUs = 1600e6;
  const bool is_fp8 = plan.weight.activations == LinearActivations::kFp8;
  return std::max(plan.bytes / kBytesPerUs,
                  plan.flops / (is_fp8 ? kFp8FlopsPerUs : kBf16FlopsPerUs));
}

LinearBench::LinearBench(const Device& device, std::int64_t k, std::span<const float> x,
                         const LinearPlan& plan)
    : device_(device),
      problem_(plan.problem),
      n_(plan.weight.n),
      stream_(device),
      timer_(device),
      x_(Buffer::from(device, to_bf16_codes(x))),
      bias_(
          Buffer::from(device, std::vector<float>(static_cast<std::size_t>(plan.weight.n), 0.0f))),
      out_(device,
           static_cast<std::size_t>(problem_.m * n_ * (problem_.out_dtype == DType::kF32 ? 4 : 2))),
      workspace_(device, plan.workspace_bytes) {
  require(x.size() == static_cast<std::size_t>(problem_.m * k), ErrorKind::kInternal,
          "LinearBench: {} activations for [{}, {}]", x.size(), problem_.m, k);
  out_.poison();
}

void LinearBench::enqueue(const Linear& linear) {
  linear.run({.x = x_.data(),
              .bias = bias_.as<const float>(),
              .out = out_.data(),
              .workspace = workspace_.data(),
              .stream = stream_.handle()});
}

std::vector<double> LinearBench::read_out() const {
  std::vector<double> out;
  if (problem_.out_dtype == DType::kF32) {
    const std::vector<float> values = out_.to_vector<float>();
    out.assign(values.begin(), values.end());
  } else {
    for (const std::uint16_t code : out_.to_vector<std::uint16_t>())
      out.push_back(decode(kBf16, code));
  }
  return out;
}

nlohmann::json LinearBench::time_cold(const Linear& linear, int runs) {
  constexpr std::size_t kFlushBytes = 256 << 20;
  if (flush_ == nullptr) flush_ = std::make_unique<Buffer>(device_, kFlushBytes);
  std::vector<double> samples;
  for (int i = 0; i < runs; ++i) {
    flush_->fill(std::byte{1}, stream_);
    samples.push_back(timer_.time_us(stream_, [&] { enqueue(linear); }));
  }
  nlohmann::json time = time_summary(samples);
  time["floor_us"] = linear_floor_us(linear.plan());
  return time;
}

ClockedTimes LinearBench::time_rotating(std::span<const Linear> layers, int calls, int samples) {
  // A graph before each, so that the next is queued when its time begins.
  return graph_times(device_, stream_,
                     {.calls = calls, .samples = samples, .is_queued_behind_another = true},
                     [&](int i) { enqueue(layers[static_cast<std::size_t>(i) % layers.size()]); });
}

}  // namespace tilewright::cli
