// One Mixture-of-Experts layer on the host: of a checkpoint, or drawn.
#pragma once

#include "tilewright/moe.h"

#include "verify/linear_data.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

struct MoeLayerSource {
  std::string file, shape = "small", format = "nvfp4";
  std::int64_t layer = 1, topk = 0;
};

struct MoeLayer {
  std::string name;
  MoeWeightsInfo info;
  std::int64_t topk = 2;
  MoeScore score = MoeScore::kSqrtSoftplus;
  double route_scale = 1, limit = 10;
  std::vector<LinearWeightData> gate, up, down;  ///< the shared expert's last
  std::vector<float> router;                     ///< [experts, hidden]
  std::vector<float> bias;                       ///< [experts] or empty
  std::vector<std::int32_t> table;               ///< [vocab, topk] or empty

  MoeWeightsSource source() const;
  /// Rows of the table of experts by token; 0 without one.
  std::int64_t vocab() const noexcept {
    return table.empty() ? 0 : static_cast<std::int64_t>(table.size()) / topk;
  }
};

/// Tensors layers.N.ffn.experts.E.{w1,w3,w2}.weight, .shared_experts., .gate.{weight,bias,tid2eid},
/// and the sizes in a config.json beside them. Weights that are quantised (as load_weight finds
/// them) stay as they are; a shared expert in another format than the others is left out, which the
/// name says. Without a file only what a drawn layer will be:
/// a plan can refuse its shape before draw_moe_weights takes time and memory.
/// Errors   InvalidArgument, ParseError
MoeLayer load_moe_layer(const MoeLayerSource& source);

/// Experts and router of a layer without a file, from N(0, 1/k), with progress on standard error.
/// Experts in FP8 for block-scaled activations have scales that are powers of two.
void draw_moe_weights(MoeLayer& layer);

struct MoeLayerInputs {
  std::vector<std::uint16_t> x;  ///< bf16 [tokens, hidden]
  std::vector<float> logits;     ///< [tokens, experts]
  std::vector<std::int32_t> token_ids, ids;
  std::vector<float> weights;
};
/// x from N(0,1), token ids in turn; logits, ids and weights are what the layer's router makes of
/// them in float64.
MoeLayerInputs draw_moe_inputs(const MoeLayer& layer, std::int64_t tokens);

/// All tokens against float64 on the stored weights, without any rounding.
nlohmann::json check_moe_layer(const MoeLayer& layer, const MoeLayerInputs& inputs,
                               const MoeProblem& problem, const std::vector<std::uint16_t>& out,
                               const std::string& kernel);

}  // namespace tilewright::cli
