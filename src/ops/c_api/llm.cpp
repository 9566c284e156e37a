#include "tilewright/llm.h"

#include "base/error.h"
#include "ops/c_api/convert/all.h"
#include "ops/c_api/status.h"

#include <optional>
#include <span>

namespace c_api = tilewright::c_api;

using c_api::guarded;
using c_api::require_address;
using c_api::Where;
using tilewright::Llm;
using tilewright::LlmCounts;
using tilewright::LlmOptions;
using tilewright::LlmSampling;
using tilewright::LlmToken;

struct tw_llm {
  Llm llm;
};

namespace {

void give_count(std::int64_t value, std::int64_t* to) {
  if (to != nullptr) *to = value;
}

}  // namespace

tw_status tw_llm_open(const char* folder, const tw_llm_options* options, tw_llm** llm) {
  const char* const function = "tw_llm_open";
  return guarded([&] {
    require_address(llm, function, "llm");
    *llm = nullptr;
    require_address(folder, function, "folder");
    const LlmOptions given =
        options == nullptr ? LlmOptions{} : c_api::to_cpp(options, Where{function, "options"});
    *llm = new tw_llm{Llm::open(folder, given)};
  });
}

void tw_llm_destroy(tw_llm* llm) {
  delete llm;
}

const char* tw_llm_description(const tw_llm* llm) {
  return llm == nullptr ? "" : llm->llm.description().c_str();
}

std::int64_t tw_llm_vocab_size(const tw_llm* llm) {
  return llm == nullptr ? 0 : llm->llm.vocab_size();
}

tw_status tw_llm_add(tw_llm* llm, const std::int32_t* prompt, std::size_t num_prompt,
                     const tw_llm_sampling* sampling, const std::int32_t* ends,
                     std::size_t num_ends, std::int64_t* request) {
  const char* const function = "tw_llm_add";
  return guarded([&] {
    require_address(llm, function, "llm");
    if (num_prompt > 0) require_address(prompt, function, "prompt");
    if (num_ends > 0) require_address(ends, function, "ends");
    const LlmSampling given =
        sampling == nullptr ? LlmSampling{} : c_api::to_cpp(sampling, Where{function, "sampling"});
    give_count(llm->llm.add(std::span(prompt, num_prompt), given, std::span(ends, num_ends)),
               request);
  });
}

int tw_llm_cancel(tw_llm* llm, std::int64_t request) {
  bool was_there = false;
  if (llm != nullptr) (void)guarded([&] { was_there = llm->llm.cancel(request); });
  return was_there ? 1 : 0;
}

tw_status tw_llm_next(tw_llm* llm, std::int64_t* request, std::int32_t* token,
                      std::int32_t* finish) {
  const char* const function = "tw_llm_next";
  return guarded([&] {
    require_address(llm, function, "llm");
    require_address(request, function, "request");
    require_address(token, function, "token");
    require_address(finish, function, "finish");
    const LlmToken next = llm->llm.next().value_or(LlmToken{});
    *request = next.request;
    *token = next.token;
    *finish = static_cast<std::int32_t>(next.finish);
  });
}

tw_status tw_llm_counts(const tw_llm* llm, std::int64_t* steps, std::int64_t* prompt_tokens,
                        std::int64_t* new_tokens, std::int64_t* drafted, std::int64_t* accepted) {
  return guarded([&] {
    require_address(llm, "tw_llm_counts", "llm");
    const LlmCounts counts = llm->llm.counts();
    give_count(counts.steps, steps);
    give_count(counts.prompt_tokens, prompt_tokens);
    give_count(counts.new_tokens, new_tokens);
    give_count(counts.drafted, drafted);
    give_count(counts.accepted, accepted);
  });
}
