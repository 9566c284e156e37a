#include "ops/decode/kernels.h"

#include "ops/decode/problem.h"
#include "ops/operator/operator.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr DecodeKernel kKernels[] = {
    {"r16", 16, false, 10}, {"r16_tma", 16, true, 10.2}, {"r64", 64, false, 42}};
// Gathering waits for the first pages of the table; TMA has a rate of its own, lower for short
// rows.
// On an H200, pages of 16: 4096 keys 10.3 us by TMA and 11.2 gathered (e4m3 9.7 and 10.2), 8 x 4096
// 37.6 and 37.3 (24.4 and 24.2), 64 x 4096 248.5 and 249.3 (141.4 and 138.3); rows of 64 bytes,
// 8 x 4096, 20.4 and 17.9. Logs: bench/results/2026-11-23-decode-{gather,tma}.json, and of other
// models and rows of 64 bytes decode-models-{gather,tma}.json.
constexpr double kPagesUs = 0.5, kBoxTime = 1.02, kShortBoxTime = 1.15;

constexpr double kBytesPerUs = 4.1e6;
// 32 to 64 KB were best; 128 KB come too early, and too much is asked for at once.
constexpr std::int64_t kAheadBytes = 48 * 1024;

// Why TMA cannot copy 16 keys of a head at once.
std::string box_obstacle(const AttentionDecodeProblem& p) {
  constexpr std::int64_t kKeys = kernels::kDecodePieceKeys, kMostStride = std::int64_t{1} << 40;
  if (p.page_size % kKeys != 0)
    return fmt::format("copies {} keys at a time, and pages have {}", kKeys, p.page_size);
  const auto& s = p.cache_strides;
  const std::int64_t bytes = decode_kv_elem_bytes(p);
  for (const std::int64_t stride : {s.batch, s.row, s.head})
    if (stride < 0 || stride >= kMostStride / bytes)
      return fmt::format("copies along strides of 0 to 2^40 bytes, not {}", stride * bytes);
  return decode_capacity(p) == 0 || (p.page_size > 0 && p.num_pages == 0)
             ? "needs a cache with room for a key"
             : "";
}

}  // namespace

std::span<const DecodeKernel> decode_kernels() noexcept {
  return kKernels;
}

const DecodeKernel* find_decode_kernel(const std::string& name) noexcept {
  for (const DecodeKernel& kernel : kKernels)
    if (name == kernel.name) return &kernel;
  return nullptr;
}

std::string decode_obstacle(const DecodeKernel& kernel, const AttentionDecodeProblem& p,
                            const device::DeviceInfo& device) {
  if (std::string obstacle = capability_obstacle(90, device); !obstacle.empty()) return obstacle;
  if (p.head_dim != 64 && p.head_dim != 128 && p.head_dim != 256)
    return fmt::format("exists for head_dim 64, 128 and 256, not {}: pad with zeros", p.head_dim);
  return kernel.has_boxes ? box_obstacle(p) : "";
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
  const AttentionDecodeProblem& p = plan.problem;
  const auto rows = std::min<std::int64_t>(decode_rows(p), plan.tile_rows);
  return {.tile_cost = 16 * plan.cluster,
          .least_share = 8 * plan.cluster,
          .merge_cost = static_cast<double>(rows) / 4,
          .ahead_keys = static_cast<int>(kAheadBytes / (2 * p.head_dim * decode_kv_elem_bytes(p)))};
}

double decode_cost_us(const DecodeKernel& kernel, const AttentionDecodeProblem& p) noexcept {
  const std::int64_t passes = (decode_rows(p) + kernel.rows - 1) / kernel.rows;
  const double bytes =
      count_work(p, decode_capacity(p)).bytes * static_cast<double>(p.batch * passes);
  if (!kernel.has_boxes)
    return kernel.fixed_us + (p.page_size > 0 ? kPagesUs : 0) + bytes / kBytesPerUs;
  const bool is_short = p.head_dim * decode_kv_elem_bytes(p) < 128;
  return kernel.fixed_us + bytes / kBytesPerUs * (is_short ? kShortBoxTime : kBoxTime);
}

}  // namespace tilewright::ops
