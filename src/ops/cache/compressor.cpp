// The compressor operator: sizes, checks and launches.
#include "tilewright/compressor.h"

#include "device/internal.h"
#include "device/kernel_registry.h"
#include "kernels/sparse_attention/cache/compress.h"
#include "ops/cache/kv_cache.h"
#include "ops/operator/arguments.h"
#include "ops/operator/operator.h"
#include "ops/operator/sequence_checks.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tilewright {

namespace {

constexpr ops::ArgumentChecks kChecks("compressor");
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

template <class Params>
void launch(const device::Kernel& kernel, const kernels::CompressShape& shape, std::int64_t ctas,
            const Params& params, void* stream) {
  device::LaunchConfig config = {.grid = {static_cast<std::uint32_t>(ctas)},
                                 .block = {static_cast<std::uint32_t>(shape.threads())},
                                 .is_dependent_launch = true};
  if (shape.ctas > 1) config.cluster = device::Dim3{static_cast<std::uint32_t>(shape.ctas)};
  kernel.launch(config, params, ops::lent_stream(kernel.device(), stream));
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
};

Compressor::Compressor(const Device& device, const CompressorProblem& problem) {
  CompressorProblem p = problem;
  const kernels::CompressShape shape = shape_of(p.kind);
  p.cache = is_index(p.kind) ? ops::complete_index(kChecks, "cache", index_format(p.kind), p.cache)
                             : complete(p.cache);
  if (p.ring == 0) p.ring = shape.slots() + kDefaultSpeculated;
  kChecks.range("state_slots", p.state_slots, 1);
  kChecks.range("ring", p.ring, shape.slots(), 1 << 20);
  kChecks.eps("eps", p.eps);
  constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max();
  const std::int64_t row_bytes = 2 * shape.width() * static_cast<std::int64_t>(sizeof(float));
  kChecks.check(p.state_slots <= kMostBytes / row_bytes / p.ring,
                "state_slots = {} of ring = {} tokens, {} bytes each; expected fewer than 2^63 "
                "bytes in all",
                p.state_slots, p.ring, row_bytes);
  auto kernel = device::load_kernel(opened(device), entry_of(p.kind));
  auto pair = device::load_kernel(opened(device), "compress_pair");
  state_ = std::make_unique<State>(State{device, p, shape, std::move(kernel), std::move(pair)});
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

// Checked arguments as the kernel has them, and the CTAs of its launch.
struct Compressor::Call {
  kernels::CompressParams params = {};
  std::int64_t entry_ctas = 0, state_ctas = 0;
  bool is_one_launch = false;

  Call(const State& state, const CompressorArguments& arguments);
};

Compressor::Call::Call(const State& state, const CompressorArguments& a) {
  const CompressorProblem& problem = state.problem;
  const kernels::CompressShape& shape = state.shape;
  kernels::CompressParams& p = params;
  constexpr std::size_t kAlignment = 16;
  ops::check_sequences(kChecks, a.sequences);
  ops::check_table(kChecks, a.table);
  kChecks.range("max_tokens", a.max_tokens, 1);
  kChecks.range("rope_positions", a.rope_positions, 1);
  kChecks.address("kv", a.kv, kAlignment);
  kChecks.address("gate", a.gate, kAlignment);
  kChecks.address("ape", a.ape, kAlignment);
  kChecks.address("norm_weight", a.norm_weight, kAlignment);
  kChecks.address("rope", a.rope, kAlignment);
  kChecks.address("state", a.state, kAlignment);
  kChecks.address("pages", a.pages, kAlignment);
  p.kv = a.kv;
  p.gate = a.gate;
  p.ape = a.ape;
  p.norm_weight = static_cast<const std::uint16_t*>(a.norm_weight);
  p.rope = a.rope;
  p.state = static_cast<float*>(a.state);
  p.state_slots = a.state_slots;
  p.sequences = ops::to_kernel(a.sequences);
  p.table = ops::to_kernel(a.table);
  p.cache = ops::to_kernel(problem.cache, a.pages);
  p.index_format = index_format(problem.kind);
  p.kv_stride = kChecks.stride("kv_stride", a.kv_stride, shape.width(), 4);
  p.gate_stride = kChecks.stride("gate_stride", a.gate_stride, shape.width(), 4);
  p.num_positions = static_cast<std::int32_t>(a.rope_positions);
  p.num_state_slots = static_cast<std::int32_t>(problem.state_slots);
  p.ring = static_cast<std::int32_t>(problem.ring);
  p.groups = static_cast<std::int32_t>((a.max_tokens + shape.ratio - 1) / shape.ratio);
  p.keep = static_cast<std::int32_t>(std::min(a.max_tokens, problem.ring));
  p.eps = static_cast<float>(problem.eps);
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 64;  // with room
  kChecks.check(a.sequences.batch * std::max<std::int64_t>(p.groups, problem.ring) <= kMost,
                "{} sequences of {} tokens are too many for one call; split them",
                a.sequences.batch, a.max_tokens);
  const int num_sms = opened(state.handle).info().num_sms;
  entry_ctas = shape.entry_ctas(a.sequences.batch * p.groups, num_sms);
  state_ctas = shape.state_ctas(a.sequences.batch * p.keep);
  p.entry_ctas = static_cast<std::int32_t>(entry_ctas);
  // New rows of the state may lie where older ones still have to be read.
  is_one_launch = a.max_tokens + shape.slots() - 1 <= problem.ring;
}

void Compressor::run(const CompressorArguments& a) const {
  Call call(*state_, a);
  const auto launch_ctas = [&](std::int64_t ctas) {
    launch(state_->kernel, state_->shape, ctas, call.params, a.stream);
  };
  if (call.is_one_launch) return launch_ctas(call.entry_ctas + call.state_ctas);
  launch_ctas(call.entry_ctas);
  call.params.entry_ctas = 0;
  launch_ctas(call.state_ctas);
}

void Compressor::run_with_keys(const CompressorArguments& a, const Compressor& keys,
                               const CompressorArguments& of_keys) const {
  kChecks.check(state_->problem.kind == CompressorKind::kCsa && is_index(keys.problem().kind),
                "run_with_keys() is for a compressor of kCsa and one of kIndexFp8 or kIndexMxfp4");
  kChecks.check(a.stream == of_keys.stream, "the streams of rows and keys differ; expected one");
  const Call rows_call(*state_, a), keys_call(*keys.state_, of_keys);
  if (!rows_call.is_one_launch || !keys_call.is_one_launch) {
    run(a);
    return keys.run(of_keys);
  }
  const std::int64_t row_ctas = rows_call.entry_ctas + rows_call.state_ctas;
  const kernels::CompressPairParams params = {rows_call.params, keys_call.params,
                                              static_cast<std::int32_t>(row_ctas)};
  launch(state_->pair, state_->shape, row_ctas + keys_call.entry_ctas + keys_call.state_ctas,
         params, a.stream);
}

}  // namespace tilewright
