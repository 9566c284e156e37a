// The lightning indexer: checks of a call, and launches.
#include "tilewright/indexer.h"

#include "device/internal.h"
#include "device/kernel_registry.h"
#include "formats/index_page.h"
#include "kernels/sparse_attention/indexer/indexer_logits.h"
#include "kernels/sparse_attention/indexer/indexer_query.h"
#include "kernels/sparse_attention/indexer/indexer_topk.h"
#include "ops/cache/kv_cache.h"
#include "ops/indexer/key_map.h"
#include "ops/indexer/plan.h"
#include "ops/operator/arguments.h"
#include "ops/operator/make_fast_divisor.h"
#include "ops/operator/operator.h"
#include "ops/operator/rotary_checks.h"
#include "ops/operator/sequence_checks.h"
#include "ops/operator/workspace.h"

#include <cmath>

namespace tilewright {

namespace {

using kernels::IndexerShare;
using kernels::IndexerUnit;
using ops::indexer_format;

constexpr ops::ArgumentChecks kIndexerChecks("indexer");

void check_arguments(const IndexerProblem& p, const IndexerArguments& a) {
  constexpr std::int64_t kMaxBatch = 65535;
  kIndexerChecks.range("tokens", a.tokens, 1, kMaxBatch);
  kIndexerChecks.range("sequences.batch", a.sequences.batch, 1, kMaxBatch);
  if (a.sequences.offsets == nullptr) {
    kIndexerChecks.range("sequences.q_len", a.sequences.q_len, 0);
    kIndexerChecks.check(
        a.sequences.q_len * a.sequences.batch == a.tokens,
        "{} sequences of {} tokens do not make {}; give offsets, or the right q_len",
        a.sequences.batch, a.sequences.q_len, a.tokens);
  }
  kIndexerChecks.range("rope.positions", a.rope.positions, 1);
  kIndexerChecks.check(a.weights_dtype == DType::kBF16 || a.weights_dtype == DType::kF32,
                       "weights_dtype = {}; expected bf16 or f32",
                       static_cast<int>(a.weights_dtype));
  kIndexerChecks.address("positions", a.positions, 4);
  kIndexerChecks.address("q", a.q, ops::kRowAlignment);
  kIndexerChecks.address("weights", a.weights, a.weights_dtype == DType::kF32 ? 4 : 2);
  ops::check_one_table(kIndexerChecks, a.rope, 4);
  kIndexerChecks.address("key_pages", a.key_pages, ops::kRowAlignment);
  ops::check_table(kIndexerChecks, a.key_table);
  if (p.rows.num_pages != 0) ops::check_table(kIndexerChecks, a.row_table);
  kIndexerChecks.address("rows", a.rows, 4);
  kIndexerChecks.address("workspace", a.workspace, ops::kWorkspaceAlignment);
}

}  // namespace

struct Indexer::State {
  Device handle;  // keeps the device open
  IndexerProblem problem;
  device::Kernel query, schedule, logits, topk;

  const device::Device& device() const { return opened(handle); }

  /// `is_behind_queries`: the launch before this one is the step kQuery of the same call.
  void launch(const IndexerArguments& a, IndexerStep step, bool is_behind_queries) const;
};

Indexer::Indexer(const Device& device, const IndexerProblem& problem) {
  const IndexerProblem p = ops::complete_indexer_problem(problem);
  const auto load = [&](IndexerStep step) {
    return device::load_kernel(opened(device), ops::indexer_entry(opened(device).info(), p, step));
  };
  state_ = std::make_unique<State>(State{device, p, load(IndexerStep::kQuery),
                                         load(IndexerStep::kSchedule), load(IndexerStep::kLogits),
                                         load(IndexerStep::kSelect)});
  for (const device::Kernel* kernel : {&state_->logits, &state_->topk}) {
    const int most = opened(device).info().shared_per_block_optin_bytes -
                     kernel->attributes().static_shared_bytes;
    kernel->allow_dynamic_shared_bytes(static_cast<std::uint32_t>(most));
  }
}

Indexer::~Indexer() = default;
Indexer::Indexer(Indexer&&) noexcept = default;
Indexer& Indexer::operator=(Indexer&&) noexcept = default;

const IndexerProblem& Indexer::problem() const noexcept {
  return state_->problem;
}

std::size_t Indexer::key_cache_bytes() const noexcept {
  const KvCacheLayout& keys = state_->problem.keys;
  return static_cast<std::size_t>(keys.num_pages) *
         static_cast<std::size_t>(keys.page_stride_bytes);
}

std::size_t Indexer::workspace_bytes(std::int64_t tokens, std::int64_t batch) const {
  kIndexerChecks.range("tokens", tokens, 0);
  kIndexerChecks.range("batch", batch, 0);
  return ops::IndexerWorkspace(state_->device().info(), state_->problem, tokens, batch).bytes;
}

IndexerPlan Indexer::plan(std::int64_t tokens, std::int64_t batch) const {
  return ops::make_indexer_plan(state_->device().info(), state_->problem, tokens, batch);
}

namespace {

// The parameters of each step of a call.
struct Call {
  const IndexerProblem& p;
  const IndexerArguments& a;
  const device::Device& device;
  ops::IndexerWorkspace at = {device.info(), p, a.tokens, a.sequences.batch};

  template <class T>
  T* in_workspace(std::size_t offset) const {
    return ops::part_of<T>(a.workspace, offset);
  }
  static std::int32_t narrow(std::int64_t x) { return static_cast<std::int32_t>(x); }

  kernels::IndexerLengths lengths() const {
    return {.positions = a.positions,
            .lengths = a.lengths,
            .ratio_divisor = make_fast_divisor(static_cast<std::uint32_t>(p.ratio)),
            .num_positions = narrow(a.rope.positions),
            .max_len = narrow(p.max_len)};
  }

  kernels::IndexerQueryParams query() const {
    kernels::IndexerQueryParams q = {};
    q.q = static_cast<const std::uint16_t*>(a.q);
    q.weights = a.weights;
    q.positions = a.positions;
    q.rope = a.rope.angles;
    q.codes = in_workspace<std::uint8_t>(at.codes);
    q.scales = in_workspace<std::uint8_t>(at.scales);
    q.weights_out = in_workspace<float>(at.weights);
    q.q_head_stride = kIndexerChecks.stride("q_head_stride", a.q_head_stride, kIndexDims, 8);
    q.q_token_stride =
        kIndexerChecks.stride("q_token_stride", a.q_token_stride, p.heads * kIndexDims, 8);
    q.weights_stride = kIndexerChecks.stride("weights_stride", a.weights_stride, p.heads, 1);
    q.tokens = narrow(a.tokens);
    q.heads = narrow(p.heads);
    q.num_positions = narrow(a.rope.positions);
    q.is_weights_f32 = a.weights_dtype == DType::kF32 ? 1 : 0;
    q.format = indexer_format(p);
    q.factor = static_cast<float>(1 / std::sqrt(static_cast<double>(kIndexDims * p.heads)));
    return q;
  }

  kernels::IndexerScheduleParams schedule() const {
    return {.lengths = lengths(),
            .offsets = a.sequences.offsets,
            .units = in_workspace<IndexerUnit>(at.units),
            .shares = in_workspace<IndexerShare>(at.shares),
            .tokens = narrow(a.tokens),
            .batch = narrow(a.sequences.batch),
            .q_len = narrow(a.sequences.q_len),
            .ctas = device.info().num_sms};
  }

  kernels::IndexerLogitsParams logits(bool is_behind_queries) const {
    const auto page_size = static_cast<std::uint32_t>(p.keys.page_size);
    kernels::IndexerLogitsParams l = {};
    l.q = in_workspace<std::uint8_t>(at.codes);
    l.q_scales = in_workspace<std::uint8_t>(at.scales);
    l.weights = in_workspace<float>(at.weights);
    l.keys = {static_cast<std::uint8_t*>(const_cast<void*>(a.key_pages)),
              p.keys.page_stride_bytes,
              make_fast_divisor(page_size),
              static_cast<std::int32_t>(page_size),
              narrow(p.keys.num_pages * p.keys.page_size),
              indexer_format(p)};
    l.block_table = a.key_table.pages;
    l.block_table_stride = a.key_table.stride != 0 ? a.key_table.stride : a.key_table.blocks;
    l.num_blocks = narrow(a.key_table.blocks);
    l.heads = narrow(p.heads);
    l.tokens = narrow(a.tokens);
    l.lengths = lengths();
    l.units = in_workspace<IndexerUnit>(at.units);
    l.shares = in_workspace<IndexerShare>(at.shares);
    l.logits = in_workspace<float>(at.logits);
    l.logits_stride = at.logits_stride;
    l.is_filled = p.fill_logits ? 1 : 0;
    l.is_behind_queries = is_behind_queries ? 1 : 0;
    ops::encode_index_keys(device, l, a.key_pages,
                           {.page_size = p.keys.page_size,
                            .num_pages = p.keys.num_pages,
                            .stride_bytes = p.keys.page_stride_bytes,
                            .box_rows = kernels::indexer_box_rows(p.keys.page_size)});
    return l;
  }

  kernels::IndexerTopkParams topk(const device::LaunchConfig& config) const {
    kernels::IndexerTopkParams t = {};
    t.logits = in_workspace<float>(at.logits);
    t.logits_stride = at.logits_stride;
    t.lengths = lengths();
    t.sequences = ops::to_kernel(a.sequences);
    if (p.rows.num_pages != 0) {
      t.table = ops::to_kernel(a.row_table);
      t.page_size = narrow(p.rows.page_size);
      t.num_rows = narrow(p.rows.num_pages * p.rows.page_size);
    }
    t.rows = a.rows;
    t.counts = a.counts;
    t.rows_stride = kIndexerChecks.stride("rows_stride", a.rows_stride, p.topk, 1);
    t.tokens = narrow(a.tokens);
    t.topk = narrow(p.topk);
    t.held = narrow(ops::indexer_held_logits(p, config));
    return t;
  }
};

}  // namespace

kernels::IndexerQueryParams ops::indexer_query_params(const Device& device,
                                                      const IndexerProblem& problem,
                                                      const IndexerArguments& arguments) {
  check_arguments(problem, arguments);
  return Call{problem, arguments, opened(device)}.query();
}

void Indexer::State::launch(const IndexerArguments& a, IndexerStep step,
                            bool is_behind_queries) const {
  check_arguments(problem, a);
  const auto stream = ops::lent_stream(device(), a.stream);
  const Call call = {problem, a, device()};
  const SequenceBatch& s = a.sequences;
  const device::LaunchConfig config = ops::indexer_launch(
      device().info(), problem, step, {a.tokens, s.offsets != nullptr ? 0 : s.q_len});
  switch (step) {
    case IndexerStep::kQuery:
      return query.launch(config, call.query(), stream);
    case IndexerStep::kSchedule:
      return schedule.launch(config, call.schedule(), stream);
    case IndexerStep::kLogits:
      if (ops::has_tensor_memory(device().info())) {
        return logits.launch(config,
                             ops::tensor_indexer_params(device(), call.logits(is_behind_queries),
                                                        s.offsets != nullptr ? 0 : s.q_len),
                             stream);
      }
      return logits.launch(config, call.logits(is_behind_queries), stream);
    case IndexerStep::kSelect:
      return topk.launch(config, call.topk(config), stream);
  }
}

void Indexer::run(const IndexerArguments& a, IndexerStep step) const {
  state_->launch(a, step, false);
}

void Indexer::run(const IndexerArguments& a) const {
  if (a.tokens == 0) return;
  // Queries last before the logits: all that is read besides is then done when those begin.
  if (!a.reuses_schedule) state_->launch(a, IndexerStep::kSchedule, false);
  state_->launch(a, IndexerStep::kQuery, false);
  state_->launch(a, IndexerStep::kLogits, true);
  state_->launch(a, IndexerStep::kSelect, false);
}

IndexerResults Indexer::results(const IndexerArguments& a) const {
  const Call call = {state_->problem, a, state_->device()};
  return {.codes = call.in_workspace<void>(call.at.codes),
          .scales = call.in_workspace<std::uint8_t>(call.at.scales),
          .weights = call.in_workspace<float>(call.at.weights),
          .logits = call.in_workspace<float>(call.at.logits),
          .logits_stride = call.at.logits_stride};
}

std::string Indexer::to_string(std::int64_t tokens, std::int64_t batch) const {
  return plan(tokens, batch).to_string();
}

IndexerPlan plan_indexer(const Device& device, const IndexerProblem& problem, std::int64_t tokens,
                         std::int64_t batch) {
  return ops::make_indexer_plan(opened(device).info(), problem, tokens, batch);
}

}  // namespace tilewright
