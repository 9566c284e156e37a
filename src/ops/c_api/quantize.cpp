#include "tilewright/quantize.h"

#include "base/error.h"
#include "ops/c_api/device.h"
#include "ops/c_api/status.h"

using tilewright::QuantizeArguments;
using tilewright::QuantizeProblem;
using tilewright::c_api::guarded;
using tilewright::c_api::require_address;

struct tw_quantize {
  tilewright::Quantize quantize;
  std::string plan_text;
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

QuantizeProblem to_problem(const tw_quantize_problem& c) {
  tilewright::require(c.struct_bytes == sizeof c, tilewright::ErrorKind::kInvalidArgument,
                      "tw_quantize: problem.struct_bytes = {}; expected {}. Fill it with "
                      "tw_quantize_problem_init() of the same version of the library.",
                      c.struct_bytes, sizeof c);
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
  if (problem == nullptr) return;
  *problem = {};
  problem->struct_bytes = sizeof *problem;
}

tw_status tw_quantize_create(const tw_device* device, const tw_quantize_problem* problem,
                             tw_quantize** quantize) {
  return guarded([&] {
    require_address(quantize, "tw_quantize_create", "quantize");
    *quantize = nullptr;
    require_address(device, "tw_quantize_create", "device");
    require_address(problem, "tw_quantize_create", "problem");
    tilewright::Quantize made(device->device, to_problem(*problem));
    std::string text = made.plan().to_string();
    *quantize = new tw_quantize{std::move(made), std::move(text)};
  });
}

void tw_quantize_destroy(tw_quantize* quantize) {
  delete quantize;
}

const char* tw_quantize_plan_text(const tw_quantize* quantize) {
  return quantize == nullptr ? "" : quantize->plan_text.c_str();
}

size_t tw_quantize_workspace_bytes(const tw_quantize* quantize) {
  return quantize == nullptr ? 0 : quantize->quantize.plan().workspace_bytes;
}

tw_status tw_quantize_run(const tw_quantize* quantize, const tw_quantize_arguments* arguments) {
  return guarded([&] {
    require_address(quantize, "tw_quantize_run", "quantize");
    require_address(arguments, "tw_quantize_run", "arguments");
    quantize->quantize.run(to_arguments(*arguments));
  });
}

tw_status tw_quantize_sizes(const tw_quantize_problem* problem, size_t* code_bytes,
                            size_t* scale_bytes) {
  return guarded([&] {
    require_address(problem, "tw_quantize_sizes", "problem");
    const auto plan = tilewright::plan_quantize_on_host(to_problem(*problem));
    if (code_bytes != nullptr) *code_bytes = plan.code_bytes;
    if (scale_bytes != nullptr) *scale_bytes = plan.scale_bytes;
  });
}

tw_status tw_quantize_on_host(const tw_quantize_problem* problem,
                              const tw_quantize_arguments* arguments, int32_t num_threads) {
  return guarded([&] {
    require_address(problem, "tw_quantize_on_host", "problem");
    require_address(arguments, "tw_quantize_on_host", "arguments");
    tilewright::quantize_on_host(to_problem(*problem), to_arguments(*arguments), num_threads);
  });
}
