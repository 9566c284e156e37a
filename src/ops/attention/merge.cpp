// The merge of partial results of attention: checks and launch.
#include "kernels/attention/results/merge.h"

#include "tilewright/attention_merge.h"

#include "device/internal.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"

#include <limits>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace tilewright {

struct AttentionMerge::State {
  ops::LoadedPlan<AttentionMergePlan> loaded;
};

namespace {

constexpr const char* kName = "attention merge";
constexpr std::int64_t kMaxParts = 1024, kMaxHeadDim = 4096, kColumns = 8;
constexpr double kMaxElems = 0x1p60;
constexpr double kMaxChunks = 0x1p31 * kernels::kMergeThreads;  // a grid has fewer than 2^31 CTAs

std::int64_t bytes_of(DType type) {
  return type == DType::kF32 ? 4 : 2;
}

kernels::MergeType to_kernel(DType type) {
  if (type == DType::kF32) return kernels::MergeType::kF32;
  return type == DType::kF16 ? kernels::MergeType::kF16 : kernels::MergeType::kBf16;
}

kernels::AttentionStrides to_kernel(const Strides& s) {
  return {s.batch, s.row, s.head};
}

void check_type(ops::ProblemChecks& checks, const char* field, DType type) {
  checks.expect(type == DType::kF32 || type == DType::kBF16 || type == DType::kF16, field, type,
                "F32, BF16 or F16");
}

bool is_contiguous(const Strides& s) {
  return s.batch == 0 && s.row == 0 && s.head == 0;
}

// Distances between elements: multiples of `multiple`, the last of all still within 2^60.
void check_strides(ops::ProblemChecks& checks, const AttentionMergeProblem& p, const char* field,
                   const Strides& s, std::int64_t multiple) {
  ops::ProblemChecks of_strides(checks, field);
  for (const auto& [name, extent, stride] :
       {std::tuple("batch", p.batch, s.batch), std::tuple("row", p.rows, s.row),
        std::tuple("head", p.heads, s.head)}) {
    of_strides
        .expect(stride >= 0 && stride % multiple == 0 &&
                    static_cast<double>(stride) * static_cast<double>(extent) <= kMaxElems,
                name, stride, "a multiple of {} from 0 on, at most 2^60 over all {}", multiple,
                extent)
        .remedy("Leave all of them 0 for a contiguous tensor.");
  }
}

// Elements of a tensor without gaps, and its part stride.
std::int64_t part_elems(const AttentionMergeProblem& p) {
  return p.batch * p.rows * p.heads * p.head_dim;
}

bool check_numbers(ops::ProblemChecks& checks, const AttentionMergeProblem& p) {
  check_type(checks, "part_dtype", p.part_dtype);
  check_type(checks, "out_dtype", p.out_dtype);
  if (!ops::all_held({checks.range("parts", p.parts, 1, kMaxParts),
                      checks.range("batch", p.batch, 0), checks.range("rows", p.rows, 0),
                      checks.range("heads", p.heads, 1)}))
    return false;
  if (!checks
           .expect(p.head_dim > 0 && p.head_dim <= kMaxHeadDim && p.head_dim % kColumns == 0,
                   "head_dim", p.head_dim, "a multiple of 8 from 8 to {}", kMaxHeadDim)
           .remedy("Pad with zeros."))
    return false;
  // Strides are those of a sequence even where there is none.
  const double sequence = static_cast<double>(p.rows) * static_cast<double>(p.heads) *
                          static_cast<double>(p.head_dim / kColumns);
  if (!checks
           .expect(sequence < kMaxChunks, "rows", p.rows,
                   "so few that a sequence, also of an empty batch, has fewer than 2^42 elements, "
                   "with heads = {} and head_dim = {}",
                   p.heads, p.head_dim)
           .remedy("Split them."))
    return false;
  const double chunks = static_cast<double>(p.batch) * sequence;
  return bool(checks
                  .expect(chunks < kMaxChunks, "rows", p.rows,
                          "so few that out has fewer than 2^42 elements, with batch = {}, heads = "
                          "{} and head_dim = {}",
                          p.batch, p.heads, p.head_dim)
                  .remedy("Split them."));
}

AttentionMergeProblem complete_merge(const AttentionMergeProblem& problem) {
  ops::ProblemChecks checks(kName);
  AttentionMergeProblem p = problem;
  if (!check_numbers(checks, p)) checks.finish();
  const Strides elems = {p.rows * p.heads * p.head_dim, p.heads * p.head_dim, p.head_dim};
  const Strides lse = {p.heads * p.rows, 1, p.rows};
  if (is_contiguous(p.part_strides)) p.part_strides = elems;
  if (is_contiguous(p.out_strides)) p.out_strides = elems;
  if (is_contiguous(p.lse_part_strides)) p.lse_part_strides = lse;
  if (is_contiguous(p.lse_strides)) p.lse_strides = lse;
  if (is_contiguous(p.other_strides)) p.other_strides = p.part_strides;
  if (is_contiguous(p.lse_other_strides)) p.lse_other_strides = p.lse_part_strides;
  if (p.part_stride == 0) p.part_stride = part_elems(p);
  if (p.lse_part_stride == 0) p.lse_part_stride = p.batch * p.rows * p.heads;
  const std::int64_t of_parts = 16 / bytes_of(p.part_dtype), of_out = 16 / bytes_of(p.out_dtype);
  check_strides(checks, p, "part_strides", p.part_strides, of_parts);
  check_strides(checks, p, "other_strides", p.other_strides, of_parts);
  check_strides(checks, p, "lse_other_strides", p.lse_other_strides, 1);
  check_strides(checks, p, "out_strides", p.out_strides, of_out);
  check_strides(checks, p, "lse_part_strides", p.lse_part_strides, 1);
  check_strides(checks, p, "lse_strides", p.lse_strides, 1);
  const auto check_parts = [&](const char* field, std::int64_t stride, std::int64_t multiple) {
    checks.expect(stride >= 0 && stride % multiple == 0 &&
                      static_cast<double>(stride) * static_cast<double>(p.parts) <= kMaxElems,
                  field, stride, "a multiple of {} from 0 on, at most 2^60 over all {}", multiple,
                  p.parts);
  };
  check_parts("part_stride", p.part_stride, of_parts);
  check_parts("lse_part_stride", p.lse_part_stride, 1);
  checks.finish();
  return p;
}

AttentionMergePlan make_plan(const device::DeviceInfo& device,
                             const AttentionMergeProblem& problem) {
  AttentionMergePlan plan;
  plan.problem = complete_merge(problem);
  const AttentionMergeProblem& p = plan.problem;
  const std::int64_t chunks = part_elems(p) / kColumns;
  plan.launches = {{.step = "merge",
                    .entry = "attention_merge",
                    .grid = {ops::ctas_for(chunks, kernels::kMergeThreads), 1, 1},
                    .block = {kernels::kMergeThreads, 1, 1}}};
  ops::require_built(kName, device, plan.launches);
  if (chunks == 0) plan.launches.clear();
  const auto elems = static_cast<double>(part_elems(p)), parts = static_cast<double>(p.parts);
  const double lines = elems / static_cast<double>(p.head_dim);
  plan.flops = 2 * parts * elems;
  plan.bytes = elems * (parts * static_cast<double>(bytes_of(p.part_dtype)) +
                        static_cast<double>(bytes_of(p.out_dtype))) +
               4 * lines * (parts + (p.has_lse ? 1 : 0));
  plan.notes = {{"merge", fmt::format("{} parts of {} to {}, batch {}, rows {}, heads {}, head_dim "
                                      "{}{}{}",
                                      p.parts, to_string(p.part_dtype), to_string(p.out_dtype),
                                      p.batch, p.rows, p.heads, p.head_dim,
                                      p.has_sink ? ", sink" : "", p.has_lse ? ", lse" : "")}};
  if (plan.launches.empty()) plan.notes.push_back({"launches", "none: there are no rows"});
  return plan;
}

void check_arguments(const AttentionMergePlan& plan, const AttentionMergeArguments& a) {
  const AttentionMergeProblem& p = plan.problem;
  constexpr ops::ArgumentChecks kChecks(kName);
  kChecks.address("part_out", a.part_out, ops::kRowAlignment);
  kChecks.address("part_lse", a.part_lse, ops::kWordAlignment);
  kChecks.address("out", a.out, ops::kRowAlignment);
  kChecks.address_if(p.has_lse, "lse", a.lse, ops::kWordAlignment);
  kChecks.address_if(p.has_sink, "sink", a.sink, ops::kWordAlignment);
  const bool has_other = a.other_out != nullptr || a.other_lse != nullptr;
  if (!has_other) return;
  kChecks.check(p.parts == 2, "other_out or other_lse is given, and parts = {}; expected parts = 2",
                p.parts);
  kChecks.address("other_out", a.other_out, ops::kRowAlignment);
  kChecks.address("other_lse", a.other_lse, ops::kWordAlignment);
}

}  // namespace

AttentionMerge::AttentionMerge(const Device& device, const AttentionMergeProblem& problem)
    : state_(std::make_unique<State>(State{{device, make_plan(opened(device).info(), problem)}})) {}
AttentionMerge::~AttentionMerge() = default;
AttentionMerge::AttentionMerge(AttentionMerge&&) noexcept = default;
AttentionMerge& AttentionMerge::operator=(AttentionMerge&&) noexcept = default;

const AttentionMergePlan& AttentionMerge::plan() const noexcept {
  return state_->loaded.plan();
}

void AttentionMerge::run(const AttentionMergeArguments& a) const {
  const AttentionMergePlan& plan = state_->loaded.plan();
  if (plan.launches.empty()) return;
  check_arguments(plan, a);
  const AttentionMergeProblem& p = plan.problem;
  const kernels::AttentionMergeParams params = {.part_out = a.part_out,
                                                .other_out = a.other_out,
                                                .part_lse = a.part_lse,
                                                .other_lse = a.other_lse,
                                                .out = a.out,
                                                .lse = p.has_lse ? a.lse : nullptr,
                                                .sink = p.has_sink ? a.sink : nullptr,
                                                .part_stride = p.part_stride,
                                                .lse_part_stride = p.lse_part_stride,
                                                .part_strides = to_kernel(p.part_strides),
                                                .out_strides = to_kernel(p.out_strides),
                                                .lse_part_strides = to_kernel(p.lse_part_strides),
                                                .lse_strides = to_kernel(p.lse_strides),
                                                .other_strides = to_kernel(p.other_strides),
                                                .lse_other_strides = to_kernel(p.lse_other_strides),
                                                .num_chunks = part_elems(p) / kColumns,
                                                .parts = ops::narrow(p.parts),
                                                .rows = ops::narrow(p.rows),
                                                .heads = ops::narrow(p.heads),
                                                .head_dim = ops::narrow(p.head_dim),
                                                .part_type = to_kernel(p.part_dtype),
                                                .out_type = to_kernel(p.out_dtype)};
  state_->loaded.entries[0].launch(ops::plain_launch(plan.launches[0]), params,
                                   state_->loaded.stream(a.stream));
}

AttentionMergePlan plan_attention_merge(const Device& device,
                                        const AttentionMergeProblem& problem) {
  return make_plan(opened(device).info(), problem);
}

}  // namespace tilewright
