// What the streams and the norm check alike.
#pragma once

#include "tilewright/tensor.h"

#include "kernels/model/hyper_connection.h"
#include "ops/operator/problem_checks.h"

#include <cstdint>

namespace tilewright::ops {

inline void check_float(ProblemChecks& checks, const char* field, DType dtype) {
  checks.expect(dtype == DType::kBF16 || dtype == DType::kF32, field, dtype, "BF16 or F32");
}

inline void check_sizes(ProblemChecks& checks, std::int64_t tokens, std::int64_t hidden) {
  checks.range("tokens", tokens, 0);
  checks.expect(hidden > 0 && hidden % 16 == 0 && hidden <= kernels::kHyperMaxHidden, "hidden",
                hidden, "a multiple of 16, at most {}", kernels::kHyperMaxHidden);
}

inline double elem_bytes(DType dtype) {
  return bits_per_elem(dtype) / 8;
}

}  // namespace tilewright::ops
