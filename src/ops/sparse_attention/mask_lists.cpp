// Masks to lists: checks and launch.
#include "tilewright/mask_lists.h"

#include "device/internal.h"
#include "kernels/sparse_attention/mask_lists.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

namespace tilewright {

struct MaskLists::State {
  ops::LoadedPlan<MaskListsPlan> loaded;
};

namespace {

constexpr const char* kName = "mask lists";
constexpr std::int64_t kMaxKeys = std::int64_t{1} << 30;
constexpr double kMaxBytes = 0x1p60;

std::int64_t mask_entries(const MaskListsProblem& p) {
  return ops::ceil_div(p.keys, p.key_block);
}
std::int64_t mask_rows(const MaskListsProblem& p) {
  return ops::ceil_div(p.rows, p.query_block);
}
std::int64_t row_bytes(const MaskListsProblem& p) {
  return p.entry == MaskEntry::kBits ? ops::ceil_div(mask_entries(p), 8) : mask_entries(p);
}

bool check_numbers(ops::ProblemChecks& checks, const MaskListsProblem& p) {
  constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
  if (!ops::all_held(
          {checks.range("batch", p.batch, 0), checks.range("rows", p.rows, 0),
           checks.range("keys", p.keys, 0, kMaxKeys), checks.range("query_block", p.query_block, 1),
           checks.range("key_block", p.key_block, 1, kMaxKeys), checks.range("topk", p.topk, 1),
           checks.range("page_size", p.page_size, 0, kMaxKeys)}))
    return false;
  return bool(checks
                  .expect(p.batch * p.rows <= kMaxInt32, "rows", p.rows,
                          "fewer than 2^31 lists in one call, with batch = {}", p.batch)
                  .remedy("Split them."));
}

MaskListsProblem complete_lists(const MaskListsProblem& problem) {
  ops::ProblemChecks checks(kName);
  MaskListsProblem p = problem;
  if (!check_numbers(checks, p)) checks.finish();
  const std::int64_t pages = p.page_size > 0 ? ops::ceil_div(p.keys, p.page_size) : 0;
  if (p.index_stride == 0) p.index_stride = p.topk;
  if (p.mask_row_bytes == 0) p.mask_row_bytes = row_bytes(p);
  const auto reaches = [&](const char* field, std::int64_t stride, std::int64_t extent) {
    checks.expect(
        stride >= 0 && static_cast<double>(stride) * static_cast<double>(extent) <= kMaxBytes,
        field, stride, "0 or more, at most 2^60 over all {}", extent);
  };
  reaches("mask_row_bytes", p.mask_row_bytes, mask_rows(p));
  checks.finish();  // else their product overflows
  if (p.mask_batch_bytes == 0) p.mask_batch_bytes = mask_rows(p) * p.mask_row_bytes;
  if (p.table_stride == 0) p.table_stride = pages;
  checks.expect(p.index_stride >= p.topk, "index_stride", p.index_stride,
                "at least topk = {}: lists would overlap", p.topk);
  checks.expect(p.page_size > 0 || problem.table_stride == 0, "table_stride", p.table_stride,
                "0 without pages (page_size = 0)");
  reaches("mask_batch_bytes", p.mask_batch_bytes, p.batch);
  reaches("index_stride", p.index_stride, p.batch * p.rows);
  reaches("table_stride", p.table_stride, p.batch);
  checks.finish();
  return p;
}

MaskListsPlan make_plan(const device::DeviceInfo& device, const MaskListsProblem& problem) {
  MaskListsPlan plan;
  plan.problem = complete_lists(problem);
  const MaskListsProblem& p = plan.problem;
  const bool is_bits = p.entry == MaskEntry::kBits;
  const std::int64_t lists = p.batch * p.rows;
  plan.launches = {{.step = "list",
                    .entry = is_bits ? "mask_lists_bits" : "mask_lists_bytes",
                    .grid = {static_cast<std::uint32_t>(lists), 1, 1},
                    .block = {kernels::kMaskListsThreads, 1, 1}}};
  ops::require_built(kName, device, plan.launches);
  if (lists == 0) plan.launches.clear();
  plan.bytes = static_cast<double>(lists) *
               (static_cast<double>(row_bytes(p)) + 4.0 * static_cast<double>(p.topk) + 4);
  plan.notes = {
      {"lists",
       fmt::format("of {} {}, {} keys, at most {} a list{}{}{}", lists,
                   is_bits ? "rows of bits" : "rows of bytes", p.keys, p.topk,
                   p.query_block > 1 ? fmt::format(", {} rows an entry", p.query_block) : "",
                   p.key_block > 1 ? fmt::format(", {} keys an entry", p.key_block) : "",
                   p.page_size > 0 ? fmt::format(", slots of pages of {}", p.page_size) : "")}};
  if (plan.launches.empty()) plan.notes.push_back({"launches", "none: there are no rows"});
  return plan;
}

}  // namespace

MaskLists::MaskLists(const Device& device, const MaskListsProblem& problem)
    : state_(std::make_unique<State>(State{{device, make_plan(opened(device).info(), problem)}})) {}
MaskLists::~MaskLists() = default;
MaskLists::MaskLists(MaskLists&&) noexcept = default;
MaskLists& MaskLists::operator=(MaskLists&&) noexcept = default;

const MaskListsPlan& MaskLists::plan() const noexcept {
  return state_->loaded.plan();
}

void MaskLists::run(const MaskListsArguments& a) const {
  const MaskListsPlan& plan = state_->loaded.plan();
  if (plan.launches.empty()) return;
  const MaskListsProblem& p = plan.problem;
  constexpr ops::ArgumentChecks kChecks(kName);
  kChecks.address_if(p.keys > 0, "mask", a.mask, 1);
  kChecks.address("indices", a.indices, ops::kWordAlignment);
  kChecks.address("lengths", a.lengths, ops::kWordAlignment);
  kChecks.address_if(p.has_totals, "totals", a.totals, ops::kWordAlignment);
  kChecks.address_if(p.page_size > 0, "block_table", a.block_table, ops::kWordAlignment);
  const kernels::MaskListsParams params = {.mask = static_cast<const std::uint8_t*>(a.mask),
                                           .indices = a.indices,
                                           .lengths = a.lengths,
                                           .totals = p.has_totals ? a.totals : nullptr,
                                           .block_table = p.page_size > 0 ? a.block_table : nullptr,
                                           .mask_batch_bytes = p.mask_batch_bytes,
                                           .mask_row_bytes = p.mask_row_bytes,
                                           .index_stride = p.index_stride,
                                           .table_stride = p.table_stride,
                                           .rows = ops::narrow(p.rows),
                                           .keys = ops::narrow(p.keys),
                                           .entries = ops::narrow(mask_entries(p)),
                                           .query_block = ops::narrow(p.query_block),
                                           .key_block = ops::narrow(p.key_block),
                                           .topk = ops::narrow(p.topk),
                                           .page_size = ops::narrow(p.page_size)};
  state_->loaded.entries[0].launch(ops::plain_launch(plan.launches[0]), params,
                                   state_->loaded.stream(a.stream));
}

MaskListsPlan plan_mask_lists(const Device& device, const MaskListsProblem& problem) {
  return make_plan(opened(device).info(), problem);
}

}  // namespace tilewright
