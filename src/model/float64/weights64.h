// The weights of a model as doubles.
#pragma once

#include "model/weights.h"

#include <vector>

namespace tilewright::model {

using Doubles = std::vector<double>;

struct Compressor64 {
  Doubles wkv, wgate, ape, norm;
};

struct Indexer64 {
  Doubles wq_b, weights_proj;
  Compressor64 compressor;
};

struct Hyper64 {
  Doubles fn, base, scale;
};

/// Members as in LayerWeights; routed experts stacked: [experts, inter, hidden].
struct Layer64 {
  Doubles attn_norm, ffn_norm;
  Hyper64 hc_attn, hc_ffn;
  Doubles wq_a, wq_b, wkv, wo_a, wo_b, q_norm, kv_norm, sink;
  Compressor64 compressor;  ///< empty: none
  Indexer64 indexer;        ///< empty: none
  Doubles gate, bias;
  std::vector<std::int32_t> tid2eid;
  Doubles expert_gate, expert_up, expert_down, shared_gate, shared_up, shared_down;
};

/// Members as in DraftWeights.
struct Draft64 {
  Layer64 layer;
  Doubles e_proj, h_proj, enorm, hnorm, norm;
  Hyper64 hc_head;
};

struct Weights64 {
  Doubles embed, head, norm;
  Hyper64 hc_head;
  std::vector<Layer64> layers;
  std::vector<Draft64> drafts;
};

Weights64 to_doubles(const Weights& weights);
/// `has_experts`: also the routed ones, which are nearly all of a layer.
Layer64 to_doubles(const LayerWeights& weights, bool has_experts = true);
Hyper64 to_doubles(const HyperWeights& weights);
Doubles to_doubles(const Matrix& weights);

}  // namespace tilewright::model
