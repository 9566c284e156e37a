/* The C interface of the lightning indexer, compiled as C99: what it refuses. */
#include "tests/ops/c_api/check.h"
#include "tests/ops/c_api/device.h"

static int check_problem(const tw_device* device) {
  tw_indexer_problem problem;
  tw_indexer* indexer = NULL;
  memset(&problem, 0, sizeof problem);
  CHECK(tw_indexer_create(device, &problem, &indexer) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_indexer_problem_init") != NULL);
  tw_indexer_problem_init(&problem);
  CHECK(problem.format == TW_NUMBER_FORMAT_MXFP4 && problem.heads == 64 && problem.ratio == 4);
  CHECK(tw_indexer_create(device, &problem, &indexer) == TW_INVALID_ARGUMENT);
  CHECK(indexer == NULL && strstr(tw_last_error(), "max_len = 0") != NULL);
  problem.max_len = 100;
  problem.keys.num_pages = 2;
  problem.format = TW_NUMBER_FORMAT_NVFP4;
  CHECK(tw_indexer_create(device, &problem, &indexer) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "format = 3") != NULL);
  problem.format = TW_NUMBER_FORMAT_FP8;
  CHECK(tw_indexer_create(NULL, &problem, &indexer) == TW_INVALID_ARGUMENT);
  CHECK(tw_indexer_create(device, &problem, NULL) == TW_INVALID_ARGUMENT);
  return 0;
}

static int check_call(const tw_device* device) {
  tw_indexer_problem problem;
  tw_indexer_arguments arguments;
  tw_indexer* indexer = NULL;
  tw_indexer_problem_init(&problem);
  problem.format = TW_NUMBER_FORMAT_FP8;
  problem.max_len = 100;
  problem.keys.num_pages = 2;
  CHECK(tw_indexer_create(device, &problem, &indexer) == TW_OK);
  CHECK(tw_indexer_key_cache_bytes(indexer) == 2 * 64 * 132);
  CHECK(tw_indexer_workspace_bytes(indexer, 3, 1) > 3 * (100 * 4 + 64 * 128));
  CHECK(tw_indexer_workspace_bytes(indexer, -1, 1) == 0);
  CHECK(tw_indexer_key_cache_bytes(NULL) == 0 && tw_indexer_workspace_bytes(NULL, 1, 1) == 0);
  memset(&arguments, 0, sizeof arguments);
  CHECK(tw_indexer_run(indexer, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_indexer_arguments_init") != NULL);
  tw_indexer_arguments_init(&arguments);
  CHECK(tw_indexer_run(indexer, &arguments) == TW_OK); /* no tokens */
  arguments.tokens = 1;
  CHECK(tw_indexer_run(indexer, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "sequences.batch = 0") != NULL);
  arguments.sequences.batch = 1;
  CHECK(tw_indexer_run(indexer, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "1 sequences of 0 tokens do not make 1") != NULL);
  CHECK(tw_indexer_run(NULL, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(tw_indexer_run(indexer, NULL) == TW_INVALID_ARGUMENT);
  tw_indexer_destroy(indexer);
  tw_indexer_destroy(NULL);
  return 0;
}

static int check_logits(const tw_device* device) {
  tw_indexer_logits_problem problem;
  tw_indexer_logits_arguments arguments;
  tw_indexer_logits* logits = NULL;
  memset(&problem, 0, sizeof problem);
  CHECK(tw_indexer_logits_create(device, &problem, &logits) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_indexer_logits_problem_init") != NULL);
  tw_indexer_logits_problem_init(&problem);
  CHECK(problem.format == TW_NUMBER_FORMAT_FP8 && problem.heads == 64 &&
        problem.keys.num_pages == 0);
  CHECK(tw_indexer_logits_create(device, &problem, &logits) == TW_INVALID_ARGUMENT);
  CHECK(logits == NULL && strstr(tw_last_error(), "max_len = 0") != NULL);
  problem.max_len = 100;
  CHECK(tw_indexer_logits_create(device, &problem, &logits) == TW_OK);
  CHECK(tw_indexer_logits_workspace_bytes(logits, 3, 1) > 0);
  CHECK(tw_indexer_logits_workspace_bytes(logits, -1, 1) == 0);
  CHECK(tw_indexer_logits_workspace_bytes(NULL, 1, 1) == 0);
  tw_indexer_logits_arguments_init(&arguments);
  CHECK(tw_indexer_logits_run(logits, &arguments) == TW_OK); /* no tokens */
  arguments.tokens = 1;
  CHECK(tw_indexer_logits_run(logits, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "the address of q is null") != NULL);
  CHECK(tw_indexer_logits_run(NULL, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(tw_indexer_logits_run(logits, NULL) == TW_INVALID_ARGUMENT);
  tw_indexer_logits_destroy(logits);
  tw_indexer_logits_destroy(NULL);
  return 0;
}

int check_indexer_c_api(const char* spec) {
  tw_device* device = NULL;
  int line = 0;
  CHECK(tw_device_open(spec, &device) == TW_OK);
  line = check_problem(device);
  if (line == 0) line = check_call(device);
  if (line == 0) line = check_logits(device);
  tw_device_close(device);
  return line;
}
