// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Which members of C++ structs differ, llm, under their names in C.
#pragma once

#include "ops/c_api/convert/llm.h"
#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {

inline Changes changed_tw_llm_options(const LlmOptions& x, const LlmOptions& y) {
  Changes found;
  if (x.device != y.device) found.push_back("device");
  if (x.kv != y.kv) found.push_back("kv");
  if (x.index != y.index) found.push_back("index");
  if (x.experts != y.experts) found.push_back("experts");
  if (x.max_tokens != y.max_tokens) found.push_back("max_tokens");
  if (x.sequences != y.sequences) found.push_back("sequences");
  if (x.cache_tokens != y.cache_tokens) found.push_back("cache_tokens");
  if (x.step_tokens != y.step_tokens) found.push_back("step_tokens");
  if (x.has_draft != y.has_draft) found.push_back("has_draft");
  if (x.gpus != y.gpus) found.push_back("gpus");
  if (x.parallel != y.parallel) found.push_back("parallel");
  return found;
}

inline Changes changed_tw_llm_sampling(const LlmSampling& x, const LlmSampling& y) {
  Changes found;
  if (x.temperature != y.temperature) found.push_back("temperature");
  if (x.top_k != y.top_k) found.push_back("top_k");
  if (x.top_p != y.top_p) found.push_back("top_p");
  if (x.seed != y.seed) found.push_back("seed");
  if (x.max_tokens != y.max_tokens) found.push_back("max_tokens");
  if (x.ignores_end != y.ignores_end) found.push_back("ignores_end");
  if (x.min_p != y.min_p) found.push_back("min_p");
  return found;
}

}  // namespace tilewright::c_api
