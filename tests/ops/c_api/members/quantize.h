// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, quantize, under their names in C.
#pragma once

#include "ops/c_api/convert/quantize.h"
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {

inline Changes changed_tw_quantize_problem(const QuantizeProblem& x, const QuantizeProblem& y) {
  Changes found;
  if (x.format != y.format) found.push_back("format");
  if (x.scales != y.scales) found.push_back("scales");
  if (x.dtype != y.dtype) found.push_back("dtype");
  if (x.rows != y.rows) found.push_back("rows");
  if (x.cols != y.cols) found.push_back("cols");
  if (x.row_stride != y.row_stride) found.push_back("row_stride");
  if (x.has_row_index != y.has_row_index) found.push_back("has_row_index");
  if (x.out_rows != y.out_rows) found.push_back("out_rows");
  if (x.out_cols != y.out_cols) found.push_back("out_cols");
  if (x.has_operand_order != y.has_operand_order) found.push_back("has_operand_order");
  if (x.has_128x4_scales != y.has_128x4_scales) found.push_back("has_128x4_scales");
  if (x.has_block_major_scales != y.has_block_major_scales) found.push_back("has_block_major_scales");
  if (x.encode_scale != y.encode_scale) found.push_back("encode_scale");
  if (x.has_encode_scale_address != y.has_encode_scale_address) found.push_back("has_encode_scale_address");
  return found;
}

inline Changes changed_tw_quantize_arguments(const QuantizeArguments& x, const QuantizeArguments& y) {
  Changes found;
  if (x.in != y.in) found.push_back("in");
  if (x.row_index != y.row_index) found.push_back("row_index");
  if (x.codes != y.codes) found.push_back("codes");
  if (x.scales != y.scales) found.push_back("scales");
  if (x.encode_scale != y.encode_scale) found.push_back("encode_scale");
  if (x.tensor_scale != y.tensor_scale) found.push_back("tensor_scale");
  if (x.workspace != y.workspace) found.push_back("workspace");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

}  // namespace tilewright::c_api
