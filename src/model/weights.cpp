#include "model/weights.h"

#include "model/weight_reader.h"

#include <fmt/format.h>

namespace tilewright::model {
namespace {

struct LayerReader {
  WeightReader& reader;
  const Config& config;
  std::string prefix;  // "layers.3."

  Dim hidden() const { return {"hidden_size", config.hidden}; }

  HyperWeights hyper(const std::string& name) const {
    const std::int64_t n = config.streams, outputs = 2 * n + n * n;
    return {reader.vector(name + "_fn",
                          {{"outputs", outputs}, {"hc_mult * hidden_size", n * config.hidden}}),
            reader.vector(name + "_base", {{"outputs", outputs}}),
            reader.vector(name + "_scale", {{"parts", 3}})};
  }

  CompressorWeights compressor(const std::string& name, std::int64_t ratio,
                               std::int64_t dim) const {
    const Dim width = {"channels", ratio == 4 ? 2 * dim : dim};
    return {reader.matrix(name + "wkv", width, hidden()),
            reader.matrix(name + "wgate", width, hidden()),
            reader.vector(name + "ape", {{"ratio", ratio}, width}),
            reader.vector(name + "norm.weight", {{"dim", dim}})};
  }

  AttentionWeights attention(LayerKind kind) const {
    const std::string name = prefix + "attn.";
    const Dim rank = {"q_lora_rank", config.q_rank};
    const Dim z = {"o_groups * o_lora_rank", config.o_groups * config.o_rank};
    AttentionWeights attn;
    attn.wq_a = reader.matrix(name + "wq_a", rank, hidden());
    attn.wq_b = reader.matrix(
        name + "wq_b", {"num_attention_heads * head_dim", config.heads * config.head_dim}, rank);
    attn.wkv = reader.matrix(name + "wkv", {"head_dim", config.head_dim}, hidden());
    attn.wo_a = reader.matrix(
        name + "wo_a", z,
        {"heads of a group * head_dim", config.heads / config.o_groups * config.head_dim});
    attn.wo_b = reader.matrix(name + "wo_b", hidden(), z);
    attn.q_norm = reader.vector(name + "q_norm.weight", {rank});
    attn.kv_norm = reader.vector(name + "kv_norm.weight", {{"head_dim", config.head_dim}});
    attn.sink = reader.vector(name + "attn_sink", {{"num_attention_heads", config.heads}});
    if (kind == LayerKind::kWindow) return attn;
    const auto ratio = static_cast<std::int64_t>(kind);
    attn.compressor = compressor(name + "compressor.", ratio, config.head_dim);
    if (kind == LayerKind::kCsa) attn.indexer = indexer(name + "indexer.", rank, ratio);
    return attn;
  }

  IndexerWeights indexer(const std::string& name, Dim rank, std::int64_t ratio) const {
    return {reader.matrix(name + "wq_b",
                          {"index_n_heads * index_head_dim", config.index_heads * config.index_dim},
                          rank),
            reader.matrix(name + "weights_proj", {"index_n_heads", config.index_heads}, hidden()),
            compressor(name + "compressor.", ratio, config.index_dim)};
  }

  ExpertWeights expert(const std::string& name) const {
    const Dim inter = {"moe_intermediate_size", config.inter};
    return {reader.matrix(name + ".w1", inter, hidden()),
            reader.matrix(name + ".w3", inter, hidden()),
            reader.matrix(name + ".w2", hidden(), inter)};
  }

  FfnWeights moe(bool is_hash_routed) const {
    const std::string name = prefix + "ffn.";
    const Dim experts = {"n_routed_experts", config.experts};
    FfnWeights ffn;
    ffn.gate = reader.matrix(name + "gate", experts, hidden());
    if (is_hash_routed) {
      ffn.tid2eid = reader.table(name + "gate.tid2eid", {"vocab_size", config.vocab},
                                 {"num_experts_per_tok", config.experts_per_token}, experts);
    } else {
      ffn.bias = reader.vector(name + "gate.bias", {experts});
    }
    for (std::int64_t e = 0; e < config.experts; ++e)
      ffn.experts.push_back(expert(fmt::format("{}experts.{}", name, e)));
    if (config.shared_experts > 0) ffn.shared = expert(name + "shared_experts");
    return ffn;
  }
};

std::string short_name(const Matrix& matrix) {
  if (matrix.format.empty()) return matrix.codes.dtype == DType::kF32 ? "f32" : "bf16";
  return matrix.format.starts_with("fp8") ? "fp8" : matrix.format;
}

}  // namespace

std::vector<float> read_matrix(const Matrix& matrix) {
  return read_checkpoint_rows(matrix, 0, matrix.rows);
}

Weights::Weights(const std::filesystem::path& folder, ExpertFormat experts)
    : config_(read_config(folder)), source_(folder.string()), files_(folder) {
  WeightReader reader(files_);
  const Dim vocab = {"vocab_size", config_.vocab}, hidden = {"hidden_size", config_.hidden};
  const Dim streams = {"hc_mult", config_.streams};
  embed = reader.matrix("embed", vocab, hidden);
  head = reader.matrix("head", vocab, hidden);
  norm = reader.vector("norm.weight", {hidden});
  hc_head = {reader.vector("hc_head_fn",
                           {streams, {"hc_mult * hidden_size", config_.streams * config_.hidden}}),
             reader.vector("hc_head_base", {streams}), reader.vector("hc_head_scale", {{"", 1}})};
  for (std::int64_t i = 0; i < config_.num_layers(); ++i) {
    const LayerReader from = {reader, config_, fmt::format("layers.{}.", i)};
    LayerWeights layer;
    layer.attn_norm = reader.vector(from.prefix + "attn_norm.weight", {hidden});
    layer.ffn_norm = reader.vector(from.prefix + "ffn_norm.weight", {hidden});
    layer.hc_attn = from.hyper(from.prefix + "hc_attn");
    layer.hc_ffn = from.hyper(from.prefix + "hc_ffn");
    layer.attn = from.attention(config_.kind(i));
    layer.ffn = from.moe(config_.is_hash_routed(i));
    layers.push_back(std::move(layer));
  }
  reader.finish(source_);
  num_bytes_ = reader.num_bytes();
  for (LayerWeights& layer : layers) {
    for (ExpertWeights& expert : layer.ffn.experts) {
      // Serving code multiplies gate and up as one matrix: they share a tensor scale.
      convert_matrices({&expert.gate, &expert.up}, experts, storage_);
      convert_matrices({&expert.down}, experts, storage_);
    }
  }
  expert_format_ = short_name(layers.back().ffn.experts[0].gate);
}

}  // namespace tilewright::model
