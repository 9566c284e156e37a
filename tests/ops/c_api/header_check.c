/* A C99 program that uses few members. It is compiled twice, with the previous header and with one
 * in which every struct, those inside of others too, lacks its last members. CHECK_HEADER names its
 * function. */
#include "tests/ops/c_api/check.h"
#include "tests/ops/c_api/device.h"

enum { kTokens = 5, kDims = 64, kElems = kTokens * 2 * kDims };

/* Two heads [row, head, dim]; scores are 0, so that a result is the mean of the values it sees.
 * Rows of v are 0, 1, 2, 3, 4. The window of one key before, and the row's own, makes row i the
 * mean of i - 1 and i. */
static int check_attention(const tw_device* device) {
  static const uint16_t numbers[kTokens] = {0, 0x3f80, 0x4000, 0x4040, 0x4080};
  static const uint16_t means[kTokens] = {0, 0x3f00, 0x3fc0, 0x4020, 0x4060};
  static uint16_t zeros[kElems], values[kElems], result[kElems];
  uint64_t q, v, out, workspace;
  int i;
  tw_attention* attention = NULL;
  tw_attention_problem problem;
  tw_attention_arguments arguments;
  LOOK_UP(set_context, cu_ctx_set_current, "cuCtxSetCurrent");
  LOOK_UP(allocate, cu_mem_alloc, "cuMemAlloc_v2");
  LOOK_UP(copy_in, cu_memcpy_htod, "cuMemcpyHtoD_v2");
  LOOK_UP(copy_out, cu_memcpy_dtoh, "cuMemcpyDtoH_v2");
  for (i = 0; i < kElems; ++i) values[i] = numbers[i / (2 * kDims)];
  memset(&problem, 0xa5, sizeof problem);
  tw_attention_problem_init(&problem);
  CHECK(problem.struct_bytes == sizeof problem);
  CHECK(problem.out_strides.struct_bytes == sizeof problem.out_strides);
  problem.q_len = problem.kv_len = kTokens;
  problem.heads = problem.kv_heads = 2;
  problem.head_dim = kDims;
  problem.causal = 1;
  problem.window_left = 1;
  problem.q_strides.batch = problem.out_strides.batch = 0;
  CHECK(tw_attention_create(device, &problem, &attention) == TW_OK);
  CHECK(cu_ctx_set_current(tw_device_context(device)) == 0);
  CHECK(cu_mem_alloc(&q, sizeof zeros) == 0 && cu_mem_alloc(&v, sizeof values) == 0);
  CHECK(cu_mem_alloc(&out, sizeof result) == 0);
  CHECK(cu_mem_alloc(&workspace, tw_attention_workspace_bytes(attention) + 1) == 0);
  CHECK(cu_memcpy_htod(q, zeros, sizeof zeros) == 0);
  CHECK(cu_memcpy_htod(v, values, sizeof values) == 0);
  memset(&arguments, 0xa5, sizeof arguments);
  tw_attention_arguments_init(&arguments);
  arguments.q = arguments.k = (const void*)(uintptr_t)q;
  arguments.v = (const void*)(uintptr_t)v;
  arguments.out = (void*)(uintptr_t)out;
  arguments.workspace = (void*)(uintptr_t)workspace;
  CHECK(tw_attention_run(attention, &arguments) == TW_OK);
  CHECK(tw_device_synchronize(device) == TW_OK);
  CHECK(cu_memcpy_dtoh(result, out, sizeof result) == 0);
  for (i = 0; i < kElems; ++i) CHECK(result[i] == means[i / (2 * kDims)]);
  tw_attention_destroy(attention);
  return 0;
}

/* A struct in a struct in a struct: each may be shorter than the library's. */
static int check_sparse_attention(const tw_device* device) {
  tw_sparse_attention* attention = NULL;
  tw_sparse_attention_problem problem;
  tw_sparse_attention_problem_init(&problem);
  CHECK(problem.compressed.cache.struct_bytes == sizeof problem.compressed.cache);
  CHECK(problem.compressed.cache.format == TW_NUMBER_FORMAT_FP8);
  CHECK(problem.window.cache.page_size == 64 && problem.compressed.cache.page_size == 64);
  problem.heads = 3;
  problem.window.topk = 128;
  problem.window.cache.page_size = 16;
  problem.window.cache.num_pages = 8;
  problem.compressed.topk = 64;
  problem.compressed.cache.page_size = 32;
  problem.compressed.cache.num_pages = 8;
  problem.has_sink = 1;
  CHECK(tw_sparse_attention_create(device, &problem, &attention) == TW_OK);
  CHECK(strstr(tw_sparse_attention_plan_text(attention), "pages of 16") != NULL);
  CHECK(strstr(tw_sparse_attention_plan_text(attention), "pages of 32") != NULL);
  tw_sparse_attention_destroy(attention);
  problem.compressed.cache.page_size = -3;
  CHECK(tw_sparse_attention_create(device, &problem, &attention) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "page_size = -3") != NULL);
  return 0;
}

int CHECK_HEADER(const char* spec) {
  tw_device* device = NULL;
  int line;
  CHECK(tw_device_open(spec, &device) == TW_OK);
  line = check_attention(device);
  if (line == 0) line = check_sparse_attention(device);
  tw_device_close(device);
  return line;
}
