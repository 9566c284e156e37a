// The norm of rows: checks and launch.
#include "kernels/model/rms_norm.h"

#include "tilewright/hyper_connection.h"

#include "device/internal.h"
#include "ops/hyper_connection/checks.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/type_word.h"

namespace tilewright {

namespace {

constexpr const char* kRmsNorm = "rms-norm";
constexpr ops::ArgumentChecks kRmsNormChecks(kRmsNorm);

// Whether the columns are such that strides can be looked at.
bool check_columns(ops::ProblemChecks& checks, std::int64_t cols) {
  return bool(checks.range("cols", cols, 1)) &&
         bool(checks.expect(cols % 8 == 0, "cols", cols, "a multiple of 8"));
}

RmsNormProblem complete(const RmsNormProblem& problem) {
  ops::ProblemChecks checks(kRmsNorm);
  RmsNormProblem p = problem;
  ops::check_float(checks, "x_dtype", p.x_dtype);
  checks.range("rows", p.rows, 0);
  const bool has_cols = check_columns(checks, p.cols);
  for (std::int64_t* stride : {&p.x_stride, &p.out_stride}) {
    if (*stride == 0) *stride = p.cols;
    const char* const name = stride == &p.x_stride ? "x_stride" : "out_stride";
    checks.expect(!has_cols || (*stride >= p.cols && *stride % 8 == 0), name, *stride,
                  "a multiple of 8, at least cols = {}", p.cols);
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    checks.expect(p.rows <= 1 || *stride <= kMost / (p.rows - 1), name, *stride,
                  "at most 2^60 elements from the first row to the last of {}", p.rows);
  }
  checks.eps("eps", p.eps);
  checks.finish();
  return p;
}

RmsNormPlan make_plan(const device::DeviceInfo& device, const RmsNormProblem& problem) {
  RmsNormPlan plan;
  plan.problem = complete(problem);
  const RmsNormProblem& p = plan.problem;
  plan.launches = {ops::planned_launch("norm", "rms_norm_rows",
                                       {.grid = {ops::ctas_for(p.rows, kernels::kRmsNormRows)},
                                        .block = {kernels::kRmsNormThreads},
                                        .is_dependent_launch = true})};
  ops::require_built(kRmsNorm, device, plan.launches);
  if (p.rows == 0) plan.launches.clear();
  plan.bytes = static_cast<double>(p.rows) * static_cast<double>(p.cols) *
               (ops::elem_bytes(p.x_dtype) + ops::elem_bytes(DType::kBF16));
  plan.notes = {{"norm", fmt::format("[{}, {}] of {}{}", p.rows, p.cols, ops::type_word(p.x_dtype),
                                     p.has_weight ? ", with a weight" : "")}};
  return plan;
}

}  // namespace

struct RmsNorm::State : ops::LoadedPlan<RmsNormPlan> {
  using LoadedPlan::LoadedPlan;
};

RmsNorm::RmsNorm(const Device& device, const RmsNormProblem& problem)
    : state_(std::make_unique<State>(device, make_plan(opened(device).info(), problem))) {}

RmsNorm::~RmsNorm() = default;
RmsNorm::RmsNorm(RmsNorm&&) noexcept = default;
RmsNorm& RmsNorm::operator=(RmsNorm&&) noexcept = default;

const RmsNormPlan& RmsNorm::plan() const noexcept {
  return state_->plan();
}

RmsNormPlan plan_rms_norm(const Device& device, const RmsNormProblem& problem) {
  return make_plan(opened(device).info(), problem);
}

void RmsNorm::run(const RmsNormArguments& a) const {
  const RmsNormProblem& p = plan().problem;
  if (p.rows == 0) return;
  kRmsNormChecks.address("x", a.x, 16);
  if (p.has_weight) kRmsNormChecks.address("weight", a.weight, 16);
  kRmsNormChecks.address("out", a.out, 16);
  const kernels::RmsNormParams params = {
      .x = a.x,
      .weight = p.has_weight ? static_cast<const std::uint16_t*>(a.weight) : nullptr,
      .out = static_cast<std::uint16_t*>(a.out),
      .x_stride = p.x_stride,
      .out_stride = p.out_stride,
      .rows = static_cast<std::int32_t>(p.rows),
      .cols = static_cast<std::int32_t>(p.cols),
      .eps = static_cast<float>(p.eps),
      .is_f32 = p.x_dtype == DType::kF32};
  state_->entries[0].launch(ops::dependent_launch(plan().launches[0]), params,
                            state_->stream(a.stream));
}

}  // namespace tilewright
