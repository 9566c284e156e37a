#include "tilewright/attention.h"

#include "ops/c_api/attention_fields.h"
#include "ops/c_api/device.h"
#include "ops/c_api/operator.h"

namespace c_api = tilewright::c_api;
using tilewright::AttentionProblem;

struct tw_attention : c_api::Planned<tilewright::Attention> {
  using Planned::Planned;
};

namespace {

constexpr const char* kCreate = "tw_attention_create";

AttentionProblem to_problem(const tw_attention_problem& c) {
  constexpr auto to_strides = c_api::to_strides<AttentionProblem::Strides>;
  AttentionProblem p;
  p.dtype = c_api::to_attention_dtype(kCreate, "dtype", c.dtype, true);
  if (c.dtype == TW_E4M3) {
    p.out_dtype = c_api::to_attention_dtype(kCreate, "out_dtype", c.out_dtype, false);
    p.fp8.scales =
        c_api::to_enum(kCreate, "fp8_scales", c.fp8_scales, tilewright::Fp8ScaleKind::kBlock);
    p.fp8.v_layout = c_api::to_enum(kCreate, "fp8_v_columns", c.fp8_v_columns,
                                    tilewright::Fp8ValueLayout::kColumns);
  }
  p.fp8.accumulation = c_api::to_enum(kCreate, "fp8_accumulation", c.fp8_accumulation,
                                      tilewright::Fp8Accumulation::kTwoLevel);
  p.batch = c.batch;
  p.heads = c.heads;
  p.kv_heads = c.kv_heads;
  p.q_len = c.q_len;
  p.kv_len = c.kv_len;
  p.head_dim = c.head_dim;
  if (c.scale != 0) p.scale = c.scale;
  p.causal = c.causal != 0;
  p.window_left = c.window_left;
  p.window_right = c.window_right;
  p.softcap = c.softcap;
  p.has_sink = c.has_sink != 0;
  p.has_lse = c.has_lse != 0;
  p.is_packed = c.is_packed != 0;
  p.total_q = c.total_q;
  p.total_kv = c.total_kv;
  p.q_strides = to_strides(c.q_strides);
  p.k_strides = to_strides(c.k_strides);
  p.v_strides = to_strides(c.v_strides);
  p.out_strides = to_strides(c.out_strides);
  if (c.kernel != nullptr) p.kernel = c.kernel;
  return p;
}

}  // namespace

void tw_attention_problem_init(tw_attention_problem* problem) {
  tw_attention_problem defaults = {};
  defaults.batch = defaults.heads = defaults.kv_heads = 1;
  defaults.window_left = defaults.window_right = -1;
  c_api::initialise(problem, defaults);
}

tw_status tw_attention_create(const tw_device* device, const tw_attention_problem* problem,
                              tw_attention** attention) {
  return c_api::create(kCreate, "attention", attention, [&] {
    c_api::require_address(device, kCreate, "device");
    return tilewright::Attention(
        device->device,
        to_problem(c_api::checked(problem, kCreate, "problem", "tw_attention_problem_init")));
  });
}

void tw_attention_destroy(tw_attention* attention) {
  delete attention;
}

const char* tw_attention_plan_text(const tw_attention* attention) {
  return c_api::plan_text(attention);
}

const char* tw_attention_kernel(const tw_attention* attention) {
  return c_api::kernel_name(attention);
}

size_t tw_attention_workspace_bytes(const tw_attention* attention) {
  return c_api::of_plan(attention, &tilewright::AttentionPlan::workspace_bytes);
}

double tw_attention_flops(const tw_attention* attention) {
  return c_api::of_plan(attention, &tilewright::AttentionPlan::flops);
}

tw_status tw_attention_run(const tw_attention* attention, const tw_attention_arguments* arguments) {
  return c_api::run("tw_attention_run", "attention", attention, arguments,
                    [](const tilewright::Attention& op, const tw_attention_arguments& a) {
                      op.run({a.q, a.k, a.v, a.out, a.lse, a.sink, a.cu_q, a.cu_kv, a.workspace,
                              a.stream, a.q_descale, a.k_descale, a.v_descale, a.v_descale_max});
                    });
}
