#include "tilewright/quantize.h"

#include "ops/c_api/device.h"
#include "ops/c_api/operator.h"

namespace c_api = tilewright::c_api;
using tilewright::QuantizeArguments;
using tilewright::QuantizeProblem;

struct tw_quantize : c_api::Planned<tilewright::Quantize> {
  using Planned::Planned;
};

namespace {

tilewright::DType to_dtype(std::int32_t dtype) {
  if (dtype == TW_F16) return tilewright::DType::kF16;
  if (dtype == TW_F32) return tilewright::DType::kF32;
  tilewright::require(dtype == TW_BF16, tilewright::ErrorKind::kInvalidArgument,
                      "tw_quantize: problem.dtype = {}; expected TW_BF16 = 0, TW_F16 = 1 or "
                      "TW_F32 = 2",
                      dtype);
  return tilewright::DType::kBF16;
}

QuantizeProblem to_problem(const tw_quantize_problem* given, const char* function) {
  const auto& c = c_api::checked(given, function, "problem", "tw_quantize_problem_init");
  QuantizeProblem p;
  if (c.format != nullptr) p.format = c.format;
  if (c.scales != nullptr) p.scales = c.scales;
  p.dtype = to_dtype(c.dtype);
  p.rows = c.rows;
  p.cols = c.cols;
  p.row_stride = c.row_stride;
  p.has_row_index = c.has_row_index != 0;
  p.out_rows = c.out_rows;
  p.out_cols = c.out_cols;
  p.has_operand_order = c.has_operand_order != 0;
  p.has_128x4_scales = c.has_128x4_scales != 0;
  p.has_block_major_scales = c.has_block_major_scales != 0;
  p.has_encode_scale_address = c.has_encode_scale_address != 0;
  if (c.encode_scale != 0) p.encode_scale = c.encode_scale;
  return p;
}

QuantizeArguments to_arguments(const tw_quantize_arguments& a) {
  return {a.in,           a.row_index,    a.codes,     a.scales,
          a.encode_scale, a.tensor_scale, a.workspace, a.stream};
}

}  // namespace

void tw_quantize_problem_init(tw_quantize_problem* problem) {
  c_api::initialise(problem);
}

tw_status tw_quantize_create(const tw_device* device, const tw_quantize_problem* problem,
                             tw_quantize** quantize) {
  const char* const function = "tw_quantize_create";
  return c_api::create(function, "quantize", quantize, [&] {
    c_api::require_address(device, function, "device");
    return tilewright::Quantize(device->device, to_problem(problem, function));
  });
}

void tw_quantize_destroy(tw_quantize* quantize) {
  delete quantize;
}

const char* tw_quantize_plan_text(const tw_quantize* quantize) {
  return c_api::plan_text(quantize);
}

size_t tw_quantize_workspace_bytes(const tw_quantize* quantize) {
  return c_api::of_plan(quantize, &tilewright::QuantizePlan::workspace_bytes);
}

tw_status tw_quantize_run(const tw_quantize* quantize, const tw_quantize_arguments* arguments) {
  return c_api::run("tw_quantize_run", "quantize", quantize, arguments,
                    [](const auto& op, const auto& a) { op.run(to_arguments(a)); });
}

tw_status tw_quantize_sizes(const tw_quantize_problem* problem, size_t* code_bytes,
                            size_t* scale_bytes) {
  return c_api::guarded([&] {
    const auto plan = tilewright::plan_quantize_on_host(to_problem(problem, "tw_quantize_sizes"));
    if (code_bytes != nullptr) *code_bytes = plan.code_bytes;
    if (scale_bytes != nullptr) *scale_bytes = plan.scale_bytes;
  });
}

tw_status tw_quantize_on_host(const tw_quantize_problem* problem,
                              const tw_quantize_arguments* arguments, int32_t num_threads) {
  const char* const function = "tw_quantize_on_host";
  return c_api::guarded([&] {
    const QuantizeProblem checked = to_problem(problem, function);
    c_api::require_address(arguments, function, "arguments");
    tilewright::quantize_on_host(checked, to_arguments(*arguments), num_threads);
  });
}
