#include "ops/c_api/handles.h"

namespace c_api = tilewright::c_api;

tw_status tw_quantize_sizes(const tw_quantize_problem* problem, size_t* code_bytes,
                            size_t* scale_bytes) {
  return c_api::guarded([&] {
    const auto plan =
        tilewright::plan_quantize_on_host(c_api::to_cpp(problem, {"tw_quantize_sizes", "problem"}));
    if (code_bytes != nullptr) *code_bytes = plan.code_bytes;
    if (scale_bytes != nullptr) *scale_bytes = plan.scale_bytes;
  });
}

tw_status tw_quantize_on_host(const tw_quantize_problem* problem,
                              const tw_quantize_arguments* arguments, int32_t num_threads) {
  const char* const function = "tw_quantize_on_host";
  return c_api::guarded([&] {
    const tilewright::QuantizeProblem checked = c_api::to_cpp(problem, {function, "problem"});
    tilewright::quantize_on_host(checked, c_api::to_cpp(arguments, {function, "arguments"}),
                                 num_threads);
  });
}
