#include "ops/attention_decode_kernels.h"

#include "ops/attention_decode_problem.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr DecodeKernel kKernels[] = {{"r16", 16, 10}, {"r64", 64, 42}};

constexpr double kBytesPerUs = 4.1e6;
}  // namespace

std::span<const DecodeKernel> decode_kernels() noexcept {
  return kKernels;
}

const DecodeKernel* find_decode_kernel(const std::string& name) noexcept {
  for (const DecodeKernel& kernel : kKernels)
    if (name == kernel.name) return &kernel;
  return nullptr;
}

std::string decode_obstacle(const AttentionDecodeProblem& p, const device::DeviceInfo& device) {
  if (device.compute_capability != 90)
    return fmt::format("exists for compute capability 9.0; the device has {}",
                       device.compute_capability / 10.0);
  if (p.head_dim != 64 && p.head_dim != 128 && p.head_dim != 256)
    return fmt::format("exists for head_dim 64, 128 and 256, not {}: pad with zeros", p.head_dim);
  return {};
}

kernels::DecodeKv decode_kv(const AttentionDecodeProblem& p) noexcept {
  if (p.kv_dtype == DType::kF8_E4M3) return kernels::DecodeKv::kE4m3;
  return p.kv_dtype == DType::kF16 ? kernels::DecodeKv::kF16 : kernels::DecodeKv::kBf16;
}

const char* decode_kv_name(const AttentionDecodeProblem& p) noexcept {
  switch (decode_kv(p)) {
    case kernels::DecodeKv::kBf16:
      return "bf16";
    case kernels::DecodeKv::kF16:
      return "f16";
    default:
      return "e4m3";
  }
}

kernels::DecodeShape decode_shape_of(const DecodeKernel& kernel,
                                     const AttentionDecodeProblem& p) noexcept {
  return kernels::decode_shape(decode_kv(p), static_cast<int>(p.head_dim), kernel.rows);
}

DecodeRates decode_rates(const AttentionDecodePlan& plan) noexcept {
  // A group has its pieces, and what it merges, at `cluster` times the pace of a CTA.
  const auto rows = std::min<std::int64_t>(decode_rows(plan.problem), plan.tile_rows);
  return {.tile_cost = 16 * plan.cluster,
          .least_share = 8 * plan.cluster,
          .merge_cost = static_cast<double>(rows) / 4};
}

double decode_cost_us(const DecodeKernel& kernel, const AttentionDecodeProblem& p) noexcept {
  const std::int64_t passes = (decode_rows(p) + kernel.rows - 1) / kernel.rows;
  const double bytes = decode_bytes(p, decode_capacity(p)) * static_cast<double>(p.batch * passes);
  return kernel.fixed_us + bytes / kBytesPerUs;
}

}  // namespace tilewright::ops
