#include "ops/decode/kernels.h"

#include "kernels/attention/decode/shape.h"
#include "kernels/attention_sm100/decode/tensor_decode.h"
#include "ops/decode/problem.h"
#include "ops/operator/operator.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr DecodeKernel kKernels[] = {{"r16", 16, false, 10},       {"r16_tma", 16, true, 10.2},
                                     {"r64", 64, false, 42},       {"t16", 16, false, 10, 1, 2},
                                     {"t32", 32, false, 11, 1, 1}, {"t64", 64, false, 12, 2, 2}};
// Gathering waits for the first pages of the table; TMA has a rate of its own, lower for short
// rows.
// On an H200, pages of 16: 4096 keys 10.3 us by TMA and 11.2 gathered (e4m3 9.7 and 10.2), 8 x 4096
// 37.6 and 37.3 (24.4 and 24.2), 64 x 4096 248.5 and 249.3 (141.4 and 138.3); rows of 64 bytes,
// 8 x 4096, 20.4 and 17.9. Logs: bench/results/2026-11-23-decode-{gather,tma}.json, and of other
// models and rows of 64 bytes decode-models-{gather,tma}.json.
constexpr double kPagesUs = 0.5, kBoxTime = 1.02, kShortBoxTime = 1.15;

constexpr std::int64_t kMostHeadDim = 256;

constexpr double kBytesPerUs = 4.1e6;
// Nine tenths of what the memory of a B200 is said to deliver: an estimate.
constexpr double kB200BytesPerUs = 7.2e6;
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
  const int capability = kernel.is_tensor() ? 100 : 90;
  if (std::string obstacle = capability_obstacle(capability, device); !obstacle.empty())
    return obstacle;
  if (kernel.is_tensor() && decode_kv_elem_bytes(p) < kernel.tensor_kv_bytes_from)
    return fmt::format("has {} columns of results for each row of codes, more than Tensor Memory",
                       kernels::kTensorDecodeCodeParts);
  if (kernel.is_tensor() && decode_kv_elem_bytes(p) > kernel.tensor_kv_bytes_to)
    return "is for caches of e4m3; t64 takes as many rows of 16 bits, and more";
  if (p.head_dim > kMostHeadDim)
    return fmt::format("exists for head_dim up to {}, not {}", kMostHeadDim, p.head_dim);
  if (kernel.has_boxes && p.chunk > 0)
    return fmt::format("sees all keys, not those of chunks of {}", p.chunk);
  if (kernel.has_boxes && decode_is_any(p))
    return fmt::format("exists for head_dim 64, 128 and 256, not {}", p.head_dim);
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

bool decode_is_any(const AttentionDecodeProblem& p) noexcept {
  return p.chunk > 0 || (p.head_dim != 64 && p.head_dim != 128 && p.head_dim != 256);
}

int decode_width(const DecodeKernel& kernel, const AttentionDecodeProblem& p) noexcept {
  const int head_dim = static_cast<int>(p.head_dim);
  return kernel.is_tensor() ? kernels::tensor_decode_width(head_dim)
                            : kernels::decode_width(head_dim);
}

DecodeEntry decode_entry(const DecodeKernel& kernel, const AttentionDecodeProblem& p) {
  const int width = decode_width(kernel, p);
  if (kernel.is_tensor()) {
    const bool is_codes = decode_kv(p) == kernels::DecodeKv::kE4m3;
    const kernels::TensorDecodeShape shape = {width, is_codes, kernel.rows};
    return {fmt::format("decode_tensor_{}_r{}", is_codes ? "e4m3" : "16bit", kernel.rows),
            kernels::kTensorDecodeThreads, shape.shared_bytes(), 1};
  }
  const bool is_any = decode_is_any(p);
  const kernels::DecodeShape shape =
      kernels::decode_shape(decode_kv(p), width, kernel.rows, is_any);
  return {fmt::format("decode_{}_d{}_{}{}", decode_kv_name(p), width, kernel.name,
                      is_any ? "_any" : ""),
          shape.threads(), shape.shared_bytes(), shape.residents};
}

bool decode_has_boxes(const DecodeKernel& kernel, const AttentionDecodeProblem& p) {
  return kernel.has_boxes || (kernel.is_tensor() && box_obstacle(p).empty());
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
  // Of a full cache the last chunk may have few keys, of others as many as it can.
  const std::int64_t keys =
      p.chunk > 0 ? std::min(p.chunk, decode_capacity(p)) : decode_capacity(p);
  const double bytes = count_work(p, keys).bytes * static_cast<double>(p.batch * passes);
  if (kernel.is_tensor()) return kernel.fixed_us + bytes / kB200BytesPerUs;
  if (!kernel.has_boxes)
    return kernel.fixed_us + (p.page_size > 0 ? kPagesUs : 0) + bytes / kBytesPerUs;
  const bool is_short = p.head_dim * decode_kv_elem_bytes(p) < 128;
  return kernel.fixed_us + bytes / kBytesPerUs * (is_short ? kShortBoxTime : kBoxTime);
}

}  // namespace tilewright::ops
