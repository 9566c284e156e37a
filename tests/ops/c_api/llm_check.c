/* A language model through C, compiled as C99: prompts in, tokens out, what is refused. */
#include "tests/ops/c_api/check.h"
#include "tests/ops/c_api/device.h"

enum { kMost = 8 };

struct text {
  int32_t tokens[kMost];
  int count;
  int32_t finish;
};

/* Every token of up to `count` prompts. */
static int read_all(tw_llm* llm, struct text* texts, int64_t count) {
  for (;;) {
    int64_t request = 0;
    int32_t token = 0, finish = 0;
    CHECK(tw_llm_next(llm, &request, &token, &finish) == TW_OK);
    if (request < 0) return 0;
    CHECK(request < count);
    CHECK(texts[request].finish == TW_LLM_FINISH_NONE);
    if (token >= 0) {
      CHECK(texts[request].count < kMost);
      texts[request].tokens[texts[request].count++] = token;
    }
    texts[request].finish = finish;
  }
}

static int check_run(tw_llm* llm) {
  static const int32_t prompt[] = {'T', 'h', 'e', ' '};
  tw_llm_sampling sampling;
  struct text texts[4];
  int64_t request = -1, steps = 0, prompt_tokens = 0, new_tokens = 0, drafted = -1;
  int line = 0;
  memset(texts, 0, sizeof texts);
  tw_llm_sampling_init(&sampling);
  CHECK(sampling.max_tokens == 64 && sampling.top_p == 1 && sampling.min_p == 0);
  sampling.max_tokens = 3;
  CHECK(tw_llm_add(llm, prompt, 4, &sampling, NULL, 0, &request) == TW_OK && request == 0);
  CHECK(tw_llm_add(llm, prompt, 2, NULL, NULL, 0, &request) == TW_OK && request == 1);
  CHECK(tw_llm_cancel(llm, 1) == 1 && tw_llm_cancel(llm, 1) == 0 && tw_llm_cancel(NULL, 0) == 0);
  line = read_all(llm, texts, 1);
  if (line != 0) return line;
  CHECK(texts[0].count == 3 && texts[0].finish == TW_LLM_FINISH_LENGTH);
  /* The second token ends it now; a prompt without new tokens ends with none. */
  CHECK(tw_llm_add(llm, prompt, 4, &sampling, &texts[0].tokens[1], 1, &request) == TW_OK);
  sampling.max_tokens = 0;
  CHECK(tw_llm_add(llm, prompt, 4, &sampling, NULL, 0, &request) == TW_OK && request == 3);
  line = read_all(llm, texts, 4);
  if (line != 0) return line;
  CHECK(texts[2].finish == TW_LLM_FINISH_END);
  CHECK(texts[2].tokens[texts[2].count - 1] == texts[0].tokens[1]);
  CHECK(texts[3].count == 0 && texts[3].finish == TW_LLM_FINISH_LENGTH);
  CHECK(tw_llm_counts(llm, &steps, &prompt_tokens, &new_tokens, &drafted, NULL) == TW_OK);
  CHECK(prompt_tokens == 12 && new_tokens == 3 + texts[2].count && steps > 3 && drafted == 0);
  return 0;
}

static int check_refused(tw_llm* llm, const char* folder) {
  static const int32_t prompt[33] = {1};
  tw_llm_options options;
  tw_llm_sampling sampling;
  tw_llm* other = NULL;
  int64_t request = 7;
  int32_t token = 0, finish = 0;
  tw_llm_sampling_init(&sampling);
  sampling.top_p = 2;
  CHECK(tw_llm_add(llm, prompt, 0, NULL, NULL, 0, &request) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "an empty prompt") != NULL);
  CHECK(tw_llm_add(llm, prompt, 33, NULL, NULL, 0, &request) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "33 tokens; expected at most 32") != NULL);
  CHECK(tw_llm_add(llm, prompt, 1, &sampling, NULL, 0, &request) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "top_p = 2") != NULL && request == 7);
  sampling.top_p = 1;
  sampling.min_p = -1;
  CHECK(tw_llm_add(llm, prompt, 1, &sampling, NULL, 0, &request) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "min_p = -1; expected a number from 0") != NULL);
  CHECK(tw_llm_add(llm, NULL, 1, NULL, NULL, 0, NULL) == TW_INVALID_ARGUMENT);
  CHECK(tw_llm_next(NULL, &request, &token, &finish) == TW_INVALID_ARGUMENT);
  CHECK(tw_llm_next(llm, NULL, &token, &finish) == TW_INVALID_ARGUMENT);
  CHECK(tw_llm_counts(NULL, NULL, NULL, NULL, NULL, NULL) == TW_INVALID_ARGUMENT);
  tw_llm_options_init(&options);
  options.device = "reference";
  options.kv = "int8";
  CHECK(tw_llm_open(folder, &options, &other) == TW_INVALID_ARGUMENT && other == NULL);
  CHECK(strstr(tw_last_error(), "kv = \"int8\"; expected one of exact, bf16") != NULL);
  options.kv = NULL;
  options.has_draft = 1;
  CHECK(tw_llm_open(folder, &options, &other) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "mtp.0") != NULL);
  CHECK(tw_llm_open("/no/such/folder", NULL, &other) != TW_OK && other == NULL);
  CHECK(tw_llm_open(NULL, NULL, &other) == TW_INVALID_ARGUMENT);
  CHECK(tw_llm_description(NULL)[0] == '\0' && tw_llm_vocab_size(NULL) == 0);
  tw_llm_destroy(NULL);
  return 0;
}

/* A token of a model on so many simulated ranks; on none: of the model in float64. */
static int run_ranks(const char* folder, int64_t gpus, const char* parallel, struct text* text) {
  static const int32_t prompt[] = {'#'};
  tw_llm_options options;
  tw_llm_sampling sampling;
  tw_llm* llm = NULL;
  int line = 0;
  tw_llm_options_init(&options);
  CHECK(options.gpus == 0 && options.parallel == NULL);
  options.device = gpus == 0 ? "reference" : "sim:h200";
  options.max_tokens = 16;
  options.gpus = gpus;
  options.parallel = parallel;
  CHECK(tw_llm_open(folder, &options, &llm) == TW_OK);
  tw_llm_sampling_init(&sampling);
  sampling.max_tokens = 1;
  CHECK(tw_llm_add(llm, prompt, 1, &sampling, NULL, 0, NULL) == TW_OK);
  line = read_all(llm, text, 1);
  tw_llm_destroy(llm);
  return line;
}

static int check_ranks(const char* folder) {
  tw_llm_options options;
  struct text texts[3];
  tw_llm* llm = NULL;
  int line = 0;
  memset(texts, 0, sizeof texts);
  line = run_ranks(folder, 0, NULL, &texts[0]);
  if (line == 0) line = run_ranks(folder, 2, NULL, &texts[1]);
  if (line == 0) line = run_ranks(folder, 2, "expert", &texts[2]);
  if (line != 0) return line;
  CHECK(texts[0].count == 1 && texts[0].finish == TW_LLM_FINISH_LENGTH);
  CHECK(memcmp(&texts[0], &texts[1], sizeof texts[0]) == 0);
  CHECK(memcmp(&texts[0], &texts[2], sizeof texts[0]) == 0);
  tw_llm_options_init(&options);
  options.device = "sim:h200";
  options.gpus = 3;
  CHECK(tw_llm_open(folder, &options, &llm) == TW_INVALID_ARGUMENT && llm == NULL);
  CHECK(strstr(tw_last_error(), "3 ranks cannot split the tensors") != NULL);
  options.device = "cuda";
  CHECK(tw_llm_open(folder, &options, &llm) == TW_INVALID_ARGUMENT && llm == NULL);
  CHECK(strstr(tw_last_error(), "torchrun --nproc-per-node 3") != NULL);
  return 0;
}

int check_llm_c_api(const char* folder) {
  tw_llm_options options;
  tw_llm* llm = NULL;
  int line = 0;
  tw_llm_options_init(&options);
  CHECK(options.max_tokens == 4096 && options.sequences == 16 && options.step_tokens == 256);
  options.device = "reference";
  options.max_tokens = 32;
  options.sequences = 2;
  CHECK(tw_llm_open(folder, &options, &llm) == TW_OK);
  CHECK(strstr(tw_llm_description(llm), "float64") != NULL && tw_llm_vocab_size(llm) == 256);
  line = check_run(llm);
  if (line == 0) line = check_refused(llm, folder);
  if (line == 0) line = check_ranks(folder);
  tw_llm_destroy(llm);
  return line;
}
