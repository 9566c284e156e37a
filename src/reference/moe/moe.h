// Float64 reference of the experts of a Mixture-of-Experts layer; router.h chooses them.
#pragma once

#include "formats/block_format.h"
#include "reference/moe/router.h"
#include "reference/moe/swiglu.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

/// Weights of a stack of SwiGLU MLPs. Biases may be empty.
struct MlpWeights {
  std::span<const double> gate = {};       ///< [experts, inter, hidden] (w1)
  std::span<const double> up = {};         ///< [experts, inter, hidden] (w3)
  std::span<const double> down = {};       ///< [experts, hidden, inter] (w2)
  std::span<const double> gate_bias = {};  ///< [experts, inter]
  std::span<const double> up_bias = {};    ///< [experts, inter]
  std::span<const double> down_bias = {};  ///< [experts, hidden]
};

/// Where the routing weight r enters. The two differ by rounding, and in the weight of down_bias.
enum class RouteWeightPlace {
  kBeforeDown,  ///< y = down . (r * t) + down_bias, DeepSeek-V4
  kAfterDown,   ///< y = r * (down . t + down_bias), gpt-oss
};

/// What a layer that stores its intermediate values in narrow formats rounds; nothing by default.
/// E4m3 means the rule of format fp8_1x128 of formats/block_format.h, with a scale for e4m3_columns
/// of a row.
struct MoeRounding {
  bool x_e4m3 = false;
  bool h_bf16 = false;  ///< h = swiglu(..), times the routing weight if that stands before down
  bool h_e4m3 = false;  ///< after bf16, if both
  bool y_bf16 = false;  ///< the result of the down projection
  int64_t e4m3_columns = 128;  ///< 0: a scale for the row
  /// To `blocks`. If that is NVFP4, x has a G for each row, that of its largest magnitude (1 of a
  /// row of zeros, or that is not finite), and h h_encode_scale.
  bool x_blocks = false, h_blocks = false;
  BlockFormat blocks = formats::kMxfp8Ceil;
  float h_encode_scale = 1;
};

struct MoeParams {
  int64_t tokens = 0;
  int64_t hidden = 0;
  int64_t inter = 0;
  int64_t experts = 0;
  int64_t topk = 0;
  int64_t shared_inter = 0;      ///< inner size of the shared expert; 0: there is none
  SwigluParams activation = {};  ///< of the routed and of the shared experts
  RouteWeightPlace route_weight_place = RouteWeightPlace::kBeforeDown;
  MoeRounding rounding = {};
};

/// out[t,:] = sum_i y(x[t,:], ids[t,i], weights[t,i]) + y_shared(x[t,:], 1),
/// y(x, e, r) = down[e] . (r * swiglu(gate[e] . x + gate_bias[e], up[e] . x + up_bias[e])) +
/// down_bias[e], or with r after the down projection
/// Shapes   x, out [tokens, hidden]; ids, weights [tokens, topk]; shared: MlpWeights of one expert
///          with inter = shared_inter
/// Layout   contiguous
/// Dropped  an id of -1 adds nothing
/// Errors   InvalidArgument if an array does not have its shape, an id is not -1 or an expert, or
///          weights of a shared expert are given although shared_inter = 0
/// Thread   safe
/// Source   DeepSeek-V4 reference model; gpt-oss reference model (biases, weight after down)
std::vector<double> moe(const MoeParams& params, std::span<const double> x,
                        std::span<const int32_t> ids, std::span<const double> weights,
                        const MlpWeights& routed, const MlpWeights& shared = {});

}  // namespace tilewright::reference
