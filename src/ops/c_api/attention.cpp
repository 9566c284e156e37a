#include "tilewright/attention.h"

#include "ops/c_api/device.h"
#include "ops/c_api/operator.h"

namespace c_api = tilewright::c_api;
using tilewright::AttentionProblem;

struct tw_attention : c_api::Planned<tilewright::Attention> {
  using Planned::Planned;
};

namespace {

AttentionProblem::Strides to_strides(const tw_strides& s) {
  return {s.batch, s.row, s.head};
}

tilewright::DType to_dtype(const char* field, int32_t dtype) {
  tilewright::require(dtype == TW_BF16 || dtype == TW_F16 || dtype == TW_E4M3,
                      tilewright::ErrorKind::kInvalidArgument,
                      "tw_attention_create: problem.{} = {}; expected TW_BF16 = 0, TW_F16 = 1 or "
                      "TW_E4M3 = 3",
                      field, dtype);
  if (dtype == TW_E4M3) return tilewright::DType::kF8_E4M3;
  return dtype == TW_F16 ? tilewright::DType::kF16 : tilewright::DType::kBF16;
}

int32_t at_most(const char* field, int32_t value, int32_t most) {
  tilewright::require(value >= 0 && value <= most, tilewright::ErrorKind::kInvalidArgument,
                      "tw_attention_create: problem.{} = {}; expected 0 to {}", field, value, most);
  return value;
}

AttentionProblem to_problem(const tw_attention_problem& c) {
  AttentionProblem p;
  p.dtype = to_dtype("dtype", c.dtype);
  if (c.dtype == TW_E4M3) {
    p.out_dtype = to_dtype("out_dtype", c.out_dtype);
    p.fp8.scales =
        static_cast<tilewright::Fp8ScaleKind>(at_most("fp8_scales", c.fp8_scales, TW_SCALES_BLOCK));
    p.fp8.v_layout = at_most("fp8_v_columns", c.fp8_v_columns, 1) != 0
                         ? tilewright::Fp8ValueLayout::kColumns
                         : tilewright::Fp8ValueLayout::kRows;
  }
  p.fp8.accumulation = static_cast<tilewright::Fp8Accumulation>(
      at_most("fp8_accumulation", c.fp8_accumulation, TW_SUMS_TWO_LEVEL));
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
  const char* const function = "tw_attention_create";
  return c_api::create(function, "attention", attention, [&] {
    c_api::require_address(device, function, "device");
    return tilewright::Attention(
        device->device,
        to_problem(c_api::checked(problem, function, "problem", "tw_attention_problem_init")));
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
