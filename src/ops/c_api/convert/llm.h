// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, llm: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/versions.h"
#include "tilewright/llm.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

template <>
struct Version<tw_llm_options> {
  using Cpp = LlmOptions;
  static constexpr const char* kName = "tw_llm_options";
  static constexpr Shape kShape = {kName, sizeof(tw_llm_options), {}};
  static tw_llm_options defaults() {
    tw_llm_options c = {};
    c.struct_bytes = sizeof c;
    c.max_tokens = 4096;
    c.sequences = 16;
    c.step_tokens = 256;
    return c;
  }
};

inline void assign(const tw_llm_options& c, LlmOptions& p, const Where&) {
  if (c.device != nullptr) p.device = c.device;
  if (c.kv != nullptr) p.kv = c.kv;
  if (c.index != nullptr) p.index = c.index;
  if (c.experts != nullptr) p.experts = c.experts;
  p.max_tokens = c.max_tokens;
  p.sequences = c.sequences;
  p.cache_tokens = c.cache_tokens;
  p.step_tokens = c.step_tokens;
  p.has_draft = c.has_draft != 0;
  p.gpus = c.gpus;
  if (c.parallel != nullptr) p.parallel = c.parallel;
}

template <>
struct Version<tw_llm_sampling> {
  using Cpp = LlmSampling;
  static constexpr const char* kName = "tw_llm_sampling";
  static constexpr Shape kShape = {kName, sizeof(tw_llm_sampling), {}};
  static tw_llm_sampling defaults() {
    tw_llm_sampling c = {};
    c.struct_bytes = sizeof c;
    c.top_p = 1;
    c.max_tokens = 64;
    return c;
  }
};

inline void assign(const tw_llm_sampling& c, LlmSampling& p, const Where&) {
  p.temperature = c.temperature;
  p.top_k = c.top_k;
  p.top_p = c.top_p;
  p.seed = c.seed;
  p.max_tokens = c.max_tokens;
  p.ignores_end = c.ignores_end != 0;
  p.min_p = c.min_p;
}

}  // namespace tilewright::c_api
