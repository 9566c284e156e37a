#include "ops/indexer/plan.h"

#include "kernels/sparse_attention/indexer/indexer_logits.h"
#include "kernels/sparse_attention/indexer/indexer_query.h"
#include "kernels/sparse_attention/indexer/indexer_topk.h"
#include "kernels/sparse_attention/indexer/sm100/sm100_indexer_logits.h"
#include "ops/cache/kv_cache.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/workspace.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr const char* kName = "indexer";
constexpr std::int64_t kMaxHeads = 64, kMaxLen = std::int64_t{1} << 30;

constexpr IndexerStep kSteps[] = {IndexerStep::kSchedule, IndexerStep::kQuery, IndexerStep::kLogits,
                                  IndexerStep::kSelect};

const char* step_name(IndexerStep step) {
  switch (step) {
    case IndexerStep::kQuery:
      return "query";
    case IndexerStep::kSchedule:
      return "schedule";
    case IndexerStep::kLogits:
      return "logits";
    case IndexerStep::kSelect:
      break;
  }
  return "select";
}

std::uint32_t count(std::int64_t x) {
  return static_cast<std::uint32_t>(x);
}

// Most tokens of a unit.
int unit_tokens(std::int64_t q_len) noexcept {
  constexpr std::int64_t kMost = kernels::kIndexerUnitTokens;
  return static_cast<int>(q_len == 0 ? kMost : std::min(q_len, kMost));
}

IndexerProblem complete(ProblemChecks& checks, const IndexerProblem& problem) {
  IndexerProblem p = problem;
  checks.expect(p.format == NumberFormat::kFp8 || p.format == NumberFormat::kMxfp4, "format",
                p.format, "fp8 or mxfp4");
  checks.range("heads", p.heads, 1, kMaxHeads);
  checks.range("topk", p.topk, 1, kernels::kIndexerTopkMax);
  checks.range("ratio", p.ratio, 1, 1 << 20);
  checks.range("max_len", p.max_len, 1, kMaxLen);
  ProblemChecks of_keys(checks, "keys"), of_rows(checks, "rows");
  p.keys = complete_index(of_keys, indexer_format(p), p.keys);
  if (p.rows.num_pages == 0) return p;
  p.rows.page_stride_bytes = 0;
  p.rows = complete_layout(of_rows, p.rows);
  return p;
}

// CTAs that share a row of logits: enough to be busy, each with some thousand.
std::int64_t select_cluster(const device::DeviceInfo& device, const IndexerProblem& p,
                            std::int64_t tokens) {
  constexpr std::int64_t kLeast = 4096;
  std::int64_t cluster = 1;
  while (cluster < kernels::kIndexerTopkMaxCluster && 2 * cluster * tokens <= device.num_sms &&
         p.max_len > kLeast * cluster)
    cluster *= 2;
  return cluster;
}

// Keys and queries once, logits between two kernels not counted.
double work_bytes(const IndexerProblem& p, std::int64_t tokens, std::int64_t batch) {
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  constexpr double kQueryBytes = 2 * kIndexDims, kWeightBytes = 2, kRowBytes = 4;
  const double key_bytes = number(index_data_bytes(indexer_format(p))) + kIndexScaleBytes;
  return number(batch) * number(p.max_len) * key_bytes +
         number(tokens) *
             (number(p.heads) * (kQueryBytes + kWeightBytes) + number(p.topk) * kRowBytes);
}

}  // namespace

IndexerProblem complete_indexer_problem(const IndexerProblem& problem) {
  ProblemChecks checks(kName);
  const IndexerProblem p = complete(checks, problem);
  checks.finish();
  return p;
}

bool has_tensor_memory(const device::DeviceInfo& device) {
  return capability_obstacle(100, device).empty();
}

int indexer_head_slots(std::int64_t heads) noexcept {
  return heads <= 8 ? 8 : heads <= 16 ? 16 : heads <= 32 ? 32 : 64;
}

int indexer_columns(int head_slots, std::int64_t q_len) noexcept {
  return kernels::tensor_indexer_columns(unit_tokens(q_len), head_slots);
}

std::string indexer_entry(const device::DeviceInfo& device, const IndexerProblem& p,
                          IndexerStep step) {
  switch (step) {
    case IndexerStep::kQuery:
      return "indexer_query";
    case IndexerStep::kSchedule:
      return "indexer_schedule";
    case IndexerStep::kLogits:
      if (has_tensor_memory(device))
        return fmt::format("sm100_indexer_logits_{}", to_string(p.format));
      return fmt::format("indexer_logits_{}_h{}", to_string(p.format), indexer_head_slots(p.heads));
    case IndexerStep::kSelect:
      break;
  }
  return "indexer_topk";
}

std::int64_t indexer_held_logits(const IndexerProblem& p, const device::LaunchConfig& select) {
  constexpr std::int64_t kVector = 4, kMost = kernels::kIndexerTopkMaxHeld;
  return std::min(ceil_div(p.max_len, kVector * std::int64_t{select.grid.x}) * kVector, kMost);
}

device::LaunchConfig indexer_logits_launch(const device::DeviceInfo& device, IndexFormat format,
                                           int head_slots, std::int64_t q_len, bool has_ranges) {
  device::LaunchConfig config = {.is_dependent_launch = true};
  config.grid.x = count(device.num_sms);
  if (has_tensor_memory(device)) {
    config.block.x = kernels::kTensorIndexerThreads;
    config.dynamic_shared_bytes =
        count(kernels::TensorIndexerMemory(format, indexer_columns(head_slots, q_len)).bytes);
  } else {
    config.block.x = kernels::kIndexerLogitsThreads;
    config.dynamic_shared_bytes = count(
        kernels::indexer_logits_shared_bytes(format, unit_tokens(q_len), head_slots, has_ranges));
  }
  return config;
}

device::LaunchConfig indexer_launch(const device::DeviceInfo& device, const IndexerProblem& p,
                                    IndexerStep step, const IndexerCallSizes& call) {
  device::LaunchConfig config = {.is_dependent_launch = true};
  if (step == IndexerStep::kQuery) {
    config.grid.x = count(ceil_div(call.tokens * p.heads, kernels::kIndexerQueryRows));
    config.block.x = kernels::kIndexerQueryThreads;
  } else if (step == IndexerStep::kSchedule) {
    config.block.x = kernels::kIndexerScheduleThreads;
  } else if (step == IndexerStep::kLogits) {
    return indexer_logits_launch(device, indexer_format(p), indexer_head_slots(p.heads), call.q_len,
                                 false);
  } else {
    const std::int64_t cluster = select_cluster(device, p, call.tokens);
    config.grid = {count(cluster), count(call.tokens), 1};
    config.block.x = kernels::kIndexerTopkThreads;
    if (cluster > 1) config.cluster = device::Dim3{count(cluster), 1, 1};
    config.dynamic_shared_bytes = count(4 * indexer_held_logits(p, config));
  }
  return config;
}

IndexerWorkspace::IndexerWorkspace(const device::DeviceInfo& device, const IndexerProblem& p,
                                   std::int64_t tokens, std::int64_t batch) {
  constexpr std::int64_t kVector = 4;
  const std::int64_t queries = tokens * p.heads;
  // Of uniform sequences there are fewer.
  const std::int64_t max_units = kernels::indexer_max_units(tokens, batch, 0, true) + 1;
  logits_stride = ceil_div(p.max_len, kVector) * kVector;
  Carver carver;
  shares = carver.carve(device.num_sms, sizeof(kernels::IndexerShare));
  units = carver.carve(max_units, sizeof(kernels::IndexerUnit));
  codes = carver.carve(queries, kIndexDims);
  scales = carver.carve(queries, kIndexScaleBytes);
  weights = carver.carve(queries, sizeof(float));
  logits = carver.carve(tokens * logits_stride, sizeof(float));
  bytes = carver.total();
}

IndexerPlan make_indexer_plan(const device::DeviceInfo& device, const IndexerProblem& problem,
                              std::int64_t tokens, std::int64_t batch) {
  constexpr std::int64_t kMost = 65535;
  ProblemChecks checks(kName);
  IndexerPlan plan;
  plan.problem = complete(checks, problem);
  checks.range("tokens", tokens, 0, kMost);
  checks.range("batch", batch, 0, kMost);
  checks.finish();
  const IndexerProblem& p = plan.problem;
  const IndexerCallSizes call = {tokens, batch > 0 && tokens % batch == 0 ? tokens / batch : 0};
  std::vector<Launch> launches;
  for (const IndexerStep step : kSteps)
    launches.push_back(planned_launch(step_name(step), indexer_entry(device, p, step),
                                      indexer_launch(device, p, step, call)));
  require_built(kName, device, launches);
  if (tokens > 0) plan.launches = std::move(launches);
  plan.workspace_bytes = IndexerWorkspace(device, p, tokens, batch).bytes;
  plan.flops = 2.0 * kIndexDims * static_cast<double>(p.heads) * static_cast<double>(tokens) *
               static_cast<double>(p.max_len);
  plan.bytes = work_bytes(p, tokens, batch);
  plan.assumption = "full caches";
  plan.notes = {
      {"indexer",
       fmt::format("{} heads of {} in {}, the {} best of up to {} entries, ratio {}", p.heads,
                   kIndexDims, to_string(p.format), p.topk, p.max_len, p.ratio)},
      {"call", fmt::format("{} tokens of {} sequences{}", tokens, batch,
                           call.q_len == 0 ? "" : fmt::format(", {} of each", call.q_len))}};
  return plan;
}

}  // namespace tilewright::ops
