/* The C interface of caches and compressors, compiled as C99. */
#include "tests/ops/c_api/check.h"
#include "tests/ops/c_api/device.h"

static int check_rope(void) {
  tw_rope_options plain, wrong;
  float table[2 * 64];
  tw_rope_options_init(&plain);
  tw_rope_options_init(&wrong);
  wrong.theta = 0;
  CHECK(tw_rope_table(&plain, 2, 0, table) == TW_OK);
  CHECK(table[0] == 1 && table[32] == 0 && table[64] > 0.54f && table[64] < 0.5404f);
  CHECK(tw_rope_table(&wrong, 2, 0, table) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "theta = 0") != NULL);
  CHECK(tw_rope_table(NULL, 2, 0, table) == TW_INVALID_ARGUMENT);
  return 0;
}

static int check_cache(const tw_device* device) {
  tw_kv_layout layout;
  tw_kv_cache* cache = NULL;
  tw_kv_write_arguments write;
  tw_kv_list_arguments list;
  tw_kv_read_arguments read;
  tw_kv_layout_init(&layout);
  layout.num_pages = 3;
  CHECK(tw_kv_cache_create(device, &layout, &cache) == TW_OK);
  CHECK(tw_kv_cache_bytes(cache) == 3 * 37440);
  memset(&write, 0, sizeof write);
  CHECK(tw_kv_cache_write(cache, &write) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_kv_write_arguments_init") != NULL);
  tw_kv_write_arguments_init(&write);
  CHECK(write.eps == 1e-6);
  CHECK(tw_kv_cache_write(cache, &write) == TW_OK); /* no tokens */
  tw_kv_list_arguments_init(&list);
  list.tokens = 1;
  CHECK(tw_kv_cache_list(cache, &list) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "sequences.batch = 0") != NULL);
  list.kind = 3;
  CHECK(tw_kv_cache_list(cache, &list) == TW_INVALID_ARGUMENT);
  tw_kv_read_arguments_init(&read);
  CHECK(tw_kv_cache_read(cache, &read) == TW_OK); /* no rows */
  tw_kv_cache_destroy(cache);
  layout.format = 7;
  CHECK(tw_kv_cache_create(device, &layout, &cache) == TW_INVALID_ARGUMENT);
  CHECK(cache == NULL && strstr(tw_last_error(), "format = 7") != NULL);
  return 0;
}

static int check_compressor(const tw_device* device) {
  tw_compressor_problem problem;
  tw_compressor_arguments arguments;
  tw_compressor* compressor = NULL;
  tw_compressor_problem_init(&problem);
  problem.kind = TW_COMPRESSOR_KIND_HCA;
  problem.cache.page_size = 2;
  problem.cache.num_pages = 4;
  CHECK(tw_compressor_create(device, &problem, &compressor) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "state_slots = 0") != NULL);
  problem.state_slots = 1;
  CHECK(tw_compressor_create(device, &problem, &compressor) == TW_OK);
  CHECK(tw_compressor_state_bytes(compressor) == 136 * 4096);
  CHECK(tw_compressor_cache_bytes(compressor) == 4 * 1728);
  tw_compressor_arguments_init(&arguments);
  CHECK(arguments.max_tokens == 1);
  CHECK(tw_compressor_run(compressor, &arguments) == TW_INVALID_ARGUMENT);
  tw_compressor_destroy(compressor);
  return 0;
}

static int check_inverse_rope(const tw_device* device) {
  tw_inverse_rope* rope = NULL;
  tw_inverse_rope_arguments arguments;
  CHECK(tw_inverse_rope_create(device, &rope) == TW_OK);
  tw_inverse_rope_arguments_init(&arguments);
  CHECK(tw_inverse_rope_run(rope, &arguments) == TW_OK); /* no tokens */
  arguments.tokens = arguments.heads = 1;
  CHECK(tw_inverse_rope_run(rope, &arguments) == TW_INVALID_ARGUMENT);
  tw_inverse_rope_destroy(rope);
  tw_inverse_rope_destroy(NULL);
  return 0;
}

int check_cache_c_api(const char* spec) {
  tw_device* device = NULL;
  int line = check_rope();
  CHECK(tw_device_open(spec, &device) == TW_OK);
  if (line == 0) line = check_cache(device);
  if (line == 0) line = check_compressor(device);
  if (line == 0) line = check_inverse_rope(device);
  tw_device_close(device);
  return line;
}
