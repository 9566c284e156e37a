#include "ops/decode/plan.h"

#include "kernels/attention/decode/decode_append.h"
#include "kernels/attention/decode/limits.h"
#include "ops/decode/kernels.h"
#include "ops/decode/problem.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/choose.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/workspace.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

const DecodeKernel& choose_kernel(const device::DeviceInfo& device, AttentionDecodePlan& plan) {
  const AttentionDecodeProblem& p = plan.problem;
  const Request request = {"attention decode", p.kernel, device.name,
                           fmt::format("head_dim {}", p.head_dim),
                           "Take a Hopper device (sim:h200) or a Blackwell one (sim:b200)."};
  return decode_kernels()[choose(plan, request, decode_kernels(), [&](const DecodeKernel& kernel) {
    return make_option(kernel.name, decode_obstacle(kernel, p, device),
                       [&] { return decode_cost_us(kernel, p); });
  })];
}

std::int64_t tiles(const AttentionDecodePlan& plan) {
  return plan.problem.batch * plan.problem.kv_heads * plan.passes;
}

bool is_tile_for_a_cluster(const AttentionDecodePlan& plan, std::int64_t parts, int cluster,
                           std::int64_t room) {
  return parts <= kernels::kDecodeMaxCluster + 1 && tiles(plan) * cluster <= room;
}

// CTAs that attend to a segment together. Clusters merge in shared memory, in half of the time, and
// all of them do; but they leave some multiprocessors without work, and begin and end together.
// That pays if a cluster can do a tile alone, or where a few tiles of many rows have very many
// parts.
int cluster_of(const AttentionDecodePlan& plan, const device::DeviceInfo& device, std::int64_t room,
               std::int64_t parts) {
  constexpr std::int64_t kFewTiles = 4, kManyRows = 16;
  // What a forced number of parts gives may not depend on how many CTAs there are for each.
  if (plan.problem.splits > 0 || !device.has_clusters) return 1;
  if (find_decode_kernel(plan.kernel)->is_tensor()) return 1;
  int cluster = 1;
  while (cluster < kernels::kDecodeMaxCluster && cluster < parts) cluster *= 2;
  if (is_tile_for_a_cluster(plan, parts, cluster, room)) return cluster;
  const bool is_narrow = tiles(plan) <= kFewTiles && decode_rows(plan.problem) >= kManyRows;
  return is_narrow ? std::min(cluster, 4) : 1;
}

// Fills in groups and cluster: the CTAs that can have something to do.
void share_out(const device::DeviceInfo& device, int residents, AttentionDecodePlan& plan) {
  const AttentionDecodeProblem& p = plan.problem;
  const std::int64_t keys = decode_most_keys(p);
  const std::int64_t pieces = keys / kernels::kDecodePieceKeys + 2;
  const std::int64_t room = std::int64_t{device.num_sms} * residents;
  const std::int64_t least = decode_rates(plan).least_share;
  const std::int64_t parts = p.splits > 0 ? p.splits : (pieces + least - 1) / least;
  // Clusters do not fill the multiprocessors that are left over in their part of the device.
  const std::int64_t in_clusters = room * 15 / 16;
  plan.cluster = cluster_of(plan, device, in_clusters, parts);
  // A cluster with parts of two tiles would leave parts for others to merge.
  const bool has_a_tile =
      plan.cluster > 1 && is_tile_for_a_cluster(plan, parts, plan.cluster, in_clusters);
  plan.groups = static_cast<int>(std::clamp<std::int64_t>(
      has_a_tile ? tiles(plan) : (tiles(plan) * parts + plan.cluster - 1) / plan.cluster, 1,
      std::max<std::int64_t>((plan.cluster > 1 ? in_clusters : room) / plan.cluster, 1)));
}

// What the kernels count in 32 bits: parts, and the pieces of a CTA.
void check_size(const AttentionDecodePlan& plan) {
  const AttentionDecodeProblem& p = plan.problem;
  const double each =
      p.splits > 0 ? static_cast<double>(p.splits)
                   : static_cast<double>(decode_capacity(p)) / kernels::kDecodePieceKeys + 16;
  const double units = static_cast<double>(tiles(plan)) * each;
  if (p.splits == 0 ? units / plan.groups < 0x1p30 : units < 0x1p30) return;
  refuse(ErrorKind::kUnsupported, "attention decode",
         {{"batch", fmt::format("{}", p.batch),
           fmt::format("fewer than 2^30 work items of a CTA; kv_heads = {}, {} keys and splits = "
                       "{} make {:.3g} in all",
                       p.kv_heads, decode_capacity(p), p.splits, units),
           "Run parts of the batch."}});
}

// Other data begins like this by a chance of 2^-48.
std::uint64_t draw_counter_tag() {
  std::random_device random;
  const std::uint64_t bits = std::uint64_t{random()} << 32 | random();
  return bits / kernels::kDecodeMaxParts * kernels::kDecodeMaxParts;
}

bool has_parts(const AttentionDecodePlan& plan) {
  // One group for all tiles, or one part of each.
  return plan.problem.splits != 1 && (plan.problem.splits > 1 || plan.groups > 1);
}

DecodeWorkspace carve_workspace(const AttentionDecodePlan& plan) {
  const AttentionDecodeProblem& p = plan.problem;
  DecodeWorkspace w;
  Carver carver;
  if (p.append.rotary != RotaryPairs::kNone)
    w.rotated = carver.carve(p.batch * p.q_len * p.heads * p.head_dim, 2);
  if (has_parts(plan)) {
    const std::int64_t slots = kernels::decode_partial_slots(tiles(plan), p.splits, plan.groups);
    const int width = decode_width(*find_decode_kernel(plan.kernel), p);
    w.partial_out = carver.carve(slots * plan.tile_rows * width, 4);
    w.partial_sums = carver.carve(slots * plan.cluster * plan.tile_rows * 2, 4);
    w.counters = carver.carve(slots * plan.cluster, 8);
  }
  w.total = carver.total();
  return w;
}

void add_launches(const DecodeEntry& entry, AttentionDecodePlan& plan) {
  const AttentionDecodeProblem& p = plan.problem;
  if (p.append.is_wanted) {
    const std::int64_t q_heads = p.append.rotary != RotaryPairs::kNone ? p.heads : 0;
    const std::int64_t rows = p.batch * p.q_len * (q_heads + 2 * p.kv_heads);
    plan.launches.push_back({"append",
                             fmt::format("decode_append_{}", decode_kv_name(p)),
                             {ctas_for(rows, kernels::kDecodeAppendWarps), 1, 1},
                             {kernels::kDecodeAppendThreads, 1, 1}});
  }
  plan.launches.push_back({"attend",
                           entry.name,
                           {static_cast<std::uint32_t>(plan.groups * plan.cluster), 1, 1},
                           {static_cast<std::uint32_t>(entry.threads), 1, 1},
                           static_cast<std::uint32_t>(plan.cluster),
                           static_cast<std::uint32_t>(entry.shared_bytes)});
}

// Of a problem with queries: everything but the choice.
void add_work(const device::DeviceInfo& device, const DecodeKernel& kernel,
              DecodePlanned& planned) {
  AttentionDecodePlan& plan = planned.plan;
  const DecodeEntry entry = decode_entry(kernel, plan.problem);
  share_out(device, entry.residents, plan);
  check_size(plan);
  planned.counter_tag = draw_counter_tag();
  planned.workspace = carve_workspace(plan);
  plan.workspace_bytes = planned.workspace.total;
  add_launches(entry, plan);
}

}  // namespace

DecodePlanned make_decode_plan(const device::DeviceInfo& device,
                               const AttentionDecodeProblem& problem) {
  DecodePlanned planned;
  AttentionDecodePlan& plan = planned.plan;
  plan.problem = complete(problem);
  const AttentionDecodeProblem& p = plan.problem;
  const DecodeKernel& kernel = choose_kernel(device, plan);
  plan.tile_rows = kernel.rows;
  plan.passes = static_cast<int>((decode_rows(p) + kernel.rows - 1) / kernel.rows);
  const Work work = count_work(p, decode_capacity(p));
  plan.bytes = static_cast<double>(p.batch) * work.bytes;
  plan.flops = static_cast<double>(p.batch) * work.flops;
  plan.assumption = "full caches";
  if (p.batch > 0 && p.q_len > 0) add_work(device, kernel, planned);
  plan.notes = decode_notes(plan);
  return planned;
}

}  // namespace tilewright::ops
