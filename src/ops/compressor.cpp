// The compressor operator: sizes, checks and launches.
#include "tilewright/compressor.h"

#include "device/kernel_registry.h"
#include "kernels/sparse_attention/compress.h"
#include "ops/argument_checks.h"
#include "ops/kv_cache.h"
#include "ops/sequence_checks.h"

#include <algorithm>
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

// The layout with its stride; pages of keys have their own size.
KvCacheLayout complete_layout(CompressorKind kind, KvCacheLayout cache) {
  if (!is_index(kind)) return complete(cache);
  const std::int64_t given = cache.page_stride_bytes;
  const IndexFormat format = index_format(kind);
  cache.format = KvCacheFormat::kBf16;
  cache.page_stride_bytes = 0;
  cache = complete(cache);  // checks sizes
  const std::int64_t least = index_page_bytes(format, cache.page_size);
  cache.page_stride_bytes = given != 0 ? given : index_default_page_stride(format, cache.page_size);
  kChecks.check(
      cache.page_stride_bytes >= least && cache.page_stride_bytes % kIndexPageAlignment == 0,
      "cache.page_stride_bytes = {}; expected a multiple of {} from {} on, or 0", given,
      kIndexPageAlignment, least);
  return cache;
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
  device::Kernel kernel;
};

Compressor::Compressor(const Device& device, const CompressorProblem& problem) {
  CompressorProblem p = problem;
  const kernels::CompressShape shape = shape_of(p.kind);
  p.cache = complete_layout(p.kind, p.cache);
  if (p.ring == 0) p.ring = shape.slots() + kDefaultSpeculated;
  kChecks.range("state_slots", p.state_slots, 1);
  kChecks.range("ring", p.ring, shape.slots(), 1 << 20);
  kChecks.check(p.eps >= 0, "eps = {}; expected 0 or more", p.eps);
  auto kernel = device::load_kernel(device.internal(), entry_of(p.kind));
  state_ = std::make_unique<State>(State{device, p, shape, std::move(kernel)});
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

void Compressor::run(const CompressorArguments& a) const {
  const CompressorProblem& problem = state_->problem;
  const kernels::CompressShape& shape = state_->shape;
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
  kernels::CompressParams p = {};
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
  const auto stream = device::Stream::lent(state_->handle.internal(),
                                           reinterpret_cast<device::abi::CUstream>(a.stream));
  const auto launch = [&](std::int64_t entry_ctas, std::int64_t state_ctas) {
    device::LaunchConfig config = {.grid = {static_cast<std::uint32_t>(entry_ctas + state_ctas)},
                                   .block = {static_cast<std::uint32_t>(shape.threads())},
                                   .is_dependent_launch = true};
    if (shape.ctas > 1) config.cluster = device::Dim3{static_cast<std::uint32_t>(shape.ctas)};
    p.entry_ctas = static_cast<std::int32_t>(entry_ctas);
    state_->kernel.launch(config, p, stream);
  };
  const std::int64_t entry_ctas =
      shape.entry_ctas(a.sequences.batch * p.groups, state_->handle.internal().info().num_sms);
  const std::int64_t state_ctas = shape.state_ctas(a.sequences.batch * p.keep);
  if (a.max_tokens + shape.slots() - 1 <= problem.ring) return launch(entry_ctas, state_ctas);
  // New rows of the state may lie where older ones still have to be read.
  launch(entry_ctas, 0);
  launch(0, state_ctas);
}

}  // namespace tilewright
