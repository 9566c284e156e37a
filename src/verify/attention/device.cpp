#include "verify/attention/device.h"

#include "base/error.h"
#include "device/device.h"
#include "device/internal.h"

#include <algorithm>

namespace tilewright::cli {

namespace {

using device::Buffer;

void reserve(const device::Device& device, std::unique_ptr<Buffer>& buffer, std::size_t bytes) {
  if (buffer != nullptr && buffer->size_bytes() >= bytes) return;
  buffer.reset();  // before the next is allocated
  buffer = std::make_unique<Buffer>(device, bytes);
}

std::size_t out_bytes(const AttentionProblem& p) {
  const std::int64_t batch = p.is_packed ? 1 : p.batch, rows = p.is_packed ? p.total_q : p.q_len;
  return 2 * static_cast<std::size_t>(span_elems(batch, rows, p.heads, p.head_dim, p.out_strides));
}
std::size_t lse_bytes(const AttentionProblem& p) {
  const std::int64_t rows = p.is_packed ? p.total_q : p.batch * p.q_len;
  return p.has_lse ? 4 * static_cast<std::size_t>(rows * p.heads) : 0;
}

template <class T>
T* typed(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.address());
}

}  // namespace

AttentionBench::AttentionBench(const Device& device, const AttentionData& data)
    : device_(device),
      stream_(opened(device)),
      begin_(opened(device)),
      end_(opened(device)),
      q_(Buffer::from(opened(device), data.q)),
      k_(Buffer::from(opened(device), data.k)),
      v_(Buffer::from(opened(device), data.v)),
      sink_(Buffer::from(opened(device), data.sink)),
      cu_q_(Buffer::from(opened(device), data.cu_q)),
      cu_kv_(Buffer::from(opened(device), data.cu_kv)) {}

void AttentionBench::prepare(const AttentionPlan& plan) {
  const device::Device& inner = opened(device_);
  reserve(inner, out_, out_bytes(plan.problem));
  reserve(inner, lse_, lse_bytes(plan.problem));
  reserve(inner, workspace_, plan.workspace_bytes);
  out_->poison();
  lse_->poison();
}

AttentionArguments AttentionBench::arguments() const {
  AttentionArguments a = {.q = typed<const void>(q_),
                          .k = typed<const void>(k_),
                          .v = typed<const void>(v_),
                          .sink = typed<const float>(sink_),
                          .cu_q = typed<const std::int32_t>(cu_q_),
                          .cu_kv = typed<const std::int32_t>(cu_kv_),
                          .stream = stream_.handle()};
  if (out_ == nullptr) return a;
  a.out = typed<void>(*out_);
  a.lse = typed<float>(*lse_);
  a.workspace = typed<void>(*workspace_);
  return a;
}

void AttentionBench::round_operands(const AttentionPrepareProblem& problem) {
  rounded_.reset();  // before the next are allocated
  rounded_ = std::make_unique<Fp8Operands>(device_, problem);
  rounded_->enqueue(arguments());
}

void AttentionBench::enqueue(const Attention& attention) {
  AttentionArguments a = arguments();
  if (attention.plan().problem.dtype == DType::kF8_E4M3) rounded_->set(a);
  attention.run(a);
}

std::size_t AttentionBench::flush_bytes() const {
  constexpr std::size_t kLeast = 256 << 20;
  return std::max(kLeast, 4 * static_cast<std::size_t>(opened(device_).info().l2_bytes));
}

template <class Enqueue>
double AttentionBench::time_cold(Enqueue enqueue) {
  reserve(opened(device_), flush_, flush_bytes());
  flush_->fill_async(std::byte{1}, stream_);
  begin_.record(stream_);
  enqueue();
  end_.record(stream_);
  end_.synchronize();
  return 1e3 * static_cast<double>(device::elapsed_ms(begin_, end_));
}

double AttentionBench::time_cold_us(const Attention& attention) {
  return time_cold([&] { enqueue(attention); });
}

double AttentionBench::time_cold_rounding_us() {
  return time_cold([&] { rounded_->enqueue(arguments()); });
}

std::vector<std::uint16_t> AttentionBench::read_out(const AttentionProblem& p) const {
  std::vector<std::uint16_t> out(out_bytes(p) / 2);
  out_->copy_to_host(std::as_writable_bytes(std::span(out)));
  return out;
}

std::vector<float> AttentionBench::read_lse(const AttentionProblem& p) const {
  std::vector<float> lse(lse_bytes(p) / 4);
  lse_->copy_to_host(std::as_writable_bytes(std::span(lse)));
  return lse;
}

}  // namespace tilewright::cli
