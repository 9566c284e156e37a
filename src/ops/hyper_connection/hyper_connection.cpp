// Hyper-connections, the embedding into the streams, and the norm of rows: checks and launches.
#include "tilewright/hyper_connection.h"

#include "device/internal.h"
#include "device/kernel_registry.h"
#include "kernels/model/hyper_connection.h"
#include "kernels/model/rms_norm.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tilewright {

namespace {

constexpr ops::ArgumentChecks kChecks("hyper-connection"), kEmbeddingChecks("hyper-embedding"),
    kNormChecks("rms-norm");

void check_float(const ops::ArgumentChecks& checks, const char* name, DType dtype) {
  checks.check(dtype == DType::kBF16 || dtype == DType::kF32, "{} = {}; expected BF16 or F32", name,
               to_string(dtype));
}

void check_sizes(const ops::ArgumentChecks& checks, std::int64_t tokens, std::int64_t hidden) {
  checks.range("tokens", tokens, 0);
  checks.check(hidden > 0 && hidden % 16 == 0 && hidden <= kernels::kHyperMaxHidden,
               "hidden = {}; expected a multiple of 16, at most {}", hidden,
               kernels::kHyperMaxHidden);
}

void check(const HyperConnectionProblem& p) {
  check_sizes(kChecks, p.tokens, p.hidden);
  check_float(kChecks, "stream_dtype", p.stream_dtype);
  check_float(kChecks, "result_dtype", p.result_dtype);
  check_float(kChecks, "second_dtype", p.second_dtype);
  kChecks.check(p.has_merge || p.has_mix, "has_merge = has_mix = false; nothing would be done");
  kChecks.check(p.has_merge || !p.has_second,
                "has_second without has_merge; the one result comes as f");
  kChecks.range("iterations", p.iterations, 1);
  // A column of weights may vanish in fp32: without eps it would be divided by 0.
  kChecks.check(p.eps > 0 && ops::is_normal_float(p.eps),
                "eps = {}; expected a normal number of fp32 > 0", p.eps);
  kChecks.eps("norm_eps", p.norm_eps);
}

void check(const HyperConnectionProblem& p, const HyperConnectionArguments& a) {
  kChecks.address("streams", a.streams, ops::kRowAlignment);
  kChecks.address_if(p.has_merge, "merged", a.merged, ops::kRowAlignment);
  kChecks.address_if(p.has_merge, "mix_before", a.mix_before, ops::kWordAlignment);
  kChecks.address_if(p.has_merge, "result", a.result, ops::kRowAlignment);
  kChecks.address_if(p.has_second, "second_result", a.second_result, ops::kRowAlignment);
  kChecks.address_if(p.has_mix, "mix_weight", a.mix_weight, ops::kRowAlignment);
  kChecks.address_if(p.has_mix, "mix_bias", a.mix_bias, ops::kWordAlignment);
  kChecks.address_if(p.has_mix, "mix_scale", a.mix_scale, ops::kWordAlignment);
  kChecks.address_if(p.has_mix, "norm_weight", a.norm_weight, ops::kRowAlignment);
  kChecks.address_if(p.has_mix, "mix", a.mix, ops::kWordAlignment);
  kChecks.address_if(p.has_mix, "out", a.out, ops::kRowAlignment);
  kChecks.address_if(p.has_mix, "workspace", a.workspace, ops::kWorkspaceAlignment);
}

// One tile of tokens a CTA while that gives every SM two; then fn is read once for more of them: on
// an H200 8192 tokens of 4096 took 391 us with one tile, 352 with four.
std::int32_t merge_tiles(std::int64_t tokens, std::uint32_t slices, int num_sms) {
  constexpr std::int64_t kMostTiles = 4, kCtasOfAnSm = 2;
  const std::int64_t ctas = slices * ops::ctas_for(tokens, kernels::kHyperMergeTokens);
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(ctas / (kCtasOfAnSm * num_sms), 1, kMostTiles));
}

const char* entry_of(DType stream_dtype, const char* bf16, const char* f32) {
  return stream_dtype == DType::kF32 ? f32 : bf16;
}

}  // namespace

struct HyperConnection::State {
  Device handle;  // keeps the device open
  HyperConnectionProblem problem;
  std::uint32_t slices;
  device::Kernel merge, pre;

  void launch_merge(const HyperConnectionArguments& a, const device::Stream& stream) const;
  void launch_pre(const HyperConnectionArguments& a, const device::Stream& stream) const;
};

HyperConnection::HyperConnection(const Device& device, const HyperConnectionProblem& problem) {
  check(problem);
  const device::Device& d = opened(device);
  state_ = std::make_unique<State>(State{
      device, problem, ops::ctas_for(problem.hidden, kernels::kHyperSliceColumns),
      device::load_kernel(d, entry_of(problem.stream_dtype, "hyper_merge_bf16", "hyper_merge_f32")),
      device::load_kernel(d, entry_of(problem.stream_dtype, "hyper_pre_bf16", "hyper_pre_f32"))});
}

HyperConnection::~HyperConnection() = default;
HyperConnection::HyperConnection(HyperConnection&&) noexcept = default;
HyperConnection& HyperConnection::operator=(HyperConnection&&) noexcept = default;

const HyperConnectionProblem& HyperConnection::problem() const noexcept {
  return state_->problem;
}

std::size_t HyperConnection::workspace_bytes() const noexcept {
  const HyperConnectionProblem& p = state_->problem;
  if (!p.has_mix) return 0;
  return static_cast<std::size_t>(p.tokens) * state_->slices * kernels::kHyperPartStride *
         sizeof(float);
}

void HyperConnection::State::launch_merge(const HyperConnectionArguments& a,
                                          const device::Stream& stream) const {
  const HyperConnectionProblem& p = problem;
  const std::int32_t tiles = merge_tiles(p.tokens, slices, handle.num_sms());
  const kernels::HyperMergeParams params = {
      .streams = a.streams,
      .merged = a.merged,
      .f = p.has_merge ? a.result : nullptr,
      .g = p.has_second ? a.second_result : nullptr,
      .mix = a.mix_before,
      .fn = p.has_mix ? a.mix_weight : nullptr,
      .parts = static_cast<float*>(a.workspace),
      .f_stride = p.hidden,
      .g_stride = p.hidden,
      .tokens = static_cast<std::int32_t>(p.tokens),
      .hidden = static_cast<std::int32_t>(p.hidden),
      .rows = p.is_head ? kernels::kHyperHeadRows : kernels::kHyperMixRows,
      .tiles = tiles,
      .is_f_f32 = p.result_dtype == DType::kF32,
      .is_g_f32 = p.second_dtype == DType::kF32};
  merge.launch(
      {.grid = {slices * ops::ctas_for(p.tokens, std::int64_t{kernels::kHyperMergeTokens} * tiles)},
       .block = {kernels::kHyperMergeThreads},
       .is_dependent_launch = true},
      params, stream);
}

void HyperConnection::State::launch_pre(const HyperConnectionArguments& a,
                                        const device::Stream& stream) const {
  const HyperConnectionProblem& p = problem;
  const kernels::HyperPreParams params = {
      .streams = p.has_merge ? a.merged : a.streams,
      .parts = static_cast<const float*>(a.workspace),
      .base = a.mix_bias,
      .scale = a.mix_scale,
      .weight = static_cast<const std::uint16_t*>(a.norm_weight),
      .mix = a.mix,
      .out = static_cast<std::uint16_t*>(a.out),
      .out_stride = p.hidden,
      .tokens = static_cast<std::int32_t>(p.tokens),
      .hidden = static_cast<std::int32_t>(p.hidden),
      .slices = static_cast<std::int32_t>(slices),
      .iterations = p.iterations,
      .eps = static_cast<float>(p.eps),
      .norm_eps = static_cast<float>(p.norm_eps),
      .is_head = p.is_head};
  pre.launch({.grid = {static_cast<std::uint32_t>(p.tokens)},
              .block = {kernels::kHyperPreThreads},
              .is_dependent_launch = true},
             params, stream);
}

void HyperConnection::run(const HyperConnectionArguments& a) const {
  const HyperConnectionProblem& p = state_->problem;
  if (p.tokens == 0) return;
  check(p, a);
  const device::Stream stream = ops::lent_stream(opened(state_->handle), a.stream);
  state_->launch_merge(a, stream);
  if (p.has_mix) state_->launch_pre(a, stream);
}

struct HyperEmbedding::State {
  Device handle;
  HyperEmbeddingProblem problem;
  device::Kernel kernel;
};

HyperEmbedding::HyperEmbedding(const Device& device, const HyperEmbeddingProblem& p) {
  check_sizes(kEmbeddingChecks, p.tokens, p.hidden);
  check_float(kEmbeddingChecks, "stream_dtype", p.stream_dtype);
  kEmbeddingChecks.range("vocab", p.vocab, 1);
  state_ =
      std::make_unique<State>(State{device, p, device::load_kernel(opened(device), "hyper_embed")});
}

HyperEmbedding::~HyperEmbedding() = default;
HyperEmbedding::HyperEmbedding(HyperEmbedding&&) noexcept = default;
HyperEmbedding& HyperEmbedding::operator=(HyperEmbedding&&) noexcept = default;

void HyperEmbedding::run(const HyperEmbeddingArguments& a) const {
  const HyperEmbeddingProblem& p = state_->problem;
  if (p.tokens == 0) return;
  kEmbeddingChecks.address("table", a.table, 16);
  kEmbeddingChecks.address("ids", a.ids, 4);
  kEmbeddingChecks.address("streams", a.streams, 16);
  const kernels::HyperEmbedParams params = {.table = static_cast<const std::uint16_t*>(a.table),
                                            .ids = a.ids,
                                            .streams = a.streams,
                                            .tokens = static_cast<std::int32_t>(p.tokens),
                                            .hidden = static_cast<std::int32_t>(p.hidden),
                                            .vocab = static_cast<std::int32_t>(p.vocab),
                                            .is_f32 = p.stream_dtype == DType::kF32};
  state_->kernel.launch({.grid = {ops::ctas_for(p.hidden, 4 * kernels::kHyperEmbedThreads),
                                  static_cast<std::uint32_t>(p.tokens)},
                         .block = {kernels::kHyperEmbedThreads},
                         .is_dependent_launch = true},
                        params, ops::lent_stream(opened(state_->handle), a.stream));
}

struct RmsNorm::State {
  Device handle;
  RmsNormProblem problem;
  device::Kernel kernel;
};

RmsNorm::RmsNorm(const Device& device, const RmsNormProblem& problem) {
  RmsNormProblem p = problem;
  check_float(kNormChecks, "x_dtype", p.x_dtype);
  kNormChecks.range("rows", p.rows, 0);
  kNormChecks.range("cols", p.cols, 1);
  kNormChecks.check(p.cols % 8 == 0, "cols = {}; expected a multiple of 8", p.cols);
  for (std::int64_t* stride : {&p.x_stride, &p.out_stride}) {
    if (*stride == 0) *stride = p.cols;
    kNormChecks.check(*stride >= p.cols && *stride % 8 == 0,
                      "{} = {}; expected a multiple of 8, at least cols = {}",
                      stride == &p.x_stride ? "x_stride" : "out_stride", *stride, p.cols);
  }
  kNormChecks.eps("eps", p.eps);
  state_ = std::make_unique<State>(
      State{device, p, device::load_kernel(opened(device), "rms_norm_rows")});
}

RmsNorm::~RmsNorm() = default;
RmsNorm::RmsNorm(RmsNorm&&) noexcept = default;
RmsNorm& RmsNorm::operator=(RmsNorm&&) noexcept = default;

void RmsNorm::run(const RmsNormArguments& a) const {
  const RmsNormProblem& p = state_->problem;
  if (p.rows == 0) return;
  kNormChecks.address("x", a.x, 16);
  if (p.has_weight) kNormChecks.address("weight", a.weight, 16);
  kNormChecks.address("out", a.out, 16);
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
  state_->kernel.launch({.grid = {ops::ctas_for(p.rows, kernels::kRmsNormRows)},
                         .block = {kernels::kRmsNormThreads},
                         .is_dependent_launch = true},
                        params, ops::lent_stream(opened(state_->handle), a.stream));
}

}  // namespace tilewright
