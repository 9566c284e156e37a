// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, sample, under their names in C.
#pragma once

#include "ops/c_api/convert/sample.h"
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {

inline Changes changed_tw_sample_problem(const SampleProblem& x, const SampleProblem& y) {
  Changes found;
  if (x.rows != y.rows) found.push_back("rows");
  if (x.vocab != y.vocab) found.push_back("vocab");
  if (x.logits_dtype != y.logits_dtype) found.push_back("logits_dtype");
  if (x.parts != y.parts) found.push_back("parts");
  if (x.row_stride != y.row_stride) found.push_back("row_stride");
  if (x.part_stride != y.part_stride) found.push_back("part_stride");
  return found;
}

inline Changes changed_tw_sample_arguments(const SampleArguments& x, const SampleArguments& y) {
  Changes found;
  if (x.logits != y.logits) found.push_back("logits");
  if (x.temperature != y.temperature) found.push_back("temperature");
  if (x.top_k != y.top_k) found.push_back("top_k");
  if (x.top_p != y.top_p) found.push_back("top_p");
  if (x.min_p != y.min_p) found.push_back("min_p");
  if (x.seeds != y.seeds) found.push_back("seeds");
  if (x.positions != y.positions) found.push_back("positions");
  if (x.ids != y.ids) found.push_back("ids");
  if (x.log_probs != y.log_probs) found.push_back("log_probs");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

inline Changes changed_tw_gather_rows_problem(const GatherRowsProblem& x, const GatherRowsProblem& y) {
  Changes found;
  if (x.rows != y.rows) found.push_back("rows");
  if (x.x_rows != y.x_rows) found.push_back("x_rows");
  if (x.cols != y.cols) found.push_back("cols");
  return found;
}

inline Changes changed_tw_gather_rows_arguments(const GatherRowsArguments& x, const GatherRowsArguments& y) {
  Changes found;
  if (x.x != y.x) found.push_back("x");
  if (x.index != y.index) found.push_back("index");
  if (x.out != y.out) found.push_back("out");
  if (x.stream != y.stream) found.push_back("stream");
  return found;
}

}  // namespace tilewright::c_api
