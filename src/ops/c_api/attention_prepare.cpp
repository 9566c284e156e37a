#include "tilewright/attention_prepare.h"

#include "tilewright/tilewright_prepare.h"

#include "ops/c_api/attention_fields.h"
#include "ops/c_api/device.h"
#include "ops/c_api/operator.h"

#include <algorithm>

namespace c_api = tilewright::c_api;
using tilewright::AttentionPrepareArguments;
using tilewright::AttentionPrepareProblem;

struct tw_attention_prepare : c_api::Planned<tilewright::AttentionPrepare> {
  using Planned::Planned;
};

namespace {

constexpr const char* kCreate = "tw_attention_prepare_create";

AttentionPrepareProblem to_problem(const tw_attention_prepare_problem& c) {
  constexpr auto strides = c_api::to_strides<tilewright::AttentionProblem::Strides>;
  return {.dtype = c_api::to_attention_dtype(kCreate, "dtype", c.dtype, false),
          .batch = c.batch,
          .heads = c.heads,
          .kv_heads = c.kv_heads,
          .q_len = c.q_len,
          .kv_len = c.kv_len,
          .head_dim = c.head_dim,
          .is_packed = c.is_packed != 0,
          .total_q = c.total_q,
          .total_kv = c.total_kv,
          .q_strides = strides(c.q_strides),
          .k_strides = strides(c.k_strides),
          .v_strides = strides(c.v_strides),
          .q8_strides = strides(c.q8_strides),
          .k8_strides = strides(c.k8_strides),
          .v8_strides = strides(c.v8_strides),
          .scales = c_api::to_enum(kCreate, "scales", c.scales, tilewright::Fp8ScaleKind::kBlock),
          .v_layout = c_api::to_enum(kCreate, "v_columns", c.v_columns,
                                     tilewright::Fp8ValueLayout::kColumns),
          .is_rotated = c.is_rotated != 0,
          .sign_seed = c.sign_seed,
          .rope = c_api::to_enum(kCreate, "rope", c.rope, tilewright::RotaryPairs::kHalves),
          .rotary_dim = c.rotary_dim,
          .rope_positions = c.rope_positions,
          .has_positions = c.has_positions != 0};
}

AttentionPrepareArguments to_arguments(const tw_attention_prepare_arguments& a) {
  return {.q = a.q,
          .k = a.k,
          .v = a.v,
          .q8 = a.q8,
          .k8 = a.k8,
          .v8 = a.v8,
          .q_descale = a.q_descale,
          .k_descale = a.k_descale,
          .v_descale = a.v_descale,
          .v_descale_max = a.v_descale_max,
          .cu_q = a.cu_q,
          .cu_kv = a.cu_kv,
          .rope = a.rope,
          .q_positions = a.q_positions,
          .k_positions = a.k_positions,
          .workspace = a.workspace,
          .stream = a.stream};
}

}  // namespace

void tw_attention_prepare_problem_init(tw_attention_prepare_problem* problem) {
  tw_attention_prepare_problem defaults = {};
  defaults.batch = defaults.heads = defaults.kv_heads = 1;
  defaults.scales = TW_SCALES_BLOCK;
  defaults.v_columns = defaults.is_rotated = 1;
  c_api::initialise(problem, defaults);
}

tw_status tw_attention_prepare_create(const tw_device* device,
                                      const tw_attention_prepare_problem* problem,
                                      tw_attention_prepare** prepare) {
  return c_api::create(kCreate, "prepare", prepare, [&] {
    c_api::require_address(device, kCreate, "device");
    return tilewright::AttentionPrepare(
        device->device, to_problem(c_api::checked(problem, kCreate, "problem",
                                                  "tw_attention_prepare_problem_init")));
  });
}

void tw_attention_prepare_destroy(tw_attention_prepare* prepare) {
  delete prepare;
}

const char* tw_attention_prepare_plan_text(const tw_attention_prepare* prepare) {
  return c_api::plan_text(prepare);
}

tw_attention_prepare_sizes tw_attention_prepare_get_sizes(const tw_attention_prepare* prepare) {
  if (prepare == nullptr) return {};
  const tilewright::AttentionPreparePlan& plan = prepare->op.plan();
  return {.q8_bytes = plan.q8_bytes,
          .k8_bytes = plan.k8_bytes,
          .v8_bytes = plan.v8_bytes,
          .num_q_descales = plan.num_q_descales,
          .num_k_descales = plan.num_k_descales,
          .num_v_descales = plan.num_v_descales,
          .num_v_descale_max = plan.num_v_descale_max,
          .workspace_bytes = plan.workspace_bytes};
}

tw_status tw_attention_prepare_run(const tw_attention_prepare* prepare,
                                   const tw_attention_prepare_arguments* arguments) {
  return c_api::run("tw_attention_prepare_run", "prepare", prepare, arguments,
                    [](const auto& op, const auto& a) { op.run(to_arguments(a)); });
}

tw_status tw_attention_prepare_signs(uint64_t seed, int64_t head_dim, float* signs) {
  const char* const function = "tw_attention_prepare_signs";
  return c_api::guarded([&] {
    c_api::require_address(signs, function, "signs");
    tilewright::require(head_dim >= 0, tilewright::ErrorKind::kInvalidArgument,
                        "{}: head_dim = {}; expected 0 or more", function, head_dim);
    std::ranges::copy(tilewright::attention_signs(seed, head_dim), signs);
  });
}
