#include "model/float64/weights64.h"

namespace tilewright::model {
namespace {

Doubles doubles(const Vector& values) {
  return {values.begin(), values.end()};
}
Doubles doubles(const Matrix& matrix) {
  return doubles(read_matrix(matrix));
}
void append(Doubles& to, const Matrix& matrix) {
  const Vector values = read_matrix(matrix);
  to.insert(to.end(), values.begin(), values.end());
}

Hyper64 hyper(const HyperWeights& from) {
  return {doubles(from.fn), doubles(from.base), doubles(from.scale)};
}

Compressor64 compressor(const CompressorWeights& from) {
  return {doubles(from.wkv), doubles(from.wgate), doubles(from.ape), doubles(from.norm)};
}

void set_attention(const AttentionWeights& from, Layer64& to) {
  to.wq_a = doubles(from.wq_a);
  to.wq_b = doubles(from.wq_b);
  to.wkv = doubles(from.wkv);
  to.wo_a = doubles(from.wo_a);
  to.wo_b = doubles(from.wo_b);
  to.q_norm = doubles(from.q_norm);
  to.kv_norm = doubles(from.kv_norm);
  to.sink = doubles(from.sink);
  if (from.compressor) to.compressor = compressor(*from.compressor);
  if (!from.indexer) return;
  to.indexer = {doubles(from.indexer->wq_b), doubles(from.indexer->weights_proj),
                compressor(from.indexer->compressor)};
}

void set_ffn(const FfnWeights& from, bool has_experts, Layer64& to) {
  to.gate = doubles(from.gate);
  to.bias = doubles(from.bias);
  to.tid2eid = from.tid2eid;
  if (has_experts) {
    for (const ExpertWeights& expert : from.experts) {
      append(to.expert_gate, expert.gate);
      append(to.expert_up, expert.up);
      append(to.expert_down, expert.down);
    }
  }
  if (!from.shared) return;
  to.shared_gate = doubles(from.shared->gate);
  to.shared_up = doubles(from.shared->up);
  to.shared_down = doubles(from.shared->down);
}

}  // namespace

Layer64 to_doubles(const LayerWeights& from, bool has_experts) {
  Layer64 to;
  to.attn_norm = doubles(from.attn_norm);
  to.ffn_norm = doubles(from.ffn_norm);
  to.hc_attn = hyper(from.hc_attn);
  to.hc_ffn = hyper(from.hc_ffn);
  set_attention(from.attn, to);
  set_ffn(from.ffn, has_experts, to);
  return to;
}

Hyper64 to_doubles(const HyperWeights& from) {
  return hyper(from);
}

Doubles to_doubles(const Matrix& matrix) {
  return doubles(matrix);
}

Weights64 to_doubles(const Weights& weights) {
  Weights64 result = {doubles(weights.embed),
                      doubles(weights.head),
                      doubles(weights.norm),
                      hyper(weights.hc_head),
                      {},
                      {}};
  for (const LayerWeights& from : weights.layers) result.layers.push_back(to_doubles(from));
  for (const DraftWeights& from : weights.drafts)
    result.drafts.push_back({to_doubles(from.layer), doubles(from.e_proj), doubles(from.h_proj),
                             doubles(from.enorm), doubles(from.hnorm), doubles(from.norm),
                             hyper(from.hc_head)});
  return result;
}

}  // namespace tilewright::model
