#include "tilewright/moe.h"

#include "ops/c_api/device.h"
#include "ops/c_api/linear.h"
#include "ops/c_api/operator.h"

#include <vector>

namespace c_api = tilewright::c_api;

struct tw_moe_weights {
  tilewright::MoeWeights weights;
};

struct tw_moe : c_api::Planned<tilewright::Moe> {
  using Planned::Planned;
};

namespace {

using tilewright::ErrorKind;
using tilewright::LinearWeightSource;
using tilewright::MoeProblem;
using tilewright::require;

std::vector<LinearWeightSource> to_sources(const tw_linear_weight_source* first, const char* name,
                                           std::int64_t count) {
  c_api::require_address(first, "tw_moe_weights_prepare", name);
  std::vector<LinearWeightSource> sources;
  for (std::int64_t i = 0; i < count; ++i) sources.push_back(c_api::to_weight_source(first[i]));
  return sources;
}

tilewright::MoeWeightsSource to_source(const tw_moe_weights_source& c) {
  require(c.experts >= 1 && c.experts <= 384, ErrorKind::kInvalidArgument,
          "tw_moe_weights_prepare: source.experts = {}; expected 1 to 384", c.experts);
  tilewright::MoeWeightsSource s;
  s.gate = to_sources(c.gate, "gate", c.experts);
  s.up = to_sources(c.up, "up", c.experts);
  s.down = to_sources(c.down, "down", c.experts);
  if (c.shared_gate == nullptr) return s;
  s.shared_gate = to_sources(c.shared_gate, "shared_gate", 1);
  s.shared_up = to_sources(c.shared_up, "shared_up", 1);
  s.shared_down = to_sources(c.shared_down, "shared_down", 1);
  return s;
}

MoeProblem to_problem(const tw_moe_problem& c) {
  const char* const function = "tw_moe_create";
  require(c.routing >= TW_ROUTING_GIVEN && c.routing <= TW_ROUTING_HASH,
          ErrorKind::kInvalidArgument,
          "{}: problem.routing = {}; expected a tw_moe_routing, 0 to 2", function, c.routing);
  require(c.score == TW_SCORE_SOFTMAX || c.score == TW_SCORE_SQRT_SOFTPLUS,
          ErrorKind::kInvalidArgument, "{}: problem.score = {}; expected a tw_moe_score, 0 or 1",
          function, c.score);
  require(c.out_dtype == TW_BF16 || c.out_dtype == TW_F32, ErrorKind::kInvalidArgument,
          "{}: problem.out_dtype = {}; expected TW_BF16 = 0 or TW_F32 = 2", function, c.out_dtype);
  MoeProblem p;
  p.tokens = c.tokens;
  p.topk = c.topk;
  p.routing = static_cast<tilewright::MoeRouting>(c.routing);
  p.score = static_cast<tilewright::MoeScore>(c.score);
  p.normalize = c.normalize != 0;
  p.has_bias = c.has_bias != 0;
  p.route_scale = c.route_scale;
  p.vocab = c.vocab;
  if (c.swiglu_limit != 0) p.swiglu_limit = c.swiglu_limit;
  p.weight_after_down = c.weight_after_down != 0;
  p.out_dtype = c.out_dtype == TW_F32 ? tilewright::DType::kF32 : tilewright::DType::kBF16;
  if (c.kernel != nullptr) p.kernel = c.kernel;
  return p;
}

tilewright::MoeArguments to_arguments(const tw_moe_arguments& a) {
  return {a.x,         a.ids,   a.weights, a.logits,    a.bias,
          a.token_ids, a.table, a.out,     a.workspace, a.stream};
}

}  // namespace

void tw_moe_weights_source_init(tw_moe_weights_source* source) {
  c_api::initialise(source);
}

tw_status tw_moe_weights_prepare(const tw_device* device, const tw_moe_weights_source* source,
                                 tw_moe_weights** weights) {
  const char* const function = "tw_moe_weights_prepare";
  return c_api::create(function, "weights", weights, [&] {
    c_api::require_address(device, function, "device");
    const tilewright::MoeWeightsSource all =
        to_source(c_api::checked(source, function, "source", "tw_moe_weights_source_init"));
    const bool is_fp8 = source->gate[0].activations == TW_ACTIVATIONS_FP8;
    return tilewright::MoeWeights::prepare(
        device->device, all,
        is_fp8 ? tilewright::LinearActivations::kFp8 : tilewright::LinearActivations::kBf16);
  });
}

void tw_moe_weights_destroy(tw_moe_weights* weights) {
  delete weights;
}

size_t tw_moe_weights_bytes(const tw_moe_weights* weights) {
  return weights == nullptr ? 0 : weights->weights.bytes();
}

void tw_moe_problem_init(tw_moe_problem* problem) {
  tw_moe_problem defaults = {};
  defaults.normalize = 1;
  defaults.route_scale = 1;
  c_api::initialise(problem, defaults);
}

tw_status tw_moe_create(const tw_moe_weights* weights, const tw_moe_problem* problem,
                        tw_moe** moe) {
  const char* const function = "tw_moe_create";
  return c_api::create(function, "moe", moe, [&] {
    c_api::require_address(weights, function, "weights");
    return tilewright::Moe(weights->weights, to_problem(c_api::checked(problem, function, "problem",
                                                                       "tw_moe_problem_init")));
  });
}

void tw_moe_destroy(tw_moe* moe) {
  delete moe;
}

const char* tw_moe_plan_text(const tw_moe* moe) {
  return c_api::plan_text(moe);
}

const char* tw_moe_kernel(const tw_moe* moe) {
  return c_api::kernel_name(moe);
}

size_t tw_moe_workspace_bytes(const tw_moe* moe) {
  return c_api::of_plan(moe, &tilewright::MoePlan::workspace_bytes);
}

tw_status tw_moe_run(const tw_moe* moe, const tw_moe_arguments* arguments) {
  return c_api::run("tw_moe_run", "moe", moe, arguments,
                    [](const auto& op, const auto& a) { op.run(to_arguments(a)); });
}

tw_status tw_moe_check(const tw_moe* moe, const tw_moe_arguments* arguments) {
  return c_api::run("tw_moe_check", "moe", moe, arguments,
                    [](const auto& op, const auto& a) { op.check(to_arguments(a)); });
}
