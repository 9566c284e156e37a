#include "model/checkpoint/memory.h"

#include "tilewright/compressor.h"

#include "base/error.h"
#include "formats/packed_matrix.h"
#include "model/checkpoint/released.h"
#include "model/kernel_runner/memory.h"
#include "model/sequences.h"
#include "model/weight_source.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::model {
namespace {

// A weight as the Hopper kernels hold it: bricks, and scales of FP8 blocks.
std::int64_t packed_bytes(std::string_view format, std::int64_t rows, std::int64_t cols) {
  using kernels::WeightFormat;
  const bool is_fp8 = format.starts_with("fp8");
  const WeightFormat to = is_fp8                        ? WeightFormat::kFp8
                          : format.starts_with("mxfp4") ? WeightFormat::kMxfp4
                          : format == "nvfp4"           ? WeightFormat::kNvfp4
                                                        : WeightFormat::kBf16;
  const kernels::PackedShape shape = {to, static_cast<std::int32_t>(stacked_rows(rows)),
                                      static_cast<std::int32_t>(cols)};
  const std::int64_t scales = std::int64_t{shape.scale_blocks_rows()} * shape.scale_blocks_k();
  return shape.bytes() + (is_fp8 ? 4 * scales : 0);
}

// Adds up what a device holds.
class WeightMeter final : public TensorReader {
 public:
  explicit WeightMeter(const MemoryRequest& request) : request_(request) {}

  void begin_layer(std::int64_t layer) override { layer_ = layer; }

  Matrix matrix(TensorPlace place, const std::string& name, Dim rows, Dim cols) override {
    const StepShape& step = request_.step;
    const MatrixRange range =
        share_of(step.share, place.role, rows.size, cols.size, place.expert, step.config.experts);
    if (range.rows.count == 0) return {};
    const std::string weight = name + ".weight";
    const std::string format = request_.format_of
                                   ? request_.format_of(weight)
                                   : std::string(stored_format(place.role, step.experts));
    std::int64_t bytes = packed_bytes(format, range.rows.count, range.cols.count);
    if (place.role == TensorRole::kEmbedding) bytes = 2 * range.rows.count * range.cols.count;
    if (place.role == TensorRole::kExpertIn || place.role == TensorRole::kExpertOut ||
        place.role == TensorRole::kSharedIn || place.role == TensorRole::kSharedOut)
      bytes += 4;  // the factor of its products
    add(place.role, bytes);
    return {};
  }

  Vector vector(TensorPlace place, const std::string&, std::initializer_list<Dim> dims) override {
    std::int64_t count = 1;
    for (const Dim& dim : dims) count *= dim.size;
    count = share_of(request_.step.share, place.role, count, 1).rows.count;
    add(place.role, (place.role == TensorRole::kNorm ? 2 : 4) * count);
    return {};
  }

  std::vector<std::int32_t> table(TensorPlace place, const std::string&, Dim rows, Dim cols,
                                  Dim) override {
    add(place.role, 4 * rows.size * cols.size);
    return {};
  }

  const MemoryUse& use() const noexcept { return use_; }

 private:
  void add(TensorRole role, std::int64_t bytes) {
    const bool is_expert = role == TensorRole::kExpertIn || role == TensorRole::kExpertOut;
    if (layer_ < 0) {
      use_.vocabulary += bytes;
    } else if (layer_ >= request_.step.config.num_layers()) {
      use_.drafts += bytes;
    } else {
      (is_expert ? use_.experts : use_.layers) += bytes;
    }
  }

  const MemoryRequest& request_;
  std::int64_t layer_ = -1;
  MemoryUse use_;
};

std::int64_t blocks_of(std::int64_t rows, std::int64_t page_size) {
  return std::max<std::int64_t>(1, (rows + page_size - 1) / page_size);
}

std::int64_t page_bytes(const StepShape& shape, std::int64_t rows, std::int64_t page_size) {
  const NumberFormat format = to_cache_format(shape.options.kv.value_or(KvFormat::kBf16));
  const auto bytes = [&](std::int64_t pages) {
    return static_cast<std::int64_t>(
        kv_cache_bytes({.format = format, .page_size = page_size, .num_pages = pages}));
  };
  // More rows than an operator counts are more than any device has; they are told of, too.
  const std::int64_t pages = blocks_of(rows, page_size), most = (1LL << 31) / page_size - 1;
  return pages <= most ? bytes(pages) : pages * bytes(1);
}

// [ring, 2, width] fp32 of a sequence.
std::int64_t state_bytes(CompressorKind kind) {
  constexpr std::int64_t kSpare = 8;  // CompressorProblem::ring
  return (compressor_slots(kind) + kSpare) * 2 * compressor_width(kind) * 4;
}

// Keys of the indexer: codes, and four bytes of scales.
std::int64_t key_bytes(const StepShape& shape, std::int64_t rows) {
  const std::int64_t key = shape.options.index == IndexFormat::kFp8 ? 128 + 4 : 64 + 4;
  return blocks_of(rows, kCsaPage) * kCsaPage * key;
}

// Of all sequences in one layer. Entries of a pool are those of as many blocks of tokens.
std::int64_t layer_cache_bytes(const StepShape& shape, LayerKind kind) {
  const std::int64_t pool = cache_blocks(shape.options);
  const std::int64_t context = pool > 0 ? pool * kCacheBlock : shape.options.max_tokens;
  const std::int64_t tables = pool > 0 ? 1 : shape.sequences;
  const std::int64_t window =
      page_bytes(shape, window_rows(shape.config, std::min(shape.tokens, shape.options.max_tokens)),
                 kWindowPage);
  if (kind == LayerKind::kWindow) return shape.sequences * window;
  const std::int64_t entries = context / static_cast<std::int64_t>(kind);
  if (kind == LayerKind::kHca)
    return shape.sequences * (window + state_bytes(CompressorKind::kHca)) +
           tables * page_bytes(shape, entries, kHcaPage);
  return shape.sequences * (window + state_bytes(CompressorKind::kCsa) +
                            state_bytes(CompressorKind::kIndexMxfp4)) +
         tables * (page_bytes(shape, entries, kCsaPage) + key_bytes(shape, entries));
}

// Of KernelSampler: up to two rows of a sequence draw, and ranks that divide the head gather.
std::int64_t sampler_memory(const StepShape& shape, std::int64_t local_vocab) {
  const Config& c = shape.config;
  const std::int64_t rows = std::min(shape.tokens, 2 * shape.sequences);
  const std::int64_t gathered = local_vocab < c.vocab ? c.vocab : 0;
  return rows * (4 * (local_vocab + gathered) + 2 * c.hidden);
}

// The arrays of Activations, of the runner's logits, and the largest workspace of an operator.
std::int64_t step_memory(const Device& device, const StepShape& shape) {
  const Config& c = shape.config;
  const LocalSizes local = local_sizes(shape.share, c);
  const std::int64_t inputs =
      c.q_rank + c.head_dim + 2 * 2 * (c.head_dim + c.index_dim) + c.index_heads;
  const std::int64_t queries = local.heads * c.head_dim + c.index_heads * c.index_dim;
  const std::int64_t lists = c.window + c.index_topk +
                             shape.options.max_tokens / static_cast<std::int64_t>(LayerKind::kHca);
  const std::int64_t bytes_of_token =
      4 * (lists + 24 + inputs + local.heads + c.experts + local.vocab.count) +
      2 * (c.streams * c.hidden + 2 * c.hidden + c.q_rank + queries + local.heads * c.head_dim +
           local.o_groups * c.o_rank) +
      2 * 4 * c.hidden;
  const std::int64_t world = shape.share.world;
  std::int64_t gathered = world > 1 ? 4 * shape.sequences * c.vocab : 0;  // logits
  if (world > 1 && shape.share.scheme == Scheme::kExpertParallel) {
    // Input, ids and results of the experts, logits of the router and of the head, of all ranks.
    gathered = 4 * shape.sequences * world * c.vocab +
               shape.tokens * (world * (2 * c.hidden + 4 + 4 * c.hidden) +
                               (world - 1) * 4 * stacked_rows(c.experts));
  }
  const std::int64_t rope = 2 * shape.options.max_tokens * c.rope_dim * 4;
  std::size_t workspace = 0, indexer = 0;
  for (const NamedPlan& named : plan_model(device, shape)) {
    std::size_t& most = named.name == "indexer" ? indexer : workspace;
    most = std::max(most, named.plan.workspace_bytes);
  }
  return shape.tokens * bytes_of_token + gathered + rope +
         sampler_memory(shape, local.vocab.count) + static_cast<std::int64_t>(workspace + indexer);
}

std::string counted(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Whether ranks divide the sequences; then each has one more that is idle.
bool are_divided(const Share& share) {
  return share.world > 1 && share.scheme == Scheme::kExpertParallel;
}

// Of a rank, without the idle one.
std::int64_t asked_sequences(const MemoryRequest& request) {
  return request.step.sequences - (request.has_idle ? 1 : 0);
}

// What the caches are for.
std::string caches_of(std::int64_t sequences, std::int64_t context, std::int64_t pool) {
  if (pool > 0) return fmt::format("{} tokens of {}", pool, counted(sequences, "sequence"));
  return fmt::format("{} of {} tokens", counted(sequences, "sequence"), context);
}

std::vector<std::string> remedies_of(const MemoryRequest& request, const MemoryFit& fit) {
  const StepShape& step = request.step;
  const std::int64_t asked = asked_sequences(request);
  const std::int64_t context = step.options.max_tokens, pool = step.options.cache_tokens;
  std::vector<std::string> remedies;
  if (fit.sequences > 0) remedies.push_back(caches_of(fit.sequences, context, pool));
  if (fit.cache_tokens > 0) remedies.push_back(caches_of(asked, context, fit.cache_tokens));
  if (fit.context > 0 && pool == 0) remedies.push_back(caches_of(asked, fit.context, 0));
  if (fit.ranks > 0)
    remedies.push_back(
        fmt::format("{}, {}", counted(fit.ranks, "rank"), to_string(step.share.scheme)));
  return remedies;
}

// The largest number of units for which fits() holds, given that it holds for all smaller ones.
template <class Fits>
std::int64_t most(std::int64_t limit, const Fits& fits) {
  std::int64_t low = 0, high = limit;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

MemoryUse weight_memory(const MemoryRequest& request) {
  WeightMeter meter(request);
  read_model(request.step.config, meter, request.has_drafts);
  return meter.use();
}

std::int64_t cache_memory(const StepShape& shape) {
  std::int64_t bytes = 0;
  if (shape.options.has_draft) bytes += layer_cache_bytes(shape, LayerKind::kWindow);
  for (const LayerKind kind : {LayerKind::kWindow, LayerKind::kCsa, LayerKind::kHca})
    bytes += std::ranges::count(shape.config.layers, kind) * layer_cache_bytes(shape, kind);
  return bytes;
}

MemoryUse memory_use(const Device& device, const MemoryRequest& request) {
  MemoryUse use = weight_memory(request);
  use.caches = cache_memory(request.step);
  use.step = step_memory(device, request.step);
  return use;
}

namespace {

// memory_use() of what may not fit: then operators may refuse its sizes, and the step stays 0.
MemoryUse asked_memory(const Device& device, const MemoryRequest& request, std::int64_t available) {
  try {
    return memory_use(device, request);
  } catch (const Error&) {
    MemoryUse use = weight_memory(request);
    use.caches = cache_memory(request.step);
    if (use.total() <= available) throw;
    return use;
  }
}

}  // namespace

MemoryFit memory_fit(const Device& device, const MemoryRequest& request,
                     std::int64_t available_bytes) {
  constexpr std::int64_t kContextUnit = 1024;  // contexts are given in whole ones
  constexpr std::int64_t kMostSequences = 65535, kMostRanks = 64;
  const std::int64_t weights = weight_memory(request).weights();
  // What an operator does not take does not fit either.
  const auto rest_fits = [&](const StepShape& step, std::int64_t of_weights) {
    if (of_weights + cache_memory(step) > available_bytes) return false;
    try {
      return of_weights + cache_memory(step) + step_memory(device, step) <= available_bytes;
    } catch (const Error&) {
      return false;
    }
  };
  MemoryFit fit;
  fit.sequences = most(kMostSequences, [&](std::int64_t n) {
    StepShape step = request.step;
    step.sequences = n;
    return rest_fits(step, weights);
  });
  if (request.has_idle && fit.sequences > 0) --fit.sequences;
  fit.context =
      kContextUnit * most(request.step.config.max_positions / kContextUnit, [&](std::int64_t n) {
        StepShape step = request.step;
        step.options.max_tokens = n * kContextUnit;
        return rest_fits(step, weights);
      });
  fit.cache_tokens = kCacheBlock * most(cache_blocks(request.step.options), [&](std::int64_t n) {
                       StepShape step = request.step;
                       step.options.cache_tokens = n * kCacheBlock;
                       return n == 0 || rest_fits(step, weights);
                     });
  for (std::int64_t world = request.step.share.world; world <= kMostRanks && fit.ranks == 0;
       world *= 2) {
    MemoryRequest other = request;
    other.step.share = {request.step.share.scheme, 0, world};
    try {
      check_share(other.step.share, request.step.config);
    } catch (const Error&) {
      continue;  // the model cannot be split like that
    }
    if (rest_fits(other.step, weight_memory(other).weights())) fit.ranks = world;
  }
  return fit;
}

std::string memory_problem(const Device& device, const MemoryRequest& request,
                           std::int64_t available_bytes) {
  const MemoryUse use = asked_memory(device, request, available_bytes);
  if (use.total() <= available_bytes) return "";
  const auto gb = [](std::int64_t bytes) {
    return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
  };
  const StepShape& step = request.step;
  const std::vector<std::string> remedies =
      remedies_of(request, memory_fit(device, request, available_bytes));
  const std::string no_remedy =
      use.weights() <= available_bytes
          ? "No one of them is it: ask for fewer sequences and for fewer tokens"
          : "Take fewer layers, or a device with more memory";
  const std::string ranks =
      step.share.world == 1 ? "one rank" : fmt::format("each of {} ranks", step.share.world);
  return fmt::format(
      "{} of weights, {} of caches for {}{} are {} on {}; the device has {}. {}", gb(use.weights()),
      gb(use.caches),
      caches_of(asked_sequences(request), step.options.max_tokens, step.options.cache_tokens),
      use.step > 0 ? fmt::format(" and {} for a step", gb(use.step)) : "", gb(use.total()), ranks,
      gb(available_bytes),
      remedies.empty() ? no_remedy
                       : fmt::format("What would fit: {}", fmt::join(remedies, "; or ")));
}

void require_memory(const Device& device, const Weights& weights, const RunnerOptions& options,
                    std::int64_t sequences, bool has_runner) {
  // Of these the runner says what is wrong.
  const bool is_for_kernels = options.kv.has_value() && options.index != IndexFormat::kBf16;
  const bool lacks_draft = options.has_draft && weights.drafts.empty();
  if (!is_for_kernels || lacks_draft || sequences < (are_divided(weights.share()) ? 0 : 1)) return;
  const auto experts = number_format_from_string(weights.expert_format());
  require_memory(device, weights.source(),
                 {.config = weights.config(),
                  .share = weights.share(),
                  .experts = experts.value_or(NumberFormat::kBf16),
                  .options = options,
                  .sequences = sequences},
                 has_runner);
}

void require_memory(const Device& device, const std::string& source, StepShape step,
                    bool has_runner) {
  const Sequences checked(step.config, step.options, 1);  // numbers that make no sense
  const bool has_idle = are_divided(step.share) && has_runner;
  if (are_divided(step.share)) step.sequences = rank_range(step.share, step.sequences).count;
  if (has_idle) ++step.sequences;
  step.tokens = std::min(step.options.step_tokens, step.sequences * step.options.max_tokens);
  const bool has_draft = step.options.has_draft;
  const std::string problem = memory_problem(
      device, {.step = std::move(step), .has_drafts = has_draft, .has_idle = has_idle},
      static_cast<std::int64_t>(device.memory_bytes()));
  require(problem.empty(), ErrorKind::kOutOfMemory, "{}: {}", source, problem);
}

}  // namespace tilewright::model
