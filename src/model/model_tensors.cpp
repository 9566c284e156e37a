#include "model/model_tensors.h"

#include <utility>

#include <fmt/format.h>

namespace tilewright::model {
namespace {

struct LayerReader {
  TensorReader& reader;
  const Config& config;
  std::string prefix;  // "layers.3."

  Dim hidden() const { return {"hidden_size", config.hidden}; }

  Vector norm(const std::string& name, Dim dim) const {
    return reader.vector({TensorRole::kNorm}, prefix + name + ".weight", {dim});
  }

  HyperWeights hyper(const std::string& name, std::int64_t outputs, std::int64_t parts) const {
    const std::int64_t n = config.streams;
    const TensorPlace place = {TensorRole::kHyper};
    return {reader.vector(place, prefix + name + "_fn",
                          {{"outputs", outputs}, {"hc_mult * hidden_size", n * config.hidden}}),
            reader.vector(place, prefix + name + "_base", {{"outputs", outputs}}),
            reader.vector(place, prefix + name + "_scale", {{"parts", parts}})};
  }
  HyperWeights hyper(const std::string& name) const {
    return hyper(name, 2 * config.streams + config.streams * config.streams, 3);
  }
  HyperWeights hyper_head() const { return hyper("hc_head", config.streams, 1); }

  CompressorWeights compressor(const std::string& name, std::int64_t ratio,
                               std::int64_t dim) const {
    const Dim width = {"channels", ratio == 4 ? 2 * dim : dim};
    const TensorPlace place = {TensorRole::kCompressor};
    return {reader.matrix(place, prefix + name + "wkv", width, hidden()),
            reader.matrix(place, prefix + name + "wgate", width, hidden()),
            reader.vector({TensorRole::kCompressorTable}, prefix + name + "ape",
                          {{"ratio", ratio}, width}),
            norm(name + "norm", {"dim", dim})};
  }

  AttentionWeights attention(LayerKind kind) const {
    const std::string name = prefix + "attn.";
    const Dim rank = {"q_lora_rank", config.q_rank};
    const Dim z = {"o_groups * o_lora_rank", config.o_groups * config.o_rank};
    const Dim queries = {"num_attention_heads * head_dim", config.heads * config.head_dim};
    AttentionWeights attn;
    attn.wq_a = reader.matrix({TensorRole::kLatent}, name + "wq_a", rank, hidden());
    attn.wq_b = reader.matrix({TensorRole::kQuery}, name + "wq_b", queries, rank);
    attn.wkv =
        reader.matrix({TensorRole::kLatent}, name + "wkv", {"head_dim", config.head_dim}, hidden());
    attn.wo_a = reader.matrix(
        {TensorRole::kOutputGroup}, name + "wo_a", z,
        {"heads of a group * head_dim", config.heads / config.o_groups * config.head_dim});
    attn.wo_b = reader.matrix({TensorRole::kOutput}, name + "wo_b", hidden(), z);
    attn.q_norm = norm("attn.q_norm", rank);
    attn.kv_norm = norm("attn.kv_norm", {"head_dim", config.head_dim});
    attn.sink = reader.vector({TensorRole::kSink}, name + "attn_sink",
                              {{"num_attention_heads", config.heads}});
    if (kind == LayerKind::kWindow) return attn;
    const auto ratio = static_cast<std::int64_t>(kind);
    attn.compressor = compressor("attn.compressor.", ratio, config.head_dim);
    if (kind == LayerKind::kCsa) attn.indexer = indexer(rank, ratio);
    return attn;
  }

  IndexerWeights indexer(Dim rank, std::int64_t ratio) const {
    const std::string name = prefix + "attn.indexer.";
    return {reader.matrix({TensorRole::kIndexQuery}, name + "wq_b",
                          {"index_n_heads * index_head_dim", config.index_heads * config.index_dim},
                          rank),
            reader.matrix({TensorRole::kIndexWeight}, name + "weights_proj",
                          {"index_n_heads", config.index_heads}, hidden()),
            compressor("attn.indexer.compressor.", ratio, config.index_dim)};
  }

  ExpertWeights expert(const std::string& name, TensorPlace in, TensorPlace out) const {
    const Dim inter = {"moe_intermediate_size", config.inter};
    return {reader.matrix(in, name + ".w1", inter, hidden()),
            reader.matrix(in, name + ".w3", inter, hidden()),
            reader.matrix(out, name + ".w2", hidden(), inter)};
  }

  FfnWeights moe(bool is_hash_routed) const {
    const std::string name = prefix + "ffn.";
    const Dim experts = {"n_routed_experts", config.experts};
    FfnWeights ffn;
    ffn.gate = reader.matrix({TensorRole::kRouter}, name + "gate", experts, hidden());
    if (is_hash_routed) {
      ffn.tid2eid = reader.table({TensorRole::kRouterTable}, name + "gate.tid2eid",
                                 {"vocab_size", config.vocab},
                                 {"num_experts_per_tok", config.experts_per_token}, experts);
    } else {
      ffn.bias = reader.vector({TensorRole::kRouterBias}, name + "gate.bias", {experts});
    }
    for (std::int64_t e = 0; e < config.experts; ++e) {
      ExpertWeights routed = expert(fmt::format("{}experts.{}", name, e),
                                    {TensorRole::kExpertIn, e}, {TensorRole::kExpertOut, e});
      if (reader.keeps_expert(e)) ffn.experts.push_back(std::move(routed));
    }
    if (config.shared_experts > 0)
      ffn.shared =
          expert(name + "shared_experts", {TensorRole::kSharedIn}, {TensorRole::kSharedOut});
    return ffn;
  }

  LayerWeights layer(LayerKind kind, bool is_hash_routed) const {
    LayerWeights layer;
    layer.attn_norm = norm("attn_norm", hidden());
    layer.ffn_norm = norm("ffn_norm", hidden());
    layer.hc_attn = hyper("hc_attn");
    layer.hc_ffn = hyper("hc_ffn");
    layer.attn = attention(kind);
    layer.ffn = moe(is_hash_routed);
    return layer;
  }

  DraftWeights draft() const {
    const TensorPlace place = {TensorRole::kDraftProjection};
    DraftWeights draft;
    draft.layer = layer(LayerKind::kWindow, false);
    draft.e_proj = reader.matrix(place, prefix + "e_proj", hidden(), hidden());
    draft.h_proj = reader.matrix(place, prefix + "h_proj", hidden(), hidden());
    draft.enorm = norm("enorm", hidden());
    draft.hnorm = norm("hnorm", hidden());
    draft.norm = norm("norm", hidden());
    draft.hc_head = hyper_head();
    return draft;
  }
};

}  // namespace

ModelWeights read_model(const Config& config, TensorReader& reader, bool has_drafts) {
  const LayerReader whole = {reader, config, ""};
  const Dim vocab = {"vocab_size", config.vocab};
  ModelWeights model;
  reader.begin_layer(-1);
  model.embed = reader.matrix({TensorRole::kEmbedding}, "embed", vocab, whole.hidden());
  model.head = reader.matrix({TensorRole::kHead}, "head", vocab, whole.hidden());
  model.norm = whole.norm("norm", whole.hidden());
  model.hc_head = whole.hyper_head();
  for (std::int64_t i = 0; i < config.num_layers(); ++i) {
    reader.begin_layer(i);
    model.layers.push_back(LayerReader{reader, config, fmt::format("layers.{}.", i)}.layer(
        config.kind(i), config.is_hash_routed(i)));
  }
  for (std::int64_t i = 0; has_drafts && i < config.draft_layers; ++i) {
    reader.begin_layer(config.num_layers() + i);
    model.drafts.push_back(LayerReader{reader, config, fmt::format("mtp.{}.", i)}.draft());
  }
  return model;
}

}  // namespace tilewright::model
