/* The C interface of hyper-connections from C. */
#include "tests/ops/c_api/check.h"
#include "tests/ops/c_api/device.h"

static int check_connection(const tw_device* device) {
  tw_hyper_connection* connection = NULL;
  tw_hyper_connection_problem problem;
  tw_hyper_connection_arguments arguments;
  memset(&problem, 0, sizeof problem);
  CHECK(tw_hyper_connection_create(device, &problem, &connection) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_hyper_connection_problem_init()") != NULL);
  tw_hyper_connection_problem_init(&problem);
  CHECK(problem.iterations == 20 && problem.has_mix == 1 && problem.stream_dtype == TW_BF16);
  problem.tokens = 3;
  problem.hidden = 144;
  problem.result_dtype = TW_E4M3;
  CHECK(tw_hyper_connection_create(device, &problem, &connection) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "result_dtype = 3") != NULL && connection == NULL);
  problem.result_dtype = TW_F32;
  CHECK(tw_hyper_connection_create(device, &problem, &connection) == TW_OK);
  CHECK(tw_hyper_connection_workspace_bytes(connection) == 2 * 3 * 28 * 4); /* two slices */
  tw_hyper_connection_arguments_init(&arguments);
  CHECK(tw_hyper_connection_run(connection, &arguments) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "streams is null") != NULL);
  CHECK(tw_hyper_connection_run(connection, NULL) == TW_INVALID_ARGUMENT);
  tw_hyper_connection_destroy(connection);
  tw_hyper_connection_destroy(NULL);
  return 0;
}

static int check_embedding(const tw_device* device) {
  tw_hyper_embedding* embedding = NULL;
  tw_hyper_embedding_problem problem;
  tw_hyper_embedding_arguments arguments;
  tw_hyper_embedding_problem_init(&problem);
  problem.hidden = 144;
  CHECK(tw_hyper_embedding_create(device, &problem, &embedding) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "vocab = 0") != NULL);
  problem.vocab = 5;
  CHECK(tw_hyper_embedding_create(device, &problem, &embedding) == TW_OK);
  tw_hyper_embedding_arguments_init(&arguments);
  CHECK(tw_hyper_embedding_run(embedding, &arguments) == TW_OK); /* no tokens */
  CHECK(tw_hyper_embedding_run(NULL, &arguments) == TW_INVALID_ARGUMENT);
  tw_hyper_embedding_destroy(embedding);
  tw_hyper_embedding_destroy(NULL);
  return 0;
}

static int check_norm(const tw_device* device) {
  tw_rms_norm* norm = NULL;
  tw_rms_norm_problem problem;
  tw_rms_norm_arguments arguments;
  tw_rms_norm_problem_init(&problem);
  CHECK(problem.has_weight == 1 && problem.eps == 1e-6);
  problem.rows = 2;
  problem.cols = 12;
  CHECK(tw_rms_norm_create(device, &problem, &norm) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "cols = 12") != NULL);
  problem.cols = 16;
  CHECK(tw_rms_norm_create(device, &problem, &norm) == TW_OK);
  tw_rms_norm_arguments_init(&arguments);
  CHECK(tw_rms_norm_run(norm, &arguments) == TW_INVALID_ARGUMENT);
  tw_rms_norm_destroy(norm);
  tw_rms_norm_destroy(NULL);
  return 0;
}

int check_hyper_c_api(const char* spec) {
  tw_device* device = NULL;
  int line = 0;
  CHECK(tw_device_open(spec, &device) == TW_OK);
  line = check_connection(device);
  if (line == 0) line = check_embedding(device);
  if (line == 0) line = check_norm(device);
  tw_device_close(device);
  return line;
}
