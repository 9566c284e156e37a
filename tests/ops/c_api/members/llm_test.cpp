// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every member of the structs of the C interface, llm, set alone to a value of its own: the C++ struct has
// it there, and nowhere else. Defaults are those of C++.
#include "tests/ops/c_api/members/llm.h"

#include "tests/ops/c_api/members.h"

namespace tilewright::c_api {
namespace {

TEST(CApiMembers, tw_llm_options) {
  const Members<tw_llm_options, LlmOptions> test(tw_llm_options_init, changed_tw_llm_options);
  test.has_the_defaults();
  test.sets("device", [](auto& c) { c.device = "sentinel 1"; }, [](const auto& p) { return p.device == "sentinel 1"; });
  test.sets("kv", [](auto& c) { c.kv = "sentinel 2"; }, [](const auto& p) { return p.kv == "sentinel 2"; });
  test.sets("index", [](auto& c) { c.index = "sentinel 3"; }, [](const auto& p) { return p.index == "sentinel 3"; });
  test.sets("experts", [](auto& c) { c.experts = "sentinel 4"; }, [](const auto& p) { return p.experts == "sentinel 4"; });
  test.sets("max_tokens", [](auto& c) { c.max_tokens = 1005; }, [](const auto& p) { return p.max_tokens == 1005; });
  test.sets("sequences", [](auto& c) { c.sequences = 1006; }, [](const auto& p) { return p.sequences == 1006; });
  test.sets("cache_tokens", [](auto& c) { c.cache_tokens = 1007; }, [](const auto& p) { return p.cache_tokens == 1007; });
  test.sets("step_tokens", [](auto& c) { c.step_tokens = 1008; }, [](const auto& p) { return p.step_tokens == 1008; });
  test.sets("has_draft", [](auto& c) { c.has_draft = 1; }, [](const auto& p) { return p.has_draft == true; });
  test.sets("gpus", [](auto& c) { c.gpus = 1010; }, [](const auto& p) { return p.gpus == 1010; });
  test.sets("parallel", [](auto& c) { c.parallel = "sentinel 11"; }, [](const auto& p) { return p.parallel == "sentinel 11"; });
}

TEST(CApiMembers, tw_llm_sampling) {
  const Members<tw_llm_sampling, LlmSampling> test(tw_llm_sampling_init, changed_tw_llm_sampling);
  test.has_the_defaults();
  test.sets("temperature", [](auto& c) { c.temperature = 1.25; }, [](const auto& p) { return p.temperature == 1.25; });
  test.sets("top_k", [](auto& c) { c.top_k = 1002; }, [](const auto& p) { return p.top_k == 1002; });
  test.sets("top_p", [](auto& c) { c.top_p = 3.25; }, [](const auto& p) { return p.top_p == 3.25; });
  test.sets("seed", [](auto& c) { c.seed = 1004; }, [](const auto& p) { return p.seed == 1004; });
  test.sets("max_tokens", [](auto& c) { c.max_tokens = 1005; }, [](const auto& p) { return p.max_tokens == 1005; });
  test.sets("ignores_end", [](auto& c) { c.ignores_end = 1; }, [](const auto& p) { return p.ignores_end == true; });
  test.sets("min_p", [](auto& c) { c.min_p = 7.25; }, [](const auto& p) { return p.min_p == 7.25; });
}

}  // namespace
}  // namespace tilewright::c_api
