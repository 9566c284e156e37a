#include "model/kernel_runner/weights.h"

#include "base/error.h"
#include "formats/minifloat.h"

#include <fmt/format.h>

namespace tilewright::model {

namespace {

std::vector<std::uint16_t> bf16_codes(const std::vector<float>& values) {
  std::vector<std::uint16_t> codes;
  codes.reserve(values.size());
  for (const float x : values)
    codes.push_back(static_cast<std::uint16_t>(encode(kBf16, static_cast<double>(x))));
  return codes;
}

FloatArray to_array(const Device& device, const Vector& values) {
  return {device, std::span<const float>(values)};
}

HyperArrays hyper_arrays(const Device& device, const HyperWeights& w) {
  return {to_array(device, w.fn), to_array(device, w.base), to_array(device, w.scale)};
}

std::optional<CompressorArrays> compressor_arrays(const Device& device,
                                                  const CompressorWeights* w) {
  if (w == nullptr) return std::nullopt;
  return CompressorArrays{to_array(device, w->ape), to_bf16_array(device, w->norm)};
}

// What multiplies the normalised input of a layer, in the order of InputColumns.
std::vector<MatrixRows> input_parts(const AttentionWeights& a) {
  std::vector<MatrixRows> parts = {all_rows(a.wq_a), all_rows(a.wkv)};
  if (a.compressor) {
    parts.push_back(all_rows(a.compressor->wkv));
    parts.push_back(all_rows(a.compressor->wgate));
  }
  if (a.indexer) {
    parts.push_back(all_rows(a.indexer->compressor.wkv));
    parts.push_back(all_rows(a.indexer->compressor.wgate));
    parts.push_back(all_rows(a.indexer->weights_proj));
  }
  return parts;
}

InputColumns input_columns(const Projection& input, LayerKind kind) {
  InputColumns c = {.q_a = input.first(0), .kv = input.first(1)};
  if (kind == LayerKind::kWindow) return c;
  c.compressor_kv = input.first(2);
  c.compressor_gate = input.first(3);
  if (kind == LayerKind::kHca) return c;
  c.index_kv = input.first(4);
  c.index_gate = input.first(5);
  c.index_weights = input.first(6);
  return c;
}

std::vector<MatrixRows> query_parts(const AttentionWeights& a) {
  std::vector<MatrixRows> parts = {all_rows(a.wq_b)};
  if (a.indexer) parts.push_back(all_rows(a.indexer->wq_b));
  return parts;
}

bool has_format_of_experts(const FfnWeights& ffn) {
  return ffn.shared && weight_format(ffn.shared->gate) == weight_format(ffn.experts[0].gate);
}

// Experts for the operator; the sources stay alive while they are prepared.
class ExpertSources {
 public:
  void add(const ExpertWeights& expert, bool is_shared) {
    source(expert.gate, is_shared ? list_.shared_gate : list_.gate);
    source(expert.up, is_shared ? list_.shared_up : list_.up);
    source(expert.down, is_shared ? list_.shared_down : list_.down);
  }
  tilewright::MoeWeights prepare(const Device& device) const {
    return tilewright::MoeWeights::prepare(device, list_);
  }

 private:
  void source(const Matrix& matrix, std::vector<LinearWeightSource>& to) {
    const MatrixRows rows = all_rows(matrix);
    kept_.push_back(weight_source({&rows, 1}));
    to.push_back(kept_.back().source);
  }
  std::vector<WeightSource> kept_;
  MoeWeightsSource list_;
};

tilewright::MoeWeights routed_experts(const Device& device, const FfnWeights& ffn, bool is_apart) {
  ExpertSources sources;
  for (const ExpertWeights& expert : ffn.experts) sources.add(expert, false);
  if (has_format_of_experts(ffn) && !is_apart) sources.add(*ffn.shared, true);
  return sources.prepare(device);
}

std::optional<tilewright::MoeWeights> shared_expert(const Device& device, const FfnWeights& ffn,
                                                    bool is_apart) {
  if (!ffn.shared || (has_format_of_experts(ffn) && !is_apart)) return std::nullopt;
  ExpertSources sources;
  sources.add(*ffn.shared, false);
  return sources.prepare(device);
}

// A table of rows; one in bf16 goes to the device from where it stands.
Bf16Array bf16_rows(const Device& device, const Matrix& matrix) {
  const MatrixRows rows = all_rows(matrix);
  const WeightSource source = weight_source({&rows, 1});
  if (source.source.format != NumberFormat::kBf16)
    return to_bf16_array(device, read_matrix(matrix));
  Bf16Array array(device, matrix.rows * matrix.cols);
  array.buffer().upload({static_cast<const std::byte*>(source.source.values.data),
                         static_cast<std::size_t>(2 * array.count())});
  return array;
}

}  // namespace

Bf16Array to_bf16_array(const Device& device, const Vector& values) {
  return {device, std::span<const std::uint16_t>(bf16_codes(values))};
}

LayerArrays::LayerArrays(const Device& device, const Config& config, LayerKind layer_kind,
                         const LayerWeights& w, bool has_shared_apart)
    : kind(layer_kind),
      attn_norm(to_bf16_array(device, w.attn_norm)),
      ffn_norm(to_bf16_array(device, w.ffn_norm)),
      q_norm(to_bf16_array(device, w.attn.q_norm)),
      kv_norm(to_bf16_array(device, w.attn.kv_norm)),
      sink(to_array(device, w.attn.sink)),
      hc_attn(hyper_arrays(device, w.hc_attn)),
      hc_ffn(hyper_arrays(device, w.hc_ffn)),
      input(device, input_parts(w.attn)),
      columns(input_columns(input, kind)),
      query(device, query_parts(w.attn)),
      index_query_column(w.attn.indexer ? query.first(1) : 0),
      wo_a(device, {all_rows(w.attn.wo_a)}, config.o_groups),
      wo_b(device, {all_rows(w.attn.wo_b)}),
      compressor(compressor_arrays(device, w.attn.compressor ? &*w.attn.compressor : nullptr)),
      index_compressor(
          compressor_arrays(device, w.attn.indexer ? &w.attn.indexer->compressor : nullptr)),
      router(device, {all_rows(w.ffn.gate)}),
      experts(routed_experts(device, w.ffn, has_shared_apart)),
      shared(shared_expert(device, w.ffn, has_shared_apart)) {
  if (!w.ffn.bias.empty()) router_bias.emplace(to_array(device, w.ffn.bias));
  if (!w.ffn.tid2eid.empty())
    router_table.emplace(device, std::span<const std::int32_t>(w.ffn.tid2eid));
}

DraftArrays::DraftArrays(const Device& device, const Config& config, const DraftWeights& w,
                         bool has_shared_apart)
    : layer(device, config, LayerKind::kWindow, w.layer, has_shared_apart),
      e_proj(device, {all_rows(w.e_proj)}),
      h_proj(device, {all_rows(w.h_proj)}),
      enorm(to_bf16_array(device, w.enorm)),
      hnorm(to_bf16_array(device, w.hnorm)),
      norm(to_bf16_array(device, w.norm)),
      hc_head(hyper_arrays(device, w.hc_head)) {}

ModelArrays::ModelArrays(const Device& device, const Weights& weights, const LoadSink& on_load,
                         bool has_draft)
    : embed(bf16_rows(device, weights.embed)),
      norm(to_bf16_array(device, weights.norm)),
      hc_head(hyper_arrays(device, weights.hc_head)),
      head(device, {all_rows(weights.head)}) {
  const Share& share = weights.share();
  const Config config = rank_config(share, weights.config());
  const bool has_shared_apart = share.world > 1 && share.scheme == Scheme::kExpertParallel;
  for (std::int64_t i = 0; i < config.num_layers(); ++i) {
    if (on_load) on_load(i);
    try {
      layers.emplace_back(device, config, config.kind(i),
                          weights.layers[static_cast<std::size_t>(i)], has_shared_apart);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: layer {}: {}", weights.source(), i, error.what()));
    }
  }
  if (has_draft) drafts.emplace_back(device, config, weights.drafts[0], has_shared_apart);
  if (on_load) on_load(config.num_layers());
}

}  // namespace tilewright::model
