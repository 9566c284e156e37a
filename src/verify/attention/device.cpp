#include "verify/attention/device.h"

#include "base/error.h"

#include <algorithm>

namespace tilewright::cli {

namespace {

void reserve(const Device& device, std::unique_ptr<Buffer>& buffer, std::size_t bytes) {
  if (buffer != nullptr && buffer->size_bytes() >= bytes) return;
  buffer.reset();  // before the next is allocated
  buffer = std::make_unique<Buffer>(device, bytes);
}

std::size_t out_bytes(const AttentionProblem& p) {
  const std::int64_t batch = p.is_packed ? 1 : p.batch, rows = p.is_packed ? p.total_q : p.q_len;
  return 2 *
         static_cast<std::size_t>(span_elems(batch, rows, p.heads, value_dim(p), p.out_strides));
}
std::size_t lse_bytes(const AttentionProblem& p) {
  const std::int64_t rows = p.is_packed ? p.total_q : p.batch * p.q_len;
  return p.has_lse ? 4 * static_cast<std::size_t>(rows * p.heads) : 0;
}

}  // namespace

AttentionBench::AttentionBench(const Device& device, const AttentionData& data)
    : device_(device),
      stream_(device),
      timer_(device),
      q_(Buffer::from(device, data.q)),
      k_(Buffer::from(device, data.k)),
      v_(Buffer::from(device, data.v)),
      sink_(Buffer::from(device, data.sink)),
      cu_q_(Buffer::from(device, data.cu_q)),
      cu_kv_(Buffer::from(device, data.cu_kv)) {}

void AttentionBench::prepare(const AttentionPlan& plan) {
  reserve(device_, out_, out_bytes(plan.problem));
  reserve(device_, lse_, lse_bytes(plan.problem));
  reserve(device_, workspace_, plan.workspace_bytes);
  out_->poison();
  lse_->poison();
}

AttentionArguments AttentionBench::arguments() const {
  AttentionArguments a = {.q = q_.data(),
                          .k = k_.data(),
                          .v = v_.data(),
                          .sink = sink_.as<const float>(),
                          .cu_q = cu_q_.as<const std::int32_t>(),
                          .cu_kv = cu_kv_.as<const std::int32_t>(),
                          .stream = stream_.handle()};
  if (out_ == nullptr) return a;
  a.out = out_->data();
  a.lse = lse_->as<float>();
  a.workspace = workspace_->data();
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
  return std::max(kLeast, 4 * device_.l2_bytes());
}

ClockedTime AttentionBench::time_cold(const std::function<void()>& enqueue) {
  reserve(device_, flush_, flush_bytes());
  flush_->fill(std::byte{1}, stream_);
  return timer_.time(stream_, enqueue);
}

ClockedTime AttentionBench::time_cold(const Attention& attention) {
  return time_cold([&] { enqueue(attention); });
}

double AttentionBench::time_cold_rounding_us() {
  return time_cold([&] { rounded_->enqueue(arguments()); }).us;
}

std::vector<std::uint16_t> AttentionBench::read_out(const AttentionProblem& p) const {
  std::vector<std::uint16_t> out(out_bytes(p) / 2);
  out_->download(std::as_writable_bytes(std::span(out)));
  return out;
}

std::vector<float> AttentionBench::read_lse(const AttentionProblem& p) const {
  std::vector<float> lse(lse_bytes(p) / 4);
  lse_->download(std::as_writable_bytes(std::span(lse)));
  return lse;
}

}  // namespace tilewright::cli
