#include "ops/attention/plan.h"

#include "kernels/attention/k1_naive.h"
#include "ops/attention/fp8.h"
#include "ops/attention/padding.h"
#include "ops/attention/prepare.h"
#include "ops/attention/problem.h"
#include "ops/attention/sm100.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/choose.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/workspace.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr std::int64_t kScoreTile = 16;        // K1: queries and keys of a CTA, and columns of out
constexpr std::int64_t kSoftmaxThreads = 256;  // K1: rows of a CTA

// What only one kernel has.
bool is_of_pages(const AttentionProblem& p) {
  return p.page_size > 0 || p.has_q_lengths || p.has_kv_lengths || p.chunk > 0 ||
         attention_widens(p);
}

// What "auto" does not take although it could.
std::string reservation(const AttentionKernel& kernel, const AttentionProblem& p) {
  if (kernel.is_step) return "is a step towards k6, to be read and measured";
  if (kernel.has_pages && !is_of_pages(p))
    return "is for keys in pages, lengths on the device and chunks of keys";
  return kernel.prepares(p) ? "would round to e4m3, which has to be asked for" : "";
}

// For a problem that no kernel can do.
const char* remedy_of(const AttentionProblem& p) {
  if (!is_of_pages(p))
    return "Pad head_dim with zeros, drop a feature, or take a Hopper device (sim:h200).";
  if (attention_kv_dtype(p) == DType::kF8_E4M3)
    return "Caches of e4m3 are read with scales of tensors or heads and values in rows, on "
           "Blackwell by queries of 16 bits for head_dim up to 128, or 192 with value_dim up to "
           "128: take those, or decode attention, which reads them for up to 16 queries.";
  if (p.chunk > 0 && p.page_size == 0 && !p.has_q_lengths && !p.has_kv_lengths)
    return "Chunks of keys are known for head_dim up to 256: pack each chunk as a sequence of its "
           "own, or take decode attention, which has chunks for up to 16 queries.";
  return "Pages and lengths on the device are read for head_dim up to 256: gather the keys and "
         "pack them, or take decode attention, which reads pages for up to 16 queries.";
}

// Those of the device's generation; all, if one of others was asked for: it is refused with them.
std::span<const AttentionKernel> kernels_in_question(const device::DeviceInfo& device,
                                                     const AttentionProblem& p) {
  const auto own = attention_kernels_for(device.compute_capability);
  const bool is_own =
      p.kernel == "auto" || std::ranges::find(own, p.kernel, &AttentionKernel::name) != own.end();
  return is_own ? own : all_attention_kernels();
}

const AttentionKernel& choose_kernel(const device::DeviceInfo& device, AttentionPlan& plan) {
  const AttentionProblem& p = plan.problem;
  const std::span<const AttentionKernel> kernels = kernels_in_question(device, p);
  const Request request = {
      "attention", p.kernel, device.name,
      fmt::format("{} with {}", attention_type_name(p.dtype), attention_dims_text(p)),
      remedy_of(p)};
  return kernels[choose(plan, request, kernels, [&](const AttentionKernel& kernel) {
    Option option = make_option(kernel.name, attention_obstacle(kernel, device, p),
                                [&] { return attention_cost_us(kernel, device, p); });
    option.reservation = reservation(kernel, p);
    return option;
  })];
}

std::size_t checked_scores_bytes(const AttentionProblem& p) {
  std::int64_t elems = p.batch;
  const bool overflows = __builtin_mul_overflow(elems, p.heads, &elems) ||
                         __builtin_mul_overflow(elems, p.kv_len, &elems) ||
                         __builtin_mul_overflow(elems, p.q_len, &elems) ||
                         elems > std::numeric_limits<std::int64_t>::max() / 8;
  if (overflows)
    refuse(ErrorKind::kUnsupported, "attention",
           {{"kernel", "k1",
             fmt::format("keeps batch * heads * q_len * kv_len = {} * {} * {} * {} scores in "
                         "memory: too many",
                         p.batch, p.heads, p.q_len, p.kv_len),
             "Take another kernel."}});
  return static_cast<std::size_t>(elems) * 4;
}

// Warpgroups of K7 that have no rows pass keys by, so the last tile of a head takes less time.
bool has_uneven_last_tile(const AttentionKernel& kernel, const AttentionProblem& p) {
  const int queries = find_attention_tile(kernel, p).queries;
  return kernel.fp8 != AttentionFp8::kNone && p.q_len > queries && p.q_len % queries != 0;
}

std::size_t workspace_bytes(const AttentionKernel& kernel, const AttentionProblem& p) {
  std::size_t bytes = 0;
  if (kernel.has_scores) bytes = checked_scores_bytes(p);
  if (find_attention_tile(kernel, p).is_persistent &&
      (kernel.has_pages || has_uneven_tiles(p) || has_uneven_last_tile(kernel, p) ||
       trims(kernel, p)))
    bytes = attention_counters(kernel) * 4;
  return align_workspace(bytes) + align_workspace(padded_out_bytes(kernel, p));
}

// K1's three, but those of an empty grid.
std::vector<Launch> naive_launches(const AttentionKernel& kernel, const AttentionProblem& p) {
  kernels::AttentionParams params = {};
  params.batch = static_cast<std::int32_t>(p.batch);
  params.heads = static_cast<std::int32_t>(p.heads);
  params.q_len = static_cast<std::int32_t>(p.q_len);
  params.kv_len = static_cast<std::int32_t>(p.kv_len);
  params.head_dim = static_cast<std::int32_t>(p.head_dim);
  const auto entries = attention_entries(kernel, p);
  std::vector<Launch> launches;
  const auto add = [&](const char* step, const std::string& entry,
                       const kernels::K1Launch& launch) {
    const auto narrow = [](std::int32_t x) { return static_cast<std::uint32_t>(x); };
    if (std::ranges::find(launch.grid, 0) != std::end(launch.grid)) return;
    launches.push_back({step,
                        entry,
                        {narrow(launch.grid[0]), narrow(launch.grid[1]), narrow(launch.grid[2])},
                        {narrow(launch.block[0]), narrow(launch.block[1]), 1}});
  };
  add("scores", entries[0], kernels::k1_scores_launch(params));
  add("softmax", entries[1], kernels::k1_softmax_launch(params));
  add("output", entries[2], kernels::k1_output_launch(params));
  return launches;
}

std::vector<Launch> make_launches(const AttentionKernel& kernel, const device::DeviceInfo& device,
                                  const AttentionProblem& p) {
  if (attention_q_rows(p) == 0 || p.batch == 0 || p.q_len == 0) return {};
  if (kernel.has_scores) return naive_launches(kernel, p);
  const kernels::AttentionTile tile = find_attention_tile(kernel, p);
  const AttentionTiles tiles = attention_tiles(kernel, p);
  const auto q_tiles = static_cast<std::uint32_t>(tiles.of_head);
  Launch launch = {
      .step = "attend",
      .entry = attention_entries(kernel, p)[0],
      .grid = {q_tiles, static_cast<std::uint32_t>(p.heads), static_cast<std::uint32_t>(p.batch)},
      .block = {static_cast<std::uint32_t>(tile.threads), 1, 1},
      .shared_bytes = static_cast<std::uint32_t>(tile.shared_bytes)};
  if (kernel.group_tile != nullptr) {
    if (kernel.has_pages)
      launch.grid = {static_cast<std::uint32_t>(sm100_page_tiles(kernel, p)), 0, 1};
    launch.grid[0] *= static_cast<std::uint32_t>(kernel.ctas(attention_width(kernel, p)));
    launch.grid[1] = static_cast<std::uint32_t>(p.kv_heads);
  }
  if (tile.is_persistent) {
    const std::int64_t all = tiles.of_head * tiles.heads * p.batch;
    launch.grid = {static_cast<std::uint32_t>(std::min<std::int64_t>(all, device.num_sms)), 1, 1};
  }
  if (trims(kernel, p)) return {launch, trim_launch(p)};
  return {launch};
}

}  // namespace

bool has_uneven_tiles(const AttentionProblem& p) noexcept {
  return p.causal || p.window_left >= 0 || p.window_right >= 0 || p.is_packed || p.has_q_lengths ||
         p.has_kv_lengths || p.chunk > 0;
}

std::int32_t attention_section_heads(const device::DeviceInfo& device, const AttentionProblem& p) {
  if (!has_uneven_tiles(p)) return 1;
  const double pairs = static_cast<double>(p.batch) * static_cast<double>(p.heads);
  // Heads of a group share their keys and values, 2 bytes an element.
  const double bytes_per_pair = 2.0 * static_cast<double>(p.kv_len) *
                                static_cast<double>(p.head_dim + attention_value_dim(p)) *
                                static_cast<double>(p.kv_heads) / static_cast<double>(p.heads);
  const double cache_bytes = device.l2_bytes / 2.0;
  std::int32_t section = 1;
  while (section < pairs && section < (1 << 20) && 2 * section * bytes_per_pair <= cache_bytes)
    section *= 2;
  return section;
}

namespace {

// Operands are prepared, then it is K7's problem.
void plan_prepared(AttentionPlan& plan, const device::DeviceInfo& device, AttentionFp8 kind) {
  const AttentionPreparePlan prepare =
      make_attention_prepare_plan(device, fp8_prepare_problem(kind, plan.problem));
  AttentionPlan attention = make_attention_plan(device, fp8_problem(kind, plan.problem));
  plan.tile_queries = attention.tile_queries;
  plan.tile_keys = attention.tile_keys;
  plan.padded_head_dim = attention.padded_head_dim;
  plan.padded_value_dim = attention.padded_value_dim;
  plan.accumulation = attention.accumulation;
  plan.accumulation_reason = std::move(attention.accumulation_reason);
  plan.accumulation_keys = attention.accumulation_keys;
  if (attention.launches.empty()) return;
  plan.launches = prepare.launches;
  plan.launches.insert(plan.launches.end(), attention.launches.begin(), attention.launches.end());
  plan.workspace_bytes = fp8_workspace(prepare, attention).bytes;
}

// With the tiles, launches and workspace of one kernel.
void plan_kernel(AttentionPlan& plan, const device::DeviceInfo& device,
                 const AttentionKernel& kernel) {
  const AttentionProblem& p = plan.problem;
  if (attention_is_e4m3(p)) {
    Fp8Choice fp8 = choose_fp8(kernel, p);
    plan.accumulation = fp8.accumulation;
    plan.accumulation_reason = std::move(fp8.reason);
    if (fp8.accumulation == Fp8Accumulation::kTwoLevel)
      plan.accumulation_keys = fp8.flush_tiles * fp8.variant->keys;
  }
  const kernels::AttentionTile tile = find_attention_tile(kernel, p);
  plan.tile_queries = tile.queries;
  plan.tile_keys = tile.keys;
  plan.padded_head_dim = attention_width(kernel, p);
  plan.padded_value_dim = attention_value_width(kernel, p);
  plan.launches = make_launches(kernel, device, p);
  if (!plan.launches.empty()) plan.workspace_bytes = workspace_bytes(kernel, p);
}

}  // namespace

AttentionPlan make_attention_plan(const device::DeviceInfo& device,
                                  const AttentionProblem& problem) {
  AttentionPlan plan;
  plan.problem = complete(problem);
  const AttentionKernel& kernel = choose_kernel(device, plan);
  const Work work = count_work(plan.problem);
  plan.flops = work.flops;
  plan.bytes = work.bytes;
  if (kernel.prepares(plan.problem)) {
    plan_prepared(plan, device, kernel.fp8);
  } else {
    plan_kernel(plan, device, kernel);
  }
  plan.notes = attention_notes(plan);
  return plan;
}

}  // namespace tilewright::ops
