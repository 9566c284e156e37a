/* The C interface of decode attention, compiled as C99: what it refuses, and a call with nothing to
 * do. */
#include "tilewright/tilewright_decode.h"

#include "tests/ops/c_api_check.h"

#include <string.h>

#define CHECK(condition)               \
  do {                                 \
    if (!(condition)) return __LINE__; \
  } while (0)

static int check_problem(const tw_device* device) {
  tw_attention_decode_problem problem;
  tw_attention_decode* decode = NULL;
  memset(&problem, 0, sizeof problem);
  CHECK(tw_attention_decode_create(device, &problem, &decode) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_attention_decode_problem_init") != NULL);
  tw_attention_decode_problem_init(&problem);
  CHECK(problem.causal == 1 && problem.window_left == -1 && problem.q_len == 1);
  problem.batch = 1;
  problem.heads = 4;
  problem.kv_heads = 3;
  problem.head_dim = 64;
  problem.max_len = 40;
  CHECK(tw_attention_decode_create(device, &problem, &decode) == TW_INVALID_ARGUMENT);
  CHECK(decode == NULL && strstr(tw_last_error(), "kv_heads = 3") != NULL);
  problem.kv_heads = 2;
  problem.descale = 3;
  CHECK(tw_attention_decode_create(device, &problem, &decode) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "descale = 3") != NULL);
  problem.descale = TW_DESCALE_NONE;
  problem.kernel = "r8";
  CHECK(tw_attention_decode_create(device, &problem, &decode) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "kernel = r8") != NULL);
  problem.kernel = NULL;
  CHECK(tw_attention_decode_create(NULL, &problem, &decode) == TW_INVALID_ARGUMENT);
  CHECK(tw_attention_decode_create(device, NULL, &decode) == TW_INVALID_ARGUMENT);
  CHECK(tw_attention_decode_create(device, &problem, NULL) == TW_INVALID_ARGUMENT);
  return 0;
}

static int check_call(const tw_device* device) {
  tw_attention_decode_problem problem;
  tw_attention_decode_arguments arguments;
  tw_attention_decode* decode = NULL;
  tw_attention_decode_problem_init(&problem);
  problem.batch = 1;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.head_dim = 64;
  problem.max_len = 40;
  problem.splits = 2;
  CHECK(tw_attention_decode_create(device, &problem, &decode) == TW_OK);
  CHECK(strstr(tw_attention_decode_plan_text(decode), "decode_bf16_d64_r16") != NULL);
  CHECK(tw_attention_decode_workspace_bytes(decode) > 0);
  memset(&arguments, 0, sizeof arguments);
  CHECK(tw_attention_decode_run(decode, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "q") != NULL);
  CHECK(tw_attention_decode_run(NULL, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(tw_attention_decode_run(decode, NULL) == TW_INVALID_ARGUMENT);
  tw_attention_decode_destroy(decode);

  problem.batch = 0; /* no sequences: nothing is needed, nothing is done */
  CHECK(tw_attention_decode_create(device, &problem, &decode) == TW_OK);
  CHECK(tw_attention_decode_workspace_bytes(decode) == 0);
  CHECK(tw_attention_decode_run(decode, &arguments) == TW_OK);
  tw_attention_decode_destroy(decode);
  tw_attention_decode_destroy(NULL);
  return 0;
}

int check_decode_c_api(const char* spec) {
  tw_device* device = NULL;
  int line = 0;
  CHECK(tw_device_open(spec, &device) == TW_OK);
  line = check_problem(device);
  if (line == 0) line = check_call(device);
  tw_device_close(device);
  return line;
}
