// Sampling: checks and launch.
#include "tilewright/sample.h"

#include "device/internal.h"
#include "kernels/model/sample.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/type_word.h"

#include <algorithm>

namespace tilewright {

namespace {

constexpr const char* kSample = "sample";
constexpr ops::ArgumentChecks kSampleChecks(kSample);
constexpr std::int64_t kVector = 4;

std::int64_t to_vectors(std::int64_t elements) {
  return ops::ceil_div(elements, kVector) * kVector;
}

// Whether the vocabulary is such that strides can be looked at.
bool check_vocab(ops::ProblemChecks& checks, const SampleProblem& p) {
  constexpr std::int64_t kMost =
      std::int64_t{kernels::kSampleMaxSlice} * kernels::kSampleMaxCluster;
  if (!ops::all_held(
          {checks.range("vocab", p.vocab, 1, kMost), checks.range("parts", p.parts, 1, kMost)}))
    return false;
  return bool(checks.expect(p.parts == 1 || p.vocab % (kVector * p.parts) == 0, "parts", p.parts,
                            "1, or parts of vocab = {} that are multiples of {}", p.vocab,
                            kVector));
}

SampleProblem complete(const SampleProblem& problem) {
  ops::ProblemChecks checks(kSample);
  SampleProblem p = problem;
  checks.expect(p.logits_dtype == DType::kBF16 || p.logits_dtype == DType::kF32, "logits_dtype",
                p.logits_dtype, "BF16 or F32");
  constexpr std::int64_t kMostRows = 65535, kMostStride = std::int64_t{1} << 40;
  const bool has_rows = bool(checks.range("rows", p.rows, 0, kMostRows));
  if (check_vocab(checks, p) && has_rows) {
    const std::int64_t cols = to_vectors(p.vocab / p.parts);
    if (p.row_stride == 0) p.row_stride = cols;
    checks.expect(
        p.row_stride >= cols && p.row_stride <= kMostStride && p.row_stride % kVector == 0,
        "row_stride", p.row_stride, "a multiple of {}, at least {}", kVector, cols);
    if (p.part_stride == 0 && checks.is_fine()) p.part_stride = p.rows * p.row_stride;
    checks.expect(
        p.part_stride >= 0 && p.part_stride <= kMostStride && p.part_stride % kVector == 0,
        "part_stride", p.part_stride, "a multiple of {}, at least 0", kVector);
  }
  checks.finish();
  return p;
}

// CTAs that share a row: so that each has some thousand tokens, and what it has fits.
std::int64_t sample_cluster(const SampleProblem& p) {
  constexpr std::int64_t kLeast = 2048;
  std::int64_t cluster = 1;
  while (cluster < kernels::kSampleMaxCluster && p.vocab > kLeast * cluster) cluster *= 2;
  return cluster;
}

std::int64_t sample_slice(const SampleProblem& p) {
  return to_vectors(ops::ceil_div(p.vocab, sample_cluster(p)));
}

SamplePlan make_sample_plan(const device::DeviceInfo& device, const SampleProblem& problem) {
  SamplePlan plan;
  plan.problem = complete(problem);
  const SampleProblem& p = plan.problem;
  constexpr std::int64_t kWarp = 32;
  const auto count = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  const std::int64_t cluster = sample_cluster(p), slice = sample_slice(p);
  device::LaunchConfig config = {.grid = {count(cluster), count(p.rows)}};
  config.block = {count(std::clamp<std::int64_t>(ops::ceil_div(slice, kVector * kWarp) * kWarp,
                                                 kWarp, kernels::kSampleMaxThreads))};
  config.dynamic_shared_bytes = count(4 * slice);
  if (cluster > 1) config.cluster = device::Dim3{count(cluster), 1, 1};
  config.is_dependent_launch = true;
  plan.launches = {ops::planned_launch("sample", "sample_rows", config)};
  ops::require_built(kSample, device, plan.launches);
  if (p.rows == 0) plan.launches.clear();
  plan.bytes = static_cast<double>(p.rows) * static_cast<double>(p.vocab) *
               bits_per_elem(p.logits_dtype) / 8;
  plan.notes = {{"sample", fmt::format("{} rows of {} logits in {}", p.rows, p.vocab,
                                       ops::type_word(p.logits_dtype))}};
  return plan;
}

constexpr const char* kGather = "gather-rows";
constexpr ops::ArgumentChecks kGatherChecks(kGather);

GatherRowsPlan make_gather_plan(const device::DeviceInfo& device,
                                const GatherRowsProblem& problem) {
  ops::ProblemChecks checks(kGather);
  GatherRowsPlan plan;
  plan.problem = problem;
  checks.range("rows", problem.rows, 0);
  checks.range("x_rows", problem.x_rows, 0);
  if (checks.range("cols", problem.cols, 1))
    checks.expect(problem.cols % 8 == 0, "cols", problem.cols, "a multiple of 8");
  checks.finish();
  plan.launches = {ops::planned_launch("gather", "gather_rows",
                                       {.grid = {static_cast<std::uint32_t>(problem.rows)},
                                        .block = {kernels::kGatherRowsThreads},
                                        .is_dependent_launch = true})};
  ops::require_built(kGather, device, plan.launches);
  if (problem.rows == 0) plan.launches.clear();
  constexpr double kReadAndWritten = 4;
  plan.bytes =
      static_cast<double>(problem.rows) * static_cast<double>(problem.cols) * kReadAndWritten;
  plan.notes = {
      {"gather", fmt::format("{} of {} rows of {}", problem.rows, problem.x_rows, problem.cols)}};
  return plan;
}

}  // namespace

struct Sample::State : ops::LoadedPlan<SamplePlan> {
  using LoadedPlan::LoadedPlan;
};

Sample::Sample(const Device& device, const SampleProblem& problem)
    : state_(std::make_unique<State>(device, make_sample_plan(opened(device).info(), problem))) {}

Sample::~Sample() = default;
Sample::Sample(Sample&&) noexcept = default;
Sample& Sample::operator=(Sample&&) noexcept = default;

const SamplePlan& Sample::plan() const noexcept {
  return state_->plan();
}

SamplePlan plan_sample(const Device& device, const SampleProblem& problem) {
  return make_sample_plan(opened(device).info(), problem);
}

void Sample::run(const SampleArguments& a) const {
  const SampleProblem& p = plan().problem;
  if (p.rows == 0) return;
  constexpr std::size_t kSeedAlignment = 8;
  kSampleChecks.address("logits", a.logits, ops::kRowAlignment);
  kSampleChecks.address("ids", a.ids, ops::kWordAlignment);
  const auto optional = [](const char* field, const void* at, std::size_t alignment) {
    kSampleChecks.address_if(at != nullptr, field, at, alignment);
  };
  optional("temperature", a.temperature, ops::kWordAlignment);
  optional("top_k", a.top_k, ops::kWordAlignment);
  optional("top_p", a.top_p, ops::kWordAlignment);
  optional("min_p", a.min_p, ops::kWordAlignment);
  optional("seeds", a.seeds, kSeedAlignment);
  optional("positions", a.positions, ops::kWordAlignment);
  optional("log_probs", a.log_probs, ops::kWordAlignment);
  const kernels::SampleParams params = {.logits = a.logits,
                                        .temperature = a.temperature,
                                        .top_k = a.top_k,
                                        .top_p = a.top_p,
                                        .min_p = a.min_p,
                                        .seeds = a.seeds,
                                        .positions = a.positions,
                                        .ids = a.ids,
                                        .log_probs = a.log_probs,
                                        .row_stride = p.row_stride,
                                        .part_stride = p.part_stride,
                                        .vocab = ops::narrow(p.vocab),
                                        .part_cols = ops::narrow(to_vectors(p.vocab / p.parts)),
                                        .slice = ops::narrow(sample_slice(p)),
                                        .is_f32 = p.logits_dtype == DType::kF32};
  state_->entries[0].launch(ops::dependent_launch(plan().launches[0]), params,
                            state_->stream(a.stream));
}

struct GatherRows::State : ops::LoadedPlan<GatherRowsPlan> {
  using LoadedPlan::LoadedPlan;
};

GatherRows::GatherRows(const Device& device, const GatherRowsProblem& problem)
    : state_(std::make_unique<State>(device, make_gather_plan(opened(device).info(), problem))) {}

GatherRows::~GatherRows() = default;
GatherRows::GatherRows(GatherRows&&) noexcept = default;
GatherRows& GatherRows::operator=(GatherRows&&) noexcept = default;

const GatherRowsPlan& GatherRows::plan() const noexcept {
  return state_->plan();
}

GatherRowsPlan plan_gather_rows(const Device& device, const GatherRowsProblem& problem) {
  return make_gather_plan(opened(device).info(), problem);
}

void GatherRows::run(const GatherRowsArguments& a) const {
  const GatherRowsProblem& p = plan().problem;
  if (p.rows == 0) return;
  kGatherChecks.address("x", a.x, ops::kRowAlignment);
  kGatherChecks.address("index", a.index, ops::kWordAlignment);
  kGatherChecks.address("out", a.out, ops::kRowAlignment);
  const kernels::GatherRowsParams params = {.x = static_cast<const std::uint16_t*>(a.x),
                                            .index = a.index,
                                            .out = static_cast<std::uint16_t*>(a.out),
                                            .x_rows = ops::narrow(p.x_rows),
                                            .cols = ops::narrow(p.cols)};
  state_->entries[0].launch(ops::dependent_launch(plan().launches[0]), params,
                            state_->stream(a.stream));
}

}  // namespace tilewright
