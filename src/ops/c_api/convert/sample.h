// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, sample: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/versions.h"
#include "tilewright/sample.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

template <>
struct Version<tw_sample_problem> {
  using Cpp = SampleProblem;
  static constexpr const char* kName = "tw_sample_problem";
  static constexpr Shape kShape = {kName, sizeof(tw_sample_problem), {}};
  static tw_sample_problem defaults() {
    tw_sample_problem c = {};
    c.struct_bytes = sizeof c;
    c.logits_dtype = TW_F32;
    c.parts = 1;
    return c;
  }
};

inline void assign(const tw_sample_problem& c, SampleProblem& p, const Where& at) {
  p.rows = c.rows;
  p.vocab = c.vocab;
  p.logits_dtype = choose<DType>(c.logits_dtype, {{TW_F32, DType::kF32, "TW_F32"}, {TW_BF16, DType::kBF16, "TW_BF16"}}, at, "logits_dtype");
  p.parts = c.parts;
  p.row_stride = c.row_stride;
  p.part_stride = c.part_stride;
}

template <>
struct Version<tw_sample_arguments> {
  using Cpp = SampleArguments;
  static constexpr const char* kName = "tw_sample_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_sample_arguments), {}};
  static tw_sample_arguments defaults() {
    tw_sample_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_sample_arguments& c, SampleArguments& p, const Where&) {
  p.logits = c.logits;
  p.temperature = c.temperature;
  p.top_k = c.top_k;
  p.top_p = c.top_p;
  p.min_p = c.min_p;
  p.seeds = c.seeds;
  p.positions = c.positions;
  p.ids = c.ids;
  p.log_probs = c.log_probs;
  p.stream = c.stream;
}

template <>
struct Version<tw_gather_rows_problem> {
  using Cpp = GatherRowsProblem;
  static constexpr const char* kName = "tw_gather_rows_problem";
  static constexpr Shape kShape = {kName, sizeof(tw_gather_rows_problem), {}};
  static tw_gather_rows_problem defaults() {
    tw_gather_rows_problem c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_gather_rows_problem& c, GatherRowsProblem& p, const Where&) {
  p.rows = c.rows;
  p.x_rows = c.x_rows;
  p.cols = c.cols;
}

template <>
struct Version<tw_gather_rows_arguments> {
  using Cpp = GatherRowsArguments;
  static constexpr const char* kName = "tw_gather_rows_arguments";
  static constexpr Shape kShape = {kName, sizeof(tw_gather_rows_arguments), {}};
  static tw_gather_rows_arguments defaults() {
    tw_gather_rows_arguments c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

inline void assign(const tw_gather_rows_arguments& c, GatherRowsArguments& p, const Where&) {
  p.x = c.x;
  p.index = c.index;
  p.out = c.out;
  p.stream = c.stream;
}

}  // namespace tilewright::c_api
