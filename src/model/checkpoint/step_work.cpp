#include "model/checkpoint/step_work.h"

#include "tilewright/cache.h"

#include "model/checkpoint/released.h"
#include "model/kernel_runner/memory.h"
#include "model/kernel_runner/step.h"

#include <algorithm>
#include <cmath>

namespace tilewright::model {
namespace {

double bits_of(std::string_view format) {
  if (format.starts_with("mxfp4")) return 4 + 8.0 / 32;
  if (format == "nvfp4") return 4 + 8.0 / 16;
  return format.starts_with("fp8") ? 8 + 32.0 / (128 * 128) : 16;
}

// Asks every tensor for its bytes and products.
class WorkMeter final : public TensorReader {
 public:
  WorkMeter(const StepShape& shape, const StepTokensRead& tokens) : shape_(shape) {
    own_ = static_cast<double>(tokens.sequences * tokens.tokens);
    all_ = own_ * (divides_sequences() ? static_cast<double>(shape.share.world) : 1);
    logit_rows_ = static_cast<double>(tokens.logit_rows < 0 ? tokens.sequences : tokens.logit_rows);
    const double chosen = static_cast<double>(shape.config.experts_per_token) /
                          static_cast<double>(shape.config.experts);
    visited_ = 1 - std::pow(1 - chosen, all_);
    chosen_tokens_ = chosen * all_;
  }

  Matrix matrix(TensorPlace place, const std::string&, Dim rows, Dim cols) override {
    const MatrixRange range = share_of(shape_.share, place.role, rows.size, cols.size, place.expert,
                                       shape_.config.experts);
    const std::string_view format = stored_format(place.role, shape_.experts);
    const auto elems = static_cast<double>(range.rows.count * range.cols.count);
    const double bytes = elems * bits_of(format) / 8;
    switch (place.role) {
      case TensorRole::kEmbedding:
        work_.weight_bytes += own_ * 2 * static_cast<double>(shape_.config.hidden);
        break;
      case TensorRole::kExpertIn:
      case TensorRole::kExpertOut:
        work_.weight_bytes += visited_ * bytes;
        work_.bf16_flops += 2 * chosen_tokens_ * elems;
        break;
      default:
        work_.weight_bytes += bytes;
        (format.starts_with("fp8") ? work_.fp8_flops : work_.bf16_flops) +=
            2 * elems * tokens_of(place.role);
    }
    return {};
  }

  Vector vector(TensorPlace place, const std::string& name,
                std::initializer_list<Dim> dims) override {
    std::int64_t count = 1;
    for (const Dim& dim : dims) count *= dim.size;
    work_.weight_bytes += 4 * static_cast<double>(count);
    if (place.role == TensorRole::kHyper && name.ends_with("_fn"))
      work_.bf16_flops += 2 * own_ * static_cast<double>(count);
    return {};
  }

  std::vector<std::int32_t> table(TensorPlace, const std::string&, Dim, Dim cols, Dim) override {
    work_.weight_bytes += all_ * 4 * static_cast<double>(cols.size);
    return {};
  }

  StepWork work() const { return work_; }

 private:
  bool divides_sequences() const {
    return shape_.share.world > 1 && shape_.share.scheme == Scheme::kExpertParallel;
  }
  double tokens_of(TensorRole role) const {
    if (role == TensorRole::kHead) return logit_rows_;
    return role == TensorRole::kRouter ? all_ : own_;
  }

  const StepShape& shape_;
  double own_, all_, logit_rows_, visited_, chosen_tokens_;
  StepWork work_;
};

double key_bytes(IndexFormat format) {
  return format == IndexFormat::kBf16 ? 256 : format == IndexFormat::kFp8 ? 128 + 4 : 64 + 4;
}

std::int64_t entries_of(const Config& config, LayerKind kind, std::int64_t context) {
  if (kind == LayerKind::kWindow) return 0;
  const std::int64_t entries = context / static_cast<std::int64_t>(kind);
  return kind == LayerKind::kCsa ? std::min(config.index_topk, entries) : entries;
}

void add_attention(const StepShape& shape, const StepTokensRead& tokens, StepWork& work) {
  const Config& c = shape.config;
  constexpr auto kCsa = static_cast<std::int64_t>(LayerKind::kCsa);
  const double row = static_cast<double>(
      kv_row_bytes(to_cache_format(shape.options.kv.value_or(KvFormat::kBf16))));
  const auto sequences = static_cast<double>(tokens.sequences);
  const auto heads = static_cast<double>(local_sizes(shape.share, c).heads);
  const std::int64_t end = tokens.start + tokens.tokens;
  for (const LayerKind kind : c.layers) {
    const bool has_index = kind == LayerKind::kCsa;
    double looked_at = 0, keys = 0;
    for (std::int64_t context = tokens.start + 1; context <= end; ++context) {
      looked_at += static_cast<double>(std::min(c.window, context) + entries_of(c, kind, context));
      if (has_index) keys += static_cast<double>(context / kCsa);
    }
    work.bf16_flops += sequences * 4 * static_cast<double>(c.head_dim) * heads * looked_at;
    work.bf16_flops += sequences * 2 * static_cast<double>(c.index_dim * c.index_heads) * keys;
    // Of several tokens each row once: their choices overlap as far as they can.
    const std::int64_t rows =
        std::min(c.window + tokens.tokens - 1, end) + entries_of(c, kind, end);
    work.cache_bytes += sequences * row * static_cast<double>(rows);
    if (has_index)
      work.cache_bytes +=
          sequences * key_bytes(shape.options.index) * static_cast<double>(end / kCsa);
  }
}

// docs/notes/2026-11-26-several-gpus.md, "What it costs".
void add_exchange(const StepShape& shape, const StepTokensRead& tokens, StepWork& work) {
  const Config& c = shape.config;
  const auto others = static_cast<double>(shape.share.world - 1);
  const auto own = static_cast<double>(tokens.sequences * tokens.tokens * c.hidden);
  const auto layers = static_cast<double>(c.num_layers());
  const auto all = static_cast<double>(tokens.sequences * tokens.tokens * shape.share.world);
  if (shape.share.scheme == Scheme::kExpertParallel && all <= kMostKeptTokens &&
      !shape.options.has_draft)
    work.exchanged_bytes = others * layers * 2 * 4 * all * static_cast<double>(c.hidden);
  else if (shape.share.scheme == Scheme::kExpertParallel)
    work.exchanged_bytes = others * layers * own * (2 + 4);
  else  // a ring sends 2 (n - 1) / n of what is reduced: one result, then two
    work.exchanged_bytes =
        2 * others / (others + 1) * layers * own * 4 * (c.shared_experts > 0 ? 3 : 2);
}

}  // namespace

StepWork step_work(const StepShape& shape, const StepTokensRead& tokens) {
  WorkMeter meter(shape, tokens);
  read_model(shape.config, meter);
  StepWork work = meter.work();
  add_attention(shape, tokens, work);
  add_exchange(shape, tokens, work);
  return work;
}

}  // namespace tilewright::model
