#include "ops/attention/kernels.h"

#include "device/kernel_registry.h"
#include "kernels/attention/forward/k6_forward.h"
#include "kernels/attention/forward/k6_paged.h"
#include "kernels/attention/k1_naive.h"
#include "kernels/attention/k2_online_softmax.h"
#include "kernels/attention/k3_tma.h"
#include "kernels/attention/k4_1_wgmma_qk.h"
#include "kernels/attention/k4_2_wgmma.h"
#include "kernels/attention/k5_warp_specialized.h"
#include "kernels/attention/k6_1_persistent.h"
#include "kernels/attention/k6_2_turns.h"
#include "kernels/attention/k6_3_overlap.h"
#include "kernels/attention/k7/find_variant.h"
#include "kernels/attention/k7/k7_paged.h"
#include "ops/attention/fp8.h"
#include "ops/attention/padding.h"
#include "ops/attention/problem.h"
#include "ops/attention/rates.h"
#include "ops/attention/sm100.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/choose.h"
#include "ops/operator/operator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace tilewright::ops {

namespace {

using kernels::AttentionTile;
using Maps = AttentionMaps;

constexpr std::uint32_t kEverything =
    kWindow | kSoftcap | kSink | kLse | kPackedSequences | kFloat16;

std::vector<AttentionVariant> variants_up_to(int max_head_dim, AttentionTile (*tile)(int)) {
  std::vector<AttentionVariant> variants;
  for (const auto& [head_dim, name] :
       {std::pair{64, "d64"}, std::pair{128, "d128"}, std::pair{256, "d256"}}) {
    if (head_dim <= max_head_dim) variants.push_back({head_dim, name, tile(head_dim), false});
  }
  return variants;
}

AttentionKernel early_rung(const char* name, const char* idea, Maps maps,
                           const kernels::AttentionSupport& support, AttentionTile (*tile)(int)) {
  return {name, std::string("attention_") + name,          idea, attention_features(support),
          maps, variants_up_to(support.max_head_dim, tile)};
}

AttentionKernel step_to_k6(const char* name, const char* idea, AttentionTile (*tile)(int)) {
  AttentionKernel kernel = {
      name, std::string("attention_") + name, idea, kEverything, Maps::kSwizzled, {}};
  kernel.variants = variants_up_to(128, tile);
  kernel.is_step = true;
  return kernel;
}

constexpr AttentionVariant k6_form(const kernels::K6Variant& form) {
  return {form.head_dim, form.name, form.tile(), form.stages_out, form.value_dim, form.clips};
}
// The form of K6 of that name; there is no program with a name that has none.
consteval AttentionVariant k6_form(std::string_view name) {
  const int index = kernels::find_k6_index(kernels::kK6Variants, name);
  return k6_form(kernels::kK6Variants[static_cast<std::size_t>(index)]);
}

AttentionKernel k6_row(const char* name, const char* idea, std::vector<AttentionVariant> forms) {
  AttentionKernel kernel = {name, "attention_k6", idea, kEverything, Maps::kSwizzled, {}};
  kernel.variants = std::move(forms);
  kernel.pads = true;
  kernel.features |= kOwnValueDim;
  return kernel;
}

AttentionKernel k5_row() {
  AttentionKernel kernel = {"k5",        "attention_k5",  "warp-specialised: one warp loads",
                            kEverything, Maps::kSwizzled, variants_up_to(256, kernels::k5_tile)};
  for (AttentionVariant& variant : kernel.variants) variant.writes_boxes = true;
  kernel.pads = true;
  kernel.features |= kOwnValueDim;
  return kernel;
}

AttentionKernel k6_pages_row() {
  constexpr std::uint32_t kOfPages =
      kEverything | kPages | kDeviceLengths | kOwnValueDim | kChunks | kWideQueries;
  AttentionKernel kernel = {
      "k6_pages", "attention_k6_pages", "keys in pages, lengths on the device",
      kOfPages,   Maps::kSwizzled,      {}};
  // All of them look at the ends of rows.
  for (const kernels::K6Variant& form : kernels::kK6PagedVariants) {
    AttentionVariant& variant = kernel.variants.emplace_back(k6_form(form));
    variant.clips = true;
    variant.is_tall = form.is_tall;
    variant.has_wide_queries = !form.is_tall;
  }
  kernel.has_pages = true;
  return kernel;
}

// K7's fastest form of each head dimension stands for all.
AttentionKernel fp8_row(const char* name, const char* idea, AttentionFp8 fp8,
                        bool is_short = false) {
  const std::uint32_t e4m3 = fp8 == AttentionFp8::kPlain ? std::uint32_t{kE4m3Operands} : 0;
  AttentionKernel kernel = {name, "attention_k7", idea, kEverything | e4m3, Maps::kSwizzled, {}};
  kernel.is_short = is_short;
  for (const int head_dim : {64, 128, 256}) {
    const kernels::K7Variant* const variant = kernels::find_k7_variant(
        head_dim, kernels::Fp8Values::kColumns, fp8 == AttentionFp8::kRotated,
        kernels::Fp8Sums::kOneLevel, is_short);
    if (variant != nullptr)
      kernel.variants.push_back({head_dim, variant->name, variant->tile(), false});
  }
  kernel.fp8 = fp8;
  kernel.pads = true;
  return kernel;
}

// As k6_pages, for operands of e4m3. Values lie in rows, as caches have them.
AttentionKernel fp8_pages_row() {
  constexpr std::uint32_t kOfPages =
      kEverything | kE4m3Operands | kPages | kDeviceLengths | kChunks;
  AttentionKernel kernel = {
      "k7_pages", "attention_k7_pages", "k7 over pages: caches and queries of e4m3",
      kOfPages,   Maps::kSwizzled,      {}};
  for (const kernels::K7Variant& form : kernels::kK7PagedVariants) {
    if (form.sums != kernels::Fp8Sums::kOneLevel) continue;
    kernel.variants.push_back({form.head_dim, form.name, form.tile()});
    kernel.variants.back().clips = true;
  }
  kernel.fp8 = AttentionFp8::kPlain;
  kernel.is_e4m3_only = true;
  kernel.has_pages = true;
  return kernel;
}

AttentionKernel with_scores(AttentionKernel kernel) {
  kernel.has_scores = true;
  return kernel;
}

std::vector<AttentionKernel> make_kernels() {
  using namespace kernels;
  return {
      with_scores(
          early_rung("k1", "naive: all scores in global memory", Maps::kNone, kK1Support, k1_tile)),
      early_rung("k2", "one kernel: tiles, online softmax", Maps::kNone, kK2Support, k2_tile),
      early_rung("k3_1", "tensor copies (TMA), 1 stage", Maps::kPlain, kK3Support, k3_1_tile),
      early_rung("k3_2", "a ring of 2 stages", Maps::kPlain, kK3Support, k3_2_tile),
      early_rung("k3_3", "a ring of 5 stages", Maps::kPlain, kK3Support, k3_3_tile),
      early_rung("k4_1", "q k^T on tensor cores (WGMMA)", Maps::kSwizzled, kK41Support, k4_1_tile),
      early_rung("k4_2", "both products on tensor cores", Maps::kSwizzled, kK42Support, k4_2_tile),
      k5_row(),
      step_to_k6("k6_1", "persistent CTAs, longest tiles first", k6_1_tile),
      step_to_k6("k6_2", "warpgroups in turn", k6_2_tile),
      step_to_k6("k6_3", "softmax of a tile under the next product", k6_3_tile),
      k6_row("k6", "all of it, tuned",
             {k6_form("d64"), k6_form("d96"), k6_form("d128"), k6_form("d192"), k6_form("d256"),
              k6_form("d192_v128")}),
      k6_row("k6_short", "smaller tiles, for short sequences",
             {k6_form("d64_short"), k6_form("d96_short"), k6_form("d128_short")}),
      k6_row("k6_long", "more keys a step, for long sequences", {k6_form("d128_long")}),
      k6_pages_row(),
      fp8_row("k7", "e4m3: twice the products a clock", AttentionFp8::kPlain),
      fp8_row("k7_short", "smaller tiles, for short sequences", AttentionFp8::kPlain, true),
      fp8_pages_row(),
      fp8_row("k8", "rotated first, so that outliers round better", AttentionFp8::kRotated),
  };
}

struct RequiredFeature {
  std::uint32_t feature;
  const char* name;
  bool (*is_required)(const AttentionProblem& problem);
};

const RequiredFeature kRequiredFeatures[] = {
    {kE4m3Operands, "operands of e4m3",
     [](const AttentionProblem& p) { return attention_is_e4m3(p); }},
    {kWideQueries, "keys of e4m3 with queries of 16 bits",
     [](const AttentionProblem& p) { return attention_widens(p); }},
    {kFloat16, "f16", [](const AttentionProblem& p) { return p.dtype == DType::kF16; }},
    {kWindow, "a sliding window",
     [](const AttentionProblem& p) { return p.window_left >= 0 || p.window_right >= 0; }},
    {kSoftcap, "a softcap", [](const AttentionProblem& p) { return p.softcap > 0; }},
    {kSink, "a sink", [](const AttentionProblem& p) { return p.has_sink; }},
    {kLse, "lse", [](const AttentionProblem& p) { return p.has_lse; }},
    {kPackedSequences, "packed sequences", [](const AttentionProblem& p) { return p.is_packed; }},
    {kPages, "keys in pages", [](const AttentionProblem& p) { return p.page_size > 0; }},
    {kDeviceLengths, "lengths that only the device knows",
     [](const AttentionProblem& p) { return p.has_q_lengths || p.has_kv_lengths; }},
    {kChunks, "chunks of keys", [](const AttentionProblem& p) { return p.chunk > 0; }},
};

// Those with values of another width only where that is asked for, and those that the type has.
std::string list_dims(const AttentionKernel& kernel, const AttentionProblem& p) {
  std::string text;
  for (const AttentionVariant& variant : kernel.variants) {
    const bool is_usual = variant.value_dim == variant.head_dim;
    if (variant.is_tall || (!is_usual && attention_value_dim(p) == p.head_dim)) continue;
    if (attention_widens(p) && !variant.has_wide_queries) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(variant.head_dim);
    if (!is_usual) text += fmt::format(" with value_dim {}", variant.value_dim);
  }
  return text;
}

std::string grid_obstacle(const AttentionKernel& kernel, const AttentionTile& tile,
                          const AttentionProblem& p) {
  const auto [q_tiles, heads] = attention_tiles(kernel, p);
  constexpr std::int64_t kMaxTiles = std::int64_t{1} << 31, kMaxGridYz = 65535;
  if (kernel.has_scores && (p.heads * p.batch > kMaxGridYz || q_tiles > kMaxGridYz)) {
    return fmt::format("has {} (batch, head) pairs and {} tiles of queries in its grid, at most {}",
                       p.heads * p.batch, q_tiles, kMaxGridYz);
  }
  if (tile.is_persistent) {
    const double tiles =
        static_cast<double>(q_tiles) * static_cast<double>(p.batch) * static_cast<double>(heads);
    if (tiles >= static_cast<double>(kMaxTiles) - 65536) {
      return fmt::format("needs {:.0f} tiles of {} queries, and numbers them with 31 bits", tiles,
                         tile.queries);
    }
  } else if (kernel.has_pages) {
    const std::int64_t tiles = sm100_page_tiles(kernel, p);
    const std::int64_t most = (kMaxTiles - 1) / kernel.ctas(attention_width(kernel, p));
    if (tiles > most || p.kv_heads > kMaxGridYz)
      return fmt::format(
          "has a grid of {} tiles of {} queries and {} heads of keys, at most {} and {}", tiles,
          tile.queries, p.kv_heads, most, kMaxGridYz);
  } else if (p.heads > kMaxGridYz || p.batch > kMaxGridYz) {
    return fmt::format("has a grid of (tiles, heads, batch), at most {} heads and batches",
                       kMaxGridYz);
  }
  return {};
}

std::string fp8_obstacle(const AttentionKernel& kernel, const AttentionProblem& p) {
  const AttentionProblem computed = fp8_problem(kernel.fp8, p);
  const Fp8Choice choice = choose_fp8(kernel, computed);
  if (choice.variant != nullptr) return {};
  const bool is_two_level = choice.accumulation == Fp8Accumulation::kTwoLevel;
  return fmt::format("has no form for head_dim {}, values in {} and {}", p.head_dim,
                     attention_has_columns(computed) ? "columns" : "rows",
                     is_two_level ? "sums of two levels" : "these scales");
}

// Every form of K7 has its own: "k7_rows_block" is d64_rows_block and its likes. "k6_v128" is
// d192_v128.
std::string rates_name(const AttentionKernel& kernel, const AttentionProblem& p) {
  if (kernel.fp8 == AttentionFp8::kNone) {
    const AttentionVariant& variant = *kernel.find_variant(p);
    const std::string name = kernel.has_pages ? "k6" : kernel.name;
    return variant.value_dim == variant.head_dim ? name
                                                 : fmt::format("{}_v{}", name, variant.value_dim);
  }
  const std::string_view form = choose_fp8(kernel, fp8_problem(kernel.fp8, p)).variant->name;
  return fmt::format("k7{}{}", kernel.has_pages ? "_rows" : "",
                     form.substr(std::min(form.find('_'), form.size())));
}

const AttentionRates* find_rates(const AttentionKernel& kernel, const AttentionProblem& p) {
  const std::string name = rates_name(kernel, p);
  const auto at = std::ranges::find_if(kAttentionRates, [&](const AttentionRates& rates) {
    return rates.kernel == name && rates.head_dim == attention_width(kernel, p);
  });
  return at == std::end(kAttentionRates) ? nullptr : &*at;
}

// Measured on an H200: what pages leave of the rate of K6, and the time of a tensor copy, 64
// columns of a part of a tile that lies in one page, where copies are all that an SM waits for.
constexpr double kRateOfPages = 0.93, kCopyUs = 0.011;

double page_copies_us(const AttentionKernel& kernel, const device::DeviceInfo& device,
                      const AttentionProblem& p, double tiles) {
  const double keys = static_cast<double>(attention_page_box(kernel, p));
  const double columns = static_cast<double>(p.head_dim + attention_value_dim(p)) / 64;
  const double seen = count_visible_scores(p, p.q_len, p.kv_len) /
                      static_cast<double>(std::max<std::int64_t>(p.q_len, 1));
  return kCopyUs * columns * seen / keys * tiles / std::max(device.num_sms, 1);
}

// Between two lengths in proportion to the logarithm.
double rate_at(const std::array<float, 6>& rates, std::int64_t length) {
  const double x =
      std::log2(static_cast<double>(std::max<std::int64_t>(length, 1)) / kFirstRateLength);
  const double clamped = std::clamp(x, 0.0, 5.0);
  const std::size_t below = std::min<std::size_t>(static_cast<std::size_t>(clamped), 4);
  const double share = clamped - static_cast<double>(below);
  return rates[below] * (1 - share) + rates[below + 1] * share;
}

}  // namespace

const AttentionVariant* AttentionKernel::find_variant(const AttentionProblem& p) const noexcept {
  const std::int64_t value_dim = attention_value_dim(p);
  const bool is_usual = value_dim == p.head_dim;
  const auto fits = [&](const AttentionVariant& variant) {
    if (is_usual && variant.value_dim != variant.head_dim) return false;
    if (attention_widens(p) && !variant.has_wide_queries) return false;
    if (variant.is_tall && !attention_fills_tall_tiles(p)) return false;
    if (p.head_dim == variant.head_dim && value_dim == variant.value_dim) return true;
    if (!pads && !variant.clips) return false;
    if (is_usual) return is_padded_to(static_cast<int>(p.head_dim), variant.head_dim);
    return p.head_dim <= variant.head_dim && value_dim <= variant.value_dim;
  };
  const AttentionVariant* narrowest = nullptr;
  for (const AttentionVariant& variant : variants) {
    const auto columns = [](const AttentionVariant& v) { return v.head_dim + v.value_dim; };
    if (fits(variant) && (narrowest == nullptr || columns(variant) < columns(*narrowest)))
      narrowest = &variant;
  }
  return narrowest;
}

std::span<const AttentionKernel> all_attention_kernels() {
  static const std::vector<AttentionKernel> all = [] {
    std::vector<AttentionKernel> kernels = make_kernels();
    for (AttentionKernel& kernel : make_sm100_attention_kernels())
      kernels.push_back(std::move(kernel));
    return kernels;
  }();
  return all;
}

std::span<const AttentionKernel> attention_kernels_for(int capability) {
  const auto all = all_attention_kernels();
  const auto blackwell = std::ranges::find(all, 100, &AttentionKernel::capability);
  const bool is_blackwell = device::kernel_target(capability) == device::kernel_target(100);
  return is_blackwell ? std::span(blackwell, all.end()) : std::span(all.begin(), blackwell);
}

std::span<const AttentionKernel> hopper_attention_kernels() {
  return attention_kernels_for(90);
}

const AttentionKernel& find_attention_kernel(const std::string& name) {
  std::string names;
  for (const AttentionKernel& kernel : all_attention_kernels()) {
    if (name == kernel.name) return kernel;
    names += (names.empty() ? "" : ", ") + kernel.name;
  }
  refuse_unknown("attention", name, names);
}

std::uint32_t attention_features(const kernels::AttentionSupport& support) {
  std::uint32_t features = kFloat16;
  if (support.has_lse) features |= kLse;
  if (support.has_window) features |= kWindow;
  if (support.has_packed_sequences) features |= kPackedSequences;
  if (support.has_softcap) features |= kSoftcap;
  if (support.has_sink) features |= kSink;
  return features;
}

AttentionTile find_attention_tile(const AttentionKernel& kernel, const AttentionProblem& p) {
  if (kernel.fp8 != AttentionFp8::kNone)
    return choose_fp8(kernel, fp8_problem(kernel.fp8, p)).variant->tile();
  if (kernel.group_tile == nullptr) return kernel.find_variant(p)->tile;
  return kernel.group_tile(attention_width(kernel, p), static_cast<int>(p.heads / p.kv_heads));
}

int attention_group_shift(const AttentionKernel& kernel, const AttentionProblem& p) {
  if (!kernel.has_pages || kernel.group_tile != nullptr) return 0;
  constexpr std::int64_t kMostRows = std::int64_t{1} << 30;
  std::int64_t heads = std::gcd(p.heads / p.kv_heads, std::int64_t{kernels::kWarpgroupRows});
  while (heads > 1 && p.q_len * heads > kMostRows) heads /= 2;
  return std::countr_zero(static_cast<std::uint64_t>(heads));
}

AttentionTiles attention_tiles(const AttentionKernel& kernel, const AttentionProblem& p) {
  const int shift = attention_group_shift(kernel, p);
  return {ceil_div(p.q_len << shift, find_attention_tile(kernel, p).queries), p.heads >> shift};
}

std::size_t attention_counters(const AttentionKernel& kernel) {
  return kernel.has_pages ? kernels::kTileLists : 1;
}

std::vector<std::string> attention_entries(const AttentionKernel& kernel,
                                           const AttentionProblem& p) {
  const AttentionVariant* const variant = kernel.find_variant(p);
  if (variant == nullptr) return {};
  if (kernel.fp8 != AttentionFp8::kNone) {
    const Fp8Choice choice = choose_fp8(kernel, fp8_problem(kernel.fp8, p));
    return {fmt::format("{}_{}", kernel.entry, choice.variant->name)};
  }
  const bool widens = attention_widens(p);
  const bool gathers = kernel.has_pages && kernel.capability == 90 && !widens &&
                       attention_page_copies(kernel, p) == kernels::PageCopies::kRows;
  const std::string type =
      fmt::format("_{}{}_{}{}", attention_type_name(p.dtype), widens ? "_e4m3" : "", variant->name,
                  gathers ? "_rows" : "");
  if (!kernel.has_scores) return {kernel.entry + type};
  return {kernel.entry + "_scores" + type, kernel.entry + "_softmax",
          kernel.entry + "_output" + type};
}

std::string attention_obstacle(const AttentionKernel& kernel, const device::DeviceInfo& device,
                               const AttentionProblem& p) {
  std::string obstacle = capability_obstacle(kernel.capability, device);
  if (!obstacle.empty()) return obstacle;
  if (attention_value_dim(p) != p.head_dim && !(kernel.features & kOwnValueDim))
    return "does not support a value_dim other than head_dim";
  const AttentionVariant* const variant = kernel.find_variant(p);
  if (variant == nullptr) return fmt::format("exists for head_dim {}", list_dims(kernel, p));
  if (kernel.prepares(p) && variant->head_dim != p.head_dim)
    return fmt::format("rounds operands of head_dim {} alone; give it padded ones",
                       list_dims(kernel, p));
  if (kernel.is_e4m3_only && !attention_is_e4m3(p)) return "is for operands of e4m3";
  if (kernel.is_e4m3_only && attention_has_columns(p))
    return kernel.has_pages ? "reads values in rows"
                            : "reads values in rows; columns stand in the order of Hopper's "
                              "accumulators";
  for (const RequiredFeature& required : kRequiredFeatures) {
    if (required.is_required(p) && !(kernel.features & required.feature))
      return fmt::format("does not support {}", required.name);
  }
  if (kernel.fp8 != AttentionFp8::kNone) {
    obstacle = fp8_obstacle(kernel, p);
    if (!obstacle.empty()) return obstacle;
  }
  obstacle = attention_cache_obstacle(kernel, p);
  if (!obstacle.empty()) return obstacle;
  // A tile of one head has as many queries as a tile has rows.
  const int rows = variant->tile.box_queries;
  if (kernel.group_tile != nullptr && p.heads / p.kv_heads > rows)
    return fmt::format("has at most {} query heads for a key head; these are {}", rows,
                       p.heads / p.kv_heads);
  for (const std::string& entry : attention_entries(kernel, p)) {
    const auto shared_bytes = static_cast<std::uint32_t>(variant->tile.shared_bytes);
    obstacle = launch_obstacle(kernel.capability, device,
                               {.step = {}, .entry = entry, .shared_bytes = shared_bytes});
    if (!obstacle.empty()) return obstacle;
  }
  return grid_obstacle(kernel, find_attention_tile(kernel, p), p);
}

double attention_cost_us(const AttentionKernel& kernel, const device::DeviceInfo& device,
                         const AttentionProblem& p) {
  if (kernel.capability == 100) return sm100_attention_cost_us(kernel, device, p);
  if (kernel.find_variant(p) == nullptr) return std::numeric_limits<double>::infinity();
  const AttentionRates* const rates = find_rates(kernel, p);
  if (rates == nullptr) return std::numeric_limits<double>::infinity();
  const bool is_masked = p.causal || p.window_left >= 0 || p.window_right >= 0 || p.chunk > 0;
  const double rate = rate_at(is_masked ? rates->causal : rates->full, p.kv_len);
  const auto [q_tiles, heads] = attention_tiles(kernel, p);
  const double ctas =
      static_cast<double>(q_tiles) * static_cast<double>(heads) * static_cast<double>(p.batch);
  const double busy = std::min(1.0, std::max(ctas, 1.0) / std::max(device.num_sms, 1));
  constexpr double kLaunchUs = 4;
  const double padding =
      static_cast<double>(attention_width(kernel, p) + attention_value_width(kernel, p)) /
      static_cast<double>(p.head_dim + attention_value_dim(p));
  const double us = padding * count_work(p).flops / (busy * rate * 1e6);
  if (p.page_size == 0 || attention_widens(p)) return kLaunchUs + us + trim_cost_us(kernel, p);
  return kLaunchUs + std::max(us / kRateOfPages, page_copies_us(kernel, device, p, ctas));
}

}  // namespace tilewright::ops

namespace tilewright {

std::span<const AttentionKernelInfo> attention_kernels() {
  static const std::vector<AttentionKernelInfo> all = [] {
    std::vector<AttentionKernelInfo> kernels;
    for (const ops::AttentionKernel& kernel : ops::all_attention_kernels())
      kernels.push_back({.name = kernel.name,
                         .idea = kernel.idea,
                         .compute_capability = kernel.capability,
                         .computes_in_e4m3 = kernel.computes_in_e4m3(),
                         .reads_pages = kernel.has_pages});
    return kernels;
  }();
  return all;
}

}  // namespace tilewright
