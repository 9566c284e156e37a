// The compressor operator: sizes, checks and launches.
#include "tilewright/compressor.h"

#include "device/internal.h"
#include "device/kernel_registry.h"
#include "kernels/sparse_attention/cache/compress.h"
#include "ops/cache/compress_call.h"
#include "ops/cache/kv_cache.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/rotary_checks.h"
#include "ops/operator/sequence_checks.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tilewright {

namespace {

constexpr const char* kName = "compressor";
constexpr ops::ArgumentChecks kChecks(kName);
constexpr std::int64_t kDefaultSpeculated = 8;

constexpr bool is_index(CompressorKind kind) {
  return kind == CompressorKind::kIndexFp8 || kind == CompressorKind::kIndexMxfp4;
}
constexpr IndexFormat index_format(CompressorKind kind) {
  return kind == CompressorKind::kIndexFp8 ? IndexFormat::kFp8 : IndexFormat::kMxfp4;
}

constexpr kernels::CompressShape shape_of(CompressorKind kind) {
  return is_index(kind)                 ? kernels::kCompressIndex
         : kind == CompressorKind::kHca ? kernels::kCompressHca
                                        : kernels::kCompressCsa;
}
const char* entry_of(CompressorKind kind) {
  return is_index(kind)                 ? "compress_index"
         : kind == CompressorKind::kHca ? "compress_hca"
                                        : "compress_csa";
}

device::LaunchConfig launch_of(const kernels::CompressShape& shape, std::int64_t ctas) {
  device::LaunchConfig config = {.grid = {static_cast<std::uint32_t>(ctas)},
                                 .block = {static_cast<std::uint32_t>(shape.threads())},
                                 .is_dependent_launch = true};
  if (shape.ctas > 1) config.cluster = device::Dim3{static_cast<std::uint32_t>(shape.ctas)};
  return config;
}

template <class Params>
void launch(const device::Kernel& kernel, const kernels::CompressShape& shape, std::int64_t ctas,
            const Params& params, void* stream) {
  kernel.launch(launch_of(shape, ctas), params, ops::lent_stream(kernel.device(), stream));
}

CompressorProblem complete(ops::ProblemChecks& checks, const CompressorProblem& problem) {
  CompressorProblem p = problem;
  const kernels::CompressShape shape = shape_of(p.kind);
  ops::ProblemChecks of_cache(checks, "cache");
  p.cache = is_index(p.kind) ? ops::complete_index(of_cache, index_format(p.kind), p.cache)
                             : ops::complete_layout(of_cache, p.cache);
  if (p.ring == 0) p.ring = shape.slots() + kDefaultSpeculated;
  constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max();
  const std::int64_t row_bytes = 2 * shape.width() * static_cast<std::int64_t>(sizeof(float));
  if (ops::all_held({checks.range("state_slots", p.state_slots, 1),
                     checks.range("ring", p.ring, shape.slots(), 1 << 20)}))
    checks.expect(p.state_slots <= kMostBytes / row_bytes / p.ring, "state_slots", p.state_slots,
                  "fewer than 2^63 bytes in all, with ring = {} tokens of {} bytes", p.ring,
                  row_bytes);
  checks.eps("eps", p.eps);
  return p;
}

// How many CTAs a call of so many sequences takes, and whether in one launch.
struct CallSizes {
  std::int64_t groups, keep, entry_ctas, state_ctas;
  bool is_one_launch;

  CallSizes(const CompressorProblem& p, std::int64_t batch, std::int64_t max_tokens, int num_sms) {
    const kernels::CompressShape shape = shape_of(p.kind);
    groups = ops::ceil_div(max_tokens, shape.ratio);
    keep = std::min(max_tokens, p.ring);
    entry_ctas = shape.entry_ctas(batch * groups, num_sms);
    state_ctas = shape.state_ctas(batch * keep);
    // New rows of the state may lie where older ones still have to be read.
    is_one_launch = max_tokens + shape.slots() - 1 <= p.ring;
  }
};

constexpr std::int64_t kMostTokens =
    std::numeric_limits<std::int32_t>::max() / 64;  // of all sequences, with room

double work_bytes(const CompressorProblem& p, std::int64_t tokens) {
  const kernels::CompressShape shape = shape_of(p.kind);
  const auto width = static_cast<double>(shape.width());
  const std::int64_t entry_bytes =
      is_index(p.kind) ? index_data_bytes(index_format(p.kind)) + 4 : kv_row_bytes(p.cache.format);
  // kv and gate are read, and kept in the state.
  return static_cast<double>(tokens) *
         (4 * width * sizeof(float) + static_cast<double>(entry_bytes) / shape.ratio);
}

CompressorPlan make_plan(const device::DeviceInfo& device, const CompressorProblem& problem,
                         std::int64_t batch, std::int64_t max_tokens) {
  ops::ProblemChecks checks(kName);
  CompressorPlan plan;
  plan.problem = complete(checks, problem);
  const CompressorProblem& p = plan.problem;
  if (ops::all_held(
          {checks.range("batch", batch, 0, 65535), checks.range("max_tokens", max_tokens, 1)}))
    checks
        .expect(batch * std::max(ops::ceil_div(max_tokens, shape_of(p.kind).ratio), p.ring) <=
                    kMostTokens,
                "batch", batch,
                "at most {} tokens of all sequences in one call, with max_tokens = {}", kMostTokens,
                max_tokens)
        .remedy("Split them.");
  checks.finish();
  const kernels::CompressShape shape = shape_of(p.kind);
  const CallSizes sizes(p, batch, max_tokens, device.num_sms);
  const auto add = [&](const char* step, std::int64_t ctas) {
    plan.launches.push_back(ops::planned_launch(step, entry_of(p.kind), launch_of(shape, ctas)));
  };
  if (sizes.is_one_launch) {
    add("compress", sizes.entry_ctas + sizes.state_ctas);
  } else {
    add("entries", sizes.entry_ctas);
    add("state", sizes.state_ctas);
  }
  ops::require_built(kName, device, plan.launches);
  if (batch == 0) plan.launches.clear();
  plan.bytes = work_bytes(p, batch * max_tokens);
  plan.assumption = "max_tokens of each sequence";
  plan.notes = {
      {"compress", fmt::format("{}: an entry of {} for each {} tokens, state of {} tokens for {} "
                               "sequences",
                               entry_of(p.kind), shape.dim, shape.ratio, p.ring, p.state_slots)},
      {"call", fmt::format("{} sequences of up to {} tokens", batch, max_tokens)}};
  return plan;
}

}  // namespace

std::int64_t compressor_ratio(CompressorKind kind) noexcept {
  return shape_of(kind).ratio;
}
std::int64_t compressor_dim(CompressorKind kind) noexcept {
  return shape_of(kind).dim;
}
std::int64_t compressor_width(CompressorKind kind) noexcept {
  return shape_of(kind).width();
}
std::int64_t compressor_slots(CompressorKind kind) noexcept {
  return shape_of(kind).slots();
}

struct Compressor::State {
  Device handle;  // keeps the device open
  CompressorProblem problem;
  kernels::CompressShape shape;
  device::Kernel kernel, pair;  // pair: of kCsa

  int num_sms() const { return opened(handle).info().num_sms; }
};

Compressor::Compressor(const Device& device, const CompressorProblem& problem) {
  ops::ProblemChecks checks(kName);
  const CompressorProblem p = complete(checks, problem);
  checks.finish();
  auto kernel = device::load_kernel(opened(device), entry_of(p.kind));
  auto pair = device::load_kernel(opened(device), "compress_pair");
  state_ = std::make_unique<State>(
      State{device, p, shape_of(p.kind), std::move(kernel), std::move(pair)});
}

Compressor::~Compressor() = default;
Compressor::Compressor(Compressor&&) noexcept = default;
Compressor& Compressor::operator=(Compressor&&) noexcept = default;

const CompressorProblem& Compressor::problem() const noexcept {
  return state_->problem;
}

std::size_t Compressor::state_bytes() const noexcept {
  const CompressorProblem& p = state_->problem;
  return static_cast<std::size_t>(p.state_slots * p.ring * 2 * state_->shape.width()) *
         sizeof(float);
}

std::size_t Compressor::cache_bytes() const noexcept {
  const KvCacheLayout& cache = state_->problem.cache;
  return static_cast<std::size_t>(cache.num_pages) *
         static_cast<std::size_t>(cache.page_stride_bytes);
}

ops::CompressCall::CompressCall(const Compressor& compressor, int num_sms,
                                const CompressorArguments& a) {
  const CompressorProblem& problem = compressor.problem();
  const kernels::CompressShape shape = shape_of(problem.kind);
  kernels::CompressParams& p = params;
  constexpr std::size_t kAlignment = 16;
  ops::check_sequences(kChecks, a.sequences);
  ops::check_table(kChecks, a.table);
  kChecks.range("max_tokens", a.max_tokens, 1);
  kChecks.range("rope.positions", a.rope.positions, 1);
  kChecks.address("kv", a.kv, kAlignment);
  kChecks.address("gate", a.gate, kAlignment);
  kChecks.address("ape", a.ape, kAlignment);
  kChecks.address("norm_weight", a.norm_weight, kAlignment);
  ops::check_one_table(kChecks, a.rope, kAlignment);
  kChecks.address("state", a.state, kAlignment);
  kChecks.address("pages", a.pages, kAlignment);
  p.kv = a.kv;
  p.gate = a.gate;
  p.ape = a.ape;
  p.norm_weight = static_cast<const std::uint16_t*>(a.norm_weight);
  p.rope = a.rope.angles;
  p.state = static_cast<float*>(a.state);
  p.state_slots = a.state_slots;
  p.sequences = ops::to_kernel(a.sequences);
  p.table = ops::to_kernel(a.table);
  p.cache = ops::to_kernel(problem.cache, a.pages);
  p.index_format = index_format(problem.kind);
  p.kv_stride = kChecks.stride("kv_stride", a.kv_stride, shape.width(), 4);
  p.gate_stride = kChecks.stride("gate_stride", a.gate_stride, shape.width(), 4);
  p.num_positions = static_cast<std::int32_t>(a.rope.positions);
  p.num_state_slots = static_cast<std::int32_t>(problem.state_slots);
  p.ring = static_cast<std::int32_t>(problem.ring);
  const CallSizes sizes(problem, a.sequences.batch, a.max_tokens, num_sms);
  p.groups = static_cast<std::int32_t>(sizes.groups);
  p.keep = static_cast<std::int32_t>(sizes.keep);
  p.eps = static_cast<float>(problem.eps);
  kChecks.check(a.sequences.batch * std::max<std::int64_t>(p.groups, problem.ring) <= kMostTokens,
                "{} sequences of {} tokens are too many for one call; split them",
                a.sequences.batch, a.max_tokens);
  entry_ctas = sizes.entry_ctas;
  state_ctas = sizes.state_ctas;
  p.entry_ctas = static_cast<std::int32_t>(entry_ctas);
  is_one_launch = sizes.is_one_launch;
}

CompressorPlan Compressor::plan(std::int64_t batch, std::int64_t max_tokens) const {
  return make_plan(opened(state_->handle).info(), state_->problem, batch, max_tokens);
}

CompressorPlan plan_compressor(const Device& device, const CompressorProblem& problem,
                               std::int64_t batch, std::int64_t max_tokens) {
  return make_plan(opened(device).info(), problem, batch, max_tokens);
}

void Compressor::run(const CompressorArguments& a) const {
  ops::CompressCall call(*this, state_->num_sms(), a);
  const auto launch_ctas = [&](std::int64_t ctas) {
    launch(state_->kernel, state_->shape, ctas, call.params, a.stream);
  };
  if (call.is_one_launch) return launch_ctas(call.ctas());
  launch_ctas(call.entry_ctas);
  call.params.entry_ctas = 0;
  launch_ctas(call.state_ctas);
}

void Compressor::run_with_keys(const CompressorArguments& a, const Compressor& keys,
                               const CompressorArguments& of_keys) const {
  kChecks.check(state_->problem.kind == CompressorKind::kCsa && is_index(keys.problem().kind),
                "run_with_keys() is for a compressor of kCsa and one of kIndexFp8 or kIndexMxfp4");
  kChecks.check(a.stream == of_keys.stream, "the streams of rows and keys differ; expected one");
  const ops::CompressCall rows_call(*this, state_->num_sms(), a),
      keys_call(keys, state_->num_sms(), of_keys);
  if (!rows_call.is_one_launch || !keys_call.is_one_launch) {
    run(a);
    return keys.run(of_keys);
  }
  const kernels::CompressPairParams params = {rows_call.params, keys_call.params,
                                              static_cast<std::int32_t>(rows_call.ctas())};
  launch(state_->pair, state_->shape, rows_call.ctas() + keys_call.ctas(), params, a.stream);
}

}  // namespace tilewright
