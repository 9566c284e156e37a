#include "ops/attention_kernels.h"

#include "base/error.h"
#include "base/similar.h"
#include "device/kernel_registry.h"
#include "kernels/attention/k6_pingpong.h"
#include "ops/attention_problem.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tilewright::ops {

namespace {

constexpr std::uint32_t kEverything = ~0u;

// One row a kernel. Rates: bench/results, N(0,1), cold cache; see docs/05-benchmarks.md.
const AttentionKernel kKernels[] = {
    {.name = "k6",
     .entry = "attention_k6",
     .idea = "ping-pong between warpgroups, overlap inside them",
     .tile = kernels::k6_tile,
     .features = kEverything,
     .maps = AttentionMaps::kSwizzled,
     .rates = {{64, 500, 475}, {128, 650, 620}, {256, 700, 640}}},
};

struct Wish {
  std::uint32_t feature;
  const char* name;
  bool (*is_wanted)(const AttentionProblem& problem);
};

const Wish kWishes[] = {
    {kFloat16, "f16", [](const AttentionProblem& p) { return p.dtype == DType::kF16; }},
    {kCausalMask, "a causal mask", [](const AttentionProblem& p) { return p.causal; }},
    {kWindow, "a sliding window",
     [](const AttentionProblem& p) { return p.window_left >= 0 || p.window_right >= 0; }},
    {kSoftcap, "a softcap", [](const AttentionProblem& p) { return p.softcap > 0; }},
    {kSink, "a sink", [](const AttentionProblem& p) { return p.has_sink; }},
    {kLse, "lse", [](const AttentionProblem& p) { return p.has_lse; }},
    {kPackedSequences, "packed sequences", [](const AttentionProblem& p) { return p.is_packed; }},
    {kGroupedHeads, "grouped heads (kv_heads < heads)",
     [](const AttentionProblem& p) { return p.heads != p.kv_heads; }},
    {kNoKeys, "kv_len = 0", [](const AttentionProblem& p) { return p.kv_len == 0; }},
    {kUnequalLengths, "q_len other than kv_len",
     [](const AttentionProblem& p) { return p.q_len != p.kv_len; }},
};

std::string list_dims(const AttentionKernel& kernel) {
  std::string text;
  for (const AttentionRate& rate : kernel.rates) {
    if (!text.empty()) text += ", ";
    text += std::to_string(rate.head_dim);
  }
  return text;
}

const AttentionRate* find_rate(const AttentionKernel& kernel, std::int64_t head_dim) {
  const auto at = std::ranges::find(kernel.rates, head_dim, &AttentionRate::head_dim);
  return at == kernel.rates.end() ? nullptr : &*at;
}

bool is_embedded(const std::string& entry, std::string_view target) {
  return std::ranges::any_of(device::kernel_images(), [&](const device::KernelImage& image) {
    return image.name == entry && image.target == target;
  });
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::string grid_obstacle(const kernels::AttentionTile& tile, const AttentionProblem& p) {
  const std::int64_t q_tiles = ceil_div(p.q_len, tile.queries);
  constexpr std::int64_t kMaxTiles = std::int64_t{1} << 31, kMaxGridYz = 65535;
  if (tile.is_persistent) {
    const double tiles =
        static_cast<double>(q_tiles) * static_cast<double>(p.batch) * static_cast<double>(p.heads);
    if (tiles >= static_cast<double>(kMaxTiles) - 65536) {
      return fmt::format("needs {:.0f} tiles of {} queries, and numbers them with 31 bits", tiles,
                         tile.queries);
    }
  } else if (p.heads > kMaxGridYz || p.batch > kMaxGridYz) {
    return fmt::format("has a grid of (tiles, heads, batch), at most {} heads and batches",
                       kMaxGridYz);
  }
  return {};
}

}  // namespace

std::span<const AttentionKernel> attention_kernels() {
  return kKernels;
}

const AttentionKernel& find_attention_kernel(const std::string& name) {
  std::string names;
  for (const AttentionKernel& kernel : kKernels) {
    if (name == kernel.name) return kernel;
    names += std::string(", ") + kernel.name;
  }
  fail(ErrorKind::kInvalidArgument, "attention: there is no kernel \"{}\"; there are auto{}", name,
       names);
}

std::vector<std::string> attention_entries(const AttentionKernel& kernel,
                                           const AttentionProblem& p) {
  const std::string type = fmt::format("_{}_d{}", attention_type_name(p.dtype), p.head_dim);
  if (!kernel.has_scores) return {kernel.entry + type};
  const std::string stem = kernel.entry;
  return {stem + "_scores" + type, stem + "_softmax", stem + "_output" + type};
}

std::string attention_obstacle(const AttentionKernel& kernel, const device::DeviceInfo& device,
                               const AttentionProblem& p) {
  if (find_rate(kernel, p.head_dim) == nullptr)
    return fmt::format("exists for head_dim {}", list_dims(kernel));
  for (const Wish& wish : kWishes) {
    if (wish.is_wanted(p) && !(kernel.features & wish.feature))
      return fmt::format("does not support {}", wish.name);
  }
  const kernels::AttentionTile tile = kernel.tile(static_cast<int>(p.head_dim));
  if (!(kernel.features & kRaggedLengths) &&
      (p.q_len % tile.queries != 0 || p.kv_len % tile.keys != 0)) {
    return fmt::format("needs q_len in multiples of {} and kv_len of {}", tile.queries, tile.keys);
  }
  if (device.compute_capability != 90)
    return fmt::format("is for sm_90a; {} has compute capability {}.{}", device.name,
                       device.compute_capability / 10, device.compute_capability % 10);
  if (tile.shared_bytes > device.shared_per_block_optin_bytes)
    return fmt::format("needs {} bytes of shared memory; {} gives {}", tile.shared_bytes,
                       device.name, device.shared_per_block_optin_bytes);
  for (const std::string& entry : attention_entries(kernel, p)) {
    if (!is_embedded(entry, "sm_90a"))
      return fmt::format("{} is not among the embedded kernels", entry);
  }
  return grid_obstacle(tile, p);
}

double attention_cost_us(const AttentionKernel& kernel, const device::DeviceInfo& device,
                         const AttentionProblem& p) {
  const AttentionRate* const rate = find_rate(kernel, p.head_dim);
  if (rate == nullptr) return std::numeric_limits<double>::infinity();
  const kernels::AttentionTile tile = kernel.tile(static_cast<int>(p.head_dim));
  const std::int64_t q_tiles = ceil_div(p.q_len, tile.queries);
  const double ctas =
      static_cast<double>(q_tiles) * static_cast<double>(p.heads) * static_cast<double>(p.batch);
  const double sms = std::max(device.num_sms, 1);
  const double waste =
      p.q_len == 0 ? 1.0
                   : static_cast<double>(q_tiles * tile.queries) / static_cast<double>(p.q_len);
  const double busy = std::min(1.0, ctas / sms);
  const bool is_masked = p.causal || p.window_left >= 0 || p.window_right >= 0;
  constexpr double kLaunchUs = 4;
  if (ctas == 0) return 0;
  return kLaunchUs +
         attention_flops(p) * waste / (busy * (is_masked ? rate->causal : rate->full) * 1e6);
}

}  // namespace tilewright::ops
