#include "model/float64/attention64.h"

#include "formats/block_scale.h"
#include "model/float64/layer64.h"
#include "reference/linear/output_projection.h"
#include "reference/model/rms_norm.h"
#include "reference/rotation/rope.h"
#include "reference/round.h"
#include "reference/sparse_attention/indexer.h"
#include "reference/sparse_attention/sparse_attention.h"

#include <algorithm>
#include <numeric>

namespace tilewright::model {
namespace {

std::int64_t ratio_of(LayerKind kind) {
  return static_cast<std::int64_t>(kind);
}

}  // namespace

LayerMemory64::LayerMemory64(const Config& config, LayerKind kind) : head_dim_(config.head_dim) {
  if (kind == LayerKind::kWindow) return;
  compressed.emplace(compressor_params(kind, config.head_dim));
  if (kind == LayerKind::kCsa) index_keys.emplace(compressor_params(kind, config.index_dim));
}

void Compressed64::take_back(std::int64_t tokens) {
  state.take_back(tokens);
  const std::int64_t entries = state.num_tokens() / params.ratio;
  rows.resize(static_cast<std::size_t>(entries * params.dim));
}

void LayerMemory64::take_back(std::int64_t tokens) {
  kv.resize(kv.size() - static_cast<std::size_t>(tokens * head_dim_));
  if (compressed) compressed->take_back(tokens);
  if (index_keys) index_keys->take_back(tokens);
}

/// What the steps of one run() share.
struct Attention64::Call {
  std::span<const double> x;  // [tokens, hidden]
  std::int64_t first, tokens;
  std::vector<std::int32_t> positions;
  LayerMemory64& memory;
  const Stages& stages;
};

Attention64::Attention64(const Config& config, const RunnerOptions& options, LayerKind kind,
                         const Layer64& weights, Rows rows)
    : config_(config),
      options_(options),
      kind_(kind),
      weights_(weights),
      rows_(rows),
      frequencies_(layer_frequencies(config, kind)) {}

Doubles Attention64::run(std::span<const double> x, std::int64_t first, LayerMemory64& memory,
                         const Stages& stages) const {
  const auto tokens = static_cast<std::int64_t>(x.size()) / config_.hidden;
  Call call = {x,      first, tokens, std::vector<std::int32_t>(x.size() / config_.hidden),
               memory, stages};
  std::iota(call.positions.begin(), call.positions.end(), static_cast<std::int32_t>(first));
  Doubles qr = rows_.linear(x, weights_.wq_a, tokens);
  qr = reference::rms_norm({tokens, config_.q_rank, config_.norm_eps}, qr, weights_.q_norm);
  stages.tokens("qr", qr, {config_.q_rank});
  const Doubles q = query(call, qr);
  append_kv(call);
  if (memory.compressed)
    append_entries(call, weights_.compressor, config_.head_dim, *memory.compressed);
  std::int64_t width = 0;
  const auto entries = visible_lists(call, qr, width);
  return project(call, attend(call, q, entries, width));
}

Doubles Attention64::rotated(std::span<const double> x, std::int64_t heads, std::int64_t dim,
                             std::span<const std::int32_t> positions, bool is_inverse) const {
  reference::RopeParams params{.heads = heads, .head_dim = dim, .rotary_dim = config_.rope_dim};
  if (is_inverse) params.direction = reference::RopeDirection::kInverse;
  const auto rows = static_cast<std::int64_t>(positions.size());
  return rows_.make(rows, heads * dim, [&](std::int64_t first, std::int64_t last) {
    reference::RopeParams part = params;
    part.tokens = last - first;
    return reference::rope(part, Rows::part(x, heads * dim, first, last),
                           Rows::part(positions, 1, first, last), frequencies_);
  });
}

Doubles Attention64::query(const Call& call, std::span<const double> qr) const {
  const std::int64_t heads = config_.heads, dim = config_.head_dim;
  Doubles q = rows_.linear(qr, weights_.wq_b, call.tokens);
  q = reference::rms_norm({call.tokens * heads, dim, config_.norm_eps}, q);
  q = rotated(q, heads, dim, call.positions);
  if (options_.kv) reference::round_to_bf16(q);
  call.stages.tokens("q", q, {heads, dim});
  return q;
}

void Attention64::append_kv(const Call& call) const {
  const std::int64_t dim = config_.head_dim;
  Doubles kv = rows_.linear(call.x, weights_.wkv, call.tokens);
  kv = reference::rms_norm({call.tokens, dim, config_.norm_eps}, kv, weights_.kv_norm);
  kv = rotated(kv, 1, dim, call.positions);
  if (options_.kv) reference::round_to_bf16(kv);
  call.stages.tokens("kv", kv, {dim});
  report_cache_rows(call.stages, "kv", call.first, kv, false);
  round_cache_rows(kv);
  call.memory.kv.insert(call.memory.kv.end(), kv.begin(), kv.end());
}

void Attention64::append_entries(const Call& call, const Compressor64& weights, std::int64_t dim,
                                 Compressed64& to) const {
  const Doubles values = rows_.linear(call.x, weights.wkv, call.tokens);
  const Doubles gates = rows_.linear(call.x, weights.wgate, call.tokens);
  const auto width = static_cast<std::int64_t>(values.size()) / call.tokens;
  Doubles pooled;
  for (std::int64_t t = 0; t < call.tokens; ++t) {
    const Doubles entry = to.state.push(Rows::part(values, width, t, t + 1),
                                        Rows::part(gates, width, t, t + 1), weights.ape);
    pooled.insert(pooled.end(), entry.begin(), entry.end());
  }
  const auto first_entry = static_cast<std::int64_t>(to.rows.size()) / dim;
  Doubles rows = reference::compressor_finish({.dim = dim,
                                               .ratio = ratio_of(kind_),
                                               .first_entry = first_entry,
                                               .eps = config_.norm_eps,
                                               .round_bf16 = options_.kv.has_value()},
                                              pooled, weights.norm, frequencies_);
  if (&to == &*call.memory.compressed) {
    report_cache_rows(call.stages, "comp", first_entry, rows, true);
    round_cache_rows(rows);
    if (options_.kv != KvFormat::kFp8) call.stages.entries("comp", first_entry, rows, {dim});
  } else {
    rows = reference::indexer_transform(dim, rows, options_.kv.has_value(),
                                        options_.kv ? index_blocks(options_.index) : nullptr);
    call.stages.entries("idx_k", first_entry, rows, {dim});
  }
  to.rows.insert(to.rows.end(), rows.begin(), rows.end());
}

std::vector<std::int32_t> Attention64::select(const Call& call, std::span<const double> qr) const {
  const std::int64_t heads = config_.index_heads, dim = config_.index_dim;
  append_entries(call, weights_.indexer.compressor, dim, *call.memory.index_keys);
  const Doubles& keys = call.memory.index_keys->rows;
  const auto entries = static_cast<std::int64_t>(keys.size()) / dim;
  Doubles q = rows_.linear(qr, weights_.indexer.wq_b, call.tokens);
  q = rotated(q, heads, dim, call.positions);
  q = rows_.make(call.tokens, heads * dim, [&](std::int64_t first, std::int64_t last) {
    return reference::indexer_transform(dim, Rows::part(q, heads * dim, first, last),
                                        options_.kv.has_value(),
                                        options_.kv ? index_blocks(options_.index) : nullptr);
  });
  Doubles w = rows_.linear(call.x, weights_.indexer.weights_proj, call.tokens);
  const double factor = reference::indexer_weight_factor({call.tokens, heads, dim});
  for (double& value : w) value *= factor;
  std::vector<std::int32_t> visible;
  for (const std::int32_t position : call.positions)
    visible.push_back(
        static_cast<std::int32_t>(reference::visible_entries(position, ratio_of(kind_))));
  const Doubles scores =
      rows_.make(call.tokens, entries, [&](std::int64_t first, std::int64_t last) {
        return reference::indexer_scores(
            {last - first, heads, dim}, Rows::part(q, heads * dim, first, last), keys,
            Rows::part(w, heads, first, last), Rows::part(visible, 1, first, last));
      });
  auto selected = reference::indexer_select(call.tokens, scores, config_.index_topk);
  call.stages.tokens("idx_q", q, {heads, dim});
  call.stages.tokens("idx_w", w, {heads});
  if (entries > 0) call.stages.tokens("idx_scores", scores, {entries});
  call.stages.tokens("idx_selected", selected, {config_.index_topk});
  return selected;
}

std::vector<std::int32_t> Attention64::visible_lists(const Call& call, std::span<const double> qr,
                                                     std::int64_t& width) const {
  if (kind_ == LayerKind::kWindow) return {};
  if (kind_ == LayerKind::kCsa) {
    width = config_.index_topk;
    return select(call, qr);
  }
  return all_entries(call.positions, ratio_of(kind_), width);
}

Doubles Attention64::attend(const Call& call, std::span<const double> q,
                            std::span<const std::int32_t> entries, std::int64_t width) const {
  const std::int64_t heads = config_.heads, dim = config_.head_dim;
  AttendedRows attended = {.kv = call.memory.kv, .entries = entries, .width = width};
  if (call.memory.compressed) attended.compressed = call.memory.compressed->rows;
  const auto result = attend64(config_, rows_, weights_.sink, q, call.positions, attended);
  call.stages.tokens("lse", result.lse, {heads});
  call.stages.tokens("attn_o", result.out, {heads, dim});
  return result.out;
}

Doubles Attention64::project(const Call& call, std::span<const double> o) const {
  const std::int64_t heads = config_.heads, dim = config_.head_dim, rope = config_.rope_dim;
  const Doubles turned = rotated(o, heads, dim, call.positions, true);
  if (call.stages.is_on()) {
    Doubles last;
    for (std::int64_t row = 0; row < call.tokens * heads; ++row)
      last.insert(last.end(), turned.begin() + (row + 1) * dim - rope,
                  turned.begin() + (row + 1) * dim);
    call.stages.tokens("attn_o_inv_rope", last, {heads, rope});
  }
  Doubles out = rows_.make(call.tokens, config_.hidden, [&](std::int64_t first, std::int64_t last) {
    return reference::output_projection({.tokens = last - first,
                                         .heads = heads,
                                         .head_dim = dim,
                                         .groups = config_.o_groups,
                                         .rank = config_.o_rank,
                                         .hidden = config_.hidden},
                                        Rows::part(turned, heads * dim, first, last), weights_.wo_a,
                                        weights_.wo_b);
  });
  call.stages.tokens("attn_out", out, {config_.hidden});
  return out;
}

void Attention64::round_cache_rows(Doubles& rows) const {
  if (!options_.kv || *options_.kv == KvFormat::kBf16) return;
  const BlockFormat& format = *options_.kv == KvFormat::kFp8 ? kFp8Block64Pow2 : kNvfp4;
  const std::int64_t dim = config_.head_dim;
  reference::round_to_blocks(format, rows, static_cast<std::int64_t>(rows.size()) / dim, dim,
                             dim - config_.rope_dim);
}

void Attention64::report_cache_rows(const Stages& stages, const char* name, std::int64_t first,
                                    std::span<const double> rows, bool is_entries) const {
  if (!stages.is_on() || options_.kv != KvFormat::kFp8) return;
  const std::int64_t dim = config_.head_dim, rope = config_.rope_dim, plain = dim - rope;
  const auto num_rows = static_cast<std::int64_t>(rows.size()) / dim;
  std::vector<float> to_quantize;
  Doubles rotated_part;
  for (std::int64_t r = 0; r < num_rows; ++r) {
    const auto row = rows.subspan(r * dim, dim);
    to_quantize.insert(to_quantize.end(), row.begin(), row.begin() + plain);
    rotated_part.insert(rotated_part.end(), row.begin() + plain, row.end());
  }
  const QuantizedTensor bytes = quantize(kFp8Block64Pow2, to_quantize, num_rows, plain);
  const std::string prefix = name;
  const auto report = [&](const std::string& stage, const auto& values, std::int64_t cols) {
    if (is_entries) {
      stages.entries(stage, first, values, {cols});
    } else {
      stages.tokens(stage, values, {cols});
    }
  };
  report(prefix + "_fp8", bytes.codes, plain);
  report(prefix + "_scale", bytes.scales, plain / kKvFp8Block);
  report(prefix + "_rope", rotated_part, rope);
}

}  // namespace tilewright::model
