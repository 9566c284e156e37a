#include "ops/attention/plan.h"

#include "base/error.h"
#include "kernels/attention/k1_naive.h"
#include "ops/attention/fp8.h"
#include "ops/attention/prepare.h"
#include "ops/attention/problem.h"
#include "ops/operator/ceil_div.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr std::size_t kWorkspaceAlignment = 256;
constexpr std::int64_t kScoreTile = 16;        // K1: queries and keys of a CTA, and columns of out
constexpr std::int64_t kSoftmaxThreads = 256;  // K1: rows of a CTA

// All candidates, each with what speaks against it, and the one to take.
struct Choice {
  const AttentionKernel* kernel = nullptr;
  std::vector<AttentionCandidate> candidates;
};

std::string list_reasons(const std::vector<AttentionCandidate>& candidates) {
  std::string text;
  for (const AttentionCandidate& c : candidates) text += fmt::format("\n  {} {}", c.name, c.reason);
  return text;
}

const AttentionKernel* find_named(const Choice& choice, const device::DeviceInfo& device,
                                  const AttentionProblem& p) {
  const AttentionKernel& kernel = find_attention_kernel(p.kernel);
  const auto at = std::ranges::find(choice.candidates, p.kernel, &AttentionCandidate::name);
  const bool is_listed = at != choice.candidates.end();  // else it is for other devices
  if (is_listed && at->is_possible) return &kernel;
  std::string others;
  for (const AttentionCandidate& c : choice.candidates) {
    if (c.is_possible) others += (others.empty() ? "" : ", ") + c.name;
  }
  fail(ErrorKind::kUnsupported, "attention: kernel {} {}. Possible here: {}.", p.kernel,
       is_listed ? at->reason : attention_obstacle(kernel, device, p),
       others.empty() ? "none" : others);
}

// One that auto may take.
bool is_choosable(const AttentionKernel& kernel, const AttentionProblem& p) {
  return !kernel.is_study && !kernel.prepares(p);
}

std::string unchosen_reason(const AttentionKernel& kernel, const AttentionProblem& p,
                            double slowdown) {
  if (p.kernel != "auto") return "was not asked for";
  if (kernel.is_study) return "is there to be measured";
  if (kernel.prepares(p)) return "would round to e4m3, which has to be asked for";
  return fmt::format("is expected to take {:.2f} times as long", slowdown);
}

Choice choose(const device::DeviceInfo& device, const AttentionProblem& p) {
  Choice choice;
  double best_us = std::numeric_limits<double>::infinity();
  for (const AttentionKernel& kernel : attention_kernels_for(device.compute_capability)) {
    AttentionCandidate candidate = {.name = kernel.name,
                                    .reason = attention_obstacle(kernel, device, p)};
    candidate.is_possible = candidate.reason.empty();
    if (candidate.is_possible) {
      candidate.cost_us = attention_cost_us(kernel, device, p);
      const bool is_better = choice.kernel == nullptr || candidate.cost_us < best_us;
      if (is_better && is_choosable(kernel, p)) {
        best_us = candidate.cost_us;
        choice.kernel = &kernel;
      }
    }
    choice.candidates.push_back(std::move(candidate));
  }
  if (p.kernel != "auto") {
    choice.kernel = find_named(choice, device, p);
  } else if (choice.kernel == nullptr) {
    fail(ErrorKind::kUnsupported,
         "attention: no kernel fits {} head_dim {} on {}:{}\nPad head_dim or drop the feature.",
         attention_type_name(p.dtype), p.head_dim, device.name, list_reasons(choice.candidates));
  }
  for (AttentionCandidate& c : choice.candidates) {
    if (!c.is_possible || c.name == choice.kernel->name) continue;
    c.reason = unchosen_reason(find_attention_kernel(c.name), p, c.cost_us / best_us);
  }
  return choice;
}

std::size_t checked_scores_bytes(const AttentionProblem& p) {
  std::int64_t elems = p.batch;
  const bool overflows = __builtin_mul_overflow(elems, p.heads, &elems) ||
                         __builtin_mul_overflow(elems, p.kv_len, &elems) ||
                         __builtin_mul_overflow(elems, p.q_len, &elems) ||
                         elems > std::numeric_limits<std::int64_t>::max() / 8;
  require(!overflows, ErrorKind::kUnsupported,
          "attention: kernel k1 keeps batch * heads * q_len * kv_len = {} * {} * {} * {} scores in "
          "memory: too many. Take another kernel.",
          p.batch, p.heads, p.q_len, p.kv_len);
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
      (has_uneven_tiles(p) || has_uneven_last_tile(kernel, p)))
    bytes = 4;
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

// K1's three, but those of an empty grid.
std::vector<AttentionLaunch> naive_launches(const AttentionKernel& kernel,
                                            const AttentionProblem& p) {
  kernels::AttentionParams params = {};
  params.batch = static_cast<std::int32_t>(p.batch);
  params.heads = static_cast<std::int32_t>(p.heads);
  params.q_len = static_cast<std::int32_t>(p.q_len);
  params.kv_len = static_cast<std::int32_t>(p.kv_len);
  params.head_dim = static_cast<std::int32_t>(p.head_dim);
  const auto entries = attention_entries(kernel, p);
  std::vector<AttentionLaunch> launches;
  const auto add = [&](const std::string& entry, const kernels::K1Launch& launch) {
    const auto narrow = [](std::int32_t x) { return static_cast<std::uint32_t>(x); };
    if (std::ranges::find(launch.grid, 0) != std::end(launch.grid)) return;
    launches.push_back({entry,
                        {narrow(launch.grid[0]), narrow(launch.grid[1]), narrow(launch.grid[2])},
                        {narrow(launch.block[0]), narrow(launch.block[1]), 1},
                        0});
  };
  add(entries[0], kernels::k1_scores_launch(params));
  add(entries[1], kernels::k1_softmax_launch(params));
  add(entries[2], kernels::k1_output_launch(params));
  return launches;
}

std::vector<AttentionLaunch> make_launches(const AttentionKernel& kernel,
                                           const device::DeviceInfo& device,
                                           const AttentionProblem& p) {
  if (attention_q_rows(p) == 0 || p.batch == 0 || p.q_len == 0) return {};
  if (kernel.has_scores) return naive_launches(kernel, p);
  const kernels::AttentionTile tile = find_attention_tile(kernel, p);
  const std::uint32_t q_tiles = ctas_for(p.q_len, tile.queries);
  AttentionLaunch launch = {
      attention_entries(kernel, p)[0],
      {q_tiles, static_cast<std::uint32_t>(p.heads), static_cast<std::uint32_t>(p.batch)},
      {static_cast<std::uint32_t>(tile.threads), 1, 1},
      static_cast<std::uint32_t>(tile.shared_bytes)};
  if (kernel.group_tile != nullptr) {
    launch.grid[0] *= static_cast<std::uint32_t>(kernel.ctas(static_cast<int>(p.head_dim)));
    launch.grid[1] = static_cast<std::uint32_t>(p.kv_heads);
  }
  if (tile.is_persistent) {
    const std::int64_t tiles = std::int64_t{q_tiles} * p.heads * p.batch;
    launch.grid = {static_cast<std::uint32_t>(std::min<std::int64_t>(tiles, device.num_sms)), 1, 1};
  }
  return {launch};
}

}  // namespace

bool has_uneven_tiles(const AttentionProblem& p) noexcept {
  return p.causal || p.window_left >= 0 || p.window_right >= 0 || p.is_packed;
}

std::int32_t attention_section_heads(const device::DeviceInfo& device, const AttentionProblem& p) {
  if (!has_uneven_tiles(p)) return 1;
  const double pairs = static_cast<double>(p.batch) * static_cast<double>(p.heads);
  // Heads of a group share their keys and values, 2 bytes an element.
  const double bytes_per_pair = 4.0 * static_cast<double>(p.kv_len) *
                                static_cast<double>(p.head_dim) * static_cast<double>(p.kv_heads) /
                                static_cast<double>(p.heads);
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
  plan.accumulation = attention.accumulation;
  plan.accumulation_reason = std::move(attention.accumulation_reason);
  if (attention.launches.empty()) return;
  plan.launches = prepare.launches;
  plan.launches.insert(plan.launches.end(), attention.launches.begin(), attention.launches.end());
  plan.workspace_bytes = fp8_workspace(prepare, attention).bytes;
}

}  // namespace

AttentionPlan make_attention_plan(const device::DeviceInfo& device,
                                  const AttentionProblem& problem) {
  AttentionPlan plan;
  plan.problem = complete_attention_problem(problem);
  const AttentionProblem& p = plan.problem;
  Choice choice = choose(device, p);
  plan.kernel = choice.kernel->name;
  plan.candidates = std::move(choice.candidates);
  plan.flops = attention_flops(p);
  plan.bytes = attention_bytes(p);
  if (choice.kernel->prepares(p)) {
    plan_prepared(plan, device, choice.kernel->fp8);
    return plan;
  }
  if (attention_is_e4m3(p)) {
    Fp8Choice fp8 = choose_fp8(*choice.kernel, p);
    plan.accumulation = fp8.accumulation;
    plan.accumulation_reason = std::move(fp8.reason);
  }
  const kernels::AttentionTile tile = find_attention_tile(*choice.kernel, p);
  plan.tile_queries = tile.queries;
  plan.tile_keys = tile.keys;
  plan.launches = make_launches(*choice.kernel, device, p);
  if (!plan.launches.empty()) plan.workspace_bytes = workspace_bytes(*choice.kernel, p);
  return plan;
}

}  // namespace tilewright::ops
