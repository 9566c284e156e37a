// Rows of a layer in one launch: checks, CTAs and launch.
#include "kernels/sparse_attention/cache/layer_rows.h"

#include "tilewright/indexer.h"

#include "device/internal.h"
#include "device/kernel_registry.h"
#include "ops/cache/compress_call.h"
#include "ops/cache/kv_cache.h"
#include "ops/indexer/plan.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"

namespace tilewright {

namespace {

constexpr ops::ArgumentChecks kRowsChecks("layer rows");
// Beyond, launches are no longer what decides, and each kernel has the CTAs that suit it.
constexpr std::int64_t kMostRowTokens = 128;

void check_operators(const LayerRowsArguments& a) {
  kRowsChecks.check(a.cache != nullptr && a.compressor != nullptr,
                    "cache or compressor is null; expected the operators of the layer");
  const bool is_csa = a.compressor->problem().kind == CompressorKind::kCsa;
  kRowsChecks.check(
      is_csa || a.compressor->problem().kind == CompressorKind::kHca,
      "compressor is one of the indexer's keys; expected kCsa or kHca (keys go to `keys`)");
  kRowsChecks.check(
      (a.keys != nullptr) == is_csa && (a.indexer != nullptr) == is_csa,
      "keys or indexer are {} a compressor of {}; expected both with kCsa, none with kHca",
      is_csa ? "missing beside" : "given beside", is_csa ? "kCsa" : "kHca");
  if (is_csa)
    kRowsChecks.check(a.keys->problem().kind == CompressorKind::kIndexFp8 ||
                          a.keys->problem().kind == CompressorKind::kIndexMxfp4,
                      "keys is a compressor of rows; expected kIndexFp8 or kIndexMxfp4");
  kRowsChecks.check(
      a.write.stream == a.entries.stream &&
          (!is_csa || (a.write.stream == a.of_keys.stream && a.write.stream == a.queries.stream)),
      "the streams of the calls differ; expected one");
}

void run_one_by_one(const LayerRowsArguments& a) {
  a.cache->write(a.write);
  if (a.keys == nullptr) return a.compressor->run(a.entries);
  a.compressor->run_with_keys(a.entries, *a.keys, a.of_keys);
  if (a.queries.tokens > 0) a.indexer->run(a.queries, IndexerStep::kQuery);
}

std::uint32_t word(std::int64_t x) {
  return static_cast<std::uint32_t>(x);
}

}  // namespace

struct LayerRows::State {
  Device handle;  // keeps the device open
  device::Kernel csa, hca;

  int num_sms() const { return opened(handle).info().num_sms; }
  void launch(const device::Kernel& kernel, const kernels::CompressShape& shape,
              kernels::LayerRowsParams& params, const LayerRowsArguments& a) const;
};

// `params`: all but the rows of the window.
void LayerRows::State::launch(const device::Kernel& kernel, const kernels::CompressShape& shape,
                              kernels::LayerRowsParams& params, const LayerRowsArguments& a) const {
  params.write = ops::cache_write_params(a.cache->layout(), a.write);
  const std::int64_t rows = a.write.tokens * (a.write.heads + (a.write.kv != nullptr ? 1 : 0));
  const std::int64_t ctas = std::int64_t{params.row_ctas} + params.key_ctas + params.query_ctas +
                            ops::ceil_div(rows, kernels::layer_rows_writes(shape));
  device::LaunchConfig config = {.grid = {word(ops::ceil_div(ctas, shape.ctas) * shape.ctas)},
                                 .block = {word(shape.threads())},
                                 .is_dependent_launch = true};
  if (shape.ctas > 1) config.cluster = device::Dim3{word(shape.ctas)};
  kernel.launch(config, params, ops::lent_stream(opened(handle), a.write.stream));
}

LayerRows::LayerRows(const Device& device)
    : state_(std::make_unique<State>(
          State{device, device::load_kernel(opened(device), "layer_rows_csa"),
                device::load_kernel(opened(device), "layer_rows_hca")})) {}

LayerRows::~LayerRows() = default;
LayerRows::LayerRows(LayerRows&&) noexcept = default;
LayerRows& LayerRows::operator=(LayerRows&&) noexcept = default;

void LayerRows::run(const LayerRowsArguments& a) const {
  check_operators(a);
  if (a.write.tokens == 0 || a.write.tokens > kMostRowTokens) return run_one_by_one(a);
  const ops::CompressCall entries(*a.compressor, state_->num_sms(), a.entries);
  kernels::LayerRowsParams params = {};
  params.rows = entries.params;
  params.row_ctas = static_cast<std::int32_t>(entries.ctas());
  if (a.keys == nullptr) {
    if (!entries.is_one_launch) return run_one_by_one(a);
    return state_->launch(state_->hca, kernels::kCompressHca, params, a);
  }
  const ops::CompressCall keys(*a.keys, state_->num_sms(), a.of_keys);
  if (!entries.is_one_launch || !keys.is_one_launch || a.queries.tokens == 0)
    return run_one_by_one(a);
  params.keys = keys.params;
  params.key_ctas = static_cast<std::int32_t>(keys.ctas());
  params.queries = ops::indexer_query_params(state_->handle, a.indexer->problem(), a.queries);
  params.query_ctas = static_cast<std::int32_t>(ops::ceil_div(
      a.queries.tokens * params.queries.heads, kernels::layer_rows_queries(kernels::kCompressCsa)));
  state_->launch(state_->csa, kernels::kCompressCsa, params, a);
}

}  // namespace tilewright
