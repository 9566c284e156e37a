// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, quantize: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/versions.h"
#include "tilewright/quantize.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

template <>
struct Version<tw_quantize_problem> {
  using Cpp = QuantizeProblem;
  static constexpr const char* kName = "tw_quantize_problem";
  static constexpr Shape kShape = {kName, sizeof(tw_quantize_problem), {}};
  static tw_quantize_problem defaults() {
    tw_quantize_problem c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_quantize_problem& c, QuantizeProblem& p, const Where& at) {
  if (c.format != nullptr) p.format = c.format;
  if (c.scales != nullptr) p.scales = c.scales;
  p.dtype = choose<DType>(c.dtype, {{TW_BF16, DType::kBF16, "TW_BF16"}, {TW_F16, DType::kF16, "TW_F16"}, {TW_F32, DType::kF32, "TW_F32"}}, at, "dtype");
  p.rows = c.rows;
  p.cols = c.cols;
  p.row_stride = c.row_stride;
  p.has_row_index = c.has_row_index != 0;
  p.out_rows = c.out_rows;
  p.out_cols = c.out_cols;
  p.has_operand_order = c.has_operand_order != 0;
  p.has_128x4_scales = c.has_128x4_scales != 0;
  p.has_block_major_scales = c.has_block_major_scales != 0;
  if (c.encode_scale != 0) p.encode_scale = c.encode_scale;
  p.has_encode_scale_address = c.has_encode_scale_address != 0;
}

template <>
struct Version<tw_quantize_arguments> {
  using Cpp = QuantizeArguments;
  static constexpr const char* kName = "tw_quantize_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_quantize_arguments), {}};
  static tw_quantize_arguments defaults() {
    tw_quantize_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_quantize_arguments& c, QuantizeArguments& p, const Where&) {
  p.in = c.in;
  p.row_index = c.row_index;
  p.codes = c.codes;
  p.scales = c.scales;
  p.encode_scale = c.encode_scale;
  p.tensor_scale = c.tensor_scale;
  p.workspace = c.workspace;
  p.stream = c.stream;
}

}  // namespace tilewright::c_api
