#include "verify/linear_device.h"

#include "base/error.h"
#include "device/device.h"
#include "device/graph.h"
#include "device/internal.h"
#include "formats/minifloat.h"
#include "report/operator_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

using device::Buffer;

std::vector<std::uint16_t> to_bf16_codes(std::span<const float> x) {
  std::vector<std::uint16_t> codes;
  codes.reserve(x.size());
  for (const float value : x)
    codes.push_back(static_cast<std::uint16_t>(encode(kBf16, static_cast<double>(value))));
  return codes;
}

template <class T>
T* typed(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.address());
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
      stream_(opened(device)),
      begin_(opened(device)),
      end_(opened(device)),
      x_(Buffer::from(opened(device), to_bf16_codes(x))),
      bias_(Buffer::from(opened(device),
                         std::vector<float>(static_cast<std::size_t>(plan.weight.n), 0.0f))),
      out_(opened(device),
           static_cast<std::size_t>(problem_.m * n_ * (problem_.out_dtype == DType::kF32 ? 4 : 2))),
      workspace_(opened(device), plan.workspace_bytes) {
  require(x.size() == static_cast<std::size_t>(problem_.m * k), ErrorKind::kInternal,
          "LinearBench: {} activations for [{}, {}]", x.size(), problem_.m, k);
  out_.poison();
}

void LinearBench::enqueue(const Linear& linear, const device::Stream& stream) {
  linear.run({.x = typed<const void>(x_),
              .bias = typed<const float>(bias_),
              .out = typed<void>(out_),
              .workspace = typed<void>(workspace_),
              .stream = stream.handle()});
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
  if (flush_ == nullptr) flush_ = std::make_unique<Buffer>(opened(device_), kFlushBytes);
  std::vector<double> samples;
  for (int i = 0; i < runs; ++i) {
    flush_->fill_async(std::byte{1}, stream_);
    begin_.record(stream_);
    enqueue(linear);
    end_.record(stream_);
    end_.synchronize();
    samples.push_back(1e3 * static_cast<double>(device::elapsed_ms(begin_, end_)));
  }
  nlohmann::json time = time_summary(samples);
  time["floor_us"] = linear_floor_us(linear.plan());
  return time;
}

std::vector<double> LinearBench::time_rotating(std::span<const Linear> layers, int calls,
                                               int samples) {
  const device::Graph graph = device::Graph::capture(stream_, [&] {
    for (int i = 0; i < calls; ++i)
      enqueue(layers[static_cast<std::size_t>(i) % layers.size()], stream_);
  });
  std::vector<double> times;
  for (int i = 0; i < samples + 2; ++i) {  // the first two warm up
    graph.launch(stream_);                 // so that the next is queued when its time begins
    begin_.record(stream_);
    graph.launch(stream_);
    end_.record(stream_);
    end_.synchronize();
    if (i >= 2)
      times.push_back(1e3 * static_cast<double>(device::elapsed_ms(begin_, end_)) / calls);
  }
  return times;
}

}  // namespace tilewright::cli
