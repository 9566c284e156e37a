// Logits of the indexer from given codes: plan, checks of a call, and launches.
#include "tilewright/indexer_logits.h"

#include "device/internal.h"
#include "formats/index_page.h"
#include "kernels/sparse_attention/indexer/indexer_logits.h"
#include "ops/cache/kv_cache.h"
#include "ops/indexer/key_map.h"
#include "ops/indexer/plan.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/make_fast_divisor.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/sequence_checks.h"
#include "ops/operator/workspace.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace tilewright {

namespace {

constexpr const char* kLogitsName = "indexer logits";
constexpr ops::ArgumentChecks kLogitsChecks(kLogitsName);
constexpr std::int64_t kMostTokens = std::int64_t{1} << 20, kMostSequences = 65535,
                       kMostKeys = std::int64_t{1} << 30;

bool has_pages(const IndexerLogitsProblem& p) {
  return p.keys.num_pages > 0;
}
IndexFormat index_format(const IndexerLogitsProblem& p) {
  return p.format == NumberFormat::kFp8 ? IndexFormat::kFp8 : IndexFormat::kMxfp4;
}

IndexerLogitsProblem complete_logits(ops::ProblemChecks& checks,
                                     const IndexerLogitsProblem& problem) {
  IndexerLogitsProblem p = problem;
  checks.expect(p.format == NumberFormat::kFp8 || p.format == NumberFormat::kMxfp4, "format",
                p.format, "fp8 or mxfp4");
  checks.range("heads", p.heads, 1, 64);
  checks.range("max_len", p.max_len, 1, kMostKeys);
  ops::ProblemChecks of_keys(checks, "keys");
  if (p.keys.num_pages != 0) p.keys = ops::complete_index(of_keys, index_format(p), p.keys);
  checks
      .expect(!p.is_compressed || p.keys.num_pages == 0, "is_compressed", p.is_compressed,
              "false with pages (keys.num_pages = {}), whose tokens see from key 0 on",
              p.keys.num_pages)
      .remedy("Leave it out.");
  return p;
}

// Heads that the kernels for keys without pages have columns for; Blackwell's have all.
int head_slots(const device::DeviceInfo& device, const IndexerLogitsProblem& p) {
  const int slots = ops::indexer_head_slots(p.heads);
  return has_pages(p) || ops::has_tensor_memory(device) ? slots : std::max(slots, 32);
}

std::string schedule_entry(const IndexerLogitsProblem& p) {
  return has_pages(p) ? "indexer_schedule" : "indexer_range_schedule";
}
std::string logits_entry(const device::DeviceInfo& device, const IndexerLogitsProblem& p) {
  const char* const what = has_pages(p) ? "indexer_logits" : "indexer_range_logits";
  if (ops::has_tensor_memory(device)) return fmt::format("sm100_{}_{}", what, to_string(p.format));
  return fmt::format("{}_{}_h{}", what, to_string(p.format), head_slots(device, p));
}
device::LaunchConfig schedule_launch() {
  device::LaunchConfig config = {.is_dependent_launch = true};
  config.block.x = kernels::kIndexerScheduleThreads;
  return config;
}
device::LaunchConfig logits_launch(const device::DeviceInfo& device, const IndexerLogitsProblem& p,
                                   std::int64_t q_len) {
  return ops::indexer_logits_launch(device, index_format(p), head_slots(device, p), q_len,
                                    !has_pages(p));
}

// Byte offsets of what a workspace holds.
struct LogitsWorkspace {
  std::size_t shares, units, bytes;

  LogitsWorkspace(const device::DeviceInfo& device, const IndexerLogitsProblem& p,
                  std::int64_t tokens, std::int64_t batch) {
    // Without pages ranges may part any two tokens. Of uniform sequences there are fewer.
    const std::int64_t max_units =
        has_pages(p) ? kernels::indexer_max_units(tokens, batch, 0, true) : tokens;
    ops::Carver carver;
    shares = carver.carve(device.num_sms, sizeof(kernels::IndexerShare));
    units = carver.carve(max_units + 1, sizeof(kernels::IndexerUnit));
    bytes = carver.total();
  }
};

// Every operand and result once.
double logits_bytes(const IndexerLogitsProblem& p, std::int64_t tokens, std::int64_t batch) {
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const double row = number(index_data_bytes(index_format(p)));
  const double query = row + 4 + (p.format == NumberFormat::kMxfp4 ? kIndexScaleBytes : 0);
  return number(has_pages(p) ? batch : 1) * number(p.max_len) * (row + kIndexScaleBytes) +
         number(tokens) * (number(p.heads) * query + 4 * number(p.max_len));
}

IndexerLogitsPlan make_logits_plan(const device::DeviceInfo& device,
                                   const IndexerLogitsProblem& problem, std::int64_t tokens,
                                   std::int64_t batch) {
  ops::ProblemChecks checks(kLogitsName);
  IndexerLogitsPlan plan;
  plan.problem = complete_logits(checks, problem);
  checks.range("tokens", tokens, 0, kMostTokens);
  checks.range("batch", batch, 0, kMostSequences);
  checks.finish();
  const IndexerLogitsProblem& p = plan.problem;
  const std::int64_t q_len = !has_pages(p)                      ? tokens
                             : batch > 0 && tokens % batch == 0 ? tokens / batch
                                                                : 0;
  std::vector<Launch> launches = {
      ops::planned_launch("schedule", schedule_entry(p), schedule_launch()),
      ops::planned_launch("logits", logits_entry(device, p), logits_launch(device, p, q_len))};
  ops::require_built(kLogitsName, device, launches);
  if (tokens > 0) plan.launches = std::move(launches);
  plan.workspace_bytes = LogitsWorkspace(device, p, tokens, batch).bytes;
  plan.flops = 2.0 * kIndexDims * static_cast<double>(p.heads) * static_cast<double>(tokens) *
               static_cast<double>(p.max_len);
  plan.bytes = logits_bytes(p, tokens, batch);
  plan.assumption = "full rows";
  plan.notes = {
      {"indexer", fmt::format("{} heads of {} in {}, up to {} of a token, keys {}{}", p.heads,
                              kIndexDims, to_string(p.format), p.max_len,
                              has_pages(p) ? fmt::format("in pages of {}", p.keys.page_size)
                                           : std::string("without pages"),
                              p.is_compressed ? ", from each token's first key on" : "")},
      {"call", has_pages(p) ? fmt::format("{} tokens of {} sequences", tokens, batch)
                            : fmt::format("{} tokens", tokens)}};
  return plan;
}

}  // namespace

struct IndexerLogits::State {
  Device handle;  // keeps the device open
  IndexerLogitsProblem problem;
  device::Kernel schedule, logits;

  const device::Device& device() const { return opened(handle); }
};

IndexerLogits::IndexerLogits(const Device& device, const IndexerLogitsProblem& problem) {
  const device::DeviceInfo& info = opened(device).info();
  const IndexerLogitsPlan plan = make_logits_plan(info, problem, 1, 1);
  state_ = std::make_unique<State>(
      State{device, plan.problem, device::load_kernel(opened(device), plan.launches[0].entry),
            device::load_kernel(opened(device), plan.launches[1].entry)});
  const int most =
      info.shared_per_block_optin_bytes - state_->logits.attributes().static_shared_bytes;
  state_->logits.allow_dynamic_shared_bytes(static_cast<std::uint32_t>(most));
}

IndexerLogits::~IndexerLogits() = default;
IndexerLogits::IndexerLogits(IndexerLogits&&) noexcept = default;
IndexerLogits& IndexerLogits::operator=(IndexerLogits&&) noexcept = default;

const IndexerLogitsProblem& IndexerLogits::problem() const noexcept {
  return state_->problem;
}

std::size_t IndexerLogits::workspace_bytes(std::int64_t tokens, std::int64_t batch) const {
  kLogitsChecks.range("tokens", tokens, 0, kMostTokens);
  kLogitsChecks.range("batch", batch, 0, kMostSequences);
  return LogitsWorkspace(state_->device().info(), state_->problem, tokens, batch).bytes;
}

IndexerLogitsPlan IndexerLogits::plan(std::int64_t tokens, std::int64_t batch) const {
  return make_logits_plan(state_->device().info(), state_->problem, tokens, batch);
}

namespace {

void check_pages(const IndexerLogitsArguments& a) {
  const SequenceBatch& s = a.sequences;
  kLogitsChecks.range("sequences.batch", s.batch, 1, kMostSequences);
  if (s.offsets == nullptr) {
    kLogitsChecks.range("sequences.q_len", s.q_len, 0);
    kLogitsChecks.check(
        s.q_len * s.batch == a.tokens,
        "{} sequences of {} tokens do not make {}; give offsets, or the right q_len", s.batch,
        s.q_len, a.tokens);
  } else {
    kLogitsChecks.address("sequences.offsets", s.offsets, 4);
  }
  ops::check_table(kLogitsChecks, a.key_table);
  kLogitsChecks.check(
      a.starts == nullptr,
      "starts are given, but keys are in pages; expected null: tokens see from key 0 "
      "of their sequence on");
}

void check_ranges(const IndexerLogitsArguments& a) {
  kLogitsChecks.range("num_keys", a.num_keys, 1, kMostKeys);
  kLogitsChecks.address("key_scales", a.key_scales, ops::kWordAlignment);
  if (a.starts != nullptr) kLogitsChecks.address("starts", a.starts, ops::kWordAlignment);
}

// The schedule adds up the chunks of all units in 32 bits.
void check_costs(const IndexerLogitsArguments& a, std::int64_t units, std::int64_t keys) {
  const std::int64_t most =
      std::numeric_limits<std::int32_t>::max() / (keys / kernels::kIndexerChunk + 3);
  kLogitsChecks.check(
      units <= most,
      "tokens = {}, with up to {} keys each; expected fewer in one call, so that their "
      "chunks of {} keys are fewer than 2^31: give them in parts",
      a.tokens, keys, kernels::kIndexerChunk);
}

void check_call(const IndexerLogitsProblem& p, const IndexerLogitsArguments& a,
                std::int64_t columns) {
  kLogitsChecks.range("tokens", a.tokens, 1, kMostTokens);
  kLogitsChecks.range("columns", columns, 1, p.max_len);
  kLogitsChecks.check(a.logits_stride == 0 || a.logits_stride >= columns,
                      "logits_stride = {}; expected at least columns = {}, or 0", a.logits_stride,
                      columns);
  kLogitsChecks.address("q", a.q, ops::kRowAlignment);
  kLogitsChecks.address_if(p.format == NumberFormat::kMxfp4, "q_scales", a.q_scales,
                           ops::kWordAlignment);
  kLogitsChecks.address("weights", a.weights, ops::kWordAlignment);
  kLogitsChecks.address("ends", a.ends, ops::kWordAlignment);
  kLogitsChecks.address("keys", a.keys, ops::kRowAlignment);
  kLogitsChecks.address("logits", a.logits, ops::kWordAlignment);
  kLogitsChecks.address("workspace", a.workspace, ops::kWorkspaceAlignment);
  if (has_pages(p)) {
    check_pages(a);
    check_costs(a, kernels::indexer_max_units(a.tokens, a.sequences.batch, 0, true), columns);
  } else {
    check_ranges(a);
    check_costs(a, a.tokens, a.num_keys);
  }
}

// The parameters of a call.
struct LogitsCall {
  const IndexerLogitsProblem& p;
  const IndexerLogitsArguments& a;
  const device::Device& device;
  std::int64_t columns = a.columns != 0 ? a.columns : p.max_len;
  LogitsWorkspace at = {device.info(), p, a.tokens, a.sequences.batch};

  kernels::IndexerUnit* units() const {
    return ops::part_of<kernels::IndexerUnit>(a.workspace, at.units);
  }
  kernels::IndexerShare* shares() const {
    return ops::part_of<kernels::IndexerShare>(a.workspace, at.shares);
  }
  // The tokens of each sequence; 0: they differ.
  std::int64_t q_len() const {
    if (!has_pages(p)) return a.tokens;
    return a.sequences.offsets != nullptr ? 0 : a.sequences.q_len;
  }

  kernels::IndexerLengths lengths() const {
    return {.positions = nullptr,
            .lengths = a.ends,
            .ratio_divisor = make_fast_divisor(1),
            .num_positions = 0,
            .max_len = ops::narrow(columns)};
  }
  kernels::IndexerRanges ranges() const {
    const std::int64_t keys = p.is_compressed ? a.num_keys : std::min(a.num_keys, columns);
    return {.starts = a.starts,
            .ends = a.ends,
            .num_keys = ops::narrow(keys),
            .columns = ops::narrow(columns),
            .is_compressed = p.is_compressed ? 1 : 0};
  }

  kernels::IndexerScheduleParams schedule() const {
    return {.lengths = lengths(),
            .offsets = a.sequences.offsets,
            .units = units(),
            .shares = shares(),
            .tokens = ops::narrow(a.tokens),
            .batch = ops::narrow(a.sequences.batch),
            .q_len = ops::narrow(a.sequences.q_len),
            .ctas = device.info().num_sms};
  }
  kernels::IndexerRangeScheduleParams range_schedule() const {
    return {.ranges = ranges(),
            .units = units(),
            .shares = shares(),
            .tokens = ops::narrow(a.tokens),
            .ctas = device.info().num_sms};
  }

  // What both kinds of keys have.
  void set_logits(kernels::IndexerLogitsParams& l, const ops::IndexKeyRows& rows) const {
    l.q = static_cast<const std::uint8_t*>(a.q);
    l.q_scales = static_cast<const std::uint8_t*>(a.q_scales);
    l.weights = a.weights;
    l.keys = {static_cast<std::uint8_t*>(const_cast<void*>(a.keys)),
              rows.stride_bytes,
              make_fast_divisor(static_cast<std::uint32_t>(rows.page_size)),
              ops::narrow(rows.page_size),
              ops::narrow(rows.num_pages * rows.page_size),
              index_format(p)};
    l.heads = ops::narrow(p.heads);
    l.tokens = ops::narrow(a.tokens);
    l.units = units();
    l.shares = shares();
    l.logits = a.logits;
    l.logits_stride = a.logits_stride != 0 ? a.logits_stride : columns;
    l.is_filled = p.fill_logits ? 1 : 0;
    ops::encode_index_keys(device, l, a.keys, rows);
  }
  kernels::IndexerLogitsParams logits() const {
    kernels::IndexerLogitsParams l = {};
    set_logits(l, {.page_size = p.keys.page_size,
                   .num_pages = p.keys.num_pages,
                   .stride_bytes = p.keys.page_stride_bytes,
                   .box_rows = kernels::indexer_box_rows(p.keys.page_size)});
    l.block_table = a.key_table.pages;
    l.block_table_stride = a.key_table.stride != 0 ? a.key_table.stride : a.key_table.blocks;
    l.num_blocks = ops::narrow(a.key_table.blocks);
    l.lengths = lengths();
    return l;
  }
  // Boxes may reach beyond the last key: what is not there comes as zeros.
  kernels::IndexerRangeLogitsParams range_logits() const {
    kernels::IndexerRangeLogitsParams l = {};
    set_logits(l, {.page_size = a.num_keys,
                   .num_pages = 1,
                   .stride_bytes = a.num_keys * index_data_bytes(index_format(p)),
                   .box_rows = kernels::kIndexerTileKeys});
    l.ranges = ranges();
    l.key_scales = static_cast<const std::uint8_t*>(a.key_scales);
    const bool is_aligned =
        reinterpret_cast<std::uintptr_t>(a.key_scales) % ops::kRowAlignment == 0;
    l.has_scale_quads = is_aligned && a.num_keys % 4 == 0 ? 1 : 0;
    return l;
  }
};

}  // namespace

void IndexerLogits::run(const IndexerLogitsArguments& a) const {
  if (a.tokens == 0) return;
  const State& state = *state_;
  const LogitsCall call = {state.problem, a, state.device()};
  check_call(state.problem, a, call.columns);
  const auto stream = ops::lent_stream(state.device(), a.stream);
  const bool is_paged = has_pages(state.problem);
  if (!a.reuses_schedule && is_paged) {
    state.schedule.launch(schedule_launch(), call.schedule(), stream);
  } else if (!a.reuses_schedule) {
    state.schedule.launch(schedule_launch(), call.range_schedule(), stream);
  }
  const device::LaunchConfig config =
      logits_launch(state.device().info(), state.problem, call.q_len());
  const auto launch = [&](const auto& params) {
    if (!ops::has_tensor_memory(state.device().info())) {
      return state.logits.launch(config, params, stream);
    }
    return state.logits.launch(
        config, ops::tensor_indexer_params(state.device(), params, call.q_len()), stream);
  };
  if (is_paged) {
    launch(call.logits());
  } else {
    launch(call.range_logits());
  }
}

IndexerLogitsPlan plan_indexer_logits(const Device& device, const IndexerLogitsProblem& problem,
                                      std::int64_t tokens, std::int64_t batch) {
  return make_logits_plan(opened(device).info(), problem, tokens, batch);
}

}  // namespace tilewright
